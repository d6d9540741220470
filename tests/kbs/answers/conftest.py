"""The small wiki, indexed once for all tests of answers; no test writes to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbs.answers.knowledge import Knowledge
from tests.kbs.answers.small_wiki import small_wiki
from wiki.library import Wikis


@pytest.fixture(scope="session")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Knowledge, Wikis]]:
    """The small wiki, as solvers and as the check of claims have it."""
    with small_wiki(tmp_path_factory.mktemp("small")) as made:
        yield made


@pytest.fixture
def knowledge(evidence: tuple[Knowledge, Wikis]) -> Knowledge:
    """What solvers answer from."""
    return evidence[0]


@pytest.fixture
def pages(evidence: tuple[Knowledge, Wikis]) -> Wikis:
    """What claims are checked against."""
    return evidence[1]
