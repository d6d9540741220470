"""Wikis as a whole: which ones are meant, what they hold, and bringing the index up to date with them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ingest.progress import Progress, UpdateResult, no_progress
from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.files import may_overwrite
from kbs.evidence.vocabulary import Vocabulary
from kbs.index.overrides import spec_notes, withdrawal
from kopt.services.engine import Engine
from kopt.version import VERSION
from wiki.library import Wiki, check_names, open_wiki
from wiki.page import Page, Problem
from wiki.trust import distrust, resolved, trust, trusted_folders

REPORTS = {"text": b"", "github": b"::", "sarif": b'{\n "$schema": "https://docs.oasis-open.org/sarif/'}
"""Form of what the lint found → what every file of it begins with."""


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


def check_report(format: str, output: Path | None, *, json: bool) -> None:
    """Raises `UsageError`: `format_unknown`; `no_output`, where two things would be printed; `output_exists`."""
    if format not in REPORTS:
        raise UsageError(
            f"unknown --format {format[:40]!r}", code="format_unknown", hint=f"Choose from {', '.join(REPORTS)}."
        )
    if json and format != "text" and output is None:
        raise UsageError(
            f"--json and {format} cannot both be printed", code="no_output", hint="Name a file with --output."
        )
    if output is None:
        return
    if format == "text":
        raise UsageError(
            "--output is for github and sarif", code="format_unknown", hint="Add --format sarif, or redirect the text."
        )
    if not may_overwrite(output, REPORTS[format]) and output.stat().st_size:
        raise UsageError(
            f"{output} exists and is not a {format} report",
            code="output_exists",
            hint="Choose another file with --output, or move that one away.",
        )


def report_lines(format: str, found: Sequence[tuple[Wiki, Problem]]) -> list[str]:
    """What was found, as annotations of GitHub or as SARIF; files are named from the checkout of a workflow in which
    kopt runs, as GitHub reads them, else from the working folder."""
    from wiki.lint import explanations
    from wiki.lint.report import sarif, workflow_commands

    folder, checkout = Path.cwd(), Path(os.environ.get("GITHUB_WORKSPACE", "")).absolute()
    if os.environ.get("GITHUB_ACTIONS") == "true" and folder.is_relative_to(checkout.resolve()):
        folder = checkout
    if format == "github":
        return list(workflow_commands(found, folder))
    return sarif(found, folder, explanations(), VERSION).splitlines()


def ingest_wikis(
    engine: Engine,
    path: Path | None,
    name: str | None,
    *,
    notes: bool = False,
    rebuild: bool = False,
    forget: str | None = None,
) -> UpdateResult:
    """Bring the index up to date, after adding the wiki or notes at `path` and forgetting what is named `forget`.

    Raises `UsageError` (`wiki_unknown`, `name_without_path`).
    """
    if forget is not None and not engine.forget(forget):
        known = ", ".join(engine.registered()) or "none"
        raise UsageError(f"no wiki named {forget} was added", code="wiki_unknown", hint=f"Added wikis: {known}.")
    if path is not None:
        engine.register(open_wiki(path, name, notes=notes))
    elif name is not None or notes:
        raise UsageError(
            f"--{'as' if name is None else 'name'} needs the PATH of a folder",
            code="name_without_path",
            hint="kopt ingest PATH --name NAME",
        )
    return engine.update(rebuild=rebuild)


@dataclass(frozen=True)
class TrustedWiki:
    """A wiki that a workspace may bring in."""

    folder: Path
    name: str
    """Empty where there is no wiki now."""
    problem: str
    """Why it could not be used now; empty where it can."""
    named_here: bool
    """Whether the working folder's `kopt.toml` names it."""


def trust_wiki(engine: Engine, path: Path) -> tuple[TrustedWiki, list[str]]:
    """Trust the wiki in a folder, and say what it overrides of the wikis before it.

    Raises `ConfigurationError` if it is no wiki, or has another wiki's name.
    """
    made = open_wiki(path)
    here = engine.workspace_roots()
    others = [wiki for wiki in engine.wikis if wiki.root != made.root]
    after = here[here.index(made.root) :] if made.root in here else []
    before = [wiki for wiki in others if wiki.root not in after]
    check_names([*others, made])
    overrides = overrides_of(made, before, engine.terms)
    trust(engine.settings.home, made.root)
    return TrustedWiki(made.root, made.name, "", made.root in engine.workspace_roots()), overrides


def trusted_wikis(engine: Engine) -> list[TrustedWiki]:
    """Every wiki that was trusted, as it is now."""
    found = []
    for folder in map(Path, trusted_folders(engine.settings.home)):
        name = problem = ""
        try:
            if resolved(folder) != folder:
                problem = f"it now leads to {resolved(folder) or 'nowhere'}, which is not trusted"
            else:
                name = open_wiki(folder).name
        except ConfigurationError as error:
            problem = error.message
        found.append(TrustedWiki(folder, name, problem, folder in engine.workspace_roots()))
    return found


def distrust_wiki(engine: Engine, path: Path) -> Path:
    """Trust a wiki no longer. Raises `UsageError` (`wiki_not_trusted`)."""
    found = distrust(engine.settings.home, path)
    if found is None:
        known = ", ".join(trusted_folders(engine.settings.home)) or "none"
        raise UsageError(f"{path} is not trusted", code="wiki_not_trusted", hint=f"Trusted wikis: {known}.")
    return Path(found)


def overrides_of(wiki: Wiki, before: Sequence[Wiki], terms: Vocabulary) -> list[str]:
    """What a wiki overrides of those before it, of which the last counts most: pages, values, and values that are
    gone with a page."""
    later = [page for page in wiki.pages(terms) if isinstance(page, Page)]
    ids = {page.meta.id: page for page in later}
    specs = {spec.key: spec for page in reversed(later) for spec in reversed(page.specs) if spec.recommended}
    hidden: set[str] = set()
    notes: list[str] = []
    told: set[tuple[str, str, str]] = set()
    for earlier in reversed(before):
        pages = [page for page in earlier.pages(terms) if isinstance(page, Page)]
        for page in [page for page in pages if page.meta.id not in hidden]:
            stated = [spec for spec in page.specs if spec.recommended]
            taken = ids.get(page.meta.id)
            if taken is not None:
                notes.append(f"the page {taken.path} of {wiki.name} takes the place of {earlier.name}'s {page.path}")
                lost = [spec for spec in stated if spec.key not in specs]
                if lost:
                    notes.append(withdrawal((wiki.name, taken.path), earlier.name, lost, terms))
            for old in stated:
                spec = specs.get(old.key)
                if spec is not None and old.key not in told and spec.overrides(old):
                    notes += spec_notes([replace(spec, overridden=(old,))], terms)
                told.add(old.key)
        hidden |= {page.meta.id for page in pages}
    return notes


def count_wiki(wiki: Wiki, terms: Vocabulary, progress: Progress = no_progress) -> dict[str, Any]:
    """Numbers of pages, rows, sources and confidences of a wiki."""
    read = list(wiki.pages(terms, partial(progress, f"reading {wiki.name}")))
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
