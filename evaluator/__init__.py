"""Says whether a candidate kernel is right and honest: runs it isolated, compares memory, writes a receipt.

`evaluator.evaluate.evaluate` does one evaluation. `evaluator/worker/` is what runs beside foreign code, under any
interpreter that has torch; this file runs there too, and so it imports nothing. See docs/evaluator.md.
"""
