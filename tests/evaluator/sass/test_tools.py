"""Targets by any of their names, and programs where they are installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from evaluator.sass import tools as disassembler
from evaluator.sass.tools import find_tool, read_target
from kbs.common.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("sm_90", "sm_90a"),
        ("sm_90a", "sm_90a"),
        ("SM90", "sm_90a"),
        ("9.0", "sm_90a"),
        ("90", "sm_90a"),
        ("cc-9-0", "sm_90a"),
        ("cc 8.6", "sm_86"),
        ("sm_80", "sm_80"),
        ("compute_89", "sm_89"),
        ("sm_120", "sm_120a"),
        ("10.0", "sm_100a"),
        ("12.1", "sm_121a"),
    ],
)
def test_names_of_targets(text: str, exact: str) -> None:
    target = read_target(text)
    assert target is not None
    assert target.exact == exact


@pytest.mark.parametrize("text", ["", "h100", "sm_", "9", "sm_900", "gfx942", "sm_20", "99.9"])
def test_what_is_no_target(text: str) -> None:
    assert read_target(text) is None


def test_a_named_toolkit_comes_first(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "cuobjdump").write_text("")
    assert find_tool("cuobjdump", {"PATH": ""}, tmp_path) == tmp_path / "bin" / "cuobjdump"


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_triton_carries_the_tools() -> None:
    found = find_tool("cuobjdump", {"PATH": ""})
    assert found is not None
    assert "triton" in found.parts


def test_no_disassembler_is_an_error_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disassembler, "_triton_folder", list)
    with pytest.raises(ConfigurationError) as caught:
        disassembler.disassembler({"PATH": ""})
    assert caught.value.code == "no_disassembler"
    assert "--cuda-home" in caught.value.hint
