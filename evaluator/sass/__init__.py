"""Compile, disassemble and compare machine code."""
