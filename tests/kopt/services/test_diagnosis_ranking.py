"""Which symptom is named first, which are left out and why, and what the problem's bytes and operations add."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from evaluator.diagnosis.bottleneck import Bottleneck, Diagnosis
from evaluator.diagnosis.headroom import Problem
from evaluator.profiling.profile import Launch, read_profile
from evaluator.receipt.timing import Clocks, Figure
from evaluator.timing.ceilings import MATMULS, Ceilings, save
from kbs.common.errors import UsageError
from kbs.evidence.arithmetic import equation_holds
from kopt.services.diagnosis import Diagnosed, diagnose_launch, task_of
from kopt.services.engine import Engine
from kopt.services.settings import load_settings
from kopt.services.work_counts import ProblemWork, declare
from tests.conftest import Run
from tests.evaluator.ncu_reports import KERNELS, SOFTMAX, Metrics, changed, raw_csv, without
from tests.evaluator.profiles.corpus import REPORTS
from tests.kopt.services.test_diagnosis import corrected


def launch(metrics: Metrics) -> Launch:
    return read_profile(raw_csv(("k", metrics)).encode(), "r.csv").choose().launch


def diagnosed(engine: Engine, metrics: Metrics, **said: str) -> Diagnosed:
    found = launch(metrics)
    words = {name: declare(name, text, {}) for name, text in said.items() if name != "peak"}
    if not words:
        return diagnose_launch(engine, found, "")
    task = task_of(engine, found, "", ProblemWork(None, words), peak=said.get("peak"))
    return diagnose_launch(engine, found, "", task=task)


def ids(found: Diagnosis) -> list[str]:
    return [finding.symptom.id for finding in found.symptoms]


WHOLE = {
    **{"store_sectors": "8388608", "local_load_sectors": "0", "l1_cycles_elapsed": "30000000"},
    **{"atomic_sectors": "0", "reduction_sectors": "0"},
}


@pytest.mark.parametrize(
    ("values", "symptom"),
    [
        ({"store_sectors": "2112", "store_bytes_per_sector": "4"}, "uncoalesced-access"),
        ({"bank_conflicts_loads": "8192"}, "bank-conflicts"),
        ({"local_load_sectors": "1000"}, "register-spills"),
        ({"waves": "3.99"}, "tail-effect"),
    ],
)
def test_what_costs_little_is_not_named_but_counted(engine: Engine, values: dict[str, str], symptom: str) -> None:
    found = diagnosed(engine, changed(SOFTMAX, **{**WHOLE, **values})).diagnosis
    assert ids(found)[0] == "high-memory-throughput"
    assert symptom not in ids(found)
    [minor] = found.minor
    assert minor.finding.symptom.id == symptom
    assert minor.by.holds
    assert minor.by.source == "ncu-rules"
    assert minor.finding.share is not None
    assert minor.finding.share.steps
    assert all(equation_holds(step) for step in minor.finding.share.steps)


def test_the_line_of_little_weight_is_a_row_of_the_wiki(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(home))
    metrics = changed(SOFTMAX, **{**WHOLE, "waves": "3.9"})
    row = "| little-weight | kopt__time_share | < | {} | % |"
    strict = corrected(tmp_path, **{"profiling__speed-of-light": f"{row.format(5)}→{row.format(1)}"})
    assert "tail-effect" in ids(diagnosed(strict, metrics).diagnosis)


def test_defects_are_in_the_order_of_what_they_cost(engine: Engine) -> None:
    both = changed(
        SOFTMAX, **WHOLE, load_bytes_per_sector="8", bank_conflicts_loads="9000000", shared_wavefronts_loads="16000000"
    )
    assert ids(diagnosed(engine, both).diagnosis)[:2] == ["uncoalesced-access", "bank-conflicts"]
    worse = changed(both, bank_conflicts_loads="28000000", shared_wavefronts_loads="29000000")
    assert ids(diagnosed(engine, worse).diagnosis)[:2] == ["bank-conflicts", "uncoalesced-access"]


def test_where_the_time_goes_comes_first(engine: Engine) -> None:
    imbalanced = changed(SOFTMAX, **WHOLE, sm_cycles_active_max="226101", sm_cycles_active_avg="120000")
    found = ids(diagnosed(engine, imbalanced).diagnosis)
    assert found[:2] == ["high-memory-throughput", "load-imbalance"]
    idle = changed(imbalanced, memory_throughput="30", dram_throughput="30", l2_throughput="20")
    assert ids(diagnosed(engine, idle).diagnosis)[0] == "load-imbalance"


def test_an_unknown_cost_leaves_nothing_out(engine: Engine) -> None:
    metrics = changed(without("l1tex__t_sectors"), load_bytes_per_sector="4")
    found = diagnosed(engine, metrics).diagnosis
    assert (ids(found)[0], found.symptoms[0].share) == ("uncoalesced-access", None)


def test_few_warps_are_a_limit_only_where_no_more_would_fit(engine: Engine) -> None:
    few = KERNELS["few_warps"]
    assert diagnosed(engine, few).diagnosis.bottleneck is Bottleneck.OCCUPANCY
    for theoretical, achieved in (("100", "12.1"), ("75", "6.25")):
        waiting = changed(few, theoretical_occupancy=theoretical, achieved_occupancy=achieved)
        assert diagnosed(engine, waiting).diagnosis.bottleneck is Bottleneck.LATENCY
    tensor = changed(few, tensor_pipe="41", sm_throughput="41")
    found = diagnosed(engine, tensor).diagnosis
    assert found.bottleneck is Bottleneck.LATENCY
    assert any("tensor pipe" in step for step in found.why)
    alone = without("sm__warps_active", metrics=few)
    assert diagnosed(engine, alone).diagnosis.bottleneck is Bottleneck.OCCUPANCY


def test_issue_slots_do_not_outrank_a_busy_pipe(engine: Engine) -> None:
    def binding(**values: str) -> str:
        metrics = changed(SOFTMAX, sm_throughput="95", memory_throughput="20", dram_throughput="20", **values)
        found = diagnosed(engine, metrics).diagnosis.binding
        assert found is not None
        return found.metric

    assert binding(fma_pipe="85", issued="95") == "fma_pipe"
    assert binding(xu_pipe="90", fma_pipe="20", issued="50") == "xu_pipe"
    assert binding(alu_pipe="70", issued="95") == "alu_pipe"
    assert binding(fma_pipe="40", issued="95") == "issued"


@pytest.mark.parametrize("pipe", ["xu_pipe", "alu_pipe", "fp64_pipe", "tensor_pipe", "fma_pipe"])
def test_every_pipe_can_be_highly_utilized(engine: Engine, pipe: str) -> None:
    metrics = changed(SOFTMAX, sm_throughput="90", memory_throughput="20", dram_throughput="20", **{pipe: "90"})
    found = diagnosed(engine, metrics).diagnosis
    assert (found.bottleneck, ids(found)[0]) == (Bottleneck.COMPUTE, "high-pipe-utilization")


def test_the_level_is_that_which_memory_throughput_comes_from(engine: Engine) -> None:
    found = diagnosed(engine, changed(l2_throughput="93.4")).diagnosis.binding
    assert found is not None
    assert (found.metric, found.among) == ("dram_throughput", ("DRAM throughput", "L2 throughput", "L1 throughput"))
    rounded = changed(l2_throughput="86.0", memory_throughput="86.1", dram_throughput="0.1")
    found = diagnosed(engine, rounded).diagnosis.binding
    assert found is not None
    assert found.metric == "l2_throughput"


def test_atomics_count_for_what_is_idle(engine: Engine) -> None:
    idle = {"sm_throughput": "2", "memory_throughput": "5", "dram_throughput": "5", "l2_throughput": "4"}
    hot = changed(SOFTMAX, **{**WHOLE, **idle, "store_sectors": "0", "reduction_sectors": "16777216", "waves": "31.5"})
    found = diagnosed(engine, hot).diagnosis
    assert (found.bottleneck, ids(found)[0]) == (Bottleneck.LATENCY, "atomic-contention")
    few = changed(hot, reduction_sectors="800000")
    assert "atomic-contention" not in ids(diagnosed(engine, few).diagnosis)
    busy = changed(hot, memory_throughput="96", dram_throughput="96")
    found = diagnosed(engine, busy).diagnosis
    assert "atomic-contention" not in ids(found)
    assert "atomic-contention" in [minor.finding.symptom.id for minor in found.minor]


def test_a_tail_is_named_where_it_may_cost_a_fifth(engine: Engine) -> None:
    idle = {"sm_throughput": "22", "memory_throughput": "40", "dram_throughput": "40", "l2_throughput": "30"}
    for waves, named in (("1.2", True), ("4.1", True), ("5.1", False), ("3", False), ("0.9", False)):
        found = diagnosed(engine, changed(SOFTMAX, **idle, waves=waves)).diagnosis
        assert ("tail-effect" in ids(found)) == named, waves


def test_excess_traffic_needs_the_bytes_that_must_move(engine: Engine) -> None:
    unknown = diagnosed(engine, KERNELS["softmax_two_pass"])
    assert "excess-traffic" not in ids(unknown.diagnosis)
    assert any("more bytes moved than needed" in note and "--ref" in note for note in unknown.notes)
    known = diagnosed(engine, KERNELS["softmax_two_pass"], bytes="2 * 268435456")
    assert ids(known.diagnosis)[0] == "excess-traffic"
    assert not any("--ref" in note for note in known.notes)
    [judgement] = known.diagnosis.symptoms[0].judgements
    assert judgement.source == "kopt-rank"
    assert "2 × 268435456" in judgement.arithmetic
    assert all(equation_holds(step) for step in judgement.arithmetic.split(" ; "))
    enough = diagnosed(engine, SOFTMAX, bytes="2 * 268435456")
    assert "excess-traffic" not in ids(enough.diagnosis)
    assert enough.diagnosis.unjudged != unknown.diagnosis.unjudged


def test_operations_are_held_against_the_cited_peak(engine: Engine) -> None:
    metrics = changed(KERNELS["matmul_fma"], duration="2210.4")
    found = diagnosed(engine, metrics, bytes="201326592", operations="2 * 4096 * 4096 * 4096", peak="fp32_throughput")
    [needed] = [one for one in found.diagnosis.headroom if "must move" in one.against]
    assert needed.share == pytest.approx(Decimal(201326592) / Decimal("2210.4e-6") / Decimal("4.8e12"))
    [peak] = [one for one in found.diagnosis.headroom if one.against == "cited FP32 throughput"]
    assert float(peak.share) == pytest.approx(2 * 4096**3 / 2210.4e-6 / 67e12)
    assert all(equation_holds(step) for step in peak.arithmetic)
    assert "gpu-wiki/hardware/h200-sxm.md" in peak.where


@pytest.mark.parametrize("dtype", MATMULS)
def test_operations_are_held_against_a_measured_ceiling(
    dtype: str, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ceilings are named as `kopt bench ceilings` names them, and only that of the operations' own type counts."""
    monkeypatch.setenv("KOPT_HOME", str(home))
    rates = {"fp32": 51.5, "tf32": 421.0, "fp16": 742.0, "bf16": 771.0}
    figures = tuple(
        Figure(name=f"{name} matmul {n}", value=rates[name], unit="TFLOP/s", us=2 * n**3 / rates[name] / 1e6, n=20)
        for name, n in MATMULS.items()
    )
    save(
        home,
        Ceilings(
            created="2026-11-21T07:15:00Z",
            device="NVIDIA H200",
            driver="580.95.05",
            torch="2.13.0",
            cuda="13.0",
            l2_bytes=60 << 20,
            empty_us=1.3,
            figures=figures,
            clocks=Clocks(status="not sampled", detail="no NVML"),
        ),
    )
    engine = Engine(load_settings({}, workspace=tmp_path))
    report = read_profile((REPORTS / "matmul_tensor_cores.full.csv").read_bytes(), "report").choose().launch
    rate = "fp32_throughput" if dtype == "fp32" else f"{dtype}_tensor_throughput"
    said = {
        name: declare(name, text, {})
        for name, text in (("bytes", "402653184"), ("operations", "2 * 8192 * 8192 * 8192"))
    }
    task = task_of(engine, report, "", ProblemWork(None, said), peak=rate)
    room = diagnose_launch(engine, report, "", task=task).diagnosis.headroom
    [measured] = [one for one in room if one.against.startswith("measured")]
    assert float(measured.share) == pytest.approx(2 * 8192**3 / 1415.36e-6 / (rates[dtype] * 1e12), rel=1e-4)
    assert f"{dtype} matmul {MATMULS[dtype]}, measured 2026-11-21 on NVIDIA H200" in measured.where
    assert all(equation_holds(step) for step in measured.arithmetic)


