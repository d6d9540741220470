"""Signatures of methods: one answer for each target."""

from __future__ import annotations

from collections.abc import Iterator

from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView


@rule("signature", "Two signatures of a method speak of one target, or one counts what it calls unclear.")
def signature(view: WikiView) -> Iterator[Finding]:
    """Every signature row that leaves open what machine code must show."""
    for page in view.pages:
        first: dict[int, int] = {}
        for row in page.signatures:
            line = row.citation.line_start
            for target in row.targets:
                above = first.setdefault(target, line)
                if above != line:
                    yield Finding(page.path, line, f"line {above} has a signature for sm_{target} already")
            if len(set(row.targets)) < len(row.targets):
                yield Finding(page.path, line, "a target stands here twice")
            for both in sorted({p.text for p in row.opcodes} & {p.text for p in row.unclear}):
                yield Finding(page.path, line, f"{both} cannot both count and be unclear")
