"""A new page of a wiki, in the form that the lint wants, with a mark wherever something is to be filled in."""

from __future__ import annotations

import datetime
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from kbs.common.errors import UsageError
from kbs.common.markdown import inert
from kbs.common.visible_text import visible
from kbs.evidence.vocabulary import Vocabulary
from wiki.asks import written_asks
from wiki.library import BUNDLED, Wiki
from wiki.lint import lint
from wiki.lint.rules.text import PLACEHOLDER
from wiki.page import PageKind, Problem
from wiki.tables import ADVICE_HEADER, COST_HEADER, MEASURED_HEADER, SPEC_HEADER, THRESHOLD_HEADER

KINDS: tuple[str, ...] = get_args(PageKind)
_SLUG = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_MOST_TITLE = 100
"""Characters of a title: each ask of the page names it."""
_ELSEWHERE = frozenset({"orphan", "index-entry"})
"""Rules about a page's place in its wiki, which the page alone cannot keep."""
_TABLES: dict[str, tuple[tuple[str, tuple[str, ...], str], ...]] = {
    "hardware": (("Specifications", SPEC_HEADER, "a row for each metric; the value is unpublished where it is"),),
    "bottleneck": (
        ("Thresholds of {title}", THRESHOLD_HEADER, "a row for each symptom and metric"),
        ("What to try", ADVICE_HEADER, "a row for each technique, best first"),
    ),
    "kernel": (
        ("Cost", COST_HEADER, "a row for each read, write and kind of arithmetic of one call"),
        ("What to try", ADVICE_HEADER, "a row for each technique, best first"),
    ),
    "profiling": (("Thresholds of {title}", THRESHOLD_HEADER, "a row for each symptom and metric"),),
    "experiment": (("Measured", MEASURED_HEADER, "a row for each figure"),),
}
"""Kind → heading, columns and rows of the tables that are read by row and that its pages have."""


@dataclass(frozen=True)
class NewPage:
    """A page that is to be filled in."""

    id: str
    text: str
    todo: tuple[Problem, ...]
    """What the lint finds in the page alone: all of it is to be filled in."""

    @property
    def path(self) -> str:
        """Where it belongs in a wiki."""
        return f"{self.id}.md"


def is_page_id(id: str) -> bool:
    """Whether it is KIND/SLUG."""
    kind, _, slug = id.partition("/")
    return kind in KINDS and bool(_SLUG.fullmatch(slug))


def new_page(name: str, title: str, terms: Vocabulary, today: datetime.date) -> NewPage:
    """The page `KIND/SLUG`. Raises `UsageError`: `page_name`, `page_title`."""
    kind, _, slug = name.removesuffix(".md").partition("/")
    if not is_page_id(f"{kind}/{slug}"):
        raise UsageError(
            f"{visible(name)!r} cannot be the name of a page",
            code="page_name",
            hint=f"Give KIND/SLUG. Kinds: {', '.join(KINDS)}. A slug has a to z, digits, and - . _ between.",
        )
    words = re.sub(r"[-_]+", " ", slug).strip()
    title = title.strip() or words[:1].upper() + words[1:]
    if len(title) > _MOST_TITLE or not title.isprintable():
        raise UsageError(
            f"a title is one line of at most {_MOST_TITLE} characters",
            code="page_title",
            hint="Give a shorter --title.",
        )
    text = "\n".join(_lines(kind, slug, title, today)) + "\n"
    return NewPage(f"{kind}/{slug}", text, tuple(_problems(f"{kind}/{slug}", text, terms, today)))


