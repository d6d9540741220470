"""Parse the output of disassembler and assembler: machine code, resources, spills.

Formats: `cuobjdump -sass` and `nvdisasm` (instructions), `cuobjdump -res-usage -elf` (resources), `ptxas -v` (spills).
`-res-usage` prints registers and memory; `-elf` prints the attributes that the compiler left for the driver:
`EIATTR_REQNTID` (the block size that the code demands, as Triton's does), `EIATTR_MAX_THREADS` (`__launch_bounds__`),
`EIATTR_NUM_BARRIERS` (before CUDA 13 the barriers stand in bits 20 to 26 of the flags of the kernel's section instead),
and symbols, of which kernels have the bit 0x10 in `other`.
From sm_90 on the printed shared memory begins with the part that the system reserves; the file then has a section
`.nv.shared.reserved.0`.
Source: NVIDIA, CUDA Binary Utilities, chapters 2 and 3, and the printed output of versions 12.8 to 13.1.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

RESERVED_BYTES = 1024
"""Shared memory that the system takes of each block: CUDA C++ Programming Guide, compute capability 8.0 and later."""
_LAID_OUT_FROM = 90
"""Targets from here on have the reserved part laid out in front of a kernel's own."""
_FUNCTION = re.compile(r"^\s*Function : (?P<name>\S+)\s*$")
_SECTION = re.compile(r"^\.text\.(?P<name>[^\s:]+):\s*$")
_INSTRUCTION = re.compile(
    r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:\{\s*)?(?:@!?U?P(?:\d|T)\s+)?(?P<opcode>[A-Z][A-Z0-9]*(?:\.[A-Za-z0-9_]+)*)(?=[\s;]|$)"
)
_ADDRESSED = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+\S")
_COMMENT = re.compile(r"/\*[^*]*\*/")
_USAGE_OF = re.compile(r"^\s*Function (?P<name>\S+):\s*$")
_USAGE = re.compile(r"\b(?P<what>REG|STACK|SHARED|LOCAL):(?P<count>\d{1,9})\b")
_TARGET = re.compile(r"^64-?bit elf:[^\n]*\bsm=(?P<number>\d{2,3})(?P<suffix>[af]?)\b", re.IGNORECASE | re.MULTILINE)
_ATTRIBUTES = re.compile(r"^\.nv\.info\.(?P<name>\S+)$")
_ATTRIBUTE = re.compile(r"Attribute:\s*(?P<name>EIATTR_\w+)\s*Format:\s*\w+\s*Value:\s*(?P<value>[^\n]*)")
_TEXT = re.compile(
    r"^[ \t]*[0-9a-f]+(?:[ \t]+[0-9a-f]+){4}[ \t]+PROGBITS[ \t]+(?P<flags>[0-9a-f]+)(?:[ \t]+[0-9a-f]+){2}"
    r"[ \t]+\.text\.(?P<name>\S+)[ \t]*$",
    re.MULTILINE,
)
_SYMBOL = re.compile(
    r"^[ \t]*0x[0-9a-f]+(?:[ \t]+(?:0x)?[0-9a-f]+){2}[ \t]+0x(?P<info>[0-9a-f]+)[ \t]+0x(?P<other>[0-9a-f]+)"
    r"[ \t]+(?:0x)?[0-9a-f]+[ \t]+(?P<name>\S+)[ \t]*$",
    re.MULTILINE,
)
_FUNCTION_SYMBOL, _ENTRY = 2, 0x10
_HEX = re.compile(r"0x[0-9a-f]{1,8}")
_RESERVED = re.compile(r"[ \t]\.nv\.shared\.reserved\.0[ \t]*$", re.MULTILINE)
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
    """Bytes of static shared memory of a block, without the part that the system reserves."""
    local: int = 0
    """Further bytes of local memory of each thread, for arrays."""
    kernel: bool = False
    """Whether it can be launched; other functions are called by kernels."""
    barriers: int = 1
    """Of a block; 1 where the binary does not say."""
    required_threads: int | None = None
    """Block size that the code demands."""
    max_threads: int | None = None
    """Largest block size that the code was compiled for."""


@dataclass(frozen=True)
class Spills:
    """What the assembler says of one function: bytes of each thread, counted in its text."""

    stack: int
    stores: int
    loads: int


@dataclass(frozen=True)
class Code:
    """The instructions of one function."""

    opcodes: Counter[str]
    """How often each opcode stands there."""
    hash: str
    """SHA-256 of the instructions in their order, as they are printed, without addresses and encodings."""


