"""The user's own benchmark command and the figures that it prints."""
