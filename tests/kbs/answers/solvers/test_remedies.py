"""What to try against a cause, from which value on it is named, and what others measured."""

from __future__ import annotations

import pytest

from kbs.answers.calculation import TO_TRY
from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.remedies import measured, remedies, thresholds
from kbs.questions.forms import Form
from tests.kbs.answers.small_wiki import cited, read, texts, unsound
from wiki.library import Wikis

ONLINE = "online softmax: One pass over the row replaces two."
TMA = "Tensor Memory Accelerator: The engine copies whole tiles."
LAUNCH = "kernel fusion: One launch replaces two."
FUSION = "kernel fusion: The middle result stays on the chip."


@pytest.mark.parametrize(
    ("text", "direct", "rest"),
    [
        # The lead of the page of a technique that names the symptom.
        ("how do I fix bank conflicts", "A padded tile puts the rows of a column into different banks.", []),
        # No technique names it: the first advice for each that its own page names, in the order of that page.
        ("how do I reduce register spills", FUSION, [TMA]),
        ("how do I reduce register spills on T4", FUSION, []),  # which has no such engine
        ("how do I speed up softmax", ONLINE, [TMA, LAUNCH]),
        ("how do I speed up softmax on T4", ONLINE, [LAUNCH]),
        ("how do I fix my launch-bound softmax", LAUNCH, []),
        ("how do I fix my latency-bound softmax", ONLINE, [TMA, LAUNCH]),  # no row is against that
        ("how do I fix a memory-bound kernel", FUSION, []),
    ],
)
def test_what_to_try(text: str, direct: str, rest: list[str], knowledge: Knowledge, pages: Wikis) -> None:
    found = remedies(read(text), knowledge)
    assert found is not None
    assert texts(found.direct) == [direct]
    assert [(section.title, texts(section.claims)) for section in found.sections] == ([(TO_TRY, rest)] if rest else [])
    assert found.forms == (), "advice never leads an answer by its form"
    assert found.uses == ("operation", "symptom", "bottleneck", "product", "dtype")
    assert unsound(found, pages) == []


def test_advice_cites_its_row_and_names_its_technique(knowledge: Knowledge) -> None:
    found = remedies(read("how do I fix my launch-bound softmax"), knowledge)
    assert found is not None
    [claim] = found.direct
    assert (claim.kind, claim.subject, claim.note) == (ClaimKind.RECORD, "kernel-fusion", "against launch-bound")
    assert cited(claim) == [
        "| [kernel-fusion](../technique/kernel-fusion.md) | launch-bound | One launch replaces two. | src p. 4 |"
    ]


@pytest.mark.parametrize("text", ["how do I make it fast", "how do I speed up layernorm", "how do I use TMA"])
def test_no_advice(text: str, knowledge: Knowledge) -> None:
    assert remedies(read(text), knowledge) is None


def test_a_technique_of_other_operations_is_none_of_this(knowledge: Knowledge) -> None:
    asked = read("how do I reduce register spills of my transpose")
    found = remedies(asked, knowledge)
    assert found is not None
    assert texts(found.direct) == [FUSION], "kernel fusion is of every operation"
    assert remedies(read("how do I speed up my memory-bound transpose"), knowledge) is None


def test_thresholds_of_a_symptom_once_for_each_source(knowledge: Knowledge) -> None:
    said = thresholds(read("why do I have bank conflicts"), knowledge)
    name = "shared-memory bank conflicts: l1tex__data_bank_conflicts_pipe_lsu.sum"
    assert texts(said) == [f"{name} · > · 10 %", f"{name} · > · 20 %"]
    assert [(claim.kind, claim.note) for claim in said] == [
        (ClaimKind.RECORD, "by src p. 10"),
        (ClaimKind.RECORD, "by src p. 12"),
    ]
    assert thresholds(read("why is it slow"), knowledge) == []


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        (
            "what do others get with softmax on T4",
            ["T4: fp32 · 1024 x 1024 · memory throughput 250 GB/s · one warp a row"],
        ),
        (
            "measured softmax",
            [
                "H100 SXM: fp32 · 4096 x 4096 · memory throughput 2.7 TB/s · one block a row",
                "T4: fp32 · 1024 x 1024 · memory throughput 250 GB/s · one warp a row",
            ],
        ),
        ("measured softmax on H100 PCIe", None),  # what others have says nothing of it
        ("measured TMA", None),
        ("measured bandwidth of T4", None),
    ],
)
def test_what_others_measured(text: str, direct: list[str] | None, knowledge: Knowledge, pages: Wikis) -> None:
    found = measured(read(text), knowledge)
    assert (None if found is None else texts(found.direct)) == direct
    if found is not None:
        assert unsound(found, pages) == []
        assert [len(cited(claim)) for claim in found.direct] == [1] * len(found.direct)


def test_measurements_answer_a_question_for_them_alone(knowledge: Knowledge) -> None:
    asked = measured(read("what do others get with softmax on T4"), knowledge)
    other = measured(read("why is softmax slow on T4"), knowledge)
    assert asked is not None
    assert other is not None
    # It was read as one for a definition, and its own answer counted as one to another form.
    assert read("what do others get with softmax on T4").form in asked.forms
    assert Form.VALUE in asked.forms
    assert other.forms == ()
