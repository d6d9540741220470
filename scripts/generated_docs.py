"""Writes the pages of docs/ that are made from the code: `just docs`, or `python -m scripts.generated_docs`."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from loop.gate.rule import Rule
from loop.gate.rules import RULES
from tests.adversarial import corpus
from wiki.lint import explain_rules

ROOT = Path(__file__).resolve().parents[1]
GATE_HEADING = "## The rules\n"


def commands_page() -> str:
    """docs/commands.md, from the help of the commands."""
    words = [sys.executable, "-m", "typer", "--app", "app", "kopt.cli.main", "utils", "docs", "--name", "kopt"]
    printed = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT, timeout=120).stdout
    return printed.rstrip("\n") + "\n"


def gate_page() -> str:
    """docs/gate.md, with its last section from the docstrings of the rules."""
    return _text("gate.md").partition(GATE_HEADING)[0] + GATE_HEADING + "\n" + "\n".join(_gate_rules())


def _gate_rules() -> Iterator[str]:
    yield "`just docs` writes this section from the docstrings in `loop/gate/rules`.\n"
    module = None
    for rule in RULES:
        if inspect.getmodule(rule.check) is not module:
            module = inspect.getmodule(rule.check)
            yield f"### {(module.__doc__ or '').split('. ')[0].rstrip('.') if module else ''}\n"
        yield from _gate_rule(rule)


def _gate_rule(rule: Rule) -> Iterator[str]:
    yield f"#### `{rule.id}`\n"
    yield f"{rule.title} Checked for: {rule.stage}.\n"
    for section in rule.sections:
        label, _, said = section.partition(": ")
        yield f"**{label}.** {said[:1].upper()}{said[1:]}\n"


def lint_page() -> str:
    """docs/lint-rules.md, with everything below its introduction from the docstrings of the rules."""
    return _text("lint-rules.md").partition("## ")[0] + explain_rules()


def _text(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


PAGES: dict[str, Callable[[], str]] = {
    "commands.md": commands_page,
    "gate.md": gate_page,
    "lint-rules.md": lint_page,
    "cheats.md": corpus.page,
}


if __name__ == "__main__":
    for name, page in PAGES.items():
        (ROOT / "docs" / name).write_text(page(), "utf-8")
