"""kopt as pages in a browser on this machine: answers, wikis, the log, runs, receipts, and what works here."""
