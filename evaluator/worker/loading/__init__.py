"""Code under examination: loaded, run on a CPU, compiled."""
