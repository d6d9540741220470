"""The site that all tests of the pages look at, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.kopt.web.site import Site, make_site


@pytest.fixture(scope="session")
def made_site(pristine_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Nothing of it changes."""
    return make_site(pristine_home, tmp_path_factory.mktemp("web"))


@pytest.fixture
def site(made_site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site, with its KOPT_HOME in force."""
    monkeypatch.setenv("KOPT_HOME", str(made_site.home))
    return made_site


@pytest.fixture
def client(site: Site) -> Iterator[TestClient]:
    """A client that was let in."""
    with site.client() as found:
        yield found
