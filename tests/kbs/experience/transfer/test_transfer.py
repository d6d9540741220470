"""Export and import: what goes out comes back, and what cannot be read is said."""

from __future__ import annotations

import json
import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.common.errors import UsageError
from kbs.common.ulid import new_ulid
from kbs.experience.experiment import Outcome
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog
from kbs.experience.method_names import MethodNames
from kbs.experience.transfer.import_export import Import, read, to_csv, to_json
from kbs.experience.transfer.public_form import read_public
from kbs.experience.transfer.run_folder import asked_about
from kbs.experience.transfer.values import UnreadError
from tests.kbs.experience.records import experiment, measured

EVERY = Filter(masked=None)
NAMES_OF_METHODS = MethodNames()
WORDS = st.text(max_size=30)
PUBLIC = {
    "id": "exp-007",
    "date": "2026-03-01",
    "iteration": 3,
    "kernel": "fused_rmsnorm",
    "backend": "Triton",
    "chip": "H100",
    "dims": {"M": 4096, "N": 8192},
    "bottleneck_before": "memory",
    "dominant_stall": "long_scoreboard",
    "metrics_before": {"dram__throughput.avg.pct_of_peak_sustained_elapsed": "61.5 %", "duration": "1.5 ms"},
    "metrics_after": {"dram_throughput": 83},
    "optimization": "Vectorized loads",
    "hypothesis": "Fewer instructions",
    "outcome": "improved",
    "speedup": "1.31x",
    "notes": "Only for even rows.",
}


def intact(data: bytes) -> str:
    """Every receipt counts."""
    return ""


def load(path: Path) -> Import:
    """What is read of a file."""
    return read(path, intact)


def read_text(folder: Path, text: str) -> Import:
    """What is read of a file with this text."""
    path = folder / "log.json"
    path.write_text(text, "utf-8", newline="")
    return load(path)


def test_the_public_form(tmp_path: Path) -> None:
    found = read_text(tmp_path, json.dumps([PUBLIC]))
    assert found.problems == ()
    (one,) = found.experiments
    assert (one.op, one.backend, one.gpu, one.bottleneck_before) == ("rmsnorm", "triton", "h100", "memory-bound")
    assert (one.dominant_stall, one.outcome, one.provenance.value) == ("stall-long-scoreboard", "success", "reported")
    assert one.speedup is not None
    assert (one.speedup.median, one.speedup.low) == (1.31, None)
    assert one.metrics_before == {"dram_throughput": "61.5", "duration": "1500.0"}
    assert (one.lesson, one.time, one.source) == ("Only for even rows.", "2026-03-01T00:00:00Z", "log.json: exp-007")


def test_the_same_file_again_adds_nothing(tmp_path: Path) -> None:
    log = ExperienceLog(tmp_path / "log", tmp_path / "home")
    found = read_text(tmp_path, json.dumps({"experiments": [PUBLIC, {**PUBLIC, "id": "exp-008"}]}))
    assert len(log.take(found).added) == 2
    again = log.take(found)
    assert (len(again.added), len(again.there)) == (0, 2)


