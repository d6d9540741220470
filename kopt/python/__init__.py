"""The door for Python programs and notebooks; `import kopt` has its public names."""
