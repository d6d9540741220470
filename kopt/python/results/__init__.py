"""What Python gets: the data of a command, with its status and warnings, and how a notebook shows it."""
