"""What runs outside of kopt's own process: the fork server, and the workers that execute reference and candidate.

It is run by any Python that has torch (`--python`), so it imports the standard library, numpy, torch and triton alone.
"""
