"""Bytes and the time that they took: the rate, and the share of a GPU's bandwidth."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.sums import rate
from tests.kbs.answers.small_wiki import read, unsound
from wiki.library import Wikis

TIMES = st.sampled_from(["us", "ms", "s"])


def test_a_rate_and_its_share(knowledge: Knowledge, pages: Wikis) -> None:
    found = rate(read("my copy moves 1.5 GB in 1 ms on H100 SXM: which bandwidth is that?"), knowledge)
    assert found is not None
    assert [claim.text for claim in found.direct] == [
        "1.5 GB in 1 ms are 1,500 GB/s: 1.5 GB / 1 ms = 1,500 GB/s.",
        "That is 50.0 % of the 3 TB/s of H100 SXM (1.5 GB / 1 ms / 3 TB/s × 100 = 50.0), at which it would take 500 µs:"
        " 1.5 GB / 3 TB/s = 500 µs.",
    ]
    assert [claim.kind for claim in found.direct] == [ClaimKind.GIVEN, ClaimKind.DERIVED]
    assert unsound(found, pages, "1.5 GB in 1 ms") == []


@pytest.mark.parametrize(
    "text",
    [
        "what bandwidth has the H100 SXM with 80 GB?",
        "4 GB and 8 GB in 3 ms: which bandwidth?",
        "4 GB in 3 ms and 4 ms: which bandwidth?",
        "at 900 GB/s it takes 3 ms, is it memory-bound?",
        "4 GB in 3 ms, why?",
        "4 GB in 0 ms: which bandwidth is that?",
    ],
)
def test_what_is_no_such_sum(text: str, knowledge: Knowledge) -> None:
    assert rate(read(text), knowledge) is None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(
    st.integers(1, 9999), st.sampled_from(["KB", "MB", "GB"]), st.integers(1, 999), st.sampled_from(["us", "ms", "s"])
)
def test_any_amount_and_time(knowledge: Knowledge, pages: Wikis, amount: int, unit: str, time: int, of: str) -> None:
    text = f"{amount} {unit} took {time} {of} on the H100 SXM, which bandwidth is that?"
    found = rate(read(text), knowledge)
    assert found is not None
    assert unsound(found, pages, text) == []
