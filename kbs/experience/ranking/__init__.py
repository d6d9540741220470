"""Which past experiments are similar, and which methods to try next."""
