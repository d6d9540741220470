"""Constants of a kernel's code: which state something of hardware, and which nothing explains."""
