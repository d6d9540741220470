"""What results say as lines of text: the same in a terminal, and to an agent."""
