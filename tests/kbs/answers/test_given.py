"""Sums with the numbers of a question: they are recomputed, and no number is taken that the question does not give."""

from decimal import Decimal

import pytest

from kbs.answers.model import Claim, ClaimKind, Step
from kbs.answers.verify import why_unsound
from kbs.evidence.file_evidence import NoEvidence
from kbs.evidence.vocabulary import vocabulary
from kopt.services.engine import Engine
from kopt.services.knowledge.answers import Asked, ask
from wiki.library import Wikis

ASKED = "280 kernels per token with 20us overhead each. How much overhead per token?"


def claim(text: str, expression: str, shown: str) -> Claim:
    return Claim(text, ClaimKind.GIVEN, derivation=(Step("time", expression, Decimal(1), "s", shown),))


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (claim("5.60 ms: 280 × 20 µs = 5.60 ms.", "280 × 20 µs", "280 × 20 µs = 5.60 ms"), ""),
        (claim("6 ms: 280 × 20 µs = 6 ms.", "280 × 20 µs", "280 × 20 µs = 6.00 ms"), "the arithmetic is wrong"),
        (claim("5.62 ms: 281 × 20 µs = 5.62 ms.", "281 × 20 µs", "281 × 20 µs = 5.62 ms"), "does not give 281"),
        (claim("9 ms: 280 × 20 µs = 5.60 ms.", "280 × 20 µs", "280 × 20 µs = 5.60 ms"), "9 stands neither"),
        (Claim("5.60 ms.", ClaimKind.GIVEN), "it shows no arithmetic"),
    ],
)
def test_only_sums_of_given_numbers_stand(made: Claim, why: str) -> None:
    found = why_unsound(made, Wikis([]), vocabulary(), NoEvidence(), ASKED)
    assert why in found if why else found == ""


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (ASKED, "5.60 ms in all: 280 × 20 µs = 5.60 ms."),
        ("vocab 128256, 81920 tokens in bf16: how big do the logits get?", "21.0 GB in BF16"),
        ("Hardware limit: 166912. what limit is that on which GPU?", "166912 bytes are 163 KB"),
        ("so the maximum number of threads per block for sm_86 is 1536, correct?", "No, not 1536"),
    ],
)
def test_a_sum_leads_the_answer(engine: Engine, question: str, said: str) -> None:
    assert said in ask(engine, Asked(question)).answer.claims[0].text
