"""The knowledge base: store, search, citations, specs, answers. It knows nothing of where passages come from."""
