"""The report of an evaluation: the verdict first, what failed, what was not looked at; and that a candidate's text does
nothing to the reader's terminal."""

from __future__ import annotations

import io
import math
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from evaluator.receipt.findings import DeviceKernel, LibraryOperation, NotTried, SanitizerRun, TaskCheck
from evaluator.receipt.problem import CandidateRecord, DeclaredTolerance
from evaluator.receipt.receipt import Receipt, Seal
from evaluator.receipt.verdict import Verdict
from evaluator.scan.hazards import Hazard, Severity
from evaluator.source.forms import Backend
from kopt.cli.bench.text import report
from kopt.cli.terminal.console import console
from tests.evaluator.receipts import KERNEL, REFERENCE, environment, plan, problem, receipt, source_record, trial

PATH = Path("/folder/receipt.json")


def shown(made: Receipt, *, terminal: int = 0) -> str:
    """What is printed; `terminal` is the width of one, 0 for a file."""
    stream = io.StringIO()
    to = Console(file=stream, force_terminal=True, color_system=None, width=terminal, highlight=False)
    report(to if terminal else console(stream), made, PATH)
    return stream.getvalue()


def lines(made: Receipt) -> list[str]:
    """The printed lines."""
    return shown(made).splitlines()


def section(made: Receipt, label: str) -> list[str]:
    """The lines under a label."""
    found = lines(made)[3:]
    start = next((n for n, line in enumerate(found) if line.startswith(f"{label:<13} ")), None)
    if start is None:
        return []
    rest = found[start:]
    end = next((n for n, line in enumerate(rest[1:], 1) if not line.startswith(" ")), len(rest))
    return [line[14:] for line in rest[:end]]


def failing(**changes: Any) -> Receipt:
    """A receipt of a wrong kernel."""
    fields: dict[str, Any] = {
        "verdict": Verdict.INCORRECT,
        "correctness": (trial(), trial(index=1, distribution="large", passed=False, worst=12, got=3.5, expected=3.25)),
        "reason": "result on large inputs: 3.5 where 3.25 is right",
    }
    return receipt(**{**fields, **changes})


# --- what stands where ------------------------------------------------------------------------------------------------


def test_the_verdict_stands_first_and_its_reason_second() -> None:
    first, second, third, *_ = lines(receipt())
    assert first == "ACCEPTED  kernel.py (torch) against reference.py, on the CPU"
    assert second == "right in all 2 calls"
    assert third == ""


@pytest.mark.parametrize("verdict", [v for v in Verdict if v is not Verdict.ACCEPTED])
def test_every_other_verdict_stands_there_too(verdict: Verdict) -> None:
    cheat = (Hazard(id="patched", severity=Severity.REJECT, evidence="torch.allclose was replaced"),)
    found = failing(
        verdict=verdict,
        hazards=cheat if verdict is Verdict.CHEATING else (),
        task_check=TaskCheck(
            refused=verdict is Verdict.TASK_REFUSED, reasons=("zeros pass",) if verdict == "task_refused" else ()
        ),
    )
    assert lines(found)[0].startswith(f"{verdict.value.upper()}  kernel.py")
    assert "ACCEPTED" not in shown(found)


def test_what_it_was_held_against_and_where() -> None:
    alone = receipt(problem=problem(reference=None, oracle="original kernel"), plan=plan(reference_hash=None))
    assert "against itself (no reference), on the CPU" in lines(alone)[0]
    on_gpu = receipt(environment=environment(device="cuda:0", device_name="NVIDIA H200"))
    assert lines(on_gpu)[0].endswith("on NVIDIA H200")


def test_inputs_are_one_line_a_distribution_with_the_nearest_error() -> None:
    rows = (
        trial(),
        trial(index=1, repeat=1, rms_ratio=8.0, max_ratio=8.0),
        trial(index=2, distribution="small", rms_ratio=0.0, max_ratio=0.0),
        trial(index=3, distribution="binary", kappa=math.nan, rms_ratio=math.nan, max_ratio=math.nan),
    )
    assert section(receipt(correctness=rows), "inputs") == [
        "binary               1 call  n=64  ok, equal",
        "normal               2 calls n=64  ok, error at most 25% of the allowance",
        "small                1 call  n=64  ok, error at most 0% of the allowance",
    ]


def test_workloads_are_told_apart() -> None:
    rows = tuple(trial(index=n, dims={"n": size, "m": 2}) for n, size in enumerate((61, 64, 61)))
    assert [
        line.partition("  ok")[0]
        for line in section(receipt(problem=_two(), plan=_planned(), correctness=rows), "inputs")
    ] == [
        "normal               2 calls n=61 m=2",
        "normal               1 call  n=64 m=2",
    ]


