"""Latencies level by level, and the bytes that must be under way."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.memory import bytes_in_flight, latency
from kbs.answers.solvers.specs import USES
from kbs.evidence.arithmetic import equation_holds
from kbs.questions.forms import Form
from tests.kbs.answers.small_wiki import cited, read, texts, unsound
from wiki.library import Wikis


@pytest.mark.parametrize(
    ("text", "direct", "gaps"),
    [
        ("DRAM latency of H100 SXM", ["CC 9.0 Measured latency (DRAM): 500 cycles"], ()),
        (
            "latency of L2 and L1 on H100 PCIe",  # in the order of the question
            ["CC 9.0 Measured latency (L2): 200 cycles", "CC 9.0 Measured latency (L1): 30 cycles"],
            (),
        ),
        (
            "latency of H100 SXM",
            [
                "CC 9.0 Measured latency (L1): 30 cycles",
                "CC 9.0 Measured latency (L2): 200 cycles",
                "CC 9.0 Measured latency (DRAM): 500 cycles",
            ],
            (),
        ),
        (
            "how many cycles do L2 and HBM take on T4",
            ["T4 Measured latency (DRAM): 600 cycles"],
            ("T4: I found no latency of L2.",),
        ),
    ],
)
def test_latencies(text: str, direct: list[str], gaps: tuple[str, ...], knowledge: Knowledge, pages: Wikis) -> None:
    found = latency(read(text), knowledge)
    assert found is not None
    assert (texts(found.direct), found.gaps, found.refusal, found.whole) == (direct, gaps, "", True)
    assert [len(cited(claim)) for claim in found.direct] == [1] * len(direct)
    assert found.uses == (*USES, "measured")
    assert unsound(found, pages) == []


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("L2 latency of T4", "Not known: I found no latency of L2 of T4."),
        ("shared memory latency of T4", "Not known: I found no latency of shared memory of T4."),
        ("latency of MI300X", "Not known: I found no latency of MI300X."),
    ],
)
def test_no_latency_is_known(text: str, direct: str, knowledge: Knowledge) -> None:
    found = latency(read(text), knowledge)
    assert found is not None
    assert (texts(found.direct), found.refusal) == ([direct], "not_in_wiki")
    assert found.direct[0].kind is ClaimKind.ABSENCE


@pytest.mark.parametrize(
    "text", ["L2 latency", "L2 of T4", "latency of softmax on T4", "how do I hide the launch latency on T4"]
)
def test_what_asks_for_no_latency_of_a_level(text: str, knowledge: Knowledge) -> None:
    assert latency(read(text), knowledge) is None


def test_bandwidth_times_latency(knowledge: Knowledge, pages: Wikis) -> None:
    found = bytes_in_flight(read("how many bytes in flight does T4 need"), knowledge)
    assert found is not None
    assert texts(found.direct) == [
        "T4 needs 128 kB in flight to reach its bandwidth, by bandwidth × latency:"
        " 320 GB/s × 600 cycles / 1.5 GHz = 128 kB;"
        " 320 GB/s × 600 cycles / 1.5 GHz / 40 SMs = 3.20 kB of each SM."
    ]
    assert [step.value for step in found.direct[0].derivation] == [128_000, 3200]
    [facts] = found.sections
    assert (facts.title, texts(facts.claims)) == (
        "Hardware facts",
        ["T4 HBM bandwidth: 320 GB/s", "T4 Measured latency (DRAM): 600 cycles", "T4 Boost clock: 1.5 GHz",
         "T4 SM count: 40 SM"],
    )  # fmt: skip
    assert found.direct[0].citations == tuple(claim.citations[0] for claim in facts.claims)
    assert (found.uses, found.whole, found.gaps) == (USES, True, ())
    assert unsound(found, pages) == []


def test_the_latency_of_the_question_counts(knowledge: Knowledge) -> None:
    in_time = bytes_in_flight(read("bytes in flight on H100 SXM with 600 ns latency"), knowledge)
    in_cycles = bytes_in_flight(read("bytes in flight on H100 SXM with 1,200 cycles"), knowledge)
    assert in_time is not None
    assert in_cycles is not None
    assert in_time.direct[0].derivation[0].shown == "3 TB/s × 600 ns = 1,800 kB"
    assert in_cycles.direct[0].derivation[0].shown == "3 TB/s × 1,200 cycles / 2000 MHz = 1,800 kB"
    assert [len(part.direct[0].citations) for part in (in_time, in_cycles)] == [2, 3]


def test_what_a_sum_lacks_is_said_for_each_gpu(knowledge: Knowledge) -> None:
    missing = "H100 PCIe: its bytes in flight need its Measured latency and Boost clock, of which I found no line."
    some = bytes_in_flight(read("bytes in flight on T4 and H100 PCIe"), knowledge)
    none = bytes_in_flight(read("bytes in flight on H100 PCIe"), knowledge)
    assert some is not None
    assert none is not None
    assert (len(some.direct), some.gaps, some.refusal) == (1, (missing,), "")
    # It was no part of any answer, and the sheet of the GPU stood there instead.
    assert (texts(none.direct), none.refusal, none.whole) == ([f"Not known: {missing}"], "not_in_wiki", True)
    assert Form.CALCULATION in none.forms


@pytest.mark.parametrize("text", ["bytes in flight", "bandwidth of T4", "outstanding work on T4"])
def test_what_asks_for_no_bytes_in_flight(text: str, knowledge: Knowledge) -> None:
    assert bytes_in_flight(read(text), knowledge) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(1, 5000), st.sampled_from(["ns", "cycles"]))
def test_every_sum_is_right(knowledge: Knowledge, value: int, unit: str) -> None:
    found = bytes_in_flight(read(f"bytes in flight on T4 with a latency of {value} {unit}"), knowledge)
    assert found is not None
    total, each = found.direct[0].derivation
    seconds = Decimal(value) / (10**9 if unit == "ns" else 1_500_000_000)
    assert abs(total.value - 320 * 10**9 * seconds) < Decimal("1e-6")
    assert abs(each.value - total.value / 40) < Decimal("1e-6")
    assert equation_holds(total.shown) is True, total.shown
    assert equation_holds(each.shown) is True, each.shown
