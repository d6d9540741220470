"""A GPU wiki: `pages/` is the bundled one (Markdown only); the code beside it reads, checks and indexes a wiki."""
