"""Asks a language model over HTTP, in two forms of requests; its answer comes whole or as it is written."""