def _two() -> Any:
    return problem(workloads=({"n": 64, "m": 2}, {"n": 61, "m": 2}))


def _planned() -> Any:
    return plan(workloads=({"n": 64, "m": 2}, {"n": 61, "m": 2}))


def test_a_failed_trial_is_shown_with_what_is_wrong() -> None:
    assert section(failing(), "inputs") == [
        "large                1 call  n=64  FAILED 1 of 1: element 12 is 3.5, right is 3.25",
        "normal               1 call  n=64  ok, error at most 1% of the allowance",
    ]
    rows = (trial(), trial(index=1, passed=False, detail="7 elements were never written"), trial(index=2, passed=False))
    assert section(failing(correctness=rows), "inputs") == [
        "normal               3 calls n=64  FAILED 2 of 3: 7 elements were never written"
    ]


def test_a_call_that_did_not_end_is_said() -> None:
    assert section(failing(correctness=(), verdict=Verdict.TIMEOUT), "inputs") == ["no call came to an end"]


def test_what_was_not_checked_and_not_tried_is_shown() -> None:
    found = receipt(
        not_checked=("speed: nothing is timed on the CPU", "other sizes: none were named"),
        not_tried=(NotTried(what="small", why="too small"), NotTried(what="strided inputs", why="one dimension")),
    )
    assert section(found, "not checked") == ["speed: nothing is timed on the CPU", "other sizes: none were named"]
    assert section(found, "not tried") == ["small: too small", "strided inputs: one dimension"]


def test_hazards_that_reject_are_apart_from_notes() -> None:
    hazards = (
        Hazard(id="patched", severity=Severity.REJECT, evidence="torch.allclose was replaced", line=7),
        Hazard(id="fixed_inputs", severity=Severity.NOTE, evidence="one set"),
    )
    found = failing(verdict=Verdict.CHEATING, hazards=hazards)
    assert section(found, "hazards") == ["patched: torch.allclose was replaced (line 7)"]
    assert section(found, "notes") == ["fixed_inputs: one set"]


def test_what_really_ran_and_how_the_sanitizers_ended() -> None:
    found = receipt(
        kernels=(
            DeviceKernel(name="mine", library=False, calls=2, microseconds=3.25),
            DeviceKernel(name="ampere_sgemm", library=True, calls=1, microseconds=None),
        ),
        library_operations=(LibraryOperation(name="aten::sum", calls=3, share=0.125),),
        sanitizers=(
            SanitizerRun(tool="memcheck", status="passed"),
            SanitizerRun(tool="racecheck", status="not run", detail="no"),
        ),
    )
    assert section(found, "really ran") == [
        "mine (2 x, 3.2 µs)",
        "ampere_sgemm (1 x, of a library)",
        "aten::sum (3 x, 12% of the problem's bytes)",
    ]
    assert section(found, "sanitizers") == ["memcheck: passed", "racecheck: not run: no"]


def test_a_declared_tolerance_and_whether_it_is_looser() -> None:
    declared = DeclaredTolerance(atol=0.1, rtol=1e-3, declared_by="reference", looser=True)
    said = section(receipt(problem=problem(tolerance=declared)), "tolerance")
    assert said == ["atol 0.1, rtol 0.001, declared by the reference, looser than the evaluator's own"]


def test_the_receipts_place_and_seal_stand_last() -> None:
    assert lines(receipt())[-1] == "receipt       /folder/receipt.json (not sealed; 1.2 s)"
    sealed = receipt().model_copy(update={"seal": Seal(key_id="0" * 16, mac="0" * 64)})
    assert lines(sealed)[-1] == "receipt       /folder/receipt.json (sealed with your key; 1.2 s)"


def test_empty_sections_are_left_out() -> None:
    bare = receipt(
        hazards=(), not_checked=(), task_check=TaskCheck(refused=False), correctness=(trial(distribution="normal"),)
    )
    labels = [line[:13].strip() for line in lines(bare)[3:] if line[0] != " "]
    assert labels == ["improvement", "inputs", "not tried", "receipt"]


def test_nothing_is_said_of_times_where_none_were_taken() -> None:
    assert section(receipt(), "improvement") == ["not_timed"]
    assert "µs" not in shown(receipt())


# --- text that a candidate controls -----------------------------------------------------------------------------------

PLANTED = [
    "[red]kernel[/red]",
    "[link=https://example.org]k[/link]",
    "[/]",
    "\x1b[2J\x1b[Hk",
    "k\x1b]0;title\x07",
    "k\x1b]8;;https://example.org\x1b\\",
    "\x9b31mk",
    "k\r\rACCEPTED",
    "k\n\nACCEPTED  kernel.py",
    "k\x08\x08\x08",
    "k\u2028ACCEPTED",
    "k\x85ACCEPTED",
    "\u202ek",
    "k\u200b\u2066",
    "k\0",
    "k\t\v\f",
]


