"""Who proposes the next version: an agent that hands proposals in, or a program that is asked for them."""
