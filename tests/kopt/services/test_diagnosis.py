"""`kopt diagnose`: the class and first symptom of the corpus, thresholds out of the wiki, and what a correction does.

The reports are made up (`tests/evaluator/ncu_reports.py`); test_profile_corpus.py has those that were taken on an H200.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from evaluator.diagnosis.bottleneck import Bottleneck, Diagnosis
from evaluator.diagnosis.from_receipt import launch_of
from evaluator.diagnosis.headroom import Ceilings as BandwidthCeilings
from evaluator.diagnosis.headroom import Problem, headroom
from evaluator.profiling.profile import read_profile
from evaluator.receipt.timing import Clocks, Figure
from evaluator.timing.ceilings import Ceilings, save
from kbs.common import canonical_json as canonical
from kbs.common.errors import UsageError
from kbs.evidence.arithmetic import equation_holds
from kopt.services.diagnosis import Diagnosed, Task, diagnose_launch, task_of
from kopt.services.engine import Engine
from kopt.services.results.telling.diagnosis import lines
from kopt.services.settings import load_settings
from kopt.services.work_counts import ProblemWork, declare
from tests.conftest import Run
from tests.evaluator.diagnosis.test_report import numbers_of
from tests.evaluator.ncu_reports import EXPECTED, KERNELS, SOFTMAX, Metrics, changed, raw_csv, without
from tests.evaluator.receipts import receipt, timed, timed_receipt, timing, workload_timing
from tests.kopt.diagnosis_numbers import stray_numbers
from wiki.library import bundled_wiki

SOL = "profiling/speed-of-light.md"


def diagnosed(engine: Engine, metrics: Metrics, gpu: str = "") -> Diagnosed:
    """A launch with these metrics."""
    launch = read_profile(raw_csv(("k", metrics)).encode(), "r.csv").choose().launch
    return diagnose_launch(engine, launch, gpu)


def ids(found: Diagnosis) -> list[str]:
    """The symptoms, in their order."""
    return [finding.symptom.id for finding in found.symptoms]


@pytest.mark.parametrize("kernel", KERNELS)
def test_class_and_first_symptom_of_the_corpus(engine: Engine, kernel: str) -> None:
    found = diagnosed(engine, KERNELS[kernel]).diagnosis
    assert (found.bottleneck.value, ids(found)[0]) == EXPECTED[kernel], ids(found)


@pytest.mark.parametrize(
    ("kernel", "binding"),
    [
        ("softmax_kernel", "dram_throughput"),
        ("transpose_conflicts", "l1_throughput"),
        ("matmul_tensor", "tensor_pipe"),
        ("pointer_chase", "stall_long_scoreboard"),
        ("few_warps", "limit_registers"),
        ("tiny_grid", "waves"),
        ("scale_small", "duration"),
    ],
)
def test_the_binding_resource(engine: Engine, kernel: str, binding: str) -> None:
    found = diagnosed(engine, KERNELS[kernel]).diagnosis.binding
    assert found is not None
    assert found.metric == binding


def test_balanced_throughputs_are_mixed(engine: Engine) -> None:
    for compute, memory, expected in (
        ("71", "66.1", "mixed"),
        ("91", "86.1", "mixed"),
        ("76.1", "66.1", "compute-bound"),
        ("66.1", "76.1", "memory-bound"),
        ("96.1", "86.1", "compute-bound"),
        ("59.9", "59.9", "latency-bound"),
    ):
        metrics = changed(sm_throughput=compute, memory_throughput=memory, dram_throughput=memory)
        assert diagnosed(engine, metrics).diagnosis.bottleneck == expected, (compute, memory)


def test_without_the_throughputs_nothing_is_guessed(engine: Engine) -> None:
    found = diagnosed(engine, without("sm__throughput", "gpu__compute", "gpu__dram")).diagnosis
    assert found.bottleneck is Bottleneck.UNKNOWN
    assert found.binding is None
    one = diagnosed(engine, {**without("gpu__compute", "gpu__dram")}).diagnosis
    assert one.bottleneck is Bottleneck.UNKNOWN
    assert any("gpu__compute" in unjudged.why for unjudged in one.unjudged)


def test_each_symptom_has_its_line(engine: Engine) -> None:
    root = bundled_wiki().root
    for metrics in KERNELS.values():
        found = diagnosed(engine, metrics).diagnosis
        for judgement in [j for f in (*found.symptoms, *found.disputed) for j in f.judgements]:
            for row in judgement.rows:
                line = (root / row.citation.path).read_text("utf-8").splitlines()[row.citation.line_start - 1]
                assert [cell.strip() for cell in line.strip("|").split("|")][:4] == [
                    row.symptom,
                    row.metric,
                    row.test,
                    row.value,
                ]


def test_sources_that_disagree_are_both_shown(engine: Engine) -> None:
    metrics = changed(memory_throughput="71", dram_throughput="71", sm_throughput="68")
    found = diagnosed(engine, metrics).diagnosis
    [finding] = [finding for finding in found.disputed if finding.symptom.id == "high-memory-throughput"]
    said = {judgement.source: judgement.holds for judgement in finding.judgements if "compute" in judgement.row.metric}
    assert said == {"triage": False, "dhrv": True}
    assert "high-memory-throughput" not in ids(found)


def test_a_throughput_that_leads_is_named_below_the_line_from_which_it_is_high_by_itself(engine: Engine) -> None:
    found = diagnosed(engine, changed(memory_throughput="71", dram_throughput="71")).diagnosis
    first = found.symptoms[0]
    assert (found.bottleneck, first.symptom.id) == (Bottleneck.MEMORY, "high-memory-throughput")
    assert (first.judgements[0].source, first.judgements[0].holds) == ("ncu-rules", True)
    assert first.disputed


def test_degrees_of_one_source_are_no_disagreement(engine: Engine) -> None:
    found = diagnosed(engine, changed(fma_pipe="70")).diagnosis
    [pipe] = [finding for finding in found.symptoms if finding.symptom.id == "high-pipe-utilization"]
    assert not pipe.disputed


def test_headroom_is_shown_with_its_arithmetic_and_line(engine: Engine) -> None:
    found = diagnosed(engine, SOFTMAX)
    assert found.gpu == "h200-sxm"
    [peak] = found.diagnosis.headroom
    assert peak.against == "cited peak"
    assert round(peak.share, 3) == Decimal("0.862")
    assert "gpu-wiki/hardware/h200-sxm.md:L" in peak.where
    assert all(equation_holds(step) for step in peak.arithmetic)
    assert any("kopt bench ceilings" in note for note in found.notes)


def test_a_gpu_that_is_not_known_is_an_error_and_one_that_is_not_named_a_note(engine: Engine) -> None:
    with pytest.raises(UsageError) as caught:
        diagnosed(engine, SOFTMAX, "h100")
    assert caught.value.code == "gpu_ambiguous"
    with pytest.raises(UsageError):
        diagnosed(engine, SOFTMAX, "h999")
    nameless = diagnosed(engine, without("device__"))
    assert nameless.diagnosis.headroom == ()
    assert any("--gpu" in note for note in nameless.notes)
    assert diagnosed(engine, without("device__"), "h100-sxm").diagnosis.headroom


def test_techniques_are_those_that_the_wiki_links(engine: Engine) -> None:
    found = diagnosed(engine, KERNELS["copy_strided"])
    assert "coalesced-access" in {remedy.technique for remedy in found.remedies["uncoalesced-access"]}
    conflicts = diagnosed(engine, KERNELS["transpose_conflicts"])
    assert "bank-conflict-avoidance" in {remedy.technique for remedy in conflicts.remedies["bank-conflicts"]}
    assert {remedy.citation.path for remedy in found.advice} == {"bottleneck/memory-bound.md"}


def corrected(tmp_path: Path, **changes: str) -> Engine:
    """An engine that also reads a team's wiki, with pages of the bundled one corrected."""
    team = tmp_path / "team"
    for path, (old, new) in {
        path.replace("__", "/") + ".md": change.split("→") for path, change in changes.items()
    }.items():
        target = team / path
        target.parent.mkdir(parents=True, exist_ok=True)
        text = (bundled_wiki().root / path).read_text("utf-8")
        assert old in text
        target.write_text(text.replace(old, new), "utf-8")
    return Engine(load_settings({"wikis": [str(team)]}, workspace=tmp_path))


