"""The command line: one file a command group. Parse, call, render; no logic."""
