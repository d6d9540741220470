"""What agents and language models get of an answer, and the check of the sentences that they make of it."""
