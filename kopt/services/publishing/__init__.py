"""Publishes wikis as a static site that needs no server, no script from elsewhere and no connection."""
