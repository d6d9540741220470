"""What a rule is, and the registry that `@rule` fills."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from wiki.lint.view import WikiView
from wiki.page import Page, Problem


@dataclass(frozen=True)
class Finding:
    """A place that breaks a rule; the rule adds its id."""

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
    explanation: str
    """What to do, in one line; then what is checked, why, and an example."""
    find: Finder
    alone: bool = False
    """Whether what it finds on a page depends on no other page."""
    of_page: tuple[Callable[[Page], object], ...] = ()
    """All that it asks of a page beside its front matter and its specs, where it compares pages; kept with the page."""

    @property
    def summary(self) -> str:
        """The first line of the explanation."""
        return self.explanation.partition("\n")[0]

    def check(self, view: WikiView) -> Iterator[Problem]:
        """Every place in the wiki that breaks the rule."""
        for found in self.find(view):
            yield Problem(found.path, found.line, self.id, found.message, found.error)


REGISTERED: list[Rule] = []
"""Every rule whose module has been imported; `wiki.lint` imports all of them."""


def rule(
    id: str, *, alone: bool = False, of_page: tuple[Callable[[Page], object], ...] = ()
) -> Callable[[Finder], Finder]:
    """Register a function that finds what breaks the rule `id`; its docstring explains the rule. It looks at one page
    at a time where it is `alone`; otherwise it looks at no text, and `of_page` is all that it asks of each page."""

    def register(find: Finder) -> Finder:
        REGISTERED.append(Rule(id, inspect.getdoc(find) or "", find, alone, of_page))
        return find

    return register
