"""Cheats of the clock pass a naive evaluator that takes the time, and not this one; honest kernels are told their time.

What a GPU must run is marked `gpu`. Without one, the tables are checked, the naive clocks run on the host, and the
worker's watch is held against the cheats that replace a function.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adversarial.corpus import HERE, UNPROFITABLE, Cheat, caught, load, reported, row_name
from tests.adversarial.naive_runs import NaiveServer, naive_accepts
from tests.adversarial.support import bench, rejecting, said
from tests.adversarial.test_cheats import said as printed
from tests.adversarial.test_honest import ROWS, Honest

CHEATS = [cheat for cheat in load().cheat if cheat.timed]
HONEST = [row for row in ROWS if row.improvement]
PROBLEMS = HERE / "problems"
QUICK = ("--plan", "verdict", "--baselines", "eager")
"""Every phase of the timing, against one baseline."""

cheats = pytest.mark.parametrize("cheat", [pytest.param(cheat, id=row_name(cheat, "gpu")) for cheat in CHEATS])


# ── on a GPU ──


@pytest.mark.processes
@pytest.mark.gpu
@cheats
def test_naive_accepts(cheat: Cheat, tmp_path: Path) -> None:
    """The cheat works: a naive evaluator that takes the time finds it correct, and faster than it is."""
    accepted = naive_accepts(
        cheat.path, PROBLEMS / cheat.reference, tmp_path / "work", form=cheat.form, words=cheat.naive, device="cuda"
    )
    assert accepted, printed(tmp_path / "work")


@pytest.mark.processes
@pytest.mark.gpu
@cheats
def test_caught(cheat: Cheat, record_property: Callable[[str, object], None]) -> None:
    """The evaluator rejects it for a reason that its table names, or is not deceived about its time."""
    words = [word for word in cheat.command("gpu")[4:] if word != "--json"]
    data = bench(cheat.path, PROBLEMS / cheat.reference, *words, *QUICK)
    record_property("reported", sorted(reported(data)))
    assert not (data["verdict"] == "accepted" and data["improvement"] == "faster"), data["timing"]
    assert caught(cheat, data), (sorted(reported(data)), said(data))


@pytest.mark.processes
@pytest.mark.gpu
@pytest.mark.parametrize("row", [pytest.param(row, id=f"{row.id}@gpu") for row in HONEST])
def test_honest_time(row: Honest, record_property: Callable[[str, object], None]) -> None:
    """It is accepted, nothing is held against it, and there is something to say of its time."""
    found = bench(*row.paths, *row.timed_words("cuda:0"), *QUICK)
    record_property("reported", [found["verdict"], found["improvement"]])
    assert found["verdict"] == "accepted", f"{row.why}\n{said(found)}"
    assert rejecting(found) == []
    assert found["improvement"] in row.improvement, (row.why, found["timing"])


LIBRARY = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, *inputs):
        return {result}
"""

LOOKUP = """
__global__ void lookup(const float* table, const long long* number, float* output, int m) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < m) output[at] = table[number[at]];
}

extern "C" void solve(const float* table, const long long* number, float* output, int n, int m) {
    lookup<<<(m + 255) / 256, 256>>>(table, number, output, m);
}
"""


WORK = {
    "product_kb.py": "torch.mm(*inputs)",
    "convolution_kb.py": "torch.conv2d(*inputs)",
    "join_kb.py": "torch.cat(inputs)",
}


@pytest.mark.processes
@pytest.mark.gpu
@pytest.mark.parametrize(
    ("clock", "reference", "result"),
    [
        *(
            (clock, reference, WORK[reference])
            for clock in ("events", "sized", "clock", "do_bench")
            for reference in WORK
        ),
        ("queue", "product_kb.py", WORK["product_kb.py"]),  # the one that a cheat is timed with so
    ],
)
def test_the_same_work_is_no_faster(clock: str, reference: str, result: str, tmp_path: Path) -> None:
    """What the cheats compute does not pass without the cheat: the naive clocks alone do not make it faster."""
    candidate = tmp_path / "candidate.py"
    candidate.write_text(LIBRARY.format(result=result), "utf-8")
    for speedup, accepted in (("1.3", False), ("0.5", True)):
        folder, words = tmp_path / speedup, ["--timing", clock, "--min-speedup", speedup]
        found = naive_accepts(candidate, PROBLEMS / reference, folder, words=words, device="cuda")
        assert found is accepted, printed(folder)


@pytest.mark.processes
@pytest.mark.gpu
def test_the_same_lookup_is_no_faster(tmp_path: Path) -> None:
    """The same of the table that is kept in the cache."""
    candidate = tmp_path / "candidate.cu"
    candidate.write_text(LOOKUP, "utf-8")
    (cheat,) = (cheat for cheat in CHEATS if cheat.id == "persisting_l2")
    reference = PROBLEMS / cheat.reference
    found = naive_accepts(candidate, reference, tmp_path / "work", form="solve", words=cheat.naive, device="cuda")
    assert not found, printed(tmp_path / "work")


# ── without one: the naive clocks ──


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NaiveServer]:
    """A naive evaluator that forks for each evaluation on the CPU."""
    with NaiveServer(tmp_path_factory.mktemp("naive")) as running:
        yield running


