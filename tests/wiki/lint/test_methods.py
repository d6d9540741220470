"""What method pages say for the choice of a method: read into its facts, and checked against the other methods."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from tests.bundled_pages import bundled_pages
from tests.conftest import page_text
from wiki.library import Wiki, Wikis
from wiki.lint import lint
from wiki.methods import method_pages, methods_of
from wiki.page import Page
from wiki.reader import read_page

WHOLE = """axis: memory
priority: 2
features: [tma, mbarrier]
triggers: [excess-traffic]
conflicts: [narrow]
complements: [tiling_smem]"""
FIRST = 5
"""The line of the first of the further lines of a front matter."""


def read(more: str, id: str = "method/wide") -> Page:
    page = read_page("team", f"{id}.md", page_text(id, "# It", more=more).encode(), "", vocabulary())
    assert isinstance(page, Page), page
    return page


def found(folder: Path, rule: str, /, **pages: str) -> list[tuple[str, int, str]]:
    """(file, line below FIRST, message) of what breaks a rule, in a wiki of method pages."""
    for name, more in pages.items():
        id = name if "/" in name else f"method/{name}"
        file = folder / f"{id}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(page_text(id, "# It", more=more), "utf-8")
    problems = lint(Wiki("team", folder), vocabulary(), today=datetime.date(2026, 11, 21))
    return [(Path(p.path).stem, p.line - FIRST, p.message) for p in problems if p.rule == rule]


def test_the_facts_of_a_method_are_read() -> None:
    page = read(WHOLE)
    assert page.chosen
    assert (page.meta.axis, page.meta.priority, page.meta.features) == ("memory", 2, ("tma", "mbarrier"))
    assert (page.meta.triggers, page.meta.conflicts) == (("excess-traffic",), ("narrow",))
    assert page.meta.complements == ("tiling_smem",)


def test_a_method_of_no_axis() -> None:
    page = read("axis: any\npriority: 5")
    assert page.chosen
    assert page.meta.features == page.meta.triggers == page.meta.conflicts == page.meta.complements == ()


@pytest.mark.parametrize("more", ["", "axis: memory", "priority: 1", "axis: memory\npriority: 1\ndefect: true"])
def test_a_page_that_is_not_whole_or_shows_a_defect_has_no_facts(more: str) -> None:
    assert not read(more).chosen


def test_another_page_has_no_facts() -> None:
    assert not read("axis: memory\npriority: 1", "technique/wide").chosen


@pytest.mark.parametrize(
    "more", ["axis: speed\npriority: 1", "axis: memory\npriority: 0", "axis: memory\npriority: 6", "priority: first"]
)
def test_an_impossible_value_is_a_problem_of_its_line(more: str) -> None:
    problems = read_page(
        "team", "method/wide.md", page_text("method/wide", "# It", more=more).encode(), "", vocabulary()
    )
    assert isinstance(problems, list)
    wrong = next(line for line in more.split("\n") if line not in ("axis: memory", "priority: 1"))
    assert [(p.rule, p.line - FIRST) for p in problems] == [("front-matter", more.split("\n").index(wrong))]


@given(
    st.dictionaries(st.sampled_from(["axis", "priority", "conflicts", "defect"]), st.text("ab1 ,[]:-{}", max_size=9))
)
def test_any_value_is_read_or_is_a_problem(keys: dict[str, str]) -> None:
    more = "\n".join(f"{key}: {value}" for key, value in keys.items())
    page = read_page("team", "method/wide.md", page_text("method/wide", "# It", more=more).encode(), "", vocabulary())
    if isinstance(page, Page) and page.chosen:
        assert page.meta.priority in range(1, 6)


def test_whole_methods_that_agree(tmp_path: Path) -> None:
    narrow = "axis: compute\npriority: 1\nconflicts: [wide]"
    assert found(tmp_path, "method", wide=WHOLE, narrow=narrow) == []
    assert found(tmp_path, "vocabulary") == []


def test_axis_and_priority_are_there(tmp_path: Path) -> None:
    both = [
        "a method page must state its axis, or `defect: true`",
        "a method page must state its priority, or `defect: true`",
    ]
    wrong = found(tmp_path, "method", empty="", half="priority: 1", fault="defect: true")
    assert [(page, message) for page, _, message in wrong] == [
        ("empty", both[0]),
        ("empty", both[1]),
        ("half", both[0]),
    ]
    assert {line for _, line, _ in wrong} == {3 - FIRST}


def test_a_defect_is_not_chosen(tmp_path: Path) -> None:
    wrong = found(tmp_path, "method", fault="defect: true\npriority: 2")
    assert wrong == [("fault", 1, "a defect is not chosen, so it has no priority")]


def test_only_a_method_page_states_them(tmp_path: Path) -> None:
    wrong = found(tmp_path, "method", **{"technique/wide": "tags: [gemm]\naxis: memory\ntriggers: [excess-traffic]"})
    assert wrong == [
        ("wide", 1, "only a method page can state axis"),
        ("wide", 2, "only a method page can state triggers"),
    ]


def test_conflicts_are_mutual(tmp_path: Path) -> None:
    one = "axis: memory\npriority: 1\nconflicts: [other]"
    wrong = found(tmp_path, "method", one=one, other="axis: memory\npriority: 1")
    assert wrong == [("one", 2, "other conflicts with it, but method/other.md does not say so")]


def test_a_method_does_not_name_itself(tmp_path: Path) -> None:
    wrong = found(tmp_path, "method", one="axis: memory\npriority: 1\nconflicts: [one]\ncomplements: [one]")
    assert wrong[:2] == [
        ("one", 2, "conflicts: a method cannot name itself"),
        ("one", 3, "complements: a method cannot name itself"),
    ]


def test_unknown_methods_and_those_of_the_bundled_wiki(tmp_path: Path) -> None:
    more = "axis: memory\npriority: 1\nconflicts: [split_k]\ncomplements: [kernel_fusion, kernel_fission]"
    assert found(tmp_path, "method", one=more) == [
        ("one", 3, "complements: no wiki has a page of the method 'kernel_fission'")
    ]


def test_no_method_conflicts_with_what_complements_it(tmp_path: Path) -> None:
    more = "axis: memory\npriority: 1\nconflicts: [split_k]\ncomplements: [split_k]"
    assert found(tmp_path, "method", one=more) == [
        ("one", 3, "split_k cannot both conflict with the method and complement it")
    ]


def test_features_and_triggers_are_in_the_vocabulary(tmp_path: Path) -> None:
    more = "axis: memory\npriority: 1\nfeatures: [tma, warp-drive]\ntriggers: [slowness]"
    assert found(tmp_path, "vocabulary", one=more) == [
        ("one", 2, "features: 'warp-drive' is not in the vocabulary"),
        ("one", 3, "triggers: 'slowness' is not in the vocabulary"),
    ]


PUBLISHED = """
    tensor_core mixed_precision warp_specialization launch_config thread_coarsening ilp_unroll_register_tile
    overlap_compute_memory gemm_softmax_interleave two_level_accumulation_promotion fp8_fast_accumulation
    block_scaled_precision tf32_emulation mufu_ex2_softmax reduction warp_shuffle loop_unroll fma_fast_math
    lop3_bit_manipulation no_alias strength_reduce branch_eliminate inline_ptx

    kernel_fusion coalesced_access tiling_smem vectorized_access async_copy multi_stage_pipeline epilogue_fusion
    bank_conflict ldmatrix_stmatrix register_pressure tma_multicast tma_descriptor epilogue_visitor_tree data_layout
    cache_modifier_hint l2_persistence_window split_k read_only_cache smem_register_spill tma_im2col distributed_smem
    tensor_map_reuse

    async_pipeline fewer_syncs warp_shuffle_sync tile_scheduler_swizzle persistent_kernel stream_k online_recomputation
    warp_aggregated_atomics asymmetric_mbarrier pingpong_warpgroups setmaxnreg intra_warpgroup_pipeline
    programmatic_dependent_launch cooperative_cluster static_launch_graph cuda_graphs cluster_launch_control
    stream_event atomic_optimize
