"""Whether a candidate computes what its reference computes."""
