"""The JSON of answers: claims, citations, evidence for agents, and how a model worded them."""