@pytest.mark.parametrize(
    ("kernel", "pipe", "share"),
    [("sigmoid_mixture", "XU pipe", "0.98194201"), ("matmul_tensor_cores", "tensor pipe", "0.92098054")],
)
def test_the_pipe_that_binds_is_held_against_its_own_peak(engine: Engine, kernel: str, pipe: str, share: str) -> None:
    """Exponentials at an eighth of the rate of additions leave nothing, where FP32's peak says that much is left."""
    report = read_profile((REPORTS / f"{kernel}.full.csv").read_bytes(), "report").choose().launch
    [found] = [one for one in diagnose_launch(engine, report, "").diagnosis.headroom if "binds" in one.against]
    assert (found.against, found.share) == (f"peak of what binds, {pipe}", Decimal(share))
    assert found.arithmetic == (f"{(found.share * 100).normalize():f} %",)


@pytest.mark.parametrize("kernel", ["softmax_rows", "pointer_chase", "tiny_grid"])
def test_where_no_pipe_binds_none_is_held_against_its_peak(engine: Engine, kernel: str) -> None:
    report = read_profile((REPORTS / f"{kernel}.full.csv").read_bytes(), "report").choose().launch
    found = diagnose_launch(engine, report, "").diagnosis
    assert found.headroom
    assert not [one for one in found.headroom if "binds" in one.against]


