"""GPU machine code (SASS) opcodes, and patterns that match a family of them.

An opcode is a mnemonic and its modifiers, `LDG.E.128.CONSTANT`. Compilers add modifiers (`LDG.E.LTC128B.128`), so a
pattern is a mnemonic and the modifiers that must be among them, in any order: `LDG.128` names both of these, and not
`LDG.E.LTC128B`, nor is `HFMA2.MMA` an `HMMA`.
Source of the mnemonics: NVIDIA, CUDA Binary Utilities, chapter "Instruction Set Reference".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

_MNEMONIC = re.compile(r"[A-Z][A-Z0-9]*")
_MODIFIER = re.compile(r"[A-Za-z0-9_]+")
_TARGET = re.compile(r"sm_(?P<number>[1-9]\d{1,2})(?P<feature>[af]?)")
COMPILER_COUNTS = ("spill_stores", "spill_loads")
"""What `ptxas -v` counts and a disassembly does not show: a pattern `ptxas.spill_stores` names such a count."""
_COMPILER = "ptxas"


@dataclass(frozen=True)
class Pattern:
    """A family of opcodes, or a count of the compiler's."""

    text: str
    """As it is written: `LDG.128`, `ptxas.spill_stores`. Build it with `pattern`."""

    @cached_property
    def _parts(self) -> tuple[str, frozenset[str]]:
        mnemonic, *modifiers = self.text.split(".")
        return mnemonic, frozenset(modifiers)

    @property
    def compiler_count(self) -> str:
        """The name of the compiler's count; empty for a family of opcodes."""
        mnemonic, _, name = self.text.partition(".")
        return name if mnemonic == _COMPILER else ""

    def matches(self, opcode: str) -> bool:
        """Whether an opcode belongs to the family."""
        mnemonic, *modifiers = opcode.split(".")
        wanted, required = self._parts
        return mnemonic == wanted and required <= set(modifiers)


def pattern(text: str) -> Pattern | None:
    """Read a pattern; None if the text is none."""
    mnemonic, *modifiers = text.split(".")
    if mnemonic == _COMPILER:
        return Pattern(text) if len(modifiers) == 1 and modifiers[0] in COMPILER_COUNTS else None
    if not _MNEMONIC.fullmatch(mnemonic) or not all(_MODIFIER.fullmatch(modifier) for modifier in modifiers):
        return None
    return Pattern(text)


def target_number(text: str) -> int | None:
    """The number of a compilation target: 90 of `sm_90` and `sm_90a`; None if the text names none."""
    match = _TARGET.fullmatch(text)
    return int(match["number"]) if match else None
