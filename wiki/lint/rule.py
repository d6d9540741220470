"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wiki.lint.view import WikiView
from wiki.page import Problem


@dataclass(frozen=True)
class Finding:
    """Something that a rule found; the rule adds its id."""

    path: str
    line: int
    message: str
    error: bool = True
    """False for a warning."""


Finder = Callable[[WikiView], Iterator[Finding]]


@dataclass(frozen=True)
class Rule:
    """A check of a whole wiki, under a stable id."""

    id: str
    summary: str
    find: Finder

    def check(self, view: WikiView) -> Iterator[Problem]:
        """Everything in the wiki that breaks the rule."""
        for found in self.find(view):
            yield Problem(found.path, found.line, self.id, found.message, found.error)


def rule(id: str, summary: str) -> Callable[[Finder], Rule]:
    """Make a rule of the function that finds what breaks it."""
    return lambda find: Rule(id, summary, find)
