"""The registry of methods, read from the pages of the wikis that state them."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, cast

from kbs.common.errors import UsageError
from kbs.evidence.table_rows import InstructionRow, MethodRow, SignatureRow
from wiki.library import Wikis
from wiki.methods import method_pages, methods_of
from wiki.page import Page

REWRITE = "rewrite"
"""The method for a change of language. It needs no page."""
Axis = Literal["compute", "memory", "latency"]


@dataclass(frozen=True)
class Method:
    """A change that makes a kernel faster."""

    id: str
    title: str
    page: str
    """`wiki/path` of the page that states it; empty for `rewrite`."""
    architectures: tuple[str, ...] = ()
    """Architectures that have what it needs; empty: all."""
    languages: tuple[str, ...] = ()
    """Languages, by the vocabulary's ids, in which it can be written; empty: all."""
    axis: Axis | None = None
    """What it saves; None if it belongs to no axis, or the page does not say."""
    priority: int | None = None
    """Among the methods of an axis, 1 is tried first; None if the page does not say."""
    features: tuple[str, ...] = ()
    """Hardware features that it needs."""
    triggers: tuple[str, ...] = ()
    """Symptoms of a profile that call for it."""
    conflicts: tuple[str, ...] = ()
    complements: tuple[str, ...] = ()
    defect: bool = False
    """Whether the page describes a defect of kernels, not a change to make."""

    def runs_on(self, architecture: str) -> bool:
        """Whether an architecture has what the method needs; true if the architecture is not known."""
        return not architecture or not self.architectures or architecture in self.architectures


@dataclass(frozen=True)
class Methods:
    """The methods that have a page, and what the pages say of machine code."""

    all: tuple[Method, ...]
    """In the order of their ids."""
    signatures: tuple[SignatureRow, ...]
    instructions: tuple[InstructionRow, ...] = ()
    """What machine code should show of them, by operation, element type and target."""

    @cached_property
    def by_id(self) -> dict[str, Method]:
        """Each of them."""
        return {method.id: method for method in self.all}

    @property
    def ids(self) -> tuple[str, ...]:
        """Every method with a page, a page without a signature too."""
        return tuple(self.by_id)

    def nearest(self, name: str) -> list[str]:
        """Known ids with a similar spelling."""
        return difflib.get_close_matches(name.lower().replace("-", "_"), self.ids, n=3, cutoff=0.4)

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The methods that are asked about: those named, or all that have a signature.

        UsageError `method_unknown`, with the nearest known ones.
        """
        if not names:
            return sorted({row.method for row in self.signatures})
        for name in names:
            if name not in self.by_id:
                near = self.nearest(name)
                listed = f"The nearest known ones are {', '.join(near)}." if near else f"Known: {', '.join(self.ids)}."
                raise UsageError(f"{name!r} is no method that a wiki has a page of", code="method_unknown", hint=listed)
        return list(dict.fromkeys(names))

    @property
    def offered(self) -> tuple[Method, ...]:
        """The methods that are not defects."""
        return tuple(method for method in self.all if not method.defect)

    def above(self, method: Method, architecture: str, language: str, symptoms: Collection[str]) -> list[Method]:
        """Methods of its axis with higher priority that a symptom calls for, and that architecture and language have.

        The highest priority comes first.
        """
        if method.priority is None or method.axis is None:
            return []
        before = [
            other
            for other in self.offered
            if other.axis == method.axis
            and other.priority is not None
            and other.priority < method.priority
            and not set(other.triggers).isdisjoint(symptoms)
            and other.runs_on(architecture)
            and (not language or not other.languages or language in other.languages)
        ]
        return sorted(before, key=lambda other: (other.priority or 0, other.id))


def read_methods(wikis: Wikis) -> Methods:
    """Read every method; a page of a later wiki stands in place of an earlier one's of the same path."""
    pages = list(method_pages(wikis))
    found = {row.method: _method(page, row) for page in pages for row in methods_of(page)}
    rows = tuple(row for page in pages for row in page.signatures)
    expected = tuple(row for page in pages for row in page.instructions)
    return Methods(tuple(found[id] for id in sorted(found)), rows, expected)


def _method(page: Page, row: MethodRow) -> Method:
    """A method as a page states it. What is not stated is None or empty."""
    return Method(
        id=row.method,
        title=row.title,
        page=f"{page.wiki}/{page.path}",
        architectures=row.architectures,
        languages=row.languages,
        axis=cast("Axis | None", None if row.axis == "any" else row.axis),
        priority=row.priority,
        features=row.features,
        triggers=row.triggers,
        conflicts=row.conflicts,
        complements=row.complements,
        defect=row.defect,
    )
