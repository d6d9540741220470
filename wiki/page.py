"""A wiki page: its front matter, its lines, and the rows of the tables that kopt reads."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import (
    AdviceRow,
    CostRow,
    InstructionRow,
    MeasuredRow,
    MethodRow,
    SignatureRow,
    ThresholdRow,
)

PageKind = Literal[
    "hardware",
    "bottleneck",
    "technique",
    "method",
    "kernel",
    "language",
    "profiling",
    "pitfall",
    "migration",
    "experiment",
]
Confidence = Literal["verified", "source-reported", "inferred", "experimental"]
SourceKind = Literal[
    "vendor-whitepaper",
    "vendor-datasheet",
    "vendor-doc",
    "vendor-repository",
    "paper",
    "repository",
    "article",
    "measurement",
    "fact-card",
]
MAX_PAGE_BYTES = 1_000_000
"""A larger file is refused: it is not a page that a person wrote."""
BlockKind = Literal["text", "table", "code", "footnote", "asks"]
VENDOR_SOURCES = ("vendor-whitepaper", "vendor-datasheet", "vendor-doc", "vendor-repository")

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")]
PageId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._/-]{0,159}$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^[^\n\r]*$")]


class SourceEntry(BaseModel):
    """A source that a page draws on."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Slug
    title: Line
    url: Annotated[str, StringConstraints(max_length=500)]
    """Address of the document, or a path of the repository for the project's own measurements."""
    kind: SourceKind
    accessed: datetime.date


class FrontMatter(BaseModel):
    """What stands between the two `---` lines at the head of a page."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: PageId
    """The page's path without `.md`."""
    kind: PageKind
    title: Line
    aliases: tuple[Line, ...] = ()
    product: Slug | None = None
    """Product id of a hardware page; the last part of `id` if it is not given."""
    family: Slug | None = None
    """The short name that leaves this product and its siblings open, such as h100."""
    vendor: Slug | None = None
    architectures: tuple[Slug, ...] = ()
    languages: tuple[Slug, ...] = ()
    operations: tuple[Slug, ...] = ()
    bottlenecks: tuple[Slug, ...] = ()
    symptoms: tuple[Slug, ...] = ()
    techniques: tuple[Slug, ...] = ()
    tags: tuple[Slug, ...] = ()
    axis: Literal["compute", "memory", "latency", "any"] | None = None
    """What a method saves: time of operations, bytes, or time in which neither is done; `any` for one that is bound to
    no axis. This and the next six are for method pages only."""
    priority: Annotated[int, Field(ge=1, le=5)] | None = None
    """Which methods of an axis are tried first: 1 before 5."""
    features: tuple[Slug, ...] = ()
    """Hardware features that a method needs."""
    triggers: tuple[Slug, ...] = ()
    """Symptoms of a profile that call for a method."""
    conflicts: tuple[Slug, ...] = ()
    """Methods that it cannot be used together with."""
    complements: tuple[Slug, ...] = ()
    """Methods that it goes well with, or that should come before it."""
    defect: bool = False
    """The page's signature shows a fault of a kernel, and nothing that one would do to it."""
    confidence: Confidence
    reviewed: datetime.date
    sources: Annotated[tuple[SourceEntry, ...], Field(max_length=60)]


@dataclass(frozen=True)
class Problem:
    """Something wrong with a page, at a line of it."""

    path: str
    line: int
    rule: str
    """Stable id of the rule that found it."""
    message: str
    error: bool = True
    """False for a warning."""


@dataclass(frozen=True)
class Block:
    """A top-level block of Markdown, whole: a paragraph, list, table, quotation or code block."""

    kind: BlockKind
    """`asks` is a comment that lists asks, wherever it stands: no text of the page."""
    trail: tuple[str, ...]
    line_start: int
    line_end: int
    info: str = ""
    """The language of a code block."""
    place: int = 0
    """The place of its section in the page."""


@dataclass(frozen=True)
class PageSection:
    """A heading, or the head of a page that has none, and what stands below it until the next heading of any level."""

    place: int
    """Its place in the page."""
    trail: tuple[str, ...]
    """The headings above it and its own, outermost first; empty for what stands above the first heading."""
    line_start: int
    """The line of its heading; of its first block where there is none."""
    line_end: int
    """The last line of its text; of its heading, where there is no text. Definitions of footnotes do not count."""
    asks: tuple[str, ...] = ()
    """Other ways in which people put what it answers."""
    asks_line: int = 0
    """Where its comment of asks begins; 0 where there is none."""

    @property
    def heading(self) -> str:
        """Its own heading, as it is written."""
        return self.trail[-1] if self.trail else ""


@dataclass(frozen=True)
class Page:
    """A page that could be read."""

    wiki: str
    path: str
    lines: tuple[str, ...]
    sha256: str
    meta: FrontMatter
    body_start: int
    """1-based line after the front matter."""
    blocks: tuple[Block, ...]
    sections: tuple[PageSection, ...]
    """All, those without text too, in their order."""
    footnotes: dict[str, int]
    """Footnote labels and the lines that define them."""
    specs: tuple[Spec, ...]
    costs: tuple[CostRow, ...]
    advice: tuple[AdviceRow, ...]
    thresholds: tuple[ThresholdRow, ...]
    measured: tuple[MeasuredRow, ...]
    signatures: tuple[SignatureRow, ...]
    instructions: tuple[InstructionRow, ...]
    methods: tuple[MethodRow, ...]
    """The methods of its rows; `wiki.methods.methods_of` has that of a method page too."""
    problems: tuple[Problem, ...]
    """What is wrong with it and does not keep it from being used: a row that was left out, say."""

    @property
    def method(self) -> str | None:
        """Method id of a method page."""
        return self.meta.id.rsplit("/", 1)[-1] if self.meta.kind == "method" else None

    @property
    def chosen(self) -> bool:
        """Whether it is a method that a run chooses: not of a page about a defect, or without axis or priority."""
        meta = self.meta
        return self.method is not None and not meta.defect and meta.axis is not None and meta.priority is not None

    @property
    def product(self) -> str | None:
        """Product id of a hardware page."""
        if self.meta.kind != "hardware":
            return None
        return self.meta.product or self.meta.id.rsplit("/", 1)[-1]

    def text(self, line_start: int, line_end: int) -> Sequence[str]:
        """Lines [line_start, line_end], 1-based and inclusive."""
        return self.lines[line_start - 1 : line_end]


Kept = TypeVar("Kept")


def kept_name(compute: Callable[[Page], object]) -> str:
    """Under which name a page keeps what is computed of it."""
    return f"_{compute.__module__}.{compute.__name__}"


def once_a_page(compute: Callable[[Page], Kept]) -> Callable[[Page], Kept]:
    """What is asked of a page several times is computed once, and kept with the page as a cached property is."""
    name = kept_name(compute)

    @wraps(compute)
    def kept(page: Page) -> Kept:
        beside = vars(page)
        if name not in beside:
            beside[name] = compute(page)
        found: Kept = beside[name]
        return found

    return kept


def split_lines(text: str) -> tuple[str, ...]:
    """The lines of a file, as citations count them."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return tuple(lines[:-1] if lines[-1] == "" else lines)
