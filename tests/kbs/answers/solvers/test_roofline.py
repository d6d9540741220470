"""What bounds an operation, ridge points, and what share of a peak was reached."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.answers.calculation import TO_TRY
from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.part import Part
from kbs.answers.solvers.roofline import achieved, ridge, roofline
from kbs.answers.solvers.specs import USES
from kbs.questions.forms import Form
from tests.kbs.answers.small_wiki import cited, read, texts, unsound
from wiki.library import Wikis

SLOW = "why is my softmax slow on H100 SXM"
UNNAMED = "No element type was named, so FP32 was taken."
INTENSITY = "softmax in FP32 does 0.625 FLOP per byte that it must move at every size"


def titled(part: Part) -> dict[str, list[str]]:
    return {section.title: texts(section.claims) for section in part.sections}


def test_an_operation_below_the_ridge_point(knowledge: Knowledge, pages: Wikis) -> None:
    found = roofline(read(SLOW), knowledge)
    assert found is not None
    assert texts(found.direct) == [f"Memory-bound: {INTENSITY}, below the ridge point of H100 SXM (20.0 FLOP/byte)."]
    assert titled(found) == {
        "Why": [
            "softmax at M=4096, N=4096: 1 × 4096 × 4096 × 4 B + 1 × 4096 × 4096 × 4 B = 134,217,728 B;"
            " 5 × 4096 × 4096 = 83,886,080 FLOP; 83,886,080 FLOP / 134,217,728 B = 0.625 FLOP/byte.",
            "H100 SXM: 60 TFLOPS / 3 TB/s = 20.0 FLOP/byte: memory-bound.",
            "A memory-bound kernel waits for bytes.",
        ],
        "Hardware facts": ["H100 SXM HBM bandwidth: 3 TB/s", "H100 SXM FP32 throughput: 60 TFLOPS"],
        TO_TRY: [
            "online softmax: One pass over the row replaces two.",
            "Tensor Memory Accelerator: The engine copies whole tiles.",
            "kernel fusion: The middle result stays on the chip.",
        ],
        "Measured by others": ["H100 SXM: fp32 · 4096 x 4096 · memory throughput 2.7 TB/s · one block a row"],
    }
    assert found.gaps[-1] == UNNAMED
    assert (found.uses, found.whole) == ((*USES, "operation", "bottleneck", "number"), False)
    assert [line.split(" | ")[0].strip("| ") for line in cited(found.direct[0])] == [
        "softmax", "softmax", "softmax", "HBM bandwidth", "FP32 throughput"
    ]  # fmt: skip
    assert unsound(found, pages) == []


def test_of_many_products_a_sentence_names_the_lowest_and_the_highest(
    knowledge: Knowledge, pages: Wikis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kbs.answers.calculation.MANY", 1)
    found = roofline(read("how long does a 4096x8192 fp32 softmax take on T4 and H100 SXM"), knowledge)
    assert found is not None
    assert texts(found.direct) == [
        f"Memory-bound: {INTENSITY}, below the ridge point of each GPU from H100 SXM (20.0 FLOP/byte) to"
        " T4 (25.0 FLOP/byte). The minimum time at M=4096, N=8192 is from 89.5 µs on H100 SXM to 839 µs on T4."
    ]
    assert {step.name for step in found.direct[0].derivation} >= {"memory time on H100 SXM", "memory time on T4"}
    assert unsound(found, pages) == []


def test_sizes_give_a_least_time(knowledge: Knowledge, pages: Wikis) -> None:
    found = roofline(read("how long does a 4096x8192 fp32 softmax take on H100 SXM and T4"), knowledge)
    assert found is not None
    assert texts(found.direct) == [
        f"Memory-bound: {INTENSITY}, below the ridge point of H100 SXM (20.0 FLOP/byte) and T4 (25.0 FLOP/byte)."
        " The minimum time at M=4096, N=8192 is 89.5 µs on H100 SXM and 839 µs on T4."
    ]
    times = {step.name: step.value for step in found.direct[0].derivation if step.name.startswith("memory time")}
    moved = Decimal(2 * 4096 * 8192 * 4)
    assert times == {"memory time on H100 SXM": moved / (3 * 10**12), "memory time on T4": moved / (320 * 10**9)}
    assert UNNAMED not in found.gaps
    assert unsound(found, pages) == []


@pytest.mark.parametrize(
    ("text", "timed"),
    [
        ("how long does softmax take on T4", True),
        ("is softmax faster on H100 SXM or on T4", True),
        ("why is my 1024x1024 softmax slow on T4", True),
        ("why is my softmax slow on T4", False),
        ("is softmax memory-bound on T4", False),
        ("why is my softmax slow on H100 SXM and T4", False),
    ],
)
def test_a_time_is_told_where_it_was_asked_for_or_sizes_were_given(
    text: str, timed: bool, knowledge: Knowledge
) -> None:
    found = roofline(read(text), knowledge)
    assert found is not None
    assert (" The minimum time at M=" in found.direct[0].text) is timed


def test_what_the_question_claims_is_denied(knowledge: Knowledge) -> None:
    found = roofline(read("is softmax compute-bound on T4"), knowledge)
    assert found is not None
    assert found.direct[0].text.startswith("Not compute-bound by what it must do. Memory-bound: ")
    assert {Form.YES_NO, Form.VALUE} <= set(found.forms)
    plain = roofline(read(SLOW), knowledge)
    assert plain is not None
    assert {Form.YES_NO, Form.VALUE}.isdisjoint(plain.forms)


@pytest.mark.parametrize(
    "text",
    [
        "why is my kernel slow on H100 SXM",  # no operation
        "why is my matmul slow on H100 SXM",  # whose cost the wiki has not
        "why is my softmax slow on MI300X",  # whose rates it has not
        "why is my int32 softmax slow on H100 SXM",  # of which nobody states a rate
    ],
)
def test_nothing_is_computed_of_what_is_not_known(text: str, knowledge: Knowledge) -> None:
    assert roofline(read(text), knowledge) is None


def test_one_gpu_is_computed_and_the_other_named(knowledge: Knowledge) -> None:
    found = roofline(read("why is my softmax slow on T4 and MI300X"), knowledge)
    assert found is not None
    assert found.direct[0].text.endswith("below the ridge point of T4 (25.0 FLOP/byte).")
    assert found.gaps[0] == (
        "MI300X HBM bandwidth and FP32 throughput: UNKNOWN (gpu-wiki not found), so nothing is computed for it."
    )


@pytest.mark.parametrize(
    ("text", "direct", "gaps"),
    [
        (
            "ridge point of H100 SXM",
            [
                "H100 SXM FP32 throughput, ridge point: 60 TFLOPS / 3 TB/s = 20.0 FLOP/byte.",
                "H100 SXM BF16 tensor throughput, ridge point: 900 TFLOPS / 3 TB/s = 300 FLOP/byte.",
            ],
            (),
        ),
        (
            "bf16 roofline of H100 SXM and T4",
            ["H100 SXM BF16 tensor throughput, ridge point: 900 TFLOPS / 3 TB/s = 300 FLOP/byte."],
            ("T4 BF16 tensor throughput: UNKNOWN (gpu-wiki not found)",),
        ),
    ],
)
def test_ridge_points(text: str, direct: list[str], gaps: tuple[str, ...], knowledge: Knowledge, pages: Wikis) -> None:
    found = ridge(read(text), knowledge)
    assert found is not None
    assert (texts(found.direct), found.gaps, found.whole) == (direct, gaps, True)
    assert [len(claim.citations) for claim in found.direct] == [2] * len(direct)
    assert unsound(found, pages) == []


@pytest.mark.parametrize(
    "text",
    ["ridge point of softmax on H100 SXM", "ridge point", "bandwidth of H100 SXM", "ridge point of H100 SXM in int64"],
)
def test_no_ridge_point(text: str, knowledge: Knowledge) -> None:
    assert ridge(read(text), knowledge) is None


@pytest.mark.parametrize(
    ("text", "direct", "facts"),
    [
        (
            "I get 1.5 TB/s on H100 SXM, is that good?",
            "1.5 TB/s is 50.0 % of the 3 TB/s HBM bandwidth of H100 SXM: 1.5 TB/s / 3 TB/s × 100 = 50.0.",
            ["H100 SXM HBM bandwidth: 3 TB/s", "H100 SXM Measured copy bandwidth: 2.5 TB/s"],
        ),
        (
            "I get 450 TFLOPS in bf16 on H100 SXM",
            "450 TFLOPS is 50.0 % of the 900 TFLOPS BF16 tensor throughput of H100 SXM:"
            " 450 TFLOPS / 900 TFLOPS × 100 = 50.0.",
            ["H100 SXM BF16 tensor throughput (dense): 900 TFLOPS"],
        ),
        (
            "only 6 TFLOPS on T4",  # a bare rate is one of FP32
            "6 TFLOPS is 75.0 % of the 8 TFLOPS FP32 throughput of T4: 6 TFLOPS / 8 TFLOPS × 100 = 75.0.",
            ["T4 FP32 throughput: 8 TFLOPS"],
        ),
    ],
)
def test_the_share_of_a_peak(text: str, direct: str, facts: list[str], knowledge: Knowledge, pages: Wikis) -> None:
    found = achieved(read(text), knowledge)
    assert found is not None
    assert (texts(found.direct), titled(found)) == ([direct], {"Hardware facts": facts})
    assert found.uses == (*USES, "operation", "measured")
    assert found.direct[0].kind is ClaimKind.DERIVED
    assert unsound(found, pages) == []


@pytest.mark.parametrize(
    "text",
    [
        "is 3 TB/s good on H100 SXM",  # the peak itself
        "I get 1.5 TB/s, is that good?",
        "how do I get more than 1.5 TB/s on H100 SXM",
        "does H100 SXM have 2 TB/s",  # nothing was reached
        "I get 450 TFLOPS in int8 on T4",  # of which no peak is known
        "I get 40 MB of L2 on H100 SXM",  # no rate
    ],
)
def test_no_share(text: str, knowledge: Knowledge) -> None:
    assert achieved(read(text), knowledge) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.integers(1, 299).map(lambda hundredth: Decimal(hundredth) / 100), st.sampled_from(["TB/s", "GB/s"]))
def test_every_share_stands_up_to_its_check(knowledge: Knowledge, pages: Wikis, rate: Decimal, unit: str) -> None:
    shown = f"{rate if unit == 'TB/s' else rate * 1000:f} {unit}"
    found = achieved(read(f"I get {shown} on H100 SXM"), knowledge)
    assert found is not None
    assert found.direct[0].derivation[0].value == rate / 3 * 100
    assert unsound(found, pages) == []
