"""What a question asks: products, operations, sizes, paraphrases."""
