"""Compare two versions of a kernel by their machine code."""

from __future__ import annotations

from collections.abc import Sequence

from evaluator.sass.sass import Function, MethodVerdict, Resources, judge
from kbs.common.json_model import Record
from kbs.evidence.table_rows import SignatureRow


class Change(Record):
    """One count before and after."""

    name: str
    """Opcode or resource."""
    before: int | None
    """In the other version; None where it is not known."""
    after: int | None
    """In the candidate."""


class MethodChange(Record):
    """What the code shows of one method, before and after."""

    method: str
    """Its id."""
    before: MethodVerdict
    """In the other version."""
    after: MethodVerdict
    """In the candidate."""


class FunctionDifference(Record):
    """A function of the candidate and its counterpart in the other version."""

    before: str
    """Label of the other version's function."""
    after: str
    """Label of the candidate's."""
    same_code: bool
    """Whether all opcode counts are equal. Operands and order are not compared."""
    opcodes: list[Change]
    """Opcodes whose count differs, the largest change first."""
    resources: list[Change]
    """Resources that differ."""
    methods: list[MethodChange]
    """Methods whose verdict or count differs."""


class Difference(Record):
    """All functions of two versions."""

    functions: list[FunctionDifference]
    """Pairs of the same name, or the only function of each."""
    only_before: list[str]
    """Functions of the other version that have no counterpart."""
    only_after: list[str]
    """Functions of the candidate that have none."""


def compare(
    before: Sequence[Function],
    after: Sequence[Function],
    methods: Sequence[str],
    signatures: Sequence[SignatureRow],
    target: int,
) -> Difference:
    """Compare two versions. Functions of the same name are paired, those of equal version first, then in order."""
    pairs: list[tuple[Function, Function]] = []
    rest_before, rest_after = list(before), list(after)
    for key in (lambda f: (f.short_name, f.version), lambda f: (f.short_name, "")):
        for function in list(rest_after):
            other = next((f for f in rest_before if key(f) == key(function)), None)
            if other is not None:
                pairs.append((other, function))
                rest_before.remove(other)
                rest_after.remove(function)
    if len(before) == len(after) == 1 and rest_before:
        pairs.append((rest_before.pop(), rest_after.pop()))
    order = {id(function): n for n, function in enumerate(after)}
    pairs.sort(key=lambda pair: order[id(pair[1])])
    return Difference(
        functions=[_difference(b, a, methods, signatures, target) for b, a in pairs],
        only_before=[function.label for function in rest_before],
        only_after=[function.label for function in rest_after],
    )


def _difference(
    before: Function, after: Function, methods: Sequence[str], signatures: Sequence[SignatureRow], target: int
) -> FunctionDifference:
    names = [
        name for name in {**after.opcodes, **before.opcodes} if before.opcodes.get(name) != after.opcodes.get(name)
    ]
    opcodes = [Change(name=n, before=before.opcodes.get(n, 0), after=after.opcodes.get(n, 0)) for n in names]
    opcodes.sort(key=lambda change: (-abs((change.after or 0) - (change.before or 0)), change.name))
    resources = [
        Change(name=name, before=getattr(before.resources, name), after=getattr(after.resources, name))
        for name in Resources.model_fields
        if getattr(before.resources, name) != getattr(after.resources, name)
    ]
    verdicts = [
        MethodChange(
            method=method,
            before=judge(method, signatures, target, before),
            after=judge(method, signatures, target, after),
        )
        for method in methods
    ]
    return FunctionDifference(
        before=before.label,
        after=after.label,
        same_code=not opcodes,
        opcodes=opcodes,
        resources=resources,
        methods=[v for v in verdicts if (v.before.verdict, v.before.count) != (v.after.verdict, v.after.count)],
    )
