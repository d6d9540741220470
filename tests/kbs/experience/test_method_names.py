"""Words name one method, with its settings, however they are written."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.experience.method_names import MethodNames
from tests.conftest import ROOT

NAMES = MethodNames()


@pytest.mark.parametrize(
    "text",
    [
        "shared-memory-tiling{tile-size=16}",
        "Shared memory tiling with tile-size=16",
        "tiling_smem(tile_size=16)",
        "Tile the inputs in shared memory, tile-size = 16",
        "Shared memory tiling (tile size 16)",
        "shared memory tiling, with a tile size of 16",
    ],
)
def test_one_method_in_many_spellings(text: str) -> None:
    found = NAMES.read(text)
    assert (found.methods, dict(found.parameters)) == (("tiling_smem",), {"tile_size": "16"})


def test_a_size_that_is_what_was_changed_is_no_setting() -> None:
    assert NAMES.read("Increase tile size 16→32").methods == ("launch_config",)
    assert NAMES.read("block size 256 and vectorized loads").methods == ("launch_config", "vectorized_access")
    assert NAMES.read("wide loads, tile size 5.5 MB").parameters == ()


@pytest.mark.parametrize(
    ("text", "methods"),
    [
        ("Unroll the inner loop to improve ILP", ("loop_unroll",)),
        ("num_warps=8", ("launch_config",)),
        ("Padding for bank conflict avoidance", ("bank_conflict",)),
        ("Remove barriers by padding", ("fewer_syncs",)),
        ("vectorized loads and loop unrolling", ("vectorized_access", "loop_unroll")),
        ("registers instead of shared memory tiling", ()),
        ("without vectorized loads", ()),
        ("Load 16 bytes a thread", ()),
        ("", ()),
        ("=" * 5000, ()),
    ],
)
def test_what_was_done_is_named(text: str, methods: tuple[str, ...]) -> None:
    assert NAMES.read(text).methods == methods


def test_a_record_says_it_in_its_change_or_else_elsewhere() -> None:
    said = NAMES.of_record("Two at a time {n=2}", "Vectorize loads, unroll loops", "Faster.")
    assert (said.methods, said.parameters) == (("vectorized_access",), (("n", "2"),)), "one, of a hypothesis"
    assert NAMES.of_record("", "", "Warp shuffles did it. The smem tile is gone.").methods == ("warp_shuffle",)
    assert NAMES.of_record("", "", "Faster: float4.").methods == ()


def test_a_whole_name_is_the_registrys() -> None:
    assert NAMES.name("Vectorized access") == "vectorized_access"
    assert NAMES.name("shared memory tiling") == "tiling_smem"
    assert NAMES.name("something of mine") == "something_of_mine"
    assert MethodNames(["something_of_mine"]).read("something of mine").methods == ("something_of_mine",)


def test_every_method_of_the_wiki_has_names_and_no_other() -> None:
    pages = {path.stem for path in (ROOT / "wiki" / "pages" / "method").glob("*.md")}
    data = tomllib.loads((ROOT / "kbs" / "data" / "methods.toml").read_text("utf-8"))
    assert data.keys() == pages
    for id, known in data.items():
        assert id in NAMES.read(id).methods
        for name in known["names"]:
            assert id in NAMES.read(f"{name} x").methods, name


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_names_known_methods_or_none(text: str) -> None:
    found = NAMES.of_record(text, text, text)
    assert NAMES.known.issuperset(found.methods)
    assert NAMES.known.issuperset(NAMES.read(text).methods)
