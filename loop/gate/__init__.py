"""The gate: what a version must show before it counts. See docs/gate.md."""
