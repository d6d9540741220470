"""What a proposer is told, and what it answers."""
