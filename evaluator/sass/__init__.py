"""Machine code: compiled, disassembled, compared."""
