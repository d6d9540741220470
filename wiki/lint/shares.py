"""Lints a wiki of many pages in several processes: each reads a share of the pages and checks them one at a time.

This process reads a share too, and checks what pages say together. Of the pages of the others it gets what such rules
ask of a page, and not its text.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import pickle
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from kbs.evidence.vocabulary import Product, Vocabulary
from wiki.library import Told, Wiki, products_of
from wiki.lint.rule import REGISTERED
from wiki.lint.rules import structure
from wiki.lint.view import WikiView, read_wiki, without_collecting
from wiki.page import Page, Problem, kept_name

LEAST = 500
"""Pages of a share: reading so many takes longer than starting a process."""


def found_alone(view: WikiView) -> list[Problem]:
    """What rules find that look at one page at a time."""
    rules = (rule for rule in REGISTERED if rule.alone)
    return [*structure.reader_problems(view), *(problem for rule in rules for problem in rule.check(view))]


def found_together(view: WikiView) -> list[Problem]:
    """What rules find that compare pages."""
    return [problem for rule in REGISTERED if not rule.alone for problem in rule.check(view)]


@dataclass(frozen=True)
class Task:
    """What one process reads, and with what."""

    wiki: Wiki
    vocabulary: Vocabulary
    today: datetime.date
    sources_record: Path | None
    paths: tuple[str, ...]

    def read(self, told: Told | None = None) -> WikiView:
        """The wiki as if it had these pages alone."""
        return read_wiki(self.wiki, self.vocabulary, self.today, self.sources_record, told, self.paths)


@dataclass(frozen=True)
class _Known:
    """What a page's check needs of all pages."""

    products: tuple[tuple[str, Product], ...]
    """The page that declares each."""
    lists_asks: bool
    first: str
    """The path of the first page."""

    @classmethod
    def of(cls, view: WikiView) -> _Known:
        terms = view.wiki_vocabulary
        declared = ((page.path, product) for page in view.pages for product in products_of([page], terms))
        return cls(tuple(declared), view.lists_asks, view.pages[0].path if view.pages else "")

    def told(self, view: WikiView) -> WikiView:
        """The view of a share that knows the same of the others'."""
        terms = view.wiki_vocabulary.with_products([product for _, product in self.products])
        known = replace(view, vocabulary=terms, first=_Known.of(view).first == self.first)
        vars(known)["lists_asks"] = self.lists_asks
        return known


def shared_out(paths: Sequence[str]) -> list[tuple[str, ...]]:
    """The paths in as many shares as there are processors, as far as each is worth a process."""
    count = max(1, min(len(os.sched_getaffinity(0)), len(paths) // LEAST))
    return [tuple(paths[start::count]) for start in range(count)]


def lint_in_shares(task: Task, shares: Sequence[tuple[str, ...]], told: Told | None) -> list[Problem] | None:
    """All problems; None where a process could not be started, or was lost."""
    if len(shares) < 2:
        return None
    helpers: list[subprocess.Popen[bytes]] = []
    try:
        for _ in shares[1:]:
            helpers.append(_started())  # noqa: PERF401 # those that were started are ended if another cannot be
        for helper, paths in zip(helpers, shares[1:], strict=True):
            _send(helper.stdin, replace(task, paths=paths))
        own = replace(task, paths=shares[0]).read(told and (lambda done, _: told(done * len(shares), len(task.paths))))
        parts = [_Known.of(own), *(_received(helper.stdout) for helper in helpers)]
        products = sorted((one for part in parts for one in part.products), key=lambda one: one[0])
        first = min((part.first for part in parts if part.first), default="")
        known = _Known(tuple(products), any(part.lists_asks for part in parts), first)
        for helper in helpers:
            _send(helper.stdin, known)
        own = known.told(own)
        problems, pages = found_alone(own), [*own.pages]
        for helper in helpers:
            theirs, thin = _received(helper.stdout)
            problems += theirs
            pages += thin
        pages.sort(key=lambda page: page.path)
        return problems + found_together(replace(own, pages=tuple(pages), paths=frozenset(task.paths)))
    except (OSError, EOFError, pickle.PickleError):
        return None
    finally:
        for helper in helpers:
            helper.kill()
            with contextlib.suppress(OSError):
                helper.communicate()


def _started() -> subprocess.Popen[bytes]:
    # `-P`: a folder `wiki` of wherever this was called is not ours.
    words = [sys.executable, "-P", "-c", "from wiki.lint.shares import serve; serve()"]
    paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path if path)
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths},
    )


def serve() -> None:
    """Do the task that comes on standard input: its pages are read, and checked once what all have in common comes."""
    with without_collecting():
        task: Task = _received(sys.stdin.buffer)
        view = task.read()
        _send(sys.stdout.buffer, _Known.of(view))
        known: _Known = _received(sys.stdin.buffer)
        view = known.told(view)
        _send(sys.stdout.buffer, (found_alone(view), [*_without_text(view.pages)]))


def _without_text(pages: Iterable[Page]) -> Iterator[Page]:
    """The pages with their front matter and what rules that compare pages ask of each."""
    asked = [compute for rule in REGISTERED for compute in rule.of_page]
    for page in pages:
        thin = replace(page, lines=page.lines[: page.body_start - 1], blocks=(), sections=())
        vars(thin).update({kept_name(compute): compute(page) for compute in asked})
        yield thin


def _send(stream: IO[bytes] | None, value: object) -> None:
    assert stream is not None
    pickle.dump(value, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _received(stream: IO[bytes] | None) -> Any:
    assert stream is not None
    return pickle.load(stream)