@pytest.mark.parametrize(
    ("changes", "said", "kept"),
    [
        ({"outcome": "splendid"}, "outcome: splendid is none of", True),
        ({"date": "soon"}, "date: soon is not a date", True),
        ({"date": "1969-01-01"}, "date: 1969-01-01 is not of this age", True),
        ({"date": 1e300}, "date: 1e+300 is not a date", True),
        ({"date": "2999-01-01"}, "its date, 2999-01-01T00:00:00Z, lies in the future", False),
        ({"speedup": 0.8}, "the outcome is unmeasured, and the speedup is 0.8, which is left out", True),
        ({"outcome": "incorrect"}, "the outcome is incorrect, and the speedup is 1.31", True),
        ({"outcome": "failed"}, "the outcome is failed, and the speedup is 1.31", True),
        ({"outcome": "slower"}, "the outcome is regression, and the speedup is 1.31", True),
        ({"bottleneck_before": "sorrow"}, "bottleneck_before: 'sorrow' is not a bottleneck", True),
        ({"speedup": "fast"}, "speedup: fast is not a ratio", True),
        ({"dims": {"M": -1}}, "dims: the size M=-1", True),
        ({"metrics_before": {"duration": "3 apples"}}, "duration is kept in us, and here it is in apples", True),
        ({"metrics_after": [1]}, "metrics_after: metrics are an object", True),
        ({"iteration": "two"}, "iteration: it is not a whole number", True),
        ({"notes": {"a": 1}}, "notes: it is not text", True),
        ({"optimization": [1]}, "optimization: it is not text", True),
        ({"id": [1]}, "id: it is not text", True),
        ({"speedup": math.nan}, "speedup: nan is not a ratio", True),
        ({"hypothesis": math.inf}, "hypothesis: it is not text", True),
        ({"iteration": 10**4000}, "iteration: it is not a whole number", True),
        ({"metrics_before": {"duration": math.nan}}, "duration is no number", True),
        ({"metrics_before": {"odd": f"{'1' * 30}.{'1' * 30}"}}, "more than 60 characters", True),
        ({"metrics_before": {"half \ud800": 1}}, "is no name of a metric", True),
        ({"dims": {"half \ud800": 1}}, "is not a name of a size", True),
        ({"dims": {"M": 2**40}}, "M=1099511627776 is not a whole number from 1 to 2^40", True),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, changes: dict[str, Any], said: str, kept: bool) -> None:
    found = read_text(tmp_path, json.dumps([PUBLIC, {**PUBLIC, **changes}]))
    assert len(found.experiments) + found.repeated == 1 + kept
    assert any(problem.startswith("record 2: ") and said in problem for problem in found.problems), found.problems
    assert (len(found.left_out), len(found.notes)) == ((0, 1) if kept else (1, 0))


@pytest.mark.parametrize("dims", ["M=4096,N=8192", "4096x8192", [4096, 8192], {"M": "4096", "N": 8192}])
def test_sizes_in_many_forms(tmp_path: Path, dims: Any) -> None:
    (one,) = read_text(tmp_path, json.dumps([{**PUBLIC, "dims": dims}])).experiments
    assert sorted(one.dims.values()) == [4096, 8192]


def test_one_object_a_line_with_lines_that_are_none(tmp_path: Path) -> None:
    found = read_text(tmp_path, f"{json.dumps(PUBLIC)}\nnonsense\n{json.dumps({**PUBLIC, 'id': 'x'})}\n")
    assert len(found.experiments) == 2
    (problem,) = found.problems
    assert problem.startswith("line 2: left out: it is not JSON")


def test_a_number_that_is_too_long_spoils_its_field_alone(tmp_path: Path) -> None:
    text = json.dumps([PUBLIC, {**PUBLIC, "id": "x"}]).replace('"iteration": 3', f'"iteration": {"9" * 5000}')
    found = read_text(tmp_path, text)
    assert [one.iteration for one in found.experiments] == [None, None]
    assert all("iteration: it is not a whole number" in problem for problem in found.problems)


def test_a_line_ends_at_a_line_feed_and_nowhere_else(tmp_path: Path) -> None:
    notes = "one\u2028two\x85three\x0bfour"
    lines = (json.dumps({**PUBLIC, "id": id, "notes": notes}, ensure_ascii=False) for id in "ab")
    found = read_text(tmp_path, "\n".join(lines))
    assert found.problems == ()
    assert [one.lesson for one in found.experiments] == [notes, notes]


def test_a_file_whose_name_is_no_text_is_imported(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.json")
    path.write_text(json.dumps([PUBLIC]))
    (one,) = load(path).experiments
    assert one.source == "\\udcff.json: exp-007"


def exported(**more: Any) -> str:
    """An export of one record, as somebody might have changed it."""
    one = {"experiment": experiment().model_dump(mode="json"), "masked": True, "why": "slow", "ids": [], **more}
    return json.dumps({"kind": "kopt-experience", "schema_version": 1, "records": [one]})


@pytest.mark.parametrize("why", ["x" * 4001, "   ", 5, ["a"]])
def test_a_reason_that_cannot_be_kept_leaves_the_record_out(tmp_path: Path, why: Any) -> None:
    found = read_text(tmp_path, exported(why=why))
    assert found.experiments == ()
    assert found.problems[0].startswith("record 1: left out: why: ")


def test_a_mask_in_a_logs_own_file_is_said_to_be_one(tmp_path: Path) -> None:
    log = ExperienceLog(tmp_path / "log", tmp_path / "home")
    one = experiment()
    log.append([one])
    log.mask(one.id, True, "slow")
    found = load(log.files.root / log.files.names()[0])
    assert len(found.experiments) == 1
    assert found.problems == (
        "line 2: left out: it is a mask of a log's own file; what `kopt log export` writes keeps those",
    )


@pytest.mark.parametrize("why", ["", None])
def test_a_masked_record_without_a_reason_stays_masked(tmp_path: Path, why: str | None) -> None:
    log = ExperienceLog(tmp_path / "log", tmp_path / "home")
    log.take(read_text(tmp_path, exported(why=why)))
    with log.index() as index:
        (entry,) = index.entries(EVERY)
    assert (entry.masked, entry.why) == (True, "masked where it was imported from")


def test_as_many_ids_as_there_are_come_back(tmp_path: Path) -> None:
    log = ExperienceLog(tmp_path / "log", tmp_path / "home")
    others = [new_ulid() for _ in range(1500)]
    log.take(read_text(tmp_path, exported(ids=["", *others, others[0] + "\n"])))
    with log.index() as index:
        (entry,) = index.entries(EVERY)
    assert set(entry.ids) == {entry.experiment.id, *others}


def test_a_file_joins_no_experiments_that_are_there(tmp_path: Path) -> None:
    log = ExperienceLog(tmp_path / "log", tmp_path / "home")
    mine = [experiment(optimization="one"), experiment(optimization="two")]
    log.append(mine)
    log.take(read_text(tmp_path, exported(ids=[one.id for one in mine])))
    with log.index() as index:
        assert index.count(EVERY) == 3


@pytest.mark.parametrize("text", ["", "hello", "{", "[1, 2", "\x00", '"text"'])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_text(tmp_path, text)
    assert caught.value.code == "import_format"


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "lesson": WORDS,
        "hypothesis": WORDS,
        "observed": st.sampled_from(["=1+1", "-5", "'quoted", "+a", "@b", "\ttab", "a\r\nb", "a\rb", 'x"y,z', "\x00"]),
        "kernel": WORDS.filter(str.strip),
        "dims": st.dictionaries(WORDS.filter(str.strip), st.integers(1, 1000), max_size=3),
        "metrics_after": st.dictionaries(
            WORDS.filter(str.strip), st.floats(0, 1e9).map(lambda x: f"{x:f}"), max_size=2
        ),
        "evidence": st.lists(WORDS, max_size=2),
        "speedup": st.floats(1.0001, 100).map(lambda x: {"median": x}),
        "run": st.just("r"),
        "iteration": st.integers(0, 9),
    },
).filter(lambda one: "run" not in one or "iteration" in one)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FIELDS, max_size=4), st.booleans(), st.booleans())
def test_an_export_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, changes: list[dict[str, Any]], masked: bool, table: bool
) -> None:
    folder = tmp_path_factory.mktemp("export")
    log = ExperienceLog(folder / "log", folder / "home")
    log.append([measured("b", lesson="joined"), *(experiment(**one) for one in changes)])
    log.files.append([measured("b")])
    assert len(log.merge()) == 1
    with log.index() as index:
        first = next(iter(index.entries())).experiment.id
    if masked:
        log.mask(first, True, "=why")
    with log.index() as index:
        before = list(index.entries(EVERY))
    found = read_text(folder, (to_csv if table else to_json)(before))
    assert found.problems == ()
    other = ExperienceLog(folder / "other", folder / "home")
    other.take(found)
    with other.index() as index:
        assert list(index.entries(EVERY)) == before


