"""The corpus of kernels with a known bottleneck: its table is whole, its kernels are right and compile to what is said
of them. No GPU is needed."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator

import pytest

from evaluator.request import Request
from evaluator.sandbox.fork_server import ForkServer, passed_environment
from evaluator.sass.compile import machine_code
from evaluator.sass.sass import Function
from evaluator.sass.tools import Target
from evaluator.source.source_file import read_source
from kbs.evidence.opcodes import pattern
from kbs.evidence.vocabulary import vocabulary
from kbs.hardware.profile_metrics import profile_metrics
from tests.adversarial.support import bench, rejecting, said
from tests.evaluator.profiles.corpus import KERNELS, REPORTS, Expected, load

CORPUS = load()
IDS = [row.id for row in CORPUS.profile]
every = pytest.mark.parametrize("row", CORPUS.profile, ids=IDS)

WANTED = {
    "memory-bound": {"high-memory-throughput", "excess-traffic", "uncoalesced-access", "register-spills"},
    "compute-bound": {"high-pipe-utilization", "branch-divergence"},
    "latency-bound": {"stall-long-scoreboard", "stall-barrier", "atomic-contention"},
    "occupancy-bound": {"low-occupancy"},
    "launch-bound": {"small-grid"},
}
"""First symptoms that the corpus must have, by class."""


@pytest.fixture(scope="module")
def compilers() -> Iterator[ForkServer]:
    """Where Triton compiles for a GPU that is not there."""
    with ForkServer("cuda", environment=passed_environment(())) as started:
        yield started


def test_table_is_whole() -> None:
    assert len(set(IDS)) == len(IDS) >= 14
    files = {row.file for row in CORPUS.profile} | {row.reference for row in CORPUS.profile}
    assert files == {path.name for path in KERNELS.iterdir() if path.is_file()}
    assert sum(row.counts for row in CORPUS.profile) >= 12
    for bottleneck, symptoms in WANTED.items():
        assert symptoms <= {row.first_symptom for row in CORPUS.profile if row.bottleneck == bottleneck and row.counts}
    assert {row.triton for row in CORPUS.profile} == {True, False}


@every
def test_row_uses_names_that_exist(row: Expected) -> None:
    words = vocabulary()
    assert row.bottleneck in words.bottlenecks
    assert {row.first_symptom, *row.also, *row.never} <= set(words.symptoms)
    assert not {row.first_symptom, *row.also} & set(row.never)
    assert row.resource in profile_metrics().all
    assert all(pattern(text) for text in (*row.has, *row.lacks))
    assert row.why.endswith(".")
    assert re.search(r"\d", row.why)
    assert row.counts or row.risk
    assert bool(row.small) == bool(row.compiled) == row.triton
    text = row.candidate_path.read_text("utf-8")
    assert re.search(rf"(def|void|\)\s*)\s+{row.kernel}\(", text) or f" {row.kernel}(" in text


@every
def test_floor_is_its_arithmetic(row: Expected) -> None:
    assert row.floor(CORPUS.rates) == pytest.approx(row.floor_us, abs=0.05)


@pytest.mark.processes
@pytest.mark.parametrize("row", [row for row in CORPUS.profile if row.triton], ids=lambda row: row.id)
def test_triton_kernel_is_right(row: Expected) -> None:
    words = ["--dims", json.dumps(row.small), "--device", "cpu", *(["--vary", row.vary] if row.vary else [])]
    found = bench(row.candidate_path, row.reference_path, *words)
    assert found["verdict"] == "accepted", said(found)
    assert rejecting(found) == []


def _profiled(server: ForkServer, row: Expected) -> Function:
    request = Request(
        candidate=read_source(row.candidate_path, "candidate"),
        reference=read_source(row.reference_path, "reference"),
        dims=row.compiled or row.dims,
        environment=server.environment,
    )
    machine = machine_code(server, request, Target(90))
    assert machine.compile_error == ""
    [function] = [function for function in machine.functions if function.short_name == row.kernel]
    return function


@pytest.mark.processes
@every
def test_machine_code_is_what_the_row_says(compilers: ForkServer, row: Expected) -> None:
    if not row.triton and shutil.which("nvcc", path=compilers.environment.get("PATH")) is None:
        pytest.skip("needs nvcc")
    function = _profiled(compilers, row)
    for text in row.has:
        assert function.count([known for known in [pattern(text)] if known]), f"{text} not in {function.opcodes}"
    for text in row.lacks:
        assert not function.count([known for known in [pattern(text)] if known]), f"{text} in {function.opcodes}"
    spills = function.resources.spill_store_bytes
    assert spills is not None
    assert (spills > 0) == (row.first_symptom == "register-spills")


@every
def test_report_is_of_this_version_and_of_its_kernel(row: Expected) -> None:
    records = REPORTS / "profiles.jsonl"
    if not records.exists():
        pytest.skip("no profile was taken yet")
    lines = [json.loads(line) for line in records.read_text("utf-8").splitlines()]
    mine = {line["what"]: line for line in lines if line["case"] == row.id and "error" not in line}
    assert "full" in mine
    for what in mine.keys() - {"bench"}:
        assert mine[what]["hash"] == row.hash
        assert set(mine[what]["kernels"]) == {row.kernel}
        assert (REPORTS / mine[what]["csv"]).is_file()