def test_what_a_receipt_lacks_is_said_in_words(engine: Engine) -> None:
    no_bytes = without("dram__bytes")
    found = diagnosed(engine, no_bytes, bytes="536870912").diagnosis
    assert "the profile has no DRAM bytes" in [one.why for one in found.unjudged if one.row.symptom == "excess-traffic"]


def test_a_problem_on_an_unknown_gpu_has_its_bytes(engine: Engine) -> None:
    nameless = launch(without("device__", metrics=KERNELS["softmax_two_pass"]))
    said = {"bytes": declare("bytes", "536870912", {})}
    task = task_of(engine, nameless, "", ProblemWork(None, said))
    assert (task.problem.bytes, task.roofs) == (536870912, ())
    assert task.notes
    assert ids(diagnose_launch(engine, nameless, "", task=task).diagnosis)[0] == "excess-traffic"
    with pytest.raises(UsageError) as caught:
        task_of(engine, nameless, "", ProblemWork(None, {"operations": said["bytes"]}))
    assert caught.value.code == "bytes_needed"
    assert Problem().bytes is None


REFERENCE = """\
import torch

M, N = 64, 128

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)

def get_inputs():
    return [torch.rand(M, N)]

def get_init_inputs():
    return []
"""


def test_the_command_counts_a_reference(kopt: Callable[..., Run], tmp_path: Path) -> None:
    moved = changed(dram_bytes_read="0.098304", dram_bytes_written="0.032768")
    (tmp_path / "r.csv").write_text(raw_csv(("k", moved)))
    (tmp_path / "ref.py").write_text(REFERENCE)
    result = kopt("diagnose", "r.csv", "--ref", "ref.py", "--json", cwd=tmp_path)
    assert result.code == 0, result.err
    data = result.json["data"]
    first = data["symptoms"][0]
    assert first["symptom"] == "excess-traffic"
    assert first["judgements"][0]["value"] == pytest.approx(131072 / (2 * 64 * 128 * 4))
    assert first["share"] == pytest.approx(0.5 * 0.886, rel=1e-3)
    assert any(one["against"].startswith("cited FP32") for one in data["headroom"])
    declared_ = kopt("diagnose", "r.csv", "--bytes", "8*M*N", "--dims", "M=64,N=128", "--json", cwd=tmp_path)
    assert declared_.json["data"]["symptoms"][0]["symptom"] == "excess-traffic"
    shown = kopt("diagnose", "r.csv", "--bytes", "65536", cwd=tmp_path)
    assert "of the time, estimated: " in shown.out
    for words in (["--dims", "M=64"], ["--operations", "5*64"], ["--bytes", "8*M"], ["--ref", "none.py"]):
        assert kopt("diagnose", "r.csv", *words, cwd=tmp_path).code == 2, words


def test_the_schema_has_shares_and_what_is_of_little_weight(kopt: Callable[..., Run]) -> None:
    schema = json.loads(kopt("schema", "diagnose").out)
    text = json.dumps(schema)
    assert "share_arithmetic" in text
    assert "MinorData" in text
