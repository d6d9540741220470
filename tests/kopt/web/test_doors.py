"""A few seconds of benchmarks/doors.py: clients of both servers, ingests beside them, and a worker that is killed."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from benchmarks.doors import doors, measure

pytestmark = [pytest.mark.processes, pytest.mark.slow]


def test_clients_at_once_see_what_was_ingested_and_lose_no_request(home: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with doors(home, work) as found:
        alone, seen = anyio.run(measure, found, 4.0, 10)
    assert seen.errors == []
    assert seen.stale == []
    assert seen.ingested >= 1
    assert {"web ask", "mcp ask"} <= alone.keys()
    assert {"web ask", "web page", "web search", "mcp ask", "mcp search"} <= seen.times.keys()
    assert "crashed" in seen.killed or "killed" in seen.killed, "the call whose worker was killed says so"
