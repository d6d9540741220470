"""Which citations a change of pages has made stale: those of pages, of runs and of the experience log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from kbs.evidence.checking import Status
from kbs.evidence.vocabulary import Vocabulary
from kopt.services.curation.refs import Ref, refs_of
from kopt.services.curation.repository import Repository
from kopt.services.engine import Engine
from kopt.services.settings import LoadedSettings
from wiki.library import INDEX_PAGE, Wiki, Wikis

MOST = 200
"""Changed pages of which the citations are looked for; `kopt wiki refs` shows those of any other."""


@dataclass(frozen=True)
class Stale:
    """A reference that held before a page was changed, and does not hold now."""

    page: str
    """The page that was changed: its path in the wiki."""
    gone: bool
    """Whether the page is not there any more."""
    ref: Ref


@dataclass(frozen=True)
class _Seen:
    """The wikis in use, with one of them as a commit has it."""

    library: Wikis
    terms: Vocabulary
    settings: LoadedSettings


def made_stale(engine: Engine, repository: Repository, old: str, new: str, workspace: Path) -> list[Stale]:
    """The references that do not hold with `new` any more and did with `old`.

    A page that is new has nothing that cited it, so nothing is read where pages were only added.
    """
    changed = {
        page: not about[2]
        for path, about in repository.changed(old, new).items()
        if (page := repository.page(path)).endswith(".md") and page != INDEX_PAGE and about[0]
    }
    if not changed:
        return []
    changed = dict(list(changed.items())[:MOST])
    with repository.files_of(old) as before, repository.files_of(new) as after:
        views = [_Seen(_wikis(engine, wiki), engine.terms, engine.settings) for wiki in (before, after)]
        found = []
        for page, gone in changed.items():
            held, now = (refs_of(view, repository.wiki.name, page, workspace).found for view in views)
            fine = Counter(_key(ref) for ref in held if ref.status is Status.OK)
            still = Counter(_key(ref) for ref in now if ref.status is Status.OK and not (gone and not ref.cites))
            lost = fine - still
            # A link holds as long as its page is there; it has no lines that could read otherwise.
            for ref in now:  # what does not cite it any more is not stale
                broken = ref.status is not Status.OK or (gone and not ref.cites)
                if lost[_key(ref)] > 0 and broken:
                    lost[_key(ref)] -= 1
                    found.append(Stale(page, gone, ref))
        return found


def _key(ref: Ref) -> tuple[str, str, str]:
    """What stays the same where a citing page changes: its lines may move."""
    place = ref.place.rpartition(":")[0] if ref.by == "page" else ref.place
    return ref.by, place, ref.cites


def _wikis(engine: Engine, changed: Wiki) -> Wikis:
    others = [wiki for wiki in engine.wikis if wiki.name != changed.name]
    return Wikis([*others, changed], engine.terms)
