"""The instructions that a good kernel of a problem shows, from rows of wiki pages, held against machine code."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from kbs.evidence.opcodes import Pattern
from kbs.evidence.table_rows import InstructionRow
from loop.tools import InstructionNote, MachineNote, Targets

PRODUCT = "matmul"
"""The operation that tensor cores compute, whatever it is a part of."""


def expected(
    rows: Sequence[InstructionRow], operations: Collection[str], dtypes: Collection[str], target: int
) -> tuple[InstructionNote, ...]:
    """What pages state for these operations and element types on a target (90: sm_90).

    A row for any operation holds where no matrices are multiplied: where neither `matmul` nor an operation with rows
    beside it is among `operations`.
    """
    matrices = {id for row in rows if "matmul" in row.operations for id in row.operations}
    found = []
    for row in rows:
        if target not in row.targets:
            continue
        for_operations = [id for id in row.operations if id in operations]
        of_any = not row.operations and matrices.isdisjoint(operations)
        for_dtypes = [id for id in row.dtypes if id in dtypes]
        if not (for_operations or of_any) or not (for_dtypes or not row.dtypes):
            continue
        what = " and ".join(for_operations) or "any operation that multiplies no matrices"
        what += f" in {' and '.join(for_dtypes)}" if for_dtypes else ""
        found.append(
            InstructionNote(
                instruction=row.instruction,
                opcodes=tuple(one.text for one in row.opcodes),
                method=row.method,
                what=f"{what} on sm_{target}",
                line=f'"{_words(row)}" <- {row.citation.reference}',
            )
        )
    return tuple(found)


def _words(row: InstructionRow) -> str:
    """The row as it stands on its page, without its last column, the source."""
    return row.citation.quote.strip().strip("|").rpartition("|")[0].strip()


def counted(wanted: InstructionNote, opcodes: Mapping[str, int]) -> dict[str, int]:
    """The opcodes of machine code that are the instruction, with their counts."""
    patterns = [Pattern(text) for text in wanted.opcodes]
    return {opcode: n for opcode, n in opcodes.items() if any(one.matches(opcode) for one in patterns)}


def held_against(targets: Targets, note: MachineNote) -> list[dict[str, object]]:
    """Each instruction of the targets, and whether machine code has it; `there` is None where there is no code."""
    rows: list[dict[str, object]] = []
    for wanted in targets.instructions or ():
        found = counted(wanted, note.opcodes or {})
        rows.append(
            {
                "instruction": wanted.instruction,
                "method": wanted.method,
                "for": wanted.what,
                "opcodes": list(wanted.opcodes),
                "there": bool(found) if note.opcodes else None,
                "count": sum(found.values()) if note.opcodes else None,
                "found": found,
                "cite": wanted.line.rpartition(" <- ")[2],
            }
        )
    return rows


def lines(targets: Targets, note: MachineNote | None) -> list[str]:
    """The same in words, one line for each instruction."""
    if note is None or not note.opcodes:
        return [f"Not known: {note.why if note else 'the machine code was not looked at'}."]
    said = []
    for wanted in targets.instructions or ():
        found = counted(wanted, note.opcodes)
        shown = ", ".join(f"`{opcode}` {n}" for opcode, n in found.items())
        state = f"there: {shown}" if found else f"not there: no {' or '.join(f'`{one}`' for one in wanted.opcodes)}"
        said.append(f"- {wanted.instruction}, for {wanted.what}: {state}")
    return said or [f"None is expected: {targets.instructions_why}."]
