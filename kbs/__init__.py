"""The knowledge base: index, search, citations, specs and answers. It does not know where passages come from."""
