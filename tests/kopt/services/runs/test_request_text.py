"""`kopt run next` as a person reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kopt.services.results.runs import RunNextData
from kopt.services.runs.telling.request import commands, next_lines
from kopt.services.runs.telling.state import near
from loop.journal.state import Phase
from loop.proposals.request import PastAttempt
from loop.tools import DiagnosisNote, FoundPassage, Named, Search
from tests.loop.proposers.requests import past, request


def said(to_skip: dict[str, list[str]] | None = None, **more: Any) -> str:
    data = RunNextData(run="a", folder="/a", phase=Phase.PROPOSE, why="", request=request(**more))
    return "\n".join(next_lines(data, to_skip or {}, commands))


def test_all_that_the_next_version_is_written_from() -> None:
    text = said({"launch_config": ["tiling_smem", "async_copy"]})
    for part in (
        "wanted: v2 of add-20261121-140000-abcd, attempt 1, a change of v0",
        "/home/somebody/runs/add-001/v0/kernel.py",
        "/home/somebody/runs/add-001/ref.py",
        "M=8",
        "cpu, for h200",
        "2.0x",
        "accepted, no time was taken  (cite receipt/0000000000000000#FIELD)",
        "dram_throughput 62 %  <- profile/0123456789abcdef#dram_throughput",
        "asked (kernel): how is it made faster",
        "gpu-wiki/technique/tiling.md:L29-L30@abc",
        "| Larger tiles reuse more.",
        "launch_config: tried in v1",
        "latency: 3 launch_config",
        "launch_config: tiling_smem, async_copy",
        "enforced: forbid: split_k",
        "preferred: vectorized_access",
        "the user's words, for you to follow: keep it short",
        "v1 from v0, launch_config: failed, not kept",
        "change: change 1",
        "why: incorrect",
        "1. schema: proposal.json: kernel: Field required\n     ?",
        "Change one thing.",
        "left: 2 iterations, 3 attempts at this version",
        "kopt run submit PROPOSAL.json",
    ):
        assert part in text, part
    assert "stalled" not in text


def test_what_is_not_there_has_no_heading() -> None:
    bare = said(facts=(), external=(), measured=None, searches=(), history=(), refused=(), research_wanted=())
    assert not [line for line in bare.splitlines() if line.startswith(("found", "measured", "what was tried"))]
    assert "--evidence" not in bare


def test_diagnosis_stall_and_attempts() -> None:
    symptom = Named(id="a", name="few bytes a sector", text="", techniques=("wide loads: why <- gpu-wiki/a.md:L1",))
    note = DiagnosisNote(
        bottleneck="memory_bound", resource="", dominant_stall="", headroom=(), symptoms=(symptom,),
        text="kernel.py: memory bound\n  DRAM 62 %\n",
    )  # fmt: skip
    tried = PastAttempt(
        attempt=1, methods=("a",), single_change="tiles of 8", verdict="incorrect", reason="3 of 8 differ"
    )
    text = said(diagnosis=note, research_wanted=("look again",), attempts=(tried,))
    assert "  DRAM 62 %" in text
    assert "few bytes a sector: try wide loads: why <- gpu-wiki/a.md:L1" in text
    assert "research first: the run has stalled\n  look again" in text
    assert "attempt 1, tiles of 8: incorrect 3 of 8 differ" in text


def test_a_passage_that_two_questions_found_is_shown_once() -> None:
    hit = FoundPassage(reference="gpu-wiki/a.md:L1", title="A", text="words of the passage", score=0.5)
    searches = tuple(Search(about="kernel", text=text, hits=(hit,), degraded="") for text in ("one", "two"))
    text = said(searches=searches)
    assert text.count("words of the passage") == 1
    assert text.count("gpu-wiki/a.md:L1") == 3  # at both questions and in the command
    assert "gpu-wiki/a.md:L1  (above)" in text


def test_a_version_that_was_kept_and_its_speed() -> None:
    kept = past(1).model_copy(update={"outcome": "passed", "kept": True, "why": "faster", "ratio": (1.5, 1.4, 1.6)})
    assert "v1 from v0, launch_config: passed and kept, 1.5x (95% interval 1.4 to 1.6) of v0" in said(history=(kept,))


def test_a_folder_with_a_blank_can_be_typed() -> None:
    assert "--run '/home/some body/runs/add-001'" in said(folder="/home/some body/runs/add-001")


def test_nothing_is_wanted() -> None:
    data = RunNextData(run="a", folder="/a", phase=Phase.FINISHED, why="the run is finished", request=None)
    assert list(next_lines(data, {}, commands)) == ["the run is finished"]


def test_a_path_is_told_from_the_folder_that_it_lies_below() -> None:
    assert near("/a/runs/x-001", Path("/a")) == "runs/x-001"
    assert near("/a/runs/x-001", Path("/b")) == near("/a/runs/x-001", None) == "/a/runs/x-001"
