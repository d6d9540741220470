"""What the gate knows of the numbers that a proposer wrote: how they read, what they may rest on, what they say."""