def _lines(kind: str, slug: str, title: str, today: datetime.date) -> Iterator[str]:
    said, todo = inert(title), PLACEHOLDER
    yield from ("---", f"id: {kind}/{slug}", f"kind: {kind}", f"title: {json.dumps(title, ensure_ascii=False)}")
    if kind == "hardware":
        yield f"vendor: nvidia  # {todo} the vendor, an id of the vocabulary"
    if kind == "method":
        yield f"axis: any  # {todo} what it saves: compute · memory · latency, or any"
        yield f"priority: 5  # {todo} 1 is tried first among the methods of an axis, 5 last"
    yield f"# {todo} add what fits, as docs/wiki-format.md says: aliases, and ids of the vocabulary under"
    yield "# architectures, languages, operations, bottlenecks, symptoms, techniques, tags"
    yield f"confidence: source-reported  # {todo} verified · source-reported · inferred · experimental"
    yield f"reviewed: {today}"
    yield "sources:"
    source = f'title: "{todo} title of the document", url: "{todo} its address"'
    yield f"  - {{id: source, {source}, kind: vendor-doc, accessed: {today}}}"
    yield from ("---", "", f"# {said}")
    yield written_asks(
        f"{todo} {ask}"
        for ask in (f"what is {title}", f"{title} by another name", f"a symptom or an error that leads to {title}")
    )
    yield ""
    yield f"{todo} say in one to three sentences what {said} is, and what it means for the reader.[^source-lead]"
    yield from ("", f"## {todo} a question about {said} that this section answers")
    yield written_asks(
        f"{todo} {ask}"
        for ask in (
            f"the question on {title} in few words",
            f"{title} as people type it",
            f"a metric that {title} moves",
        )
    )
    yield ""
    yield f"{todo} answer the heading in one short sentence, which names {said}.[^source-answer]"
    yield f"{todo} give the reason, how to check it, and when it does not pay, one sentence per line.[^source-answer]"
    for heading, columns, rows in _TABLES.get(kind, ()):
        yield from ("", f"## {heading.format(title=said)}")
        if heading.startswith("Thresholds"):  # no heading that all pages share, so the section is found by its asks
            what = (f"how to see {title} in a profile", f"{title} threshold", f"above which value is it {title}")
            yield written_asks(f"{todo} {ask}" for ask in what)
        yield ""
        yield f"| {' | '.join(columns)} |"
        yield f"|{'---|' * len(columns)}"
        yield from ("", f"{todo} {rows}; remove this line, or the section where there is none.")
    yield ""
    yield from (f"[^source-{place}]: source, {todo} the place in it." for place in ("lead", "answer"))


def _problems(id: str, text: str, terms: Vocabulary, today: datetime.date) -> Iterator[Problem]:
    """What the lint finds in the page alone."""
    with tempfile.TemporaryDirectory(prefix="kopt-") as name:
        file = Path(name) / f"{id}.md"
        file.parent.mkdir(parents=True)
        file.write_text(text, "utf-8")
        yield from (one for one in lint(Wiki("new", Path(name)), terms, today=today) if one.rule not in _ELSEWHERE)


def target_wiki(which: str, wikis: Sequence[Wiki]) -> Wiki:
    """The wiki that a new page is for: a known one, or that in a folder, which may have no page yet.

    Raises `UsageError` (`wiki_unknown`).
    """
    known = [wiki for wiki in wikis if not wiki.notes]
    named = next((wiki for wiki in known if wiki.name == which), None)
    if named is not None:
        return named
    folder = Path(which).expanduser()
    try:
        if folder.is_dir():
            root = folder.resolve()
            return next((wiki for wiki in known if wiki.root.resolve() == root), Wiki(root.name, root))
    except (OSError, RuntimeError, ValueError):
        pass
    names = ", ".join(wiki.name for wiki in known)
    raise UsageError(
        f"no wiki {visible(which)}", code="wiki_unknown", hint=f"Known wikis: {names}; or give a folder that exists."
    )


def write_page(page: NewPage, wiki: Wiki) -> Path:
    """Write the page to its place in a wiki; no file is ever replaced.

    Raises `UsageError`: `page_exists`, `page_outside`, `page_unwritable`.
    """
    file = wiki.root / page.path
    try:
        # A wiki may be somebody else's, and its folder of this kind a link to anywhere.
        if not file.parent.resolve().is_relative_to(wiki.root.resolve()):
            raise UsageError(
                f"{file.parent} leads out of the wiki", code="page_outside", hint="Replace the link by a folder."
            )
        file.parent.mkdir(exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            stream.write(page.text)
    except FileExistsError as error:
        raise UsageError(f"{file} already exists", code="page_exists", hint="Edit it, or name another page.") from error
    except (OSError, RuntimeError) as error:
        why = getattr(error, "strerror", "") or "a link leads to itself"
        raise UsageError(
            f"cannot write {file}: {why}", code="page_unwritable", hint="Check its permissions, or give another --wiki."
        ) from error
    return file


def notes_on(page: NewPage, wiki: Wiki | None, wikis: Sequence[Wiki]) -> list[str]:
    """What to know of before the page is used: whose page it takes the place of, and what an update would remove."""
    said = [
        f"the page {page.id} of {other.name} is there too: of two, that of the later wiki counts"
        for other in wikis
        if not other.notes and other != wiki and other.read(page.path) is not None
    ]
    if wiki is not None and wiki.name == BUNDLED and not any((up / ".git").exists() for up in wiki.root.parents):
        said.append(f"{BUNDLED} is part of an installed kopt: an update may remove the page")
    return said
