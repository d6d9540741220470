"""Numbers that a question takes for granted: corrected where they are wrong, and left alone where they may be right."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Answer, ClaimKind
from kbs.answers.premises import wrong_premise
from kbs.answers.verify import why_unsound
from kbs.evidence.file_evidence import NoEvidence
from tests.kbs.answers.small_wiki import V, cited, read, texts
from wiki.library import Wikis


def corrected(text: str, knowledge: Knowledge) -> Answer | None:
    answer = Answer(text)
    wrong = wrong_premise(read(text), knowledge, answer)
    assert wrong is bool(answer.sections) is answer.abstained
    return answer if wrong else None


@pytest.mark.parametrize(
    ("text", "direct", "values"),
    [
        (
            "the H100 SXM has 2 TB/s, right?",
            "No, not 2 TB/s: H100 SXM HBM bandwidth: 3 TB/s. 2 TB/s is the HBM bandwidth of H100 PCIe.",
            ["H100 SXM HBM bandwidth: 3 TB/s", "H100 PCIe HBM bandwidth: 2 TB/s"],
        ),
        (
            "does the H100 PCIe have 132 SMs",
            "No, not 132 SMs: H100 PCIe SM count: 114 SM. 132 SM is the SM count of H100 SXM.",
            ["H100 PCIe SM count: 114 SM", "H100 SXM SM count: 132 SM"],
        ),
        (
            "H100 SXM has 64 tensor cores per SM, right?",
            "No, not 64 tensor cores per SM: CC 9.0 Tensor cores per SM: 4 units.",
            ["CC 9.0 Tensor cores per SM: 4 units"],
        ),
        (
            "does the H100 SXM have 9000 CUDA cores",
            "No, not 9000 CUDA cores: H100 SXM: 132 SMs × 100 = 13,200 CUDA cores.",
            ["H100 SXM: 132 SMs × 100 = 13,200 CUDA cores.", "H100 SXM SM count: 132 SM",
             "CC 9.0 FP32 units per SM: 100 units"],
        ),
        ("the T4 has 100 MB of L2", "No, not 100 MB: T4 L2 capacity: 4096 KB.", ["T4 L2 capacity: 4096 KB"]),
        (
            "does the H100 SXM have 1800 TFLOPS dense BF16",
            "No, not 1800 TFLOPS dense: H100 SXM BF16 tensor throughput (dense): 900 TFLOPS."
            " 1800 TFLOPS is the BF16 tensor throughput (sparse 2:4) of H100 SXM.",
            ["H100 SXM BF16 tensor throughput (dense): 900 TFLOPS",
             "H100 SXM BF16 tensor throughput (sparse 2:4): 1800 TFLOPS"],
        ),
        (
            "does H100 SXM have 8 TFLOPS",  # of which type nobody says: that of the one which has it
            "No, not 8 TFLOPS: H100 SXM FP32 throughput: 60 TFLOPS. 8 TFLOPS is the FP32 throughput of T4.",
            ["H100 SXM FP32 throughput: 60 TFLOPS", "T4 FP32 throughput: 8 TFLOPS"],
        ),
        (
            "the H100 SXM has 1800 TFLOPS BF16",
            "1800 TFLOPS is with 2:4 sparsity, and half of it without: H100 SXM BF16 tensor throughput (dense):"
            " 900 TFLOPS.",
            ["H100 SXM BF16 tensor throughput (dense): 900 TFLOPS",
             "H100 SXM BF16 tensor throughput (sparse 2:4): 1800 TFLOPS"],
        ),
        (
            "my benchmark on H100 SXM reports 1100 TFLOPS dense BF16",
            "1100 TFLOPS dense is more than the peak: H100 SXM BF16 tensor throughput (dense): 900 TFLOPS. A peak is"
            " reckoned with the stated boost clock, which a GPU may exceed; else the operations or the time were"
            " counted wrong.",
            ["H100 SXM BF16 tensor throughput (dense): 900 TFLOPS"],
        ),
        (
            "I measured 3.5 TB/s on the H100 SXM",
            "3.5 TB/s is more than the peak: H100 SXM HBM bandwidth: 3 TB/s."
            " The bytes were counted wrong, or they came from a cache.",
            ["H100 SXM HBM bandwidth: 3 TB/s"],
        ),
    ],
)  # fmt: skip
def test_a_wrong_number(text: str, direct: str, values: list[str], knowledge: Knowledge, pages: Wikis) -> None:
    answer = corrected(text, knowledge)
    assert answer is not None
    assert (answer.direct, answer.reason) == (direct, "wrong_premise")
    [lead, rows] = answer.sections
    assert (rows.title, texts(rows.claims)) == ("What the wiki says", values)
    assert lead.claims[0].kind is ClaimKind.ABSENCE
    assert cited(lead.claims[0]) == list(dict.fromkeys(line for claim in rows.claims for line in cited(claim)))
    assert [why_unsound(claim, pages, V, NoEvidence()) for claim in answer.claims] == [""] * len(answer.claims)


@pytest.mark.parametrize(
    "text",
    [
        "the H100 SXM has 3 TB/s, right?",
        "the H100 SXM has 3000 GB/s, right?",
        "the H100 SXM has 60 MB of L2",  # as another source says
        "the H100 has 2 TB/s, right?",  # one of its variants has
        "the H100 SXM has 1800 TFLOPS of sparse BF16",
        "I measured 2 TB/s on the H100 SXM",
        "my kernel on H100 SXM uses 100 KB of shared memory",
        "why is my kernel limited to 2 TB/s on H100 SXM",  # which is what another GPU has
        "does the MI300X have 3 TB/s",  # of which the wiki has no row
        "does it have 3 TB/s",
        "2.5 TB/s of bandwidth on H100 SXM",  # nobody says that it has them
    ],
)
def test_a_number_that_is_right_or_may_be(text: str, knowledge: Knowledge) -> None:
    assert corrected(text, knowledge) is None


def test_two_wrong_numbers_are_told_in_one_line(knowledge: Knowledge) -> None:
    answer = corrected("a T4 with 3 TB/s and with 100 MB of L2", knowledge)
    assert answer is not None
    assert answer.direct == (
        "No, not 3 TB/s: T4 HBM bandwidth: 320 GB/s. 3 TB/s is the HBM bandwidth of H100 SXM."
        " No, not 100 MB: T4 L2 capacity: 4096 KB."
    )
    assert len(answer.sections[1].claims) == 3


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(11, 999), st.sampled_from([("H100 SXM", 300), ("H100 PCIe", 200)]))
def test_only_the_cited_bandwidth_is_right(knowledge: Knowledge, hundredths: int, gpu: tuple[str, int]) -> None:
    name, right = gpu
    answer = corrected(f"the {name} has {hundredths / 100:.2f} TB/s, right?", knowledge)
    assert (answer is None) is (hundredths == right)
    assert answer is None or answer.direct.startswith(f"No, not {hundredths / 100:.2f} TB/s: {name} HBM bandwidth: ")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(11, 999))
def test_a_measured_bandwidth_is_wrong_above_the_peak_alone(knowledge: Knowledge, hundredths: int) -> None:
    answer = corrected(f"I measured {hundredths / 100:.2f} TB/s on the H100 SXM", knowledge)
    assert (answer is not None) is (hundredths > 301), "half a percent above the peak is rounding"


def test_of_a_question_for_a_reason_only_what_was_measured_is_corrected(knowledge: Knowledge) -> None:
    for text, told in (
        ("why is a T4 with 3 TB/s slow", False),
        ("I measured 3.5 TB/s on the H100 SXM, why is that", True),
    ):
        answer = Answer(text)
        found = wrong_premise(read(text), knowledge, answer, measured=True)
        assert found is told is bool(answer.sections)
