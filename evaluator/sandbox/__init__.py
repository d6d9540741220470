"""Processes that run code nobody has vouched for, as their parent holds them."""