def test_a_cell_is_no_formula() -> None:
    from kbs.experience.entry import Entry

    text = to_csv([Entry(experiment(lesson="=cmd()", hypothesis="-2"))])
    assert "'=cmd()" in text
    assert ",=cmd()" not in text


@settings(max_examples=60, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from([*PUBLIC, "other"]),
        st.recursive(
            st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=10),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_any_object_is_read_or_reported(tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]) -> None:
    for fields in (changes, {**PUBLIC, **changes}):
        try:
            _, notes = read_public(fields, "f.json", NAMES_OF_METHODS, datetime(2026, 1, 1, tzinfo=UTC))
        except UnreadError as error:
            notes = [str(error)]
        assert all(note.isprintable() for note in notes)


def test_a_runs_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    memory = {
        "single_change": "Wider loads.", "methods": ["vectorized_access"], "refused": [], "gate": [], "parent": 0,
        "bottleneck_before": "memory-bound", "bottleneck": "unknown", "evidence": [], "why": "kept: 1.3x",
        "expected": [{"metric": "dram_throughput", "direction": "up", "size": "to 90 %"}], "ratio": [1.3, 1.2, 1.4],
        "attempts": [
            {"attempt": 1, "methods": [], "verdict": "accepted", "improvement": "faster", "receipt": "c" * 64},
        ],
    }  # fmt: skip
    wrong = {**memory, "attempts": [{**memory["attempts"][0], "verdict": "incorrect"}], "ratio": None}  # type: ignore[index] # a list
    record = {
        "kind": "kopt-run", "id": "softmax-1", "created": "2026-11-21T14:05:00Z", "gpu": "h200-sxm", "device_name": "",
        "kernel": {"origin": "softmax.py"}, "reference": {"origin": "ref.py"},
        "problem": {"dims": {"n": 64}, "workloads": [], "backend": None},
    }  # fmt: skip
    receipt = {
        "id": "c" * 64, "created": "2026-11-21T14:06:00Z", "candidate": {"backend": "triton"}, "verdict": "accepted",
        "improvement": "faster", "plan": {"timing": {"baselines": [{"name": "v0", "how": "incumbent"}]}},
        "timing": {"against": "v0", "ratio": {"median": 1.3, "ci_low": 1.2, "ci_high": 1.4, "coverage": 0.95}},
    }  # fmt: skip
    tops = {0: "80 %", 1: "90 %"}
    for version in (0, 1, 2, 3):
        (run / f"v{version}").mkdir(parents=True)
    for version, value in tops.items():
        top = {"metrics": [{"metric": "dram_throughput", "value": value}], "dominant_stall": {"metric": "stall_wait"}}
        (run / f"v{version}" / "ncu_top.json").write_text(json.dumps(top))
    (run / "run.json").write_text(json.dumps(record))
    (run / "v1" / "memory.json").write_text(json.dumps(memory))
    (run / "v1" / "receipt.json").write_text(json.dumps(receipt))
    (run / "v2" / "memory.json").write_text(json.dumps(wrong))

    found = load(run)
    first, second = found.experiments
    assert (first.iteration, first.outcome, first.provenance.value, first.op) == (1, "success", "measured", "softmax")
    assert first.speedup is not None
    assert first.speedup.low == 1.2
    assert (first.metrics_before, first.metrics_after) == ({"dram_throughput": "80"}, {"dram_throughput": "90"})
    assert first.observed == "dram_throughput 80 → 90; kept: 1.3x"
    assert (second.outcome, second.provenance.value, second.speedup) == (Outcome.INCORRECT, "reported", None)
    assert [problem.split(":")[0] for problem in found.problems] == ["v2", "v3"]
    assert load(run) == found, "the same ids again"

    forged = read(run, lambda _: "its seal is broken")
    assert [one.provenance.value for one in forged.experiments] == ["reported", "reported"]
    assert "v1: its receipt is not counted: its seal is broken" in forged.problems

    outcomes = [{"method": "vectorized_access", "found": "effective", "ratio": [9.0, 8.9, 9.1]}]
    boast = {**memory, "ratio": [9.0, 8.9, 9.1], "outcomes": outcomes}
    (run / "v1" / "memory.json").write_text(json.dumps(boast))
    told = load(run)
    assert told.experiments[0].speedup == first.speedup, "what the receipt says holds"
    (credited,) = told.experiments[0].attribution
    assert (credited.method, credited.found) == ("vectorized_access", "effective")
    assert credited.speedup == first.speedup, "of its only method too"
    assert first.attribution == (), "a run of before says nothing of its methods"
    assert told.problems[0] == (
        "v1: memory.json says accepted, faster, [9.0, 8.9, 9.1], and the receipt accepted, faster, [1.3, 1.2, 1.4], "
        "which holds"
    )
    (run / "v1" / "receipt.json").write_text(json.dumps({**receipt, "verdict": "incorrect", "timing": None}))
    told = load(run)
    assert (told.experiments[0].outcome, told.experiments[0].speedup) == (Outcome.INCORRECT, None)
    other = {**receipt, "timing": {**receipt["timing"], "against": "eager"}}  # type: ignore[dict-item] # an object
    (run / "v1" / "receipt.json").write_text(json.dumps(other))
    assert load(run).experiments[0].outcome == "unmeasured", "compared with something else than its parent"

    deep: Any = "bf16"
    for _ in range(400):
        deep = [deep]
    (run / "deep.json").write_text(json.dumps(deep))
    (run / "inputs.json").write_text(json.dumps({"x": {"dtype": "torch.bfloat16"}}))
    (tmp_path / "outside.json").write_text(json.dumps({"x": {"dtype": "torch.bfloat16"}}))
    os.mkfifo(run / "pipe")
    for name in ("inputs.json", "deep.json", "pipe", "../outside.json", "/dev/zero", "\0", "."):
        (run / "run.json").write_text(json.dumps({**record, "inputs": {"name": name}}))
        assert load(run).experiments[0].dtype == ("bf16" if name == "inputs.json" else ""), name
    with pytest.raises(UsageError):
        load(tmp_path)


