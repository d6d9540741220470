"""The dot products of the rows of two matrices."""


def rowdot(a, b):
    """Compute."""
    return (a * b).sum(dim=1)
