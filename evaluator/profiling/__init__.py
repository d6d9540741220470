"""Take and read NVIDIA Nsight Compute profiles, with one set of metric names."""
