"""What a question asks: products, operations, sizes, names said indirectly."""
