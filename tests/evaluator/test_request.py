"""A request made again from the receipt that it led to."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from evaluator.receipt.plan import BaselineChoice, TimingPlan
from evaluator.receipt.problem import CandidateRecord, DeclaredTolerance, InputsRecord, SourceRecord
from evaluator.receipt.receipt import parse, render
from evaluator.request import InputsFile, Request, of_receipt
from evaluator.source.forms import Backend, Form
from evaluator.source.source_file import SourceFile
from kbs.common.errors import UsageError
from tests.evaluator.receipts import (
    KERNEL,
    PEAK,
    REFERENCE,
    SCHEDULE,
    plan,
    problem,
    receipt,
    source_record,
    timed_receipt,
)

SHAPES = InputsFile(name="in.json", content=b"[[64]]")
ARRAYS = InputsFile(name="in.npz", content=b"\x00\xff")
RAW = InputsFile(name="raw.json", content=b'{"file": "raw.bin"}', beside={"raw.bin": b"1234"})
SCRIPT = InputsFile(name="in.py", content="def get_inputs(): return []  # π\n".encode())


def again(inputs: InputsFile | None = None, device: str | None = None, **changes: Any) -> Request:
    """The request of a receipt with changes, which has been on disk."""
    made = parse(render(receipt(**changes)))
    request, schedule = of_receipt(made, inputs=inputs, device=device, environment={"PATH": "/bin"})
    assert schedule.reveal() == SCHEDULE.reveal()
    assert schedule.origin == "replayed"
    return request


def test_sources_and_plan_come_back() -> None:
    found = again()
    assert found == Request(
        candidate=SourceFile(name="kernel.py", text=KERNEL),
        reference=SourceFile(name="reference.py", text=REFERENCE),
        dims={"n": 64},
        workloads=({"n": 64},),
        allow_library=True,
        backend="torch",
        entry="run",
        environment={"PATH": "/bin"},
        memory_limit=1 << 30,
        plan="verdict",
        device="cpu",
    )
    assert found.candidate.hash == receipt().candidate.hash


def test_what_was_asked_on_the_command_line_comes_back() -> None:
    workloads = ({"n": 64}, {"n": 61})
    found = again(
        problem=problem(
            workloads=workloads,
            vary=("n",),
            allow_library=False,
            tolerance=DeclaredTolerance(atol=0.1, rtol=0.2, declared_by="command line", looser=True),
        ),
        plan=plan(name="signal", workloads=workloads, sanitizers=("memcheck",), memory_limit=123, device="cuda:1"),
        correctness=(),
        verdict="crashed",
    )
    assert (found.plan, found.sanitizers, found.memory_limit, found.device) == ("signal", ("memcheck",), 123, "cuda:1")
    assert (found.workloads, found.vary, found.allow_library, found.tolerance) == (workloads, ("n",), False, (0.1, 0.2))


def test_how_times_were_taken_comes_back() -> None:
    usual = Request(candidate=SourceFile(name="k.py", text="")).baselines
    asked = TimingPlan(restarts=5, seconds=7.5, baselines=usual)
    planned = plan(timing=asked, device="cuda:0")
    made = parse(render(timed_receipt(problem=problem(bytes="8*n", operations="2*n"), plan=planned)))
    found, _ = of_receipt(made, inputs=None, device=None, environment={})
    kept = TimingPlan(restarts=found.restarts, seconds=found.timing_seconds, baselines=found.baselines)
    assert kept == asked
    assert (found.bytes, found.operations, found.peak) == ("8*n", "2*n", PEAK)


def test_other_baselines_and_limits_come_back() -> None:
    mine = (BaselineChoice(name="mine", how="a.b:c"), BaselineChoice(name="eager", how="eager"))
    made = receipt(
        plan=plan(timing=TimingPlan(restarts=3, seconds=1.5, baselines=mine), device="cuda:0"),
        correctness=(),
        verdict="crashed",
    )
    found, _ = of_receipt(made, inputs=None, device=None, environment={})
    assert (found.baselines, found.restarts, found.timing_seconds) == (mine, 3, 1.5)


def test_without_times_there_are_the_usual_words_and_no_peak() -> None:
    found = again()
    plain = Request(candidate=found.candidate)
    assert (found.baselines, found.restarts, found.timing_seconds) == (
        plain.baselines,
        plain.restarts,
        plain.timing_seconds,
    )
    assert (found.bytes, found.operations, found.peak) == ("", "", None)


def test_a_tolerance_of_the_references_is_read_from_the_reference_again() -> None:
    declared = DeclaredTolerance(atol=0.1, rtol=0.2, declared_by="reference", looser=False)
    assert again(problem=problem(tolerance=declared)).tolerance is None


def test_a_cuda_kernel_comes_back_with_its_flags() -> None:
    text = 'extern "C" void solve(float* y, int n) {}'
    found = again(
        problem=problem(form=Form.SOLVE, outputs=("y",), ptr_sizes={"y": "n*2"}),
        candidate=CandidateRecord(
            **source_record("k.cu", text).model_dump(), backend=Backend.CUDA, entry="solve", flags=("-I/x", "-lineinfo")
        ),
        plan=plan(candidate_hash=hashlib.sha256(text.encode()).hexdigest()),
    )
    assert (found.candidate.name, found.backend, found.outputs, found.ptr_sizes, found.nvcc_flags) == (
        "k.cu",
        "cuda",
        ("y",),
        {"y": "n*2"},
        ("-I/x", "-lineinfo"),
    )


def test_without_a_reference_there_is_none() -> None:
    found = again(problem=problem(reference=None, oracle="original kernel"), plan=plan(reference_hash=None))
    assert found.reference is None


def test_another_device_may_be_chosen() -> None:
    assert again(device="cuda:3").device == "cuda:3"


# --- files of inputs --------------------------------------------------------------------------------------------------


NO_NAMES = ["", ".", "..", "/", "a/b", "/etc/passwd", "../x.py", "x/", "\0", "x\0.py"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_file_has_a_name_and_no_folder(name: str) -> None:
    """A receipt is a stranger's, and what it names is written into a folder before anything is isolated."""
    for make in (
        lambda: InputsFile(name=name, content=b""),
        lambda: InputsRecord(name=name, kind="any", hash="0" * 64, text=None),
        lambda: SourceRecord(name=name, text="", hash=hashlib.sha256(b"").hexdigest()),
    ):
        with pytest.raises(ValidationError, match="without a folder"):
            make()


