"""Rules of the lint: each module has those on what it looks at, registered by `@rule`."""
