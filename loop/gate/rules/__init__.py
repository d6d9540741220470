"""The rules of the gate, one module for each thing that they look at, in the order in which they are checked.

A rule is a function under `@rule` in one of these modules; nothing else has to name it.
"""

from __future__ import annotations

from loop.gate.rule import Rule
from loop.gate.rules import (
    ablations,
    branches,
    citations,
    evidence,
    final,
    folder,
    hints,
    machine_code,
    numbers,
    proposal,
    receipts,
)

_MODULES = (proposal, branches, ablations, machine_code, hints, evidence, citations, numbers, folder, receipts, final)

RULES: tuple[Rule, ...] = tuple(
    value for module in _MODULES for value in vars(module).values() if isinstance(value, Rule)
)
RULES_BY_ID = {rule.id: rule for rule in RULES}