MODEL = """import torch
M = 16384
N: int = 4 * 1024
SEED = 7
EMPTY = 0
HUGE = 2**50
class Model(torch.nn.Module): ...
def get_inputs():
    return [torch.randn(M, N), torch.randn(EMPTY, HUGE)]
"""


NAMES = [f"s{n}" for n in range(40)]
MANY = "\n".join(
    [*(f"{name} = {n}" for n, name in enumerate(NAMES, 1)), "def get_inputs():", f"    {'; '.join(NAMES)}"]
)
"""More sizes than a record holds."""


@pytest.mark.parametrize(
    ("text", "asked", "workloads", "dims"),
    [
        (MODEL, {}, [], {"M": 16384, "N": 4096}),
        (MODEL, {"M": 64}, [], {"M": 64, "N": 4096}),
        (MODEL, {"M": 64}, [{"N": 32}, {"N": 16}], {"M": 64, "N": 32}),
        (MODEL.replace("M, N", "*(M + N for M in (1,))"), {}, [], {"N": 4096}),
        (MODEL.replace("get_inputs", "made"), {"n": 3}, [], {"n": 3}),
        ("def setup(n): ...", {}, [], {}),
        ("M = (", {"M": 1}, [], {"M": 1}),
        ("(" * 100_000, {}, [], {}),
        ("M = 1\0", {}, [], {}),
        (MANY, {"n": 5}, [], {f"s{n}": n + 1 for n in range(9, 40)} | {"n": 5}),
        (f"{'n' * 300} = 5\ndef get_init_inputs():\n    return [{'n' * 300}]", {}, [], {}),
    ],
)  # fmt: skip
def test_sizes_of_a_run_are_those_of_its_reference_too(
    tmp_path: Path, text: str, asked: dict[str, int], workloads: list[dict[str, int]], dims: dict[str, int]
) -> None:
    """A run whose sizes nobody gave was measured at some all the same."""
    record = {
        "kernel": {"origin": "softmax.py"}, "reference": {"origin": "r.py", "name": "ref.py"}, "gpu": "h200-sxm",
        "problem": {"dims": asked, "workloads": workloads, "backend": "triton"},
    }  # fmt: skip
    (tmp_path / "ref.py").write_text(text)
    assert asked_about(tmp_path, record, 0).dims == dims
    given = asked_about(tmp_path, {**record, "inputs": {"name": "in.json"}}, 0).dims
    assert given == {**asked, **next(iter(workloads), {})}, "the reference makes no inputs then"
    for name in ("none.py", "../ref.py", 7, None):
        elsewhere = {**record, "reference": {"origin": "r.py", "name": name}}
        assert asked_about(tmp_path, elsewhere, 0).dims == {**asked, **next(iter(workloads), {})}


