"""A GPU that nobody knows: nothing is held against it, and only what is asked of GPUs that are known is said beside."""

from __future__ import annotations

import pytest

from kbs.answers.compose import OF_THE_KNOWN, compose
from kbs.answers.knowledge import Knowledge
from kbs.index.sections import SectionResult
from tests.kbs.answers.small_wiki import read, texts
from wiki.library import Wikis


@pytest.mark.parametrize(
    ("text", "unknown", "beside"),
    [
        ("how much faster will a 6090 be than the T4?", ["RTX 6090"], []),
        ("is the T4 faster than the B400?", ["B400"], []),
        ("6080 Ti vs 6090", ["RTX 6080 Ti", "RTX 6090"], []),
        ("H300 vs H100 SXM memory bandwidth", ["H300"], ["H100 SXM HBM bandwidth: 3 TB/s"]),
        ("bandwidth of a 6090", ["RTX 6090"], []),
    ],
)
def test_nothing_is_compared_with_a_gpu_that_is_not_known(
    text: str, unknown: list[str], beside: list[str], knowledge: Knowledge, pages: Wikis
) -> None:
    answer = compose(read(text), _finding_nothing(knowledge), pages)
    assert (answer.abstained, answer.reason) == (True, "unknown_product")
    assert answer.gaps == [f"unknown product: {name}" for name in unknown]
    first, rest = answer.sections[: len(unknown)], answer.sections[len(unknown) :]
    assert all(
        f"no GPU named {name}." in claim.text for name, one in zip(unknown, first, strict=True) for claim in one.claims
    )
    assert [(one.title, [text.split(" (")[0] for text in texts(one.claims)]) for one in rest] == (
        [(OF_THE_KNOWN, beside)] if beside else []
    )


def test_two_known_gpus_are_compared(knowledge: Knowledge, pages: Wikis) -> None:
    answer = compose(read("H100 SXM vs T4 memory bandwidth"), _finding_nothing(knowledge), pages)
    assert answer.reason != "unknown_product"
    assert "H100 SXM" in answer.direct


def _finding_nothing(knowledge: Knowledge) -> Knowledge:
    nothing = SectionResult([])
    return Knowledge(knowledge.store, knowledge.vocabulary, lambda _: nothing, lambda _: nothing)