"""
"""The methods that a run may declare, by axis."""


def test_every_published_method_has_a_page_and_its_axis() -> None:
    pages = {page.method: page for page in bundled_pages() if page.method}
    compute, memory, latency = (block.split() for block in PUBLISHED.strip().split("\n\n"))
    assert len({*compute, *memory, *latency}) == 63
    axes = {**dict.fromkeys(compute, "compute"), **dict.fromkeys(memory, "memory"), **dict.fromkeys(latency, "latency")}
    assert {id: page.meta.axis for id, page in pages.items() if page.chosen and id in axes} == axes
    assert pages["rewrite"].chosen
    assert pages["rewrite"].meta.axis == "any"
    assert not pages["register_spill"].chosen


def test_every_chosen_method_says_when_it_is_called_for() -> None:
    for page in bundled_pages():
        if page.chosen:
            assert page.meta.triggers, page.path
            assert page.meta.architectures, page.path
            assert page.meta.languages, page.path


ROWS = """

## Methods

| method | title | axis | priority | architectures | languages | features | triggers | conflicts | complements |
|---|---|---|---|---|---|---|---|---|---|
"""
WIDE = "| wide | Wide | memory | 2 | hopper | triton cuda | tma mbarrier | excess-traffic | narrow | tiling_smem |"


def stating(*rows: str) -> Page:
    text = page_text("technique/width", "# Width" + ROWS + "\n".join(rows))
    page = read_page("team", "technique/width.md", text.encode(), "", vocabulary())
    assert isinstance(page, Page), page
    return page


def test_a_row_states_what_a_method_page_states() -> None:
    more = f"{WHOLE}\narchitectures: [hopper]\nlanguages: [triton, cuda]"
    text = page_text("method/wide", "# It", title="Wide", more=more)
    page = read_page("team", "method/wide.md", text.encode(), "", vocabulary())
    assert isinstance(page, Page)
    by_row, by_page = methods_of(stating(WIDE)), methods_of(page)
    assert [replace(one, line=1) for one in by_row] == list(by_page)
    assert stating(WIDE).lines[by_row[0].line - 1] == WIDE


@pytest.mark.parametrize(
    ("old", "new"),
    [("memory", "speed"), ("| 2 |", "| 6 |"), ("tma", "warp-drive"), ("excess-traffic", "slowness"), ("hopper", "gpu")],
)
def test_a_row_with_an_impossible_value_is_left_out(old: str, new: str) -> None:
    page = stating(WIDE.replace(old, new))
    assert page.methods == ()
    assert [problem.line for problem in page.problems] == [len(page.lines)]


def test_rows_are_checked_as_pages_are_and_a_method_is_stated_once(tmp_path: Path) -> None:
    (tmp_path / "technique").mkdir()
    width = tmp_path / "technique/width.md"
    width.write_text(page_text("technique/width", "# Width" + ROWS + WIDE), "utf-8")
    one = "axis: compute\npriority: 1"
    messages = [message for _, _, message in found(tmp_path, "method", narrow=one)]
    assert messages == ["narrow conflicts with it, but method/narrow.md does not say so"]
    messages = [message for _, _, message in found(tmp_path, "method", wide=WHOLE, narrow=f"{one}\nconflicts: [wide]")]
    assert messages == ["the method wide is stated by method/wide.md too"]


def test_a_run_chooses_a_method_that_a_row_states(tmp_path: Path) -> None:
    (tmp_path / "technique").mkdir()
    width = tmp_path / "technique/width.md"
    width.write_text(page_text("technique/width", "# Width" + ROWS + WIDE), "utf-8")
    pages = {page.path for page in method_pages(Wikis([Wiki("team", tmp_path)]))}
    assert pages == {"technique/width.md"}
