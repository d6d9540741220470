"""What every package uses: errors, files that are whole or absent, canonical JSON, git, text that is safe to show."""
