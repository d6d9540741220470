"""The record of a run: its events, its state, its folder, its git repository."""