@pytest.mark.parametrize("clock", ["events", "sized", "clock", "queue"])
@pytest.mark.parametrize(
    ("result", "speedup", "accepted"),
    [
        ("torch.mm(*inputs)", "0.001", True),
        ("torch.mm(*inputs)", "20", False),
        ("torch.mm(*inputs) + 1", "0.1", False),
        ("torch.mm(*inputs)[:1]", "0.1", False),
        ("missing", "0.1", False),
    ],
)
def test_naive_clocks_on_the_host(
    clock: str, result: str, speedup: str, accepted: bool, tmp_path: Path, server: NaiveServer
) -> None:
    """A right kernel passes where it need not be fast, and neither a wrong one nor a slow one does."""
    candidate = tmp_path / "candidate.py"
    candidate.write_text(LIBRARY.format(result=result), "utf-8")
    words = ["--timing", clock, "--min-speedup", speedup, "--dims", '{"SIDE": 96}']
    found = naive_accepts(candidate, PROBLEMS / "product_kb.py", tmp_path / "work", words=words, server=server)
    assert found is accepted, printed(tmp_path / "work")


@pytest.mark.parametrize(
    ("name", "clock"), [("compares_inputs", "events"), ("computes_queue", "queue"), ("stopped_clock", "clock")]
)
def test_cheats_that_need_no_gpu_deceive_the_naive_clocks(
    name: str, clock: str, tmp_path: Path, server: NaiveServer
) -> None:
    """Those whose mechanism is on the host pass there too."""
    (cheat,) = (cheat for cheat in CHEATS if cheat.id == name)
    assert cheat.naive[:2] == ("--timing", clock)
    words = [*cheat.naive, "--dims", '{"SIDE": 768}']
    found = naive_accepts(cheat.path, PROBLEMS / cheat.reference, tmp_path / "work", words=words, server=server)
    assert found, printed(tmp_path / "work")


# ── the tables ──


def test_there_are_enough() -> None:
    """Fifteen that deceive a clock, eighteen with what else gains time on a GPU, and ten honest kernels."""
    assert len(CHEATS) >= 15
    assert sum(cheat.family == "timing" and cheat.device != "cpu" for cheat in load().cheat) >= 18
    assert len(HONEST) >= 10
    assert {cheat.naive[1] for cheat in CHEATS} == {"events", "sized", "clock", "do_bench", "queue"}


@cheats
def test_rows_of_cheats(cheat: Cheat) -> None:
    """Each is for a GPU and asks the naive evaluator for a speedup; one that may be accepted says that it may be."""
    assert (cheat.family, cheat.device) == ("timing", "gpu")
    assert float(cheat.naive[cheat.naive.index("--min-speedup") + 1]) > 1.1
    assert cheat.vanishes == (UNPROFITABLE & set(cheat.expected) == UNPROFITABLE)
    assert "accepted" not in cheat.expected
    dims = [words[words.index("--dims") + 1] if "--dims" in words else "" for words in (cheat.args, cheat.naive)]
    assert dims[0] == dims[1]


@pytest.mark.parametrize("row", HONEST, ids=[row.id for row in HONEST])
def test_rows_of_honest_kernels(row: Honest) -> None:
    """Each can run on a GPU, where its words differ from other rows' in nothing but sizes."""
    assert row.device != "cpu"
    words = row.timed_words("cuda:0")
    assert words[-2:] == ["--device", "cuda:0"]
    assert ("--allow-library" in words) == ("--allow-library" in row.arguments)


def _data(verdict: str, improvement: str, *hazards: str) -> dict[str, Any]:
    return {"verdict": verdict, "improvement": improvement, "hazards": [{"id": id_} for id_ in hazards]}


def test_a_cheat_is_caught_or_has_gained_nothing() -> None:
    """Accepted as faster is never caught; accepted otherwise is, where the speed alone was false."""
    rows = {cheat.id: cheat for cheat in CHEATS}
    gone, hidden = rows["compares_inputs"], rows["starts_under_flush"]
    assert caught(gone, _data("accepted", "same"))
    assert not caught(gone, _data("accepted", "faster"))
    assert not caught(gone, _data("accepted", "not_timed"))
    assert not caught(rows["persisting_l2"], _data("accepted", "faster", "persisting_l2"))
    assert caught(hidden, _data("cheating", "not_timed", "outside_window"))
    assert not caught(hidden, _data("accepted", "same", "outside_window"))
    assert not caught(hidden, _data("cheating", "not_timed", "patched"))


# ── what can be said without running them ──


WATCH = """
import json, os, runpy, sys
import torch
import triton.testing
from evaluator.worker.measurement.integrity import watch

for path in sys.argv[1:]:
    reader, writer = os.pipe()
    if os.fork() == 0:
        changed = watch()
        model = runpy.run_path(path)["ModelNew"]()
        os.write(writer, json.dumps(changed()).encode())
        os._exit(0)
    os.wait()
    print(os.read(reader, 4096).decode())
"""


@pytest.mark.processes
def test_the_worker_sees_what_they_replace() -> None:
    """Also where the text does not say it: by another spelling, or by other code in the same function."""
    rows = [cheat for cheat in CHEATS if cheat.expected == ("patched",)]
    command = [sys.executable, "-c", WATCH, *(str(cheat.path) for cheat in rows)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent.parent), *sys.path])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    told = dict(zip((cheat.id for cheat in rows), map(json.loads, done.stdout.splitlines()), strict=True))
    assert told == {
        "shorter_elapsed_time": ["Event.elapsed_time"],
        "rewritten_elapsed_time": ["Event.elapsed_time"],
        "recorded_elsewhere": ["Event.record"],
        "other_current_stream": ["torch.cuda.current_stream"],
        "no_synchronize": ["torch.cuda.synchronize"],
        "stopped_clock": ["time.perf_counter"],
        "shorter_benchmark": ["triton.testing.do_bench"],
        "slow_hook": ["the table of hooks on all modules"],
    }
