"""What bounds a kernel, from its profile."""
