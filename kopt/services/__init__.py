"""What the command line and every other door share."""
