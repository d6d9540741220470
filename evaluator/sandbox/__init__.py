"""Start, feed and watch the processes that run untrusted code."""
