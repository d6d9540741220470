"""The operation that operators of PyTorch compute, by the vocabulary's `operators`."""

from __future__ import annotations

from collections.abc import Mapping

from kbs.evidence.vocabulary import vocabulary

_SHARE = 0.5
"""More than this part of all operations must be those of the operation."""


def operation_of(counted: Mapping[str, int]) -> str:
    """The operation that most of the work is; empty if it is none of the vocabulary, or nothing prevails.

    `counted`: operator → how many operations it does. An operation is known by one operator, `log_softmax`, or by
    several that stand together, `exp+sum+div`. Those of more operators go before those of fewer, whose operators they
    take from other operations; forms of one operation may share them.
    """
    forms = [(tuple(form.split("+")), id) for id, known in vocabulary().operations.items() for form in known.operators]
    left, own = set(counted), dict[str, set[str]]()
    for parts, id in sorted(forms, key=lambda form: (-len(form[0]), form)):
        if left.union(own.get(id, ())).issuperset(parts):
            own.setdefault(id, set()).update(parts)
            left.difference_update(parts)
    work = {id: sum(counted[part] for part in parts) for id, parts in own.items()}
    if not work:
        return ""
    best = max(work, key=lambda id: (work[id], id))
    return best if work[best] > _SHARE * sum(counted.values()) else ""
