"""Run the user's own benchmark command, and read the figures that it prints."""
