"""Code that all packages share: errors, atomic files, locks, canonical JSON, git, programs and safe text."""
