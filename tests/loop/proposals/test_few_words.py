"""A proposal from few words: what is filled in, what is quoted, and what is said of each missing thing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kbs.common.errors import UsageError
from kbs.evidence.checking import stands_in
from loop.proposals.few_words import Parent, Words, compose, quotation

BEFORE = "def a(x):\n    return x + 1\n\n\ndef b(x):\n    return x\n"
AFTER = "def a(x):\n    return 1 + x\n\n\ndef b(x):\n    return x\n"
PAGE = "gpu-wiki/technique/loads.md:L3-L9"
RECEIPT = "receipt/abcdef0123456789#reason"
PLACES = {
    PAGE: """A load of one element each wastes instructions.
Vectorized loads move 16 bytes with one instruction.[^1] They need aligned rows.

```python
tl.load(vectorized loads loads loads)
```

| kernel | GPU | vectorized loads |
|---|---|---|
- Alignment: 16 bytes are what vectorized loads need of rows""",
    RECEIPT: "right in all 22 calls",
    "gpu-wiki/technique/code.md:L1": "```\nx = 1\n```",
}
PARENT = Parent(version=0, kernel=BEFORE, language="python", bottleneck="memory_bound", receipt="abcdef0123456789")
SAID = Words(kernel=AFTER, language="python", methods=("vectorized_access",), why="Wide loads are fewer loads.")


def look(quote: str, reference: str) -> tuple[str, str]:
    says = PLACES.get(reference)
    if says is None:
        return "", "there is no such page"
    if quote and not stands_in(quote.strip('"“”'), says):
        return says, "the lines do not have the quoted words"
    return says, ""


def made(**changes: Any) -> Any:
    return compose(replace(SAID, **changes), 1, PARENT, look, timed=True)


def wrong(**changes: Any) -> list[str]:
    with pytest.raises(UsageError) as caught:
        made(**changes)
    assert caught.value.code == "proposal_incomplete"
    return caught.value.message.splitlines()


def test_what_is_not_said_is_filled_in_from_the_run() -> None:
    found = made()
    assert (found.version, found.parent, found.language, found.kernel) == (1, 0, "python", AFTER)
    said = found.hypothesis
    assert said.single_change == "vectorized_access in function a"
    assert said.rationale == "Wide loads are fewer loads."
    assert "memory_bound" in said.current_evidence
    assert [(e.metric, e.direction) for e in said.expected] == [("time", "down")]
    assert "lower bound" in said.decision_rule
    assert "takes none" in compose(SAID, 1, PARENT, look, timed=False).hypothesis.decision_rule
    assert [(s.reference, s.quote) for s in found.evidence.selected] == [(RECEIPT, "right in all 22 calls")]


def test_what_is_said_is_taken() -> None:
    found = made(
        change="Loads of four elements.",
        evidence=(f'"They need aligned rows" <- {PAGE}', f"“A load of one element” ← {PAGE}"),
        expect=("dram_throughput up: from 62 % to 80 %", "time DOWN"),
        skip=("coalesced_access = it is there already",),
        ask=("what do wide loads need",),
        circumstances="Rows are aligned now.",
        risk="Rows that are not aligned.",
        keep_if="Kept if faster.",
    )
    said = found.hypothesis
    assert (said.single_change, said.risk, said.decision_rule) == (
        "Loads of four elements.",
        "Rows that are not aligned.",
        "Kept if faster.",
    )
    assert [(e.metric, e.direction, e.size) for e in said.expected] == [
        ("dram_throughput", "up", "from 62 % to 80 %"),
        ("time", "down", "not known beforehand"),
    ]
    assert [(s.method, s.reason) for s in found.skipped] == [("coalesced_access", "it is there already")]
    assert [q.text for q in found.evidence.queries] == [
        "vectorized_access method: when does it help",
        "what do wide loads need",
    ]
    assert [s.quote for s in found.evidence.selected] == ["They need aligned rows", "A load of one element"]
    assert found.circumstances == "Rows are aligned now."


def test_the_sentence_that_has_most_to_do_with_the_change_is_quoted() -> None:
    quote, why = quotation(PAGE, "vectorized loads of 16 bytes", look)
    assert (quote, why) == ("Vectorized loads move 16 bytes with one instruction.", "")
    assert quotation(PAGE, "aligned rows", look)[0] == "They need aligned rows."


def test_a_sentence_that_would_be_read_as_a_figure_is_taken_last_and_in_marks() -> None:
    only = {"gpu-wiki/a.md:L1": "- Alignment: 16 bytes are what loads need"}
    quote, _ = quotation("gpu-wiki/a.md:L1", "alignment", lambda _, reference: (only[reference], ""))
    assert quote == '"Alignment: 16 bytes are what loads need"'


def test_a_spec_stays_a_spec() -> None:
    says = {"gpu-wiki/a.md:L1": "| bandwidth | 4.8 TB/s |"}
    found = compose(
        replace(SAID, evidence=("hbm_bandwidth: 4.8 TB/s <- gpu-wiki/a.md:L1",)),
        1, PARENT, lambda _, reference: (says[reference], ""), timed=True,
    )  # fmt: skip
    assert found.evidence.selected[0].quote == "hbm_bandwidth: 4.8 TB/s"


def test_everything_that_is_missing_is_said_at_once() -> None:
    said = wrong(
        kernel=" \n",
        methods=(),
        why=" ",
        evidence=("a page somewhere", f'"words of nobody here" <- {PAGE}', "gpu-wiki/none.md:L1"),
        expect=("faster",),
        skip=("tiling_smem", "=why"),
        ask=("?",),
    )
    assert [line.split(" ")[0] for line in said] == [
        "--kernel", "--method", "--why", "--evidence", "--evidence", "--evidence", "--expect", "--skip", "--skip",
        "--ask",
    ]  # fmt: skip
    assert "It says: A load of one element" in said[4]
    assert "no such page" in said[5]


def test_where_nothing_can_be_quoted_the_words_are_asked_for() -> None:
    assert "name the words" in wrong(evidence=("gpu-wiki/technique/code.md:L1",))[0]


def test_a_parent_without_a_receipt_needs_evidence() -> None:
    with pytest.raises(UsageError, match="--evidence is missing"):
        compose(SAID, 1, replace(PARENT, receipt=""), look, timed=True)


def test_what_no_proposal_holds_is_said_by_its_field() -> None:
    assert wrong(methods=("a", "b", "c", "d"))[0].startswith("methods: ")