def test_a_curated_correction_changes_the_diagnosis(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(home))
    metrics = changed(sm_throughput="41", memory_throughput="58", dram_throughput="58", l2_throughput="12")
    before = diagnosed(Engine(load_settings({}, workspace=tmp_path)), metrics).diagnosis
    assert before.bottleneck is Bottleneck.LATENCY
    line = "| low-throughput | {}.avg.pct_of_peak_sustained_elapsed | < | {} | % | triage 3.2.3 Decision 2 |"
    memory = "gpu__compute_memory_throughput"
    engine = corrected(
        tmp_path, **{"profiling__speed-of-light": f"{line.format(memory, 60)}→{line.format(memory, 50)}"}
    )
    after = diagnosed(engine, metrics).diagnosis
    assert after.bottleneck is Bottleneck.MEMORY
    [finding] = [finding for finding in after.disputed if finding.symptom.id == "low-throughput"]
    [first, *others] = [j for j in finding.judgements if j.row.metric.startswith(memory)]
    assert (first.row.citation.wiki, first.row.value, first.holds) == ("team", "50", False)
    assert any(other.row.citation.wiki == "gpu-wiki" and other.row.value == "60" for other in others)


def test_an_edited_page_changes_the_diagnosis(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPT_HOME", str(home))
    row = (
        "| bank-conflicts | l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum / l1tex__data_pipe_lsu_wavefronts"
    )
    row += "_mem_shared_op_ld.sum | > | {} |"
    engine = corrected(tmp_path, **{"profiling__bank-conflicts": f"{row.format('0.1')}→{row.format('0.99')}"})
    assert "bank-conflicts" not in ids(diagnosed(engine, KERNELS["transpose_conflicts"]).diagnosis)


def test_every_number_of_a_diagnosis_stands_in_the_csv_in_a_cited_row_or_in_arithmetic(engine: Engine) -> None:
    for metrics in KERNELS.values():
        raw = raw_csv(("k", metrics))
        chosen = read_profile(raw.encode(), "r.csv").choose()
        found = diagnose_launch(engine, chosen.launch, "")
        assert stray_numbers("r.csv", chosen, found, frozenset(numbers_of(raw))) == []


def test_a_receipt_is_diagnosed_as_degraded(engine: Engine) -> None:
    with pytest.raises(UsageError) as caught:
        launch_of(receipt())
    assert caught.value.code == "receipt_without_times"
    near = timed_receipt(timing(workload_timing(of_peak=0.91, gb_per_s=4368.0)))
    found = diagnose_launch(engine, launch_of(near), "", grade="degraded").diagnosis
    assert (found.grade, found.bottleneck) == ("degraded", "memory-bound")
    assert [finding.symptom.id for finding in found.symptoms] == ["high-memory-throughput"]
    assert found.unjudged
    far = timed_receipt(timing(workload_timing(of_peak=0.31, gb_per_s=1488.0)))
    assert diagnose_launch(engine, launch_of(far), "", grade="degraded").diagnosis.bottleneck == "unknown"
    short = timed_receipt(timing(workload_timing(of_peak=0.31, candidate=timed(us=3.0))))
    assert diagnose_launch(engine, launch_of(short), "", grade="degraded").diagnosis.bottleneck == "launch-bound"


@pytest.mark.parametrize("seed", range(8))
def test_a_report_with_numbers_that_no_kernel_has_is_diagnosed(engine: Engine, seed: int) -> None:
    """Zeros, negative numbers, numbers of 57 digits, none at all: a foreign report can have them."""
    draw = random.Random(seed)
    numbers = ("0", "-5.5", "1e-40", "9.99e40", "123456789" * 6, "n/a", "", "250.5")
    for metrics in KERNELS.values():
        wrong = dict(metrics)
        for name in draw.sample(list(wrong), 6):
            wrong[name] = wrong[name][0], draw.choice(numbers)
        chosen = read_profile(raw_csv(("k", wrong)).encode(), "r.csv").choose()
        task = task_of(engine, chosen.launch, "", ProblemWork(None, {"bytes": declare("bytes", "536870912", {})}))
        found = diagnose_launch(engine, chosen.launch, "", task=task)
        assert list(lines("r.csv", chosen, found))


def test_needed_bytes_of_a_receipt_are_not_taken_for_bytes_that_were_moved(engine: Engine) -> None:
    """An embedding's receipt counts its whole table, and its reference the rows that are read: nothing was counted."""
    launch = launch_of(timed_receipt(timing(workload_timing(of_peak=0.91, gb_per_s=4368.0))))
    few = Task(Problem(bytes=1_000_000))
    found = diagnose_launch(engine, launch, "", grade="degraded", task=few).diagnosis
    assert "excess-traffic" not in ids(found)
    assert "the profile has no DRAM bytes" in [one.why for one in found.unjudged if one.row.symptom == "excess-traffic"]


@pytest.mark.parametrize(
    ("read", "written", "against"),
    [(1 << 28, 1 << 28, "copy"), (1 << 28, 1 << 10, "read"), (1 << 10, 1 << 28, "fill")],
)
def test_a_receipt_is_held_against_the_ceiling_of_its_own_mix(read: int, written: int, against: str) -> None:
    launch = launch_of(timed_receipt(timing(workload_timing(read_bytes=read, written_bytes=written))))
    measured = tuple((f"{kind} 512 MiB", Decimal(rate)) for kind, rate in (("copy", 41), ("read", 47), ("fill", 43)))
    [found] = headroom(launch, BandwidthCeilings(measured=measured))
    assert found.against == f"measured {against} 512 MiB"


def test_the_command(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(*KERNELS.items()))
    result = kopt("diagnose", "r.csv", "--launch", "copy_strided", "--json", cwd=tmp_path)
    assert result.code == 0, result.err
    data = result.json["data"]
    assert (data["bottleneck"], data["symptoms"][0]["symptom"]) == EXPECTED["copy_strided"]
    assert data["symptoms"][0]["judgements"][0]["rows"][0]["reference"].startswith("gpu-wiki/")
    shown = kopt("diagnose", "r.csv", "--launch", "copy_strided", cwd=tmp_path)
    assert shown.code == 0
    assert "1. uncoalesced access" in shown.out
    assert kopt("diagnose", "r.csv", "--launch", "nope", cwd=tmp_path).code == 2
    assert kopt("diagnose", "none.csv", cwd=tmp_path).code == 2
    (tmp_path / "u.csv").write_text(raw_csv(("k", without("sm__", "gpu__compute", "gpu__dram"))))
    assert kopt("diagnose", "u.csv", cwd=tmp_path).code == 3


@pytest.fixture
def of_receipt(kopt: Callable[..., Run], tmp_path: Path) -> Callable[..., Run]:
    """`kopt diagnose` of a receipt of two workloads, beside another reference than its own."""
    (tmp_path / "other.py").write_text("def reference(x):\n    return x + 1\n", "utf-8")
    times = timing(workload_timing(), workload_timing(dims={"n": 128}, candidate=timed(us=277.0)))
    made = canonical.dumps(timed_receipt(times).model_dump(mode="json"))
    (tmp_path / "receipt.json").write_bytes(made)
    return lambda *words: kopt("diagnose", "receipt.json", *words, "--json", cwd=tmp_path)


def test_the_sizes_of_a_receipt_choose_its_workload_and_count_its_bytes(of_receipt: Callable[..., Run]) -> None:
    for words, which, sum_ in (
        ((), "workload 1 of 2", "524288 B / 136 us"),
        (("--dims", "n=128"), "workload 2 of 2", "1048576 B / 277 us"),
    ):
        data = of_receipt("--bytes", "2*n*4096", *words).json["data"]
        [needed] = [one for one in data["headroom"] if "must move" in one["against"]]
        assert needed["arithmetic"][-2].startswith(sum_)
        assert data["why_launch"] == which
        assert data["binding"]["value"] == 82.24
    assert of_receipt("--dims", "n=128").json["data"]["why_launch"] == "workload 2 of 2"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--dims", "n=65"), "profile_of_other_sizes"),
        (("--ref", "other.py"), "profile_of_another"),
        (("--kernel", "other.py"), "profile_of_another"),
        (("--launch", "2"), "launch_unknown"),
    ],
)
def test_a_receipt_of_something_else(of_receipt: Callable[..., Run], words: tuple[str, ...], code: str) -> None:
    done = of_receipt(*words)
    assert (done.code, done.json["errors"][0]["code"]) == (2, code)


