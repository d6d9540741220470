"""The example notebook runs, and its file shows what comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kopt
from scripts.notebook import NOTEBOOK, run_cells

CELLS = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]


@pytest.mark.processes
@pytest.mark.slow
def test_the_notebook_shows_what_its_file_has(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPT_HOME", str(home))
    try:
        made = run_cells(CELLS, tmp_path)
    finally:
        kopt.close()
    kept = [cell["outputs"] for cell in CELLS if cell["cell_type"] == "code"]
    assert [first(outputs) for outputs in made] == [first(outputs) for outputs in kept], "run `just docs`"
    assert any("text/html" in one.get("data", {}) for outputs in made for one in outputs)


def test_cells_are_small_and_use_every_function() -> None:
    code = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
    assert all(len(text.splitlines()) <= 40 for text in code)
    for name in ("ask", "search", "spec", "cite", "bench"):
        assert f"kopt.{name}(" in "\n".join(code)
    assert len({cell["id"] for cell in CELLS}) == len(CELLS)


def first(outputs: list[dict[str, object]]) -> list[str]:
    """The first line of each output."""
    found = []
    for one in outputs:
        text = one["text"] if "text" in one else one["data"]["text/plain"]  # type: ignore[index]
        found.append("".join(text).partition("\n")[0])  # type: ignore[arg-type]
    return found
