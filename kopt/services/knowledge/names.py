"""Names that a user may want to type: GPUs, metrics, element types and pages. Quick: no index is opened."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kopt.services.settings import load_settings
from wiki.registry import read_registry

_PLAIN = re.compile(r"[A-Za-z0-9][\w./%+-]{0,199}", re.ASCII)
"""A name that no shell reads as anything else; others are not proposed."""


def page_names() -> list[str]:
    """Ids of the pages of all wikis that are in use here, and `NAME/...` of notes."""
    from kbs.evidence.citation import NOTES
    from wiki.library import Wiki, bundled_wiki

    settings = load_settings()
    folders = {**read_registry(settings.home), **{root: root for root in settings.values.wikis}}
    wikis = [bundled_wiki(), *(Wiki(name, Path(root).expanduser()) for name, root in folders.items())]
    found = []
    for wiki in wikis:
        before = f"{wiki.name}/" if wiki.name.startswith(NOTES) else ""
        found += [f"{before}{file.path.removesuffix('.md')}" for file in wiki.files()]
    return plain(found)


def gpu_names() -> list[str]:
    """The GPUs that the wikis have a page about."""
    return [name.removeprefix("hardware/") for name in page_names() if name.startswith("hardware/")]


def metric_names() -> list[str]:
    """Metrics of the vocabulary."""
    from kbs.evidence.vocabulary import vocabulary

    return list(vocabulary().metrics)


def dtype_names() -> list[str]:
    """Element types of the vocabulary."""
    from kbs.evidence.vocabulary import vocabulary

    return list(vocabulary().dtypes)


def plain(names: Iterable[str]) -> list[str]:
    """Each name once, without those that a shell might read as something else."""
    return [name for name in dict.fromkeys(names) if _PLAIN.fullmatch(name)]