def named(text: str) -> str:
    """A file's name that is the text wherever that is possible."""
    return "file" if set("/\0") & set(text) else text


def planted(text: str, name: str | None = None) -> Receipt:
    """A receipt of a rejected kernel with this text wherever a candidate, or a stranger's receipt, can put it.

    `name`: what its files are called, where the text itself cannot be a file's name.
    """
    name = named(text) if name is None else name
    return receipt(
        verdict=Verdict.CHEATING,
        reason=f"patched: {text}",
        candidate=CandidateRecord(
            **source_record(f"{name}.py", KERNEL).model_dump(), backend=Backend.TORCH, entry="run", flags=()
        ),
        problem=problem(reference=source_record(f"{name}.py", REFERENCE), dims={}, workloads=({text: 3},)),
        plan=plan(workloads=({text: 3},)),
        environment=environment(device="cuda:0", device_name=f"GPU {text}"),
        correctness=(
            trial(dims={text: 3}, distribution=f"given {text}", passed=False, detail=f"wrong: {text}"),
            trial(dims={text: 3}, index=1, output=text),
        ),
        task_check=TaskCheck(refused=False, told_apart={f"told {text}": True}),
        not_tried=(NotTried(what=f"small {text}", why=f"because {text}"),),
        hazards=(
            Hazard(id="patched", severity=Severity.REJECT, evidence=f"{text} was replaced", line=3),
            Hazard(id="dynamic_code", severity=Severity.NOTE, evidence=f"line: {text}"),
        ),
        sanitizers=(SanitizerRun(tool="memcheck", status="failed", detail=f"Invalid read; at {text}"),),
        kernels=(DeviceKernel(name=f"void {text}", library=False, calls=1, microseconds=1.0),),
        library_operations=(LibraryOperation(name=f"mine::{text}", calls=1, share=0.5),),
        not_checked=(f"isolation: {text}",),
    )


@pytest.mark.parametrize("text", PLANTED, ids=ascii)
def test_nothing_of_a_candidates_text_is_obeyed_by_a_terminal(text: str) -> None:
    """Neither markup, nor escape sequences, nor lines of its own; what it wrote can still be seen."""
    found = shown(planted(text))
    own = named(text) == text
    plain = shown(planted("k", "k" if own else "file"))
    odd = {char for char in found if char != "\n" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")}
    assert odd == set()
    assert found.count("\n") == plain.count("\n")
    assert [line for line in found.splitlines() if line.startswith("ACCEPTED")] == []
    assert found.startswith("CHEATING  ")
    if text.isprintable():
        assert found.count(text) == plain.count("k") - shown(planted("", "" if own else "file")).count("k")


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=20))
def test_no_text_at_all_makes_lines_or_escapes(text: str) -> None:
    found = shown(planted(text))
    assert found.count("\n") == shown(planted("k")).count("\n")
    assert "\x1b" not in found


# --- width ------------------------------------------------------------------------------------------------------------


def test_a_file_gets_whole_lines() -> None:
    assert f"isolation: {'word ' * 300}".strip() in shown(planted("word " * 300))


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_terminal_gets_lines_that_fit(width: int) -> None:
    for made in (receipt(), failing(), planted("a rather long name of a kernel " * 4)):
        found = shown(made, terminal=width).splitlines()
        assert max(len(line) for line in found) <= width
        assert found[0].startswith(made.verdict.value.upper())


def test_colour_is_for_terminals_alone() -> None:
    stream = io.StringIO()
    coloured = Console(file=stream, force_terminal=True, color_system="standard", width=100, highlight=False)
    report(coloured, receipt(), PATH)
    assert stream.getvalue().startswith("\x1b[1;32mACCEPTED")
    assert "\x1b" not in shown(receipt())


@pytest.mark.processes
def test_a_reader_that_stops_early_leaves_the_exit_code_alone(tmp_path: Path) -> None:
    """`kopt bench verify FILE | head -0` still says that the file is no receipt of ours."""
    import os
    import subprocess
    import sys

    (tmp_path / "t.json").write_bytes(b"{}")
    reading, writing = os.pipe()
    os.close(reading)
    words = [sys.executable, "-m", "kopt", "bench", "verify", str(tmp_path / "t.json")]
    env = {**os.environ, "KOPT_HOME": str(tmp_path)}
    done = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, env=env, check=False)
    os.close(writing)
    assert done.returncode == 4
    assert b"Traceback" not in done.stderr
