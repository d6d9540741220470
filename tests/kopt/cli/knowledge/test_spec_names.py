"""Names of GPUs that are not quite known, and the list of those that are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import Run


def test_a_name_like_no_gpu_is_told_where_all_are_listed(home: Path, run: Callable[..., Run]) -> None:
    done = run(home, "spec", "nogpu")
    assert (done.code, done.out.strip()) == (3, "nogpu: no GPU of this name is known; see kopt spec --list")
    assert "the nearest known ones are h100-" in run(home, "spec", "h1000").out


def test_the_list_is_of_those_that_are_called_so(home: Path, run: Callable[..., Run]) -> None:
    called = run(home, "spec", "--list", "H100", "nvl")
    assert [line.split()[0] for line in called.out.splitlines()] == ["h100-nvl"]
    none = run(home, "spec", "--list", "nothing", "--json")
    assert (none.code, none.json["data"]["gpus"]) == (0, [])
    assert "`kopt spec --list` lists all" in run(home, "spec", "--list", "nothing").out
