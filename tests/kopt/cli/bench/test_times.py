"""Times in the report for a terminal: what stands where, in which units, and what a candidate's text cannot do."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.receipt.plan import Plan
from evaluator.receipt.receipt import Receipt
from evaluator.receipt.verdict import Improvement
from kopt.cli.bench.text import report
from kopt.cli.terminal.console import console
from tests.evaluator.receipts import (
    baseline,
    clocks,
    failed_baseline,
    physics,
    plan,
    spans,
    timed,
    timed_receipt,
    timing,
    workload_timing,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "bench_report.txt"
PATH = Path("/folder/receipt.json")
LABELS = (
    "improvement",
    "time",
    "baselines",
    "cross-checks",
    "clocks",
    "dropped",
    "overhead",
    "noise floor",
    "physics",
    "about times",
)


def shown(made: Receipt) -> str:
    """What is printed into a file."""
    stream = io.StringIO()
    report(console(stream), made, PATH)
    return stream.getvalue()


def section(made: Receipt, label: str) -> list[str]:
    """The lines under a label."""
    found: list[str] = []
    inside = False
    for line in shown(made).splitlines()[3:]:
        inside = line.startswith(f"{label:<13} ") or (inside and line.startswith(" "))
        found += [line[14:]] if inside else []
    return found


def test_the_whole_report() -> None:
    assert shown(timed_receipt()) == GOLDEN.read_text("utf-8")


def test_the_short_report_has_what_a_verdict_is_read_by() -> None:
    stream = io.StringIO()
    report(console(stream), timed_receipt(), PATH, long=False)
    said = stream.getvalue()
    labels = [line[:13].strip() for line in said.splitlines()[3:] if line[:1] not in ("", " ")]
    assert labels[:4] == ["improvement", "time", "baselines", "inputs"]
    assert not {"cross-checks", "clocks", "overhead", "physics", "about times", "not tried"}.intersection(labels)
    assert labels[-1] == "receipt"
    assert len(said.splitlines()) <= 16
    assert "Give --long for the evidence" in said


def test_sections_stand_in_their_order_before_the_inputs() -> None:
    labels = [line[:13].strip() for line in shown(timed_receipt()).splitlines()[3:] if line[:1] not in ("", " ")]
    assert labels[: len(LABELS) + 1] == [*LABELS, "inputs"]


def test_a_slow_kernel_is_told_in_ms() -> None:
    times = timing(workload_timing(candidate=timed(us=2500.0), baselines={"eager": baseline(us=2500.0)}))
    made = timed_receipt(times)
    assert section(made, "time")[0].startswith("median 2.500 ms (p20 2.495, p80 2.507, ")
    assert section(made, "baselines") == ["eager  3.281 ms, faster: ratio to eager 1.312 (1.307 to 1.318) (TF32 off)"]


def test_several_workloads_have_a_line_each() -> None:
    times = timing(
        workload_timing(dims={"n": 64}),
        workload_timing(
            dims={"n": 65},
            candidate=timed(us=200.0),
            baselines={"eager": baseline("eager", 1.0, 200.0)},
            improvement=Improvement.SAME,
            physics=physics(status="not checked", peak=None, detail="no source"),
        ),
    )
    made = timed_receipt(times)
    assert section(made, "improvement") == [
        "faster: 1.146 times as fast as eager (95% interval 1.141 to 1.150, geometric mean of 2 workloads)"
    ]
    medians = [line for line in section(made, "time") if "median" in line]
    assert [line.partition(" (")[0] for line in medians] == ["n=64: median 136.0 µs", "n=65: median 200.0 µs"]
    assert medians[0].endswith("; faster: ratio to eager 1.312 (1.307 to 1.318)")
    assert medians[1].endswith("; same: ratio to eager 1.000 (0.996 to 1.004)")
    assert section(made, "physics")[1] == "n=65: not checked: no source"
    assert len(section(made, "cross-checks")) == 2, "what both say alike is said once"


def test_baselines_that_failed_say_why() -> None:
    alone = {"eager": baseline(), "flashinfer": failed_baseline(detail="it is not installed")}
    made = timed_receipt(timing(workload_timing(baselines=alone)))
    assert section(made, "baselines")[1] == "flashinfer  failed: it is not installed"


def test_empty_sections_are_left_out() -> None:
    quiet = workload_timing(
        candidate=timed(late=0),
        baselines={},
        against="",
        gb_per_s=None,
        of_ceiling=None,
        of_peak=None,
        ceiling=None,
        physics=physics(status="not checked", peak=None, detail="no source"),
        notes=(),
    )
    made = timed_receipt(timing(quiet, plan="signal"), improvement=Improvement.NOT_COMPARED)
    assert [label for label in LABELS if section(made, label)] == [
        "improvement",
        "time",
        "cross-checks",
        "clocks",
        "overhead",
        "physics",
    ]
    assert len(section(made, "time")) == 1


def test_an_unstable_improvement_gives_its_reasons() -> None:
    times = timing(workload_timing(unstable=("the device time is not confirmed",), confirmed=False))
    made = timed_receipt(times, improvement=Improvement.UNSTABLE)
    assert section(made, "improvement")[0] == "unstable: the device time is not confirmed"
    assert section(made, "improvement")[1].startswith("measured, and not to be relied on: ")


def test_a_candidate_whose_time_was_lost() -> None:
    lost = timed(status="failed", summary=None, detail="its process ended")
    made = timed_receipt(timing(workload_timing(candidate=lost)), improvement=Improvement.UNSTABLE)
    assert section(made, "time")[0] == "none: its process ended"


# --- text that a candidate controls -----------------------------------------------------------------------------------


def planted(text: str) -> Receipt:
    """Times with this text wherever somebody else can put it."""
    name = text or "k"
    found = workload_timing(
        dims={name: 3},
        candidate=timed(detail=text),
        baselines={
            "eager": baseline(timed=timed("eager", flags=(text,), detail=text)),
            name: failed_baseline(name, text),
        },
        spans=spans(status="refuted", detail=text),
        unstable=(text,),
        notes=(f"note {text}",),
    )
    other: Plan = plan(workloads=({name: 3},))
    return timed_receipt(
        timing(found, clocks=clocks(throttled=(text,))),
        plan=other,
        improvement=Improvement.UNSTABLE,
        verdict="incorrect",
    )


@pytest.mark.parametrize("text", ["\x1b[2J", "k\nACCEPTED", "k\r\r", "\u202ek", "[red]k[/red]", "k\u2028k"], ids=ascii)
def test_nothing_of_it_is_obeyed_by_a_terminal(text: str) -> None:
    found = shown(planted(text))
    assert found.count("\n") == shown(planted("k")).count("\n")
    assert all(char.isprintable() or char == "\n" for char in found)
    assert not [line for line in found.splitlines() if line.startswith("ACCEPTED")]


@settings(deadline=None, max_examples=40)
@given(st.text(max_size=20))
def test_no_text_at_all_makes_lines(text: str) -> None:
    if text not in ("", "eager", "note "):
        assert shown(planted(text)).count("\n") == shown(planted("k")).count("\n")
