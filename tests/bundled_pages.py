"""The pages of the bundled wiki, read once for all tests of a process: reading them takes seconds."""

from __future__ import annotations

import functools

from kbs.evidence.vocabulary import vocabulary
from wiki.library import bundled_wiki
from wiki.page import Page, Problem


@functools.cache
def read_bundled() -> tuple[Page | list[Problem], ...]:
    """Every page in the order of the paths, or what is wrong with it; nobody changes them."""
    return tuple(bundled_wiki().pages(vocabulary()))


@functools.cache
def bundled_pages() -> tuple[Page, ...]:
    """Those that can be read."""
    return tuple(found for found in read_bundled() if isinstance(found, Page))
