"""Lines of Triton: values over a tile, operators, reductions."""
