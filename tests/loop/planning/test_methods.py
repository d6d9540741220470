"""The registry of methods, out of wiki pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kbs.common.errors import UsageError
from kopt.services.knowledge.citations import find_page
from loop.planning.methods import Axis, Method, Methods, read_methods
from tests.conftest import page_text
from wiki.library import Wiki, Wikis, bundled_wiki
from wiki.tables import METHOD_HEADER


def test_the_bundled_pages_are_read() -> None:
    found = read_methods(Wikis([bundled_wiki()]))
    assert list(found.ids) == sorted(found.ids)
    method = found.by_id["warp_shuffle"]
    assert method.page == "gpu-wiki/method/warp_shuffle.md"
    assert method.title == "Warp shuffles"
    assert "hopper" in method.architectures
    assert method.languages == ("triton", "cuda")
    assert {row.method for row in found.signatures} <= set(found.ids)


def test_a_page_of_a_later_wiki_stands_in_place_of_an_earlier_ones(tmp_path: Path) -> None:
    (tmp_path / "method").mkdir()
    page = page_text("method/warp_shuffle", "# Ours\n\nText.", title="Ours")
    (tmp_path / "method/warp_shuffle.md").write_text(page, "utf-8")
    found = read_methods(Wikis([bundled_wiki(), Wiki("team", tmp_path)]))
    assert found.by_id["warp_shuffle"].title == "Ours"
    assert found.by_id["warp_shuffle"].page == "team/method/warp_shuffle.md"


def test_a_method_that_is_not_known_is_refused_with_the_nearest() -> None:
    found = Methods((Method("split_k", "Split K", "w/method/split_k.md"),), ())
    assert found.chosen(["split_k", "split_k"]) == ["split_k"]
    assert found.chosen([]) == []
    with pytest.raises(UsageError) as caught:
        found.chosen(["split-k2"])
    assert caught.value.code == "method_unknown"
    assert "split_k" in caught.value.hint


def test_methods_above_are_those_that_come_first_and_are_called_for() -> None:
    def method(id: str, priority: int | None, axis: Axis | None = "memory", **more: Any) -> Method:
        return Method(id, id, f"w/method/{id}.md", axis=axis, priority=priority, **{"triggers": ("slow",), **more})

    low = method("low", 4)
    every = (
        low, method("second", 2), method("first", 1), method("none", None), method("compute", 1, "compute"),
        method("blackwell", 1, architectures=("blackwell",)), method("cuda", 3, languages=("cuda",)),
        method("fault", 1, defect=True), method("elsewhere", 1, triggers=("fast",)), method("later", 5),
    )  # fmt: skip
    found = Methods(every, ())
    assert [m.id for m in found.above(low, "hopper", "triton", {"slow"})] == ["first", "second"]
    assert [m.id for m in found.above(low, "", "", {"slow"})] == ["blackwell", "first", "second", "cuda"]
    assert found.above(low, "", "", set()) == []
    assert found.above(found.by_id["none"], "", "", {"slow"}) == []
    assert "fault" not in {m.id for m in found.offered}


def test_the_facts_of_the_bundled_pages_are_read() -> None:
    found = read_methods(Wikis([bundled_wiki()]))
    method = found.by_id["async_copy"]
    assert (method.axis, method.priority) == ("memory", 2)
    assert "stall-long-scoreboard" in method.triggers
    assert "cp-async" in method.features
    assert "multi_stage_pipeline" in method.complements
    assert found.by_id["register_spill"].defect


def test_a_row_of_a_technique_s_page_states_a_method(tmp_path: Path) -> None:
    (tmp_path / "technique").mkdir()
    head = f"| {' | '.join(METHOD_HEADER)} |"
    row = "| wide | Wide loads | memory | 2 | hopper | cuda | | excess-traffic | | tiling_smem |"
    text = page_text("technique/width", f"# Width\n\n{head}\n{'|---' * 10}|\n{row}")
    (tmp_path / "technique/width.md").write_text(text, "utf-8")
    library = Wikis([bundled_wiki(), Wiki("team", tmp_path)])
    assert read_methods(library).by_id["wide"] == Method(
        "wide", "Wide loads", "team/technique/width.md", ("hopper",), ("cuda",), "memory", 2,
        triggers=("excess-traffic",), complements=("tiling_smem",),
    )  # fmt: skip
    assert find_page(library, "wide") == find_page(library, "method/wide") == ("team", "technique/width.md")
