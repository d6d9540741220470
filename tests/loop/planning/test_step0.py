"""Step 0: specs by citation or UNKNOWN, targets from the floor, stop conditions."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from kbs.answers.kernel_roofline import Demand, Roof, Term, place
from kbs.evidence.spec import Spec
from kbs.evidence.vocabulary import vocabulary
from loop.pages.run import environment_page
from loop.planning.step0 import ClockNote, EnvNote, spec_notes, stop_conditions, targets_of, trusted, unknown_targets
from tests.loop.tools import run_record
from wiki.library import Wikis, bundled_wiki

TERMS = vocabulary()
GPU = "h200-sxm"


@pytest.fixture(scope="module")
def specs() -> list[Spec]:
    return list(Wikis([bundled_wiki()]).specs("gpu-wiki", "hardware/h200-sxm.md"))


def roof(metric: str, rate: str, shown: str) -> Roof:
    return Roof(metric, metric, Decimal(rate), shown, "cited", f"{metric}: {shown} <- gpu-wiki/a.md:L1")


DEMAND = Demand(
    (Term("read x", (1_000_000,)),), (Term("write y", (1_000_000,)),), {"fp32_throughput": (Term("add", (1000,)),)}
)


def test_a_spec_is_cited_with_its_line(specs: list[Spec]) -> None:
    note = spec_notes(specs, GPU, ["hbm_bandwidth"], TERMS)[0]
    assert note.line.startswith("H200 SXM HBM bandwidth: 4.8 TB/s <- gpu-wiki/hardware/h200-sxm.md:L")
    assert (note.value, note.unit) == ("4800000000000", "bytes per second")


def test_a_spec_that_no_page_states_is_unknown(specs: list[Spec]) -> None:
    note = spec_notes(specs, GPU, ["ridge_point_bf16"], TERMS)[0]
    assert note.line == "H200 SXM BF16 ridge point: UNKNOWN (gpu-wiki not found)"
    assert note.value is None


def test_a_spec_with_two_qualifiers_is_shown_twice(specs: list[Spec]) -> None:
    assert len(spec_notes(specs, GPU, ["l2_capacity"], TERMS)) == 2
    dense = spec_notes(specs, GPU, ["bf16_tensor_throughput"], TERMS)
    assert [note.line.split(":")[0] for note in dense] == ["H200 SXM BF16 tensor throughput (dense)"]


def test_specs_of_less_confidence_are_left_out(specs: list[Spec]) -> None:
    assert {spec.confidence for spec in trusted(specs, "source-reported")} <= {"verified", "source-reported"}
    assert len(trusted(specs, "experimental")) == len(specs) > len(trusted(specs, "verified"))


def test_targets_come_from_the_floor(specs: list[Spec]) -> None:
    placed = place(
        DEMAND,
        roof("hbm_bandwidth", "4.8e12", "4.8 TB/s"),
        {"fp32_throughput": roof("fp32_throughput", "67e12", "67 TFLOPS")},
        None,
    )
    found = targets_of(placed, spec_notes(specs, GPU, ["hbm_bandwidth"], TERMS), "H200 SXM", ["counted"])
    assert found.bound == "memory"
    assert found.floor_us == pytest.approx(2_000_000 / 4.8e12 * 1e6)
    assert found.target_us == pytest.approx(2_000_000 / 4.8e12 * 1e6 / 0.9)
    assert found.lines[-1] == "note: counted"
    assert "bytes: 1,000,000 B + 1,000,000 B = 2,000,000 B" in found.lines
    assert not found.gaps


def test_without_a_rate_nothing_that_needs_it_is_computed() -> None:
    placed = place(DEMAND, roof("hbm_bandwidth", "4.8e12", "4.8 TB/s"), {"fp32_throughput": None}, None)
    found = targets_of(placed, spec_notes([], GPU, ["fp32_throughput"], TERMS), "H200 SXM")
    assert (found.floor_us, found.target_us, found.bound) == (None, None, "")
    assert found.gaps == ("H200 SXM FP32 throughput: UNKNOWN (gpu-wiki not found)",)
    assert found.lines[-1] == "bound, floor and target: UNKNOWN: fp32_throughput of H200 SXM would be needed"


@pytest.mark.processes
def test_stop_conditions_name_every_reason(tmp_path: Path) -> None:
    record = run_record(tmp_path, seconds=90.0, target="90%", iterations=4)
    targets = unknown_targets("no GPU").model_copy(update={"floor_us": 9.0})
    shown = list(stop_conditions(record, targets))
    assert shown[0].startswith("cap: 4 iterations")
    assert shown[1].startswith("time: 90 s")
    assert "9.000 µs / 0.9 = 10.00 µs" in shown[2] or "9 µs / 0.9 = 10" in shown[2]
    assert shown[3] == "target reached: the best version reaches 90% of that floor"
    assert [line.split(":")[0] for line in shown[4:]] == ["stall", "user"]


@pytest.mark.processes
def test_an_unknown_floor_is_not_used(tmp_path: Path) -> None:
    shown = list(stop_conditions(run_record(tmp_path), unknown_targets("no GPU is named")))
    assert "without one it is not used" in shown[1]
    assert len(shown) == 4


@pytest.mark.parametrize(
    ("locked", "detail", "said"),
    [
        ("yes", "", "1500 MHz now; locked: an applications clock is set"),
        ("no", "", "1500 MHz now; not locked: the applications clock is the usual one"),
        ("unknown", "NVML is not there", "1500 MHz now; not known whether locked: NVML is not there"),
    ],
)
def test_the_environment_says_whether_clocks_are_locked_and_how_to(locked: str, detail: str, said: str) -> None:
    clocks = ClockNote.model_validate({"locked": locked, "megahertz": 1500, "detail": detail, "index": 2})
    page = environment_page(EnvNote(device="cuda:2", device_name="X", checks=(), clocks=clocks)).decode()
    assert said in page
    assert "sudo nvidia-smi -i 2 -lgc MHZ" in page
    assert "sudo nvidia-smi -i 2 -rgc" in page
    assert "Clocks" not in environment_page(EnvNote(device="cpu", device_name="", checks=())).decode()
