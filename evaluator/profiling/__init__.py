"""Profiles of NVIDIA Nsight Compute: taken, read, brought to one set of names."""
