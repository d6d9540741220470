"""What the proposers of a run need: the model that is asked, and the search's study and measurements."""
