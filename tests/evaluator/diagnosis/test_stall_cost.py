"""Shares of the time: each by hand, weighed by traffic, and with sums that are right. The launches are made up."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.diagnosis.derived import readings
from evaluator.diagnosis.headroom import Problem
from evaluator.diagnosis.stall_cost import Share, Shares
from evaluator.profiling.profile import Launch, read_profile
from kbs.evidence.arithmetic import equation_holds
from kbs.evidence.vocabulary import vocabulary
from kbs.hardware.profile_metrics import DERIVED, TIME_SHARE
from tests.evaluator.ncu_reports import SOFTMAX, Metrics, changed, raw_csv, without

SYMPTOMS = vocabulary().symptoms


def launch(metrics: Metrics) -> Launch:
    return read_profile(raw_csv(("k", metrics)).encode(), "r.csv").choose().launch


def share(symptom: str, metrics: Metrics, problem: Problem | None = None) -> Share | None:
    return Shares(launch(metrics), problem).of(SYMPTOMS[symptom], [])


def value(symptom: str, metrics: Metrics, problem: Problem | None = None) -> float | None:
    found = share(symptom, metrics, problem)
    if found is None:
        return None
    assert all(equation_holds(step) for step in found.steps), found.steps
    return float(found.value)


TRAFFIC = {"load_sectors": "8000", "store_sectors": "2000", "memory_throughput": "80", "dram_throughput": "80"}


@pytest.mark.parametrize(
    ("symptom", "values", "expected"),
    [
        ("uncoalesced-access", {**TRAFFIC, "load_bytes_per_sector": "4"}, 8000 * 7 / 8 / 10000 * 0.8),
        ("uncoalesced-access", {**TRAFFIC, "store_bytes_per_sector": "8"}, 2000 * 3 / 4 / 10000 * 0.8),
        ("uncoalesced-access", {**TRAFFIC, "load_bytes_per_sector": "16", "store_bytes_per_sector": "8"}, 0.44),
        ("uncoalesced-access", {**TRAFFIC, "load_bytes_per_sector": "128"}, 0.0),
        ("register-spills", {**TRAFFIC, "local_load_sectors": "20000", "local_store_sectors": "10000"}, 0.6),
        (
            "bank-conflicts",
            {"bank_conflicts_loads": "300", "bank_conflicts_stores": "50", "l1_cycles_elapsed": "1000"},
            0.35,
        ),
        ("bank-conflicts", {"bank_conflicts_loads": "8192", "shared_wavefronts_loads": "16384"}, 0.5 * 0.402),
        (
            "branch-divergence",
            {"threads_per_instruction": "12", "threads_not_predicated_off": "8", "sm_throughput": "80"},
            0.6,
        ),
        ("load-imbalance", {"sm_cycles_active_max": "1000", "sm_cycles_active_avg": "250"}, 0.75),
        ("small-grid", {"waves": "0.5", "sm_throughput": "10", "memory_throughput": "20"}, 0.5),
        ("small-grid", {"waves": "0.01", "sm_throughput": "40", "memory_throughput": "20"}, 0.6),
        ("tail-effect", {"waves": "3.88"}, 0.03),
        ("tail-effect", {"waves": "1.1"}, 0.45),
        (
            "atomic-contention",
            {**TRAFFIC, "reduction_sectors": "9000", "atomic_sectors": "1000", "sm_throughput": "5"},
            0.1,
        ),
        (
            "low-occupancy",
            {
                "theoretical_occupancy": "25",
                "issue_active": "0.1",
                **dict.fromkeys(("sm_throughput", "memory_throughput"), "30"),
            },
            0.7,
        ),
    ],
)
def test_share_by_hand(symptom: str, values: dict[str, str], expected: float) -> None:
    assert value(symptom, changed(SOFTMAX, **values)) == pytest.approx(expected, rel=1e-3)


def test_a_path_that_carries_little_costs_little() -> None:
    few = changed(load_sectors="553648128", store_sectors="2112", store_bytes_per_sector="4")
    assert value("uncoalesced-access", few) == pytest.approx(0.0, abs=1e-5)
    conflicts = changed(bank_conflicts_loads="8192", l1_cycles_elapsed="60000000")
    assert value("bank-conflicts", conflicts) == pytest.approx(8192 / 6e7, rel=1e-3)


def test_no_sectors_are_no_bytes_per_sector() -> None:
    found = readings(launch(changed(load_bytes_per_sector="0", load_sectors="0")))
    assert found("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio") is None
    assert found("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") is not None


def test_excess_is_what_nothing_else_accounts_for() -> None:
    bytes_moved = {"dram_bytes_read": "1800", "dram_bytes_written": "200", "dram_throughput": "80"}
    plain = changed(without("dram__bytes"), **bytes_moved, store_sectors="0")
    assert value("excess-traffic", plain, Problem(1000)) == pytest.approx(0.5 * 0.8)
    assert value("excess-traffic", plain, Problem(3000)) == 0
    assert share("excess-traffic", plain) is None
    strided = changed(plain, load_bytes_per_sector="8", load_sectors="1000")
    assert value("excess-traffic", strided, Problem(1000)) == 0
    half = changed(plain, load_bytes_per_sector="24", load_sectors="1000")
    assert value("excess-traffic", half, Problem(1000)) == pytest.approx(0.25 * 0.8)


@pytest.mark.parametrize("symptom", ["uncoalesced-access", "register-spills", "atomic-contention", "excess-traffic"])
def test_what_is_missing_is_not_zero(symptom: str) -> None:
    assert share(symptom, without("l1tex__t_sectors", "dram__bytes"), Problem(1000)) is None


def test_derived_values() -> None:
    found = readings(
        launch(changed(waves="4.2", store_sectors="100", reduction_sectors="7")),
        Problem(1000, ("10 × 100 B = 1000 B",)),
    )
    values = {name: reading.value for name in DERIVED if (reading := found(name)) is not None}
    sectors = Decimal(8388608 + 100 + 7)
    assert values == {
        "kopt__dram_bytes": Decimal("531535456"), "kopt__compulsory_bytes": 1000, "kopt__l1_sectors": sectors,
        "kopt__atomic_sectors": 7, "kopt__tail_bound": Decimal("0.2"),
    }  # fmt: skip
    assert TIME_SHARE not in values
    rate = {**without("dram__bytes"), "dram__bytes.sum.per_second": ("byte/second", "4000000000")}
    assert readings(launch(rate))("kopt__dram_bytes").value == Decimal("514000")  # type: ignore[union-attr]  # it is there
    for waves, bound in (("4", "0"), ("0.4", "0"), ("1.5", "0.5")):
        assert readings(launch(changed(waves=waves)))("kopt__tail_bound").value == Decimal(bound)  # type: ignore[union-attr]  # likewise


COUNTS = st.integers(0, 10**15).map(str)
PERCENT = st.decimals(0, 110, places=4).map(str)


@given(
    st.fixed_dictionaries(
        {
            **{f"{kind}_sectors": COUNTS for kind in ("load", "store", "local_load", "local_store", "reduction")},
            **{f"{kind}_bytes_per_sector": st.decimals(0, 128, places=2).map(str) for kind in ("load", "store")},
            **dict.fromkeys(("sm_throughput", "memory_throughput", "dram_throughput", "achieved_occupancy"), PERCENT),
            **dict.fromkeys(("bank_conflicts_loads", "l1_cycles_elapsed", "sm_cycles_active_max"), COUNTS),
            **{"waves": st.decimals(0, 10**5, places=2).map(str), "issue_active": st.decimals(0, 1, places=2).map(str)},
            **{"dram_bytes_read": COUNTS},
        }
    ),
    st.integers(0, 10**18),
)
def test_every_share_is_a_part_and_its_sums_are_right(values: dict[str, str], needed: int) -> None:
    shares = Shares(launch(changed(SOFTMAX, **values)), Problem(needed))
    for symptom in SYMPTOMS.values():
        found = shares.of(symptom, [])
        if found is not None:
            assert 0 <= found.value <= 1, symptom.id
            assert all(equation_holds(step) for step in found.steps), found.steps
