"""The notes that a run is given with --knowledge: searched and quoted in it, seen by no other command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kbs.common.errors import ConfigurationError
from kbs.evidence.citation import NOTES
from kopt.services.engine import Engine
from loop.journal.record import RunRecord
from wiki.library import NOTE_SUFFIXES, Wiki, open_wiki


def use_knowledge(engine: Engine, folders: Sequence[Path]) -> list[str]:
    """Have the engine search these folders too, as notes named after them: what of them cannot be read.

    Raises `ConfigurationError`: `knowledge_unreadable`; `knowledge_name` for two of one name, or one that no citation
    could have.
    """
    found: list[Wiki] = []
    for folder in folders:
        try:
            made = open_wiki(folder, notes=True)
        except ConfigurationError as error:
            raise _unusable(folder, error) from error
        found += [] if made in found else [made]
    try:
        engine.use_notes(found)
    except ConfigurationError as error:
        raise _unusable(found[-1].root, error) from error
    pages = [(wiki, page) for wiki in found for page in wiki.pages(engine.terms)]
    return [
        f"{wiki.name}/{problem.path} is left out: {problem.message}"
        for wiki, page in pages
        if isinstance(page, list)
        for problem in page
    ]


def use_pinned_knowledge(engine: Engine, record: RunRecord) -> None:
    """Have the engine search the notes that a run was started with, where they were then."""
    engine.use_notes(Wiki(name, Path(record.wikis[name].root)) for name in record.knowledge)


def _unusable(folder: Path, error: ConfigurationError) -> ConfigurationError:
    if error.code == "wiki_name":
        name = f"`kopt ingest --as notes NAME {folder}` gives it another name, for all commands"
        return ConfigurationError(
            f"--knowledge {folder}: {error.message.replace('wiki', 'folder of notes')}",
            code="knowledge_name",
            hint=f"Rename the folder. A citation begins with {NOTES} and the folder's name; {name}.",
        )
    return ConfigurationError(
        f"--knowledge {error.message}",
        code="knowledge_unreadable",
        hint=f"Give a folder with notes; their files end with {', '.join(NOTE_SUFFIXES)}.",
    )
