"""What is kept, for looking at it: receipts, and runs with their versions. Nothing here writes."""