def read_functions(text: str) -> dict[str, Code]:
    """The instructions of each function, in the order of the text.

    `DisassemblyError` where a line with an address holds no instruction that can be read, where an instruction stands
    in no function, or a function has none.
    """
    opcodes: dict[str, Counter[str]] = {}
    lines: dict[str, list[str]] = {}
    name = ""
    for number, line in enumerate(text.split("\n"), start=1):
        heading = _FUNCTION.match(line) or _SECTION.match(line)
        if heading:
            name = heading["name"]
            if name in opcodes:
                raise DisassemblyError(f"line {number}: the function {name[:100]} comes twice")
            opcodes[name], lines[name] = Counter(), []
            continue
        if not _ADDRESSED.match(line):
            continue
        instruction = _INSTRUCTION.match(line)
        if instruction is None:
            raise DisassemblyError(f"line {number}: no instruction can be read in {line.strip()[:80]!r}")
        if not name:
            raise DisassemblyError(f"line {number}: an instruction that belongs to no function")
        opcodes[name][instruction["opcode"]] += 1
        lines[name].append(" ".join(_COMMENT.sub(" ", line).split()))
    empty = [name for name, of in lines.items() if not of]
    if empty:
        raise DisassemblyError(f"the function {empty[0][:100]} has no instructions")
    return {name: Code(opcodes[name], hashlib.sha256("\n".join(of).encode()).hexdigest()) for name, of in lines.items()}


def read_targets(text: str) -> list[tuple[int, str]]:
    """The targets that a binary has code for, by its printed headers: (90, "a") for sm_90a."""
    return sorted({(int(match["number"]), match["suffix"].lower()) for match in _TARGET.finditer(text)})


def read_usage(text: str) -> dict[str, Usage]:
    """Resources of each function, by name, out of what `cuobjdump -res-usage -elf` prints of a binary for one target.

    What is printed in part is left out. Without the part of `-elf` no function is known to be a kernel.
    """
    found: dict[str, Usage] = {}
    laid_out = any(number >= _LAID_OUT_FROM for number, _ in read_targets(text)) and _RESERVED.search(text)
    attributes, flagged, kernels = _attributes(text), _barriers(text), _kernels(text)
    for name, line in _behind(_USAGE_OF.match, text):
        counts = {match["what"]: int(match["count"]) for match in _USAGE.finditer(line)}
        if not counts.keys() >= {"REG", "STACK", "SHARED", "LOCAL"}:
            continue
        shared, of = counts["SHARED"], attributes.get(name, {})
        found[name] = Usage(
            registers=counts["REG"],
            stack=counts["STACK"],
            shared=shared - RESERVED_BYTES if laid_out and shared >= RESERVED_BYTES else shared,
            local=counts["LOCAL"],
            kernel=name in kernels,
            barriers=_number(of.get("EIATTR_NUM_BARRIERS")) or flagged.get(name, 1),
            required_threads=_threads(of.get("EIATTR_REQNTID")),
            max_threads=_threads(of.get("EIATTR_MAX_THREADS")),
        )
    return found


def _kernels(text: str) -> set[str]:
    """Functions whose symbol is marked as an entry; those that kernels call have attributes too."""
    return {
        match["name"]
        for match in _SYMBOL.finditer(text)
        if int(match["info"], 16) & 0xF == _FUNCTION_SYMBOL and int(match["other"], 16) & _ENTRY
    }


def _attributes(text: str) -> dict[str, dict[str, str]]:
    """Attribute → value of each kernel, as `cuobjdump -elf` prints them."""
    found: dict[str, dict[str, str]] = {}
    for block in re.split(r"\n(?=\.\S+\n)", text):
        heading, _, body = block.partition("\n")
        section = _ATTRIBUTES.match(heading)
        if section:
            found[section["name"]] = {match["name"]: match["value"].strip() for match in _ATTRIBUTE.finditer(body)}
    return found


def _barriers(text: str) -> dict[str, int]:
    """Barriers of a block of each kernel whose section says so in its flags, as files of toolkits before 13 do."""
    counts = {match["name"]: int(match["flags"], 16) >> 20 & 0x7F for match in _TEXT.finditer(text)}
    return {name: count for name, count in counts.items() if count}


def _threads(sides: str | None) -> int | None:
    """Threads of a block of the size `0x100 0x1 0x1`."""
    numbers = [_number(side) for side in (sides or "").split()]
    return prod(number for number in numbers if number) if len(numbers) == 3 and all(numbers) else None


def _number(word: str | None) -> int | None:
    """`0x100` as a number; None for anything else."""
    return int(word, 16) if word and _HEX.fullmatch(word) else None


def read_spills(log: str) -> dict[str, Spills]:
    """Spills of each function, by name, from the log of `ptxas -v`."""
    found: dict[str, Spills] = {}
    for name, line in _behind(_PROPERTIES.search, log):
        counts = _SPILLS.search(line)
        if counts:
            found[name] = Spills(int(counts["stack"]), int(counts["stores"]), int(counts["loads"]))
    return found


def _behind(heading: Callable[[str], re.Match[str] | None], text: str) -> Iterator[tuple[str, str]]:
    """(name in the heading, the one line behind it) of each function."""
    name = ""
    for line in text.split("\n"):
        found = heading(line)
        if found is None and name:
            yield name, line
        name = found["name"] if found else ""
