"""The table of cheats, and the page docs/cheats.md that is generated from it.

What caught a cheat is read from the recorded test runs in benchmarks/results/evaluator (`pytest --record FILE`); for a
row that was not run, the page names the defences that should catch it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

HERE = Path(__file__).resolve().parent
CHEATS = HERE / "cheats"
PROBLEMS = HERE / "problems"

Device = Literal["cpu", "gpu"]

UNPROFITABLE = frozenset({"same", "slower", "unstable"})
"""Improvements by which a cheat has gained nothing."""


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Source(_Row):
    """A public place where a cheat was seen caught."""

    title: str
    url: str


class Cheat(_Row):
    """One mechanism."""

    id: str
    file: str
    """In cheats/."""
    reference: str
    """In problems/."""
    form: Literal["kernelbench", "setup", "solve", "function"]
    family: Literal["timing", "reuse", "semantics", "tampering"]
    device: Literal["cpu", "gpu", "both"]
    """Where it can exist."""
    expected: tuple[str, ...]
    """Verdicts, hazards and unprofitable improvements of which the evaluator must report at least one."""
    seen: tuple[str, ...] = ()
    """Names of sources."""
    inputs: str = ""
    """A file of inputs in problems/, for the form `function`."""
    args: tuple[str, ...] = ()
    """Further words for `kopt bench`."""
    naive: tuple[str, ...] = ()
    """Further words for the naive evaluator."""
    luck: bool = False
    """Whether its wrong results come right by luck, as those of a race do: the naive evaluator gets several tries."""
    fresh: bool = False
    """Whether the naive evaluator must start from a new interpreter."""
    attack: bool = False
    """Whether it is aimed at the machine rather than at a verdict."""
    vanishes: bool = False
    """Whether what is false about it is the speed alone, so that there is nothing to reject where that is measured
    rightly: it may be accepted, but not as faster."""

    @property
    def path(self) -> Path:
        """The candidate's file."""
        return CHEATS / self.file

    @property
    def timed(self) -> bool:
        """Whether the naive evaluator takes its time; such rows are tried by test_timing.py."""
        return "--timing" in self.naive

    @property
    def mechanism(self) -> str:
        """What it does, in one sentence: the first line of its file."""
        first = self.path.read_text("utf-8").splitlines()[0]
        return first.removeprefix("//").strip().strip('"')

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices on which it is tried."""
        return ("cpu", "gpu") if self.device == "both" else (self.device,)

    def command(self, device: Device) -> list[str]:
        """The words of `kopt bench` that try it."""
        words = ["bench", str(self.path), "--ref", str(PROBLEMS / self.reference)]
        if self.inputs:
            words += ["--inputs", str(PROBLEMS / self.inputs)]
        words += [str(PROBLEMS / word) if (PROBLEMS / word).is_file() else word for word in self.args]
        return [*words, "--device", "cpu" if device == "cpu" else "cuda:0", "--json"]


class Corpus(_Row):
    """All cheats, in the order of the table."""

    cheat: tuple[Cheat, ...]
    source: dict[str, Source]


def load() -> Corpus:
    """Read cheats.toml."""
    with (HERE / "cheats.toml").open("rb") as file:
        return Corpus.model_validate(tomllib.load(file))


def row_name(cheat: Cheat, device: Device) -> str:
    """`memo_id`, and `memo_id@gpu` on a GPU."""
    return cheat.id if device == "cpu" else f"{cheat.id}@gpu"


def reported(data: Mapping[str, Any]) -> set[str]:
    """Verdict, hazards and unprofitable improvement of an evaluation's `data`."""
    return {data["verdict"], *(hazard["id"] for hazard in data["hazards"])} | ({data["improvement"]} & UNPROFITABLE)


def caught(cheat: Cheat, data: Mapping[str, Any]) -> bool:
    """Whether an evaluation reports what the cheat's row expects, and does not believe the cheat."""
    if data["verdict"] == "accepted" and not (cheat.vanishes and data["improvement"] in UNPROFITABLE):
        return False
    return not reported(data).isdisjoint(cheat.expected)