@pytest.mark.parametrize(
    ("lines", "dtype"),
    [
        (["read input 0, float32: 8 × 4 B = 32 B", "write result 0, float16: 8 × 2 B = 16 B"], "fp32"),
        (["read input 0, bfloat16: 8 × 2 B = 16 B", "read input 1, int64: 8 × 8 B = 64 B"], "bf16"),
        (["read input 0, bfloat16: 8 × 2 B = 16 B", "read weight w, float32: 8 × 4 B = 32 B"], ""),
        (["bytes: 16 B", 7, None], ""),
        ("read input 0, float32: 8 × 4 B = 32 B", ""),
        (None, ""),
    ],
)
def test_the_element_type_of_a_run_is_what_was_counted(tmp_path: Path, lines: Any, dtype: str) -> None:
    record = {
        "kernel": {"origin": "softmax.py"}, "reference": {"origin": "r.py"}, "gpu": "h200-sxm",
        "problem": {"dims": {}, "workloads": [], "backend": "triton"},
    }  # fmt: skip
    (tmp_path / "roofline.json").write_text(json.dumps({"lines": lines}))
    assert asked_about(tmp_path, record, 0).dtype == dtype


RUNS = Path(__file__).resolve().parents[4] / "benchmarks" / "results" / "loop" / "h200"


@pytest.mark.parametrize("name", ["command", "agent", "llm"])
def test_recorded_runs_of_a_gpu(name: str) -> None:
    """Whole folders of runs on an H200: three iterations each."""
    found = load(RUNS / name)
    assert found.problems == ()
    assert [one.outcome for one in found.experiments] == ["neutral", "success", "success"]
    for one in found.experiments:
        assert (one.op, one.gpu, one.backend, one.dtype) == ("softmax", "h200-sxm", "triton", "fp32")
        assert one.dims == {"M": 16384, "N": 4096}
        assert (one.provenance.value, one.bottleneck_before) == ("measured", "memory-bound")
        assert one.metrics_before["dram_throughput"] != one.metrics_after["dram_throughput"]
