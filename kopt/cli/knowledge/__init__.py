"""`kopt ask`, `search`, `show`, `cite` and `spec`."""
