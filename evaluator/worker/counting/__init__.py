"""What a reference must move and compute."""