def test_a_receipt_that_is_not_sealed_is_told(of_receipt: Callable[..., Run]) -> None:
    assert any("seal: " in note for note in of_receipt().json["data"]["notes"])


def test_a_report_of_another_kernel_than_the_one_given(kopt: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(("softmax", SOFTMAX)))
    (tmp_path / "k.cu").write_text("__global__ void scale(float* x) { x[0] = 2 * x[0]; }\n")
    done = kopt("diagnose", "r.csv", "--kernel", "k.cu", "--json", cwd=tmp_path)
    assert (done.code, done.json["errors"][0]["code"]) == (2, "profile_of_another")


def test_measured_ceilings_of_the_same_gpu_are_used(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(home))
    for device, rate in (("NVIDIA H200", 4240.0), ("NVIDIA A100-SXM4-80GB", 1700.0)):
        figures = [("copy 512 MiB", rate), ("copy 8 MiB", rate / 2), ("read 512 MiB", rate * 1.1), ("launch", 1.8)]
        save(
            home,
            Ceilings(
                created="2026-11-21T07:15:00Z",
                device=device,
                driver="580.95.05",
                torch="2.13.0",
                cuda="13.0",
                l2_bytes=60 << 20,
                empty_us=1.3,
                figures=tuple(
                    Figure(name=name, value=value, unit="us" if name == "launch" else "GB/s", us=2.0, n=20)
                    for name, value in figures
                ),
                clocks=Clocks(status="not sampled", detail="no NVML"),
            ),
        )
    engine = Engine(load_settings({}, workspace=tmp_path))
    measured, peak = diagnosed(engine, SOFTMAX).diagnosis.headroom
    assert (measured.against, peak.against) == ("measured copy 512 MiB", "cited peak")
    assert round(measured.share, 3) == Decimal("0.976")
    assert "NVIDIA H200" in measured.where
    reading, _ = diagnosed(engine, changed(dram_bytes_written="1.1")).diagnosis.headroom
    assert reading.against == "measured read 512 MiB"


def test_no_tensor_library_is_loaded_for_it(built_home: Path, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(("k", SOFTMAX)))
    probe = (
        "import sys; sys.argv = ['kopt', 'diagnose', 'r.csv']\n"
        "from kopt.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "heavy = {'torch', 'triton', 'chromadb', 'sentence_transformers', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    environment = {**os.environ, "KOPT_HOME": str(built_home)}
    subprocess.run([sys.executable, "-c", probe], check=True, cwd=tmp_path, env=environment, timeout=120)
