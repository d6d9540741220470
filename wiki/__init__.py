"""A GPU wiki: `pages/` has the bundled pages; the code beside it reads, checks and indexes a wiki."""
