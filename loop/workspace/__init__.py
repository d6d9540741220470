"""The files of a workspace: which is the kernel, the reference, the inputs; and a first kernel where there is none."""
