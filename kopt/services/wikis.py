"""Wikis as a whole: which ones are meant, what they hold, and bringing the index up to date with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ingest.update import UpdateResult
from kbs.common.errors import UsageError
from kbs.evidence.vocabulary import Vocabulary
from kopt.services.engine import Engine
from wiki.library import Wiki, open_wiki
from wiki.page import Page


def chosen_wikis(engine: Engine, which: str | None) -> list[Wiki]:
    """All known wikis, or the one that a name or a folder names. Raises `UsageError` (`wiki_unknown`)."""
    if which is None:
        return engine.wikis
    named = [known for known in engine.wikis if known.name == which]
    if named:
        return named
    if Path(which).is_dir():
        return [open_wiki(Path(which))]
    names = ", ".join(known.name for known in engine.wikis)
    raise UsageError(f"no wiki {which}", code="wiki_unknown", hint=f"Known wikis: {names}; or give a folder.")


def ingest_wikis(
    engine: Engine, path: Path | None, name: str | None, *, rebuild: bool = False, forget: str | None = None
) -> UpdateResult:
    """Bring the index up to date, after adding the wiki at `path` and forgetting the one named `forget`.

    Raises `UsageError` (`wiki_unknown`, `name_without_path`).
    """
    if forget is not None and not engine.forget(forget):
        known = ", ".join(engine.registered()) or "none"
        raise UsageError(f"no wiki named {forget} was added", code="wiki_unknown", hint=f"Added wikis: {known}.")
    if path is not None:
        engine.register(open_wiki(path, name))
    elif name is not None:
        raise UsageError(
            "--name needs the PATH of a wiki", code="name_without_path", hint="kopt ingest PATH --name NAME"
        )
    return engine.update(rebuild=rebuild)


def count_wiki(wiki: Wiki, terms: Vocabulary) -> dict[str, Any]:
    """Numbers of pages, rows, sources and confidences of a wiki."""
    read = list(wiki.pages(terms))
    pages = [page for page in read if isinstance(page, Page)]
    specs = [spec for page in pages for spec in page.specs]
    return {
        "name": wiki.name,
        "root": str(wiki.root),
        "revision": wiki.revision,
        "pages": len(pages),
        "broken": len(read) - len(pages),
        "lines": sum(len(page.lines) for page in pages),
        "kinds": _counted(page.meta.kind for page in pages),
        "confidence of pages": _counted(page.meta.confidence for page in pages),
        "confidence of specs": _counted(spec.confidence for spec in specs),
        "kinds of sources": _counted(source.kind for page in pages for source in page.meta.sources),
        "specs": len(specs),
        "unpublished": sum(not spec.published for spec in specs),
        "costs": sum(len(page.costs) for page in pages),
        "advice": sum(len(page.advice) for page in pages),
        "thresholds": sum(len(page.thresholds) for page in pages),
        "measured": sum(len(page.measured) for page in pages),
    }


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(Counter(names).most_common())
