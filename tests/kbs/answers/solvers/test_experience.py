"""What the log says of the past, on a small log; each line rests on records that it cites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Answer, ClaimKind
from kbs.answers.solvers.experience import (
    FAILED,
    LESSONS,
    SIMILAR_PAST,
    WORKED,
    answer_from_experience,
    similar_outcomes,
)
from kbs.experience.log import ExperienceLog
from kbs.experience.log_evidence import LogEvidence
from tests.kbs.answers.small_wiki import read, texts
from tests.kbs.experience.records import experiment

SPLIT = {"methods": ("split_k",), "optimization": "Split the sum over more blocks."}
RECORDS = (
    experiment(lesson="Rows of an odd length need a masked tail."),
    experiment(speedup={"median": 1.5}),
    experiment(outcome="regression", speedup={"median": 0.9}, observed="The partial sums cost more.", **SPLIT),
    experiment(gpu="t4", dtype="fp32", speedup={"median": 2.0}, **SPLIT),
    experiment(op="matmul", kernel="mm.py", bottleneck_before="compute-bound", outcome="neutral", speedup=None),
)


@pytest.fixture
def past(tmp_path: Path) -> Iterator[LogEvidence]:
    """A log of `RECORDS`."""
    log = ExperienceLog(tmp_path / "experience", tmp_path)
    log.append(RECORDS)
    with log.index() as index:
        yield LogEvidence(index)


def told(text: str, knowledge: Knowledge, past: LogEvidence | None) -> Answer:
    answer = Answer(text)
    answer_from_experience(read(text), knowledge, past, answer)
    return answer


def section(answer: Answer, title: str) -> list[str]:
    return [text for one in answer.sections if one.title == title for text in texts(one.claims)]


def test_what_was_tried_worked_and_was_noted(knowledge: Knowledge, past: LogEvidence) -> None:
    answer = told("what did we learn about softmax on H200", knowledge, past)
    assert answer.direct.startswith("softmax on H200 SXM: 3 experiments: 2 success, 1 regression; ")
    [worked], [failed] = section(answer, WORKED), section(answer, FAILED)
    assert worked.startswith("vectorized_access: 2 experiments: 2 success; ")
    assert failed == "split_k: 1 experiment: 1 regression; speedup 0.9x"
    assert section(answer, LESSONS) == [
        "“The partial sums cost more.” (regression, 0.9x)",
        "“Rows of an odd length need a masked tail.” (success, 1.25x)",
    ]
    assert not answer.abstained
    for claim in answer.claims:
        assert claim.kind is ClaimKind.EXPERIENCE
        assert [past.why_not(item) for item in claim.evidence] == [""] * len(claim.evidence)
        cited = {item.hash for item in claim.evidence if item.kind == "log"}
        assert cited
        assert cited <= {one.id for one in RECORDS[:3]}


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("what worked for softmax on T4", "softmax on T4: 1 experiment: 1 success; speedup 2.00x"),
        ("what did we learn about softmax in fp32", "softmax, fp32: 1 experiment: 1 success"),
        ("did split-k help on softmax", "split_k on softmax: 2 experiments: 1 success, 1 regression"),
        ("what did we learn about compute-bound kernels", "all kernels, compute-bound: 1 experiment: 1 neutral"),
    ],
)
def test_a_question_names_which_records_are_meant(
    text: str, starts: str, knowledge: Knowledge, past: LogEvidence
) -> None:
    assert told(text, knowledge, past).direct.startswith(starts)


@pytest.mark.parametrize(
    ("text", "direct", "gap"),
    [
        (
            "what worked for layernorm",
            "Not known: no past experiment is recorded of LayerNorm.",
            "The log has 4 of softmax, 1 of matmul.",
        ),
        (
            "what worked for softmax on A100 SXM 80GB",
            "Not known: no past experiment is recorded of softmax on A100 SXM 80 GB.",
            "Of softmax the log has 3 on h200-sxm, 1 on t4.",
        ),
    ],
)
def test_what_the_log_has_not(text: str, direct: str, gap: str, knowledge: Knowledge, past: LogEvidence) -> None:
    answer = told(text, knowledge, past)
    assert (answer.abstained, answer.reason) == (True, "no_experience")
    assert (answer.direct, answer.gaps) == (direct, [gap])


def test_without_a_log_nothing_is_told(knowledge: Knowledge) -> None:
    answer = told("what worked for softmax", knowledge, None)
    assert (answer.abstained, answer.direct) == (True, "Not known: no past experiment is recorded here.")


def test_similar_records_stand_beside_another_answer(past: LogEvidence) -> None:
    answer = Answer("why")
    similar_outcomes(read("why is my bf16 softmax memory-bound on H200"), past, answer)
    [one] = answer.sections
    assert one.title == SIMILAR_PAST
    # Of two records with one change and one outcome, the better one; that of another GPU is less similar.
    assert texts(one.claims) == [
        "vectorized_access on softmax, H200 SXM, bf16, M=4096 N=8192: success, 1.50x",
        "split_k on softmax, H200 SXM, bf16, M=4096 N=8192: regression, 0.9x",
        "split_k on softmax, T4, fp32, M=4096 N=8192: success, 2.00x",
    ]
    assert all(claim.note.startswith("similarity ") for claim in one.claims)
    assert len(answer.experiments) == 3


def test_a_question_of_no_kernel_has_no_similar_records(past: LogEvidence) -> None:
    answer = Answer("what")
    similar_outcomes(read("how much L2 does the H200 have"), past, answer)
    assert answer.sections == []
