"""Reads what disassembler and assembler print: machine code, resources, spills. Text in, plain values out.

Formats: `cuobjdump -sass` and `nvdisasm` (instructions), `cuobjdump -res-usage` (resources), `ptxas -v` (spills).
Source: NVIDIA, CUDA Binary Utilities, chapters 2 and 3, and the printed output of versions 12.8 to 13.1.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_FUNCTION = re.compile(r"^\s*Function : (?P<name>\S+)\s*$")
_SECTION = re.compile(r"^\.text\.(?P<name>[^\s:]+):\s*$")
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P(?:\d|T)\s+)?(?P<opcode>[A-Z][A-Z0-9]*(?:\.[A-Za-z0-9_]+)*)(?=[\s;]|$)"
)
_ADDRESSED = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\S")
_USAGE_OF = re.compile(r"^\s*Function (?P<name>\S+):\s*$")
_USAGE = re.compile(r"\b(?P<what>REG|STACK|SHARED|LOCAL):(?P<count>\d{1,9})\b")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_SPILLS = re.compile(
    r"(?P<stack>\d{1,9}) bytes stack frame, (?P<stores>\d{1,9}) bytes spill stores,"
    r" (?P<loads>\d{1,9}) bytes spill loads"
)


class DisassemblyError(ValueError):
    """The text is no whole disassembly."""


@dataclass(frozen=True)
class Usage:
    """What one function needs, as the binary says."""

    registers: int
    """Per thread."""
    stack: int
    """Bytes of local memory of each thread for its frame."""
    shared: int
    """Bytes of static shared memory of a block."""
    local: int
    """Further bytes of local memory of each thread."""


@dataclass(frozen=True)
class Spills:
    """What the assembler says of one function: bytes of each thread, counted in its text."""

    stack: int
    stores: int
    loads: int


def read_opcodes(text: str) -> dict[str, Counter[str]]:
    """Opcodes of each function, counted, in the order of the text.

    `DisassemblyError` where a line with an address holds no instruction that can be read, where an instruction stands
    in no function, or a function has none.
    """
    found: dict[str, Counter[str]] = {}
    current: Counter[str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        heading = _FUNCTION.match(line) or _SECTION.match(line)
        if heading:
            if heading["name"] in found:
                raise DisassemblyError(f"line {number}: the function {heading['name'][:100]} comes twice")
            current = found[heading["name"]] = Counter()
            continue
        if not _ADDRESSED.match(line):
            continue
        instruction = _INSTRUCTION.match(line)
        if instruction is None:
            raise DisassemblyError(f"line {number}: no instruction can be read in {line.strip()[:80]!r}")
        if current is None:
            raise DisassemblyError(f"line {number}: an instruction that belongs to no function")
        current[instruction["opcode"]] += 1
    for name, opcodes in found.items():
        if not opcodes:
            raise DisassemblyError(f"the function {name[:100]} has no instructions")
    return found


def read_usage(text: str) -> dict[str, Usage]:
    """Resources of each function, by name. What is printed in part is left out."""
    found: dict[str, Usage] = {}
    name = ""
    for line in text.split("\n"):
        heading = _USAGE_OF.match(line)
        if heading:
            name = heading["name"]
            continue
        if not name:
            continue
        counts = {match["what"]: int(match["count"]) for match in _USAGE.finditer(line)}
        if counts.keys() >= {"REG", "STACK", "SHARED", "LOCAL"}:
            found[name] = Usage(counts["REG"], counts["STACK"], counts["SHARED"], counts["LOCAL"])
        name = ""
    return found


def read_spills(log: str) -> dict[str, Spills]:
    """Spills of each function, by name, from the log of `ptxas -v`."""
    found: dict[str, Spills] = {}
    name = ""
    for line in log.split("\n"):
        heading = _PROPERTIES.search(line)
        if heading:
            name = heading["name"]
            continue
        counts = _SPILLS.search(line)
        if counts and name:
            found[name] = Spills(int(counts["stack"]), int(counts["stores"]), int(counts["loads"]))
        name = ""
    return found
