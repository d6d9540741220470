"""Measuring candidates on several GPUs: of this machine, or of a cluster. What is found there ranks, and no more."""
