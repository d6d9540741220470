"""A benchmark of the user's own in a run, on the CPU, as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conftest import Run
from tests.kopt.cli.run.test_agent import Agent, agent, begin
from tests.kopt.run_workspace import answer

__all__ = ["agent"]


BENCH = """import sys
from pathlib import Path

assert sys.argv[1:] == ["--size", "8"], sys.argv
warps = Path("kernel.py").read_text().split("num_warps=")[1][0]
assert (Path(__file__).parent / "data/rows.txt").read_text() == "8"
print(f"latency: {100 / int(warps):g} us")
print("H100 SXM has an HBM bandwidth of 4.2 TB/s")
"""


def test_a_benchmark_of_the_user_is_external_evidence_in_every_report(agent: Agent) -> None:
    (agent.folder / "bench.py").write_text(BENCH, "utf-8")
    (agent.folder / "data").mkdir()
    (agent.folder / "data" / "rows.txt").write_text("8", "utf-8")
    command = f"{sys.executable} bench.py --size 8"
    begun = begin(agent, "--iterations", "1", "--bench-command", command)
    root = Path(begun["folder"])
    assert json.loads((root / "run.json").read_bytes())["benchmark"]["command"] == command.split()
    first = json.loads((root / "external" / "v0.json").read_bytes())
    assert (first["evidence"], first["exit_code"], first["command"]) == ("external", 0, command.split())
    request = agent.request()
    [fact] = [one for one in request["external"] if one["metric"] == "latency"]
    assert (fact["value"], fact["reference"]) == ("100 us", f"receipt/{first['id']}#figures[0].value")
    assert f"external: latency 100 us  <- {fact['reference']}" in agent("run", "next").out

    def cites(quote: str) -> Run:
        made = answer(request)
        made["evidence"]["selected"].append({"reference": fact["reference"], "quote": quote, "why": "It says so."})
        return agent.submit(made)

    wrong = cites("latency: 12 us")
    assert (wrong.code, "evidence-reference" in wrong.out) == (4, True)
    done = cites("latency: 100 us")
    assert done.code == 0, done.out + done.err
    assert not done.json["data"]["kept"], "no version is kept for what a benchmark of the user's printed"
    second = json.loads((root / "external" / "v1.json").read_bytes())
    warps = int((root / "v1" / "kernel.py").read_text("utf-8").split("num_warps=")[1][0])
    assert second["figures"][0]["value"] == 100 / warps, "it ran with the kernel of this version"
    assert warps > 1
    for words in (("v0",), ("v1",), ("--final",)):
        assert agent("run", "gate", *words).code == 0
    benchmark = (root / "benchmark.md").read_text("utf-8")
    assert "## External: what your own benchmark printed" in benchmark
    assert "| v0 | ` latency ` | ` 100 us ` |" in benchmark
    assert f"| v1 | ` latency ` | ` {100 / warps:g} us ` |" in benchmark
    report = (root / "final_report.md").read_text("utf-8")
    assert f"external: your own benchmark ` {command} ` was run for v0, v1" in report
    assert "cited by v1, is what your own benchmark printed" in report
    edited = (
        (root / "external" / "v1.json")
        .read_text("utf-8")
        .replace('"exit_code": 0', '"exit_code": 1')
        .replace('"exit_code":0', '"exit_code":1')
    )
    (root / "external" / "v1.json").write_text(edited, "utf-8")
    broken = agent("run", "gate", "v1", "--json")
    assert broken.code == 4
    assert "receipt-seal" in broken.out
    assert "changed-file" in broken.out


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("--bench-command", "no-such-program x"), "command_missing", 5),
        (("--bench-command", "'"), "bench_command_invalid", 2),
        (("--figure", "a=b"), "options_do_not_fit", 2),
        (("--bench-command", "python bench.py", "--figure", "a=("), "figure_invalid", 2),
    ],
)
def test_a_benchmark_that_cannot_run(agent: Agent, words: tuple[str, ...], code: str, exit_code: int) -> None:
    done = agent("run", "plan", "--proposer", "agent", "--device", "cpu", "--json", *words)
    assert (done.code, done.json["errors"][0]["code"]) == (exit_code, code)


def test_a_benchmark_that_fails_stops_nothing(agent: Agent) -> None:
    (agent.folder / "bench.py").write_text("raise SystemExit(3)\n", "utf-8")
    root = Path(begin(agent, "--bench-command", f"{sys.executable} bench.py")["folder"])
    assert json.loads((root / "external" / "v0.json").read_bytes())["exit_code"] == 3
    assert agent("run", "final").code == 0
    page = (root / "benchmark.md").read_text("utf-8")
    assert "exit code 3" in page
    assert "no figure was found" in page
