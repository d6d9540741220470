"""Evaluating one kernel: what is asked of the evaluator, receipts that are kept, and their replay."""