@pytest.mark.parametrize("name", ["a", ".py", "...", "..a", "a..", "a b\n.py", "\\x", "é.npz"])
def test_any_other_name_is_one(name: str) -> None:
    assert InputsFile(name=name, content=b"").name == name
    assert InputsRecord(name=name, kind="any", hash="0" * 64, text=None).name == name


def record(file: InputsFile) -> InputsRecord:
    """What a receipt keeps of a file of inputs."""
    text = file.content.decode() if file in (SHAPES, SCRIPT) else None
    return InputsRecord(name=file.name, kind="any", hash=file.hash, text=text)


@pytest.mark.parametrize("file", [SHAPES, SCRIPT])
def test_a_file_of_text_stands_in_the_receipt(file: InputsFile) -> None:
    found = again(problem=problem(inputs=record(file)))
    assert found.inputs == file
    assert found.inputs is not None
    assert found.inputs.hash == record(file).hash


@pytest.mark.parametrize("file", [ARRAYS, RAW])
def test_a_file_of_arrays_is_given_again(file: InputsFile) -> None:
    with pytest.raises(UsageError, match=f"{file.name} of hash {file.hash[:16]}") as raised:
        again(problem=problem(inputs=record(file)))
    assert (raised.value.code, "--inputs" in raised.value.hint) == ("inputs_missing", True)
    assert again(file, problem=problem(inputs=record(file))).inputs == file


@pytest.mark.parametrize("other", [SHAPES, InputsFile(name="in.npz", content=b"\x00\xfe"), RAW])
def test_another_file_is_refused(other: InputsFile) -> None:
    with pytest.raises(UsageError) as raised:
        again(other, problem=problem(inputs=record(ARRAYS)))
    assert raised.value.code == "inputs_changed"


def test_bytes_beside_a_description_count() -> None:
    changed = RAW.model_copy(update={"beside": {"raw.bin": b"4321"}})
    assert changed.hash != RAW.hash
    assert InputsFile(name="other.json", content=RAW.content, beside=RAW.beside).hash == RAW.hash


def test_a_renamed_file_is_the_same_file() -> None:
    renamed = ARRAYS.model_copy(update={"name": "renamed.npz"})
    assert again(renamed, problem=problem(inputs=record(ARRAYS))).inputs == renamed


# --- what cannot be asked ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        {"call_seconds": 0},
        {"load_seconds": -1},
        {"memory_limit": 0},
        {"process_limit": 1},
        {"plan": "guess"},
        {"unknown": 1},
        {"dims": {"n": "many"}},
        {"tolerance": (1.0,)},
    ],
)
def test_what_makes_no_sense_is_refused(words: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Request(candidate=SourceFile(name="k.py", text=""), **words)


def test_contents_are_not_printed() -> None:
    text = repr(Request(candidate=SourceFile(name="k.py", text=""), inputs=RAW, include=(Path("x"),)))
    assert "1234" not in text
    assert "raw.json" in text
