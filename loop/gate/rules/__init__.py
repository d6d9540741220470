"""The rules of the gate, a file each; `loop.gate.registry` lists them."""
