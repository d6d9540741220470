"""What the built-in proposer knows: a problem read from its reference, and families of kernels generated for it."""
