"""Writes the rules into docs/gate.md from their docstrings: `just gate-docs`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

from loop.gate.rule import Rule
from loop.gate.rules import RULES

PAGE = Path(__file__).resolve().parents[1] / "docs/gate.md"
HEADING = "## The rules\n"


def page(text: str) -> str:
    """docs/gate.md with its last section written again."""
    return text.partition(HEADING)[0] + HEADING + "\n" + "\n".join(_rules())


def _rules() -> Iterator[str]:
    yield "`just gate-docs` writes this section from the docstrings in `loop/gate/rules`.\n"
    module = None
    for rule in RULES:
        if inspect.getmodule(rule.check) is not module:
            module = inspect.getmodule(rule.check)
            yield f"### {(module.__doc__ or '').split('. ')[0].rstrip('.') if module else ''}\n"
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    yield f"#### `{rule.id}`\n"
    yield f"{rule.title} Checked for: {rule.stage}.\n"
    for section in rule.sections:
        label, _, said = section.partition(": ")
        yield f"**{label}.** {said[:1].upper()}{said[1:]}\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
