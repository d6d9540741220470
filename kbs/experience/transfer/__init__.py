"""Export and import of the experience log."""