def table(corpus: Corpus, results: Mapping[str, list[str]]) -> str:
    """The Markdown table: cheat, what it does, what catches it on which device, where it was seen caught."""
    lines = ["| cheat | what it does | caught by | seen caught |", "|---|---|---|---|"]
    for cheat in corpus.cheat:
        caught = []
        for device in cheat.devices:
            found = results.get(row_name(cheat, device))
            names = ", ".join(f"`{name}`" for name in found) if found else ", ".join(cheat.expected) + " (expected)"
            caught.append(f"{device.upper()}: {names}")
        seen = ", ".join(f"[{corpus.source[name].title}]({corpus.source[name].url})" for name in cheat.seen)
        lines.append(f"| `{cheat.id}` | {cheat.mechanism} | {'; '.join(caught)} | {seen} |")
    return "\n".join(lines) + "\n"


RECORDS = HERE.parent.parent / "benchmarks" / "results" / "evaluator"
_PAGE = """# Cheats

Each row is a working cheat from the corpus in `tests/adversarial/cheats`. It passes a naive evaluator
(`tests/adversarial/naive.py`), and `pytest tests/adversarial/test_cheats.py` runs it against this one. No two rows
differ only in names or constants. *Caught by* lists what the evaluator reported in the recorded runs
([benchmarks/results/evaluator](../benchmarks/results/evaluator/README.md)): the verdict, the hazards including notes,
and the improvement if it is none; the [evaluator's page](evaluator.md) explains them, but for three hazards of the text
that only older runs on a GPU have (`detects_benchmark`, `tensor_subclass`, `uses_threads`). Cheats of the clock pass a
naive evaluator that takes times as public ones do (`tests/adversarial/naive_timing.py`), and
`pytest tests/adversarial/test_timing.py` runs them against this one. Where only the speed is false, an honest clock
reports `accepted` with `same`, `slower` or `unstable`.

These are cases that we know. On cases of strangers the figures are others. First runs of sets for the CPU, by attackers
who had read the code and no test: 26 of 38 accepted, then 28 of 28
([record](../benchmarks/results/blind/evaluator/2026-11-23-red-team-cpu.json), at ea7f187), then, after those were
mended, 26 of 26 ([record](../benchmarks/results/blind/evaluator/2026-11-23-red-team-cpu-2.json), at 8e4cfcc). Most are
right on whatever kopt drew and wrong on what it did not: another value, order, size, mode or type, or they call a
library where kopt did not look. Who reads the code finds what it does not draw; `accepted` says that a candidate was
right on what was drawn. Of the 28, 27 are caught since, and the last is accepted with words that say so; of the 26, 14
are (`tests/adversarial/test_strangers.py`). Accepted still: blocks at −∞ and labels of −100, which are noted, an
optional argument that is never given, other dtypes than the problem's, wrong gradients, a state after more than three
calls, sizes that one constant couples, weights that are written where their version does not tell, calls from another
thread, and NumPy inside an interpreted kernel.

Of 13 that cheat the clock of a GPU, 7 were called `faster` in the first run
([record](../benchmarks/results/blind/evaluator/2026-11-23-red-team-gpu.json), at 8e4cfcc), and none of these after the
clock was mended ([0038](decisions/0038-one-clock.md)). The next figures need new sets.

"""


def recorded(folder: Path = RECORDS) -> dict[str, list[str]]:
    """Row name → what the evaluator reported, from all records of a folder."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for text in path.read_text("utf-8").splitlines():
            line = json.loads(text)
            if "test_caught[" in line.get("test", "") and line["outcome"] == "passed":
                found[line["test"].partition("[")[2].removesuffix("]")] = line["reported"]
    return found


def page() -> str:
    """The page docs/cheats.md."""
    return _PAGE + table(load(), recorded())
