"""Sentences that say what their claims say pass, and each liberty stops where it could change what is said."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.answers.model import Claim, ClaimKind
from kbs.evidence.citation import Citation
from kbs.evidence.vocabulary import vocabulary
from kbs.wording.check import Kept, Reason, Refused, SentenceCheck
from kbs.wording.pack import Numbered, said
from kbs.wording.wording import MOST_LINES, Wording
from tests.kbs.wording.lies import LIES, Fact, lies

SPEC, STATEMENT, DERIVED, RECORD = ClaimKind.SPEC, ClaimKind.STATEMENT, ClaimKind.DERIVED, ClaimKind.RECORD
SOFTMAX = (
    "Memory-bound: softmax in FP32 does 0.625 FLOP per byte that it must move at every size, below the ridge point of"
    " H100 SXM (20.0 FLOP/byte) and H100 PCIe (25.6 FLOP/byte)."
)
CLAIMS: list[tuple[str, ClaimKind, str, str]] = [
    ("", DERIVED, SOFTMAX, ""),
    ("Why", STATEMENT, "A spill lies in device memory, so spills make a kernel slow.", ""),
    ("Why", STATEMENT, "It is cached in L1, because that is in the way.", ""),
    ("Why", STATEMENT, "Bank conflicts cost time only where shared memory is on the critical path, so measure.", ""),
    ("Why", STATEMENT, "Unrolling helps, so long as registers are left.", ""),
    ("Facts", SPEC, "H100 SXM HBM bandwidth: 3.35 TB/s", "h100-sxm"),
    ("Facts", SPEC, "H100 PCIe HBM bandwidth: 2000 GB/s", "h100-pcie"),
    ("Facts", SPEC, "H100 SXM BF16 tensor throughput (dense): 989.4 TFLOPS", "h100-sxm"),
    ("Facts", SPEC, "H100 SXM BF16 tensor throughput (sparse 2:4): 1978.9 TFLOPS", "h100-sxm"),
    ("Facts", SPEC, "H100 SXM L2 capacity: 50 MB", "h100-sxm"),
    ("Facts", SPEC, "H100 PCIe L2 capacity: 50 MB", "h100-pcie"),
    ("Facts", SPEC, "A100 SXM 80 GB FP8 tensor throughput: none", "a100-sxm-80gb"),
    ("What to try", RECORD, "vectorized access: Loads of 16 bytes a thread fetch four fp32 values.", ""),
    ("What to try", RECORD, "kernel fusion: One kernel in place of several pays one launch.", ""),
    ("Why", STATEMENT, "Does not pay where the kernel runs at the bandwidth of DRAM already.", ""),
]


def numbered() -> list[Numbered]:
    found = []
    for n, (section, kind, text, subject) in enumerate(CLAIMS, start=1):
        cited = Citation("w", f"{section or 'direct'}.md", n, n, "", "", text)
        claim = Claim(text, kind, (cited,), subject=subject)
        found.append(Numbered(f"c{n}", claim, section, said(claim)))
    return found


def check(*lines: str) -> Kept | Refused:
    """What becomes of the last line."""
    checked = SentenceCheck(numbered(), vocabulary())
    *_, last = [checked.check(line) for line in lines]
    return last


HONEST = [
    f"{SOFTMAX} [c1]",
    f"- {SOFTMAX[:-1]} [c1].",
    "Memory-bound: softmax in FP32 does 0.625 FLOP per byte that it must move at every size, below the ridge point of"
    " H100 SXM and H100 PCIe. [c1]",
    "A spill lies in device memory. [c2]",
    "Also, a spill lies in device memory, so spills make a kernel slow. [c2]",
    "The HBM bandwidth of the H100 SXM is 3.35 TB/s. [c6]",
    "The H100 SXM has an HBM bandwidth of 3.35 TB/s [c6]",
    "3.35 TB/s is the HBM bandwidth of H100 SXM. [ c6 ]",
    "The H100 SXM's HBM bandwidth is 3.35 TB/s. [c6]",
    "The H100 SXM offers 3.35 TB/s of HBM bandwidth. [c6]",
    "The H100 SXM has an HBM bandwidth of 3.35 TB/s and the H100 PCIe of 2000 GB/s. [c6,c7]",
    "The H100 PCIe has 2000 GB/s of HBM bandwidth, while the H100 SXM has 3.35 TB/s. [c6,c7]",
    "Memory-bound: softmax in FP32 does 0.625 FLOP per byte that it must move at every size, below the ridge point of"
    " the H100 SXM (20.0 FLOP/byte) and the H100 PCIe (25.6 FLOP/byte). [c1]",
    "H100 SXM HBM bandwidth: 3.35 TB/s [c6]",
    "The HBM bandwidth is 3.35 TB/s on the H100 SXM and 2000 GB/s on the H100 PCIe. [c6, c7]",
    "The HBM bandwidth is 2000 GB/s on H100 PCIe, and 3.35 TB/s on H100 SXM. [c6][c7]",
    "The L2 capacity of the H100 SXM and the H100 PCIe is 50 MB. [c10,c11]",
    "The dense BF16 tensor throughput of the H100 SXM is 989.4 TFLOPS. [c8]",
    "The H100 SXM has a BF16 tensor throughput (dense) of 989.4 TFLOPS. [c8]",
    "The FP8 tensor throughput of the A100 SXM 80 GB is none. [c12]",
    "Vectorized access: Loads of 16 bytes a thread fetch four fp32 values; kernel fusion: One kernel in place of"
    " several pays one launch. [c13,c14]",
    "1. Kernel fusion: One kernel in place of several pays one launch. [c14]",
]


@pytest.mark.parametrize("line", HONEST)
def test_what_the_claims_say_passes(line: str) -> None:
    found = check(line)
    assert isinstance(found, Kept), found
    assert found.headline == line.lstrip("- ").startswith("Memory-bound")
    assert {one.id for one in found.claims} == set(re.findall(r"\bc\d+", line))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        # a liberty, taken too far
        (SOFTMAX.replace(" (20.0 FLOP/byte)", "") + " [c1]", Reason.WORDS),
        ("Memory-bound: softmax in FP32 does 0.625 FLOP per byte [c1]", Reason.WORDS),
        ("Unrolling helps. [c5]", Reason.WORDS),
        ("Bank conflicts cost time. [c4]", Reason.WORDS),
        ("A spill lies in device memory, and spills make a kernel slow. [c2]", Reason.WORDS),
        ("A spill lies in device memory; Unrolling helps, so long as registers are left. [c2,c5]", Reason.WORDS),
        ("The BF16 tensor throughput of the H100 SXM is 989.4 TFLOPS. [c8]", Reason.WORDS),
        ("The dense BF16 tensor throughput of the H100 SXM is 1978.9 TFLOPS. [c9]", Reason.WORDS),
        ("The dense BF16 tensor throughput of the H100 SXM is 1978.9 TFLOPS. [c8,c9]", Reason.WORDS),
        ("The HBM bandwidth is 2000 GB/s on the H100 SXM and 3.35 TB/s on the H100 PCIe. [c6,c7]", Reason.WORDS),
        ("The HBM bandwidth of the H100 SXM and the H100 PCIe is 3.35 TB/s. [c6,c7]", Reason.WORDS),
        ("The HBM bandwidth is 3.35 TB/s on the H100 SXM. [c6,c7]", Reason.WORDS),
        ("The HBM bandwidth is 3.35 TB/s on the H100 SXM and the H100 PCIe. [c6,c7]", Reason.WORDS),
        ("The H100 SXM has an HBM bandwidth of 2000 GB/s and the H100 PCIe of 3.35 TB/s. [c6,c7]", Reason.WORDS),
        ("The H100 SXM has an HBM bandwidth of 3.35 TB/s while the H100 SXM has 2000 GB/s. [c6,c7]", Reason.WORDS),
        ("The H100 SXM has 989.4 TFLOPS of BF16 tensor throughput (sparse 2:4). [c8,c9]", Reason.WORDS),
        ("The L2 capacity of the H100 SXM and the H200 SXM is 50 MB. [c10,c11]", Reason.PRODUCT),
        ("The A100 SXM 80 GB has an FP8 tensor throughput. [c12]", Reason.NEGATION),
        # an order that changes what a sentence is about
        ("It is cached in L1, because that is in the way. [c3]", Reason.LEANS),
        ("Does not pay where the kernel runs at the bandwidth of DRAM already. [c15]", Reason.LEANS),
        # form
        (SOFTMAX, Reason.UNNAMED),
        ("[c1]", Reason.UNNAMED),
        (f"{SOFTMAX} [c1, and more]", Reason.UNNAMED),
        (f"{SOFTMAX} [1]", Reason.UNNAMED),
        (f"{SOFTMAX} [c1] [c99]", Reason.UNKNOWN),
        (f"{SOFTMAX} [c1,c2]", Reason.SECTIONS),
        (f"# {SOFTMAX} [c1]", Reason.WORDS),
        (f"**{SOFTMAX}** [c1]", Reason.WORDS),
        ("x" * 5000 + " [c1]", Reason.LONG),
        ("H100 SXM HBM bandwidth: 3.35 TB/s? [c6]", Reason.WORDS),
        ("H100 SXM HBM bandwidth: 3.35 TB/s... [c6]", Reason.WORDS),
        ("H100 SXM HBM bandwidth: 3.35 Tb/s [c6]", Reason.WORDS),
        ("H100 SXM HBM bandwidth: .35 TB/s [c6]", Reason.NUMBER),
        ("h100 sxm HBM bandwidth: 3.35 TB/s [c6]", Reason.WORDS),
    ],
)
def test_what_they_do_not_say_is_left_out(line: str, reason: Reason) -> None:
    found = check(line)
    assert isinstance(found, Refused)
    assert found.reason is reason
    unread = reason in (Reason.LONG, Reason.UNNAMED)
    assert found.headline == (not unread and line.endswith(("[c1]", "[c1,c2]", "[c1] [c99]")))


def test_a_sentence_that_points_back_follows_what_it_points_at() -> None:
    spill, cached = "A spill lies in device memory. [c2]", "It is cached in L1, because that is in the way. [c3]"
    assert isinstance(check(spill, cached), Kept)
    assert check(spill, "H100 SXM L2 capacity: 50 MB [c10]", cached) == Refused(Reason.LEANS, headline=False)
    both = (
        "A spill lies in device memory, so spills make a kernel slow; it is cached in L1, because that is in the way."
    )
    assert isinstance(check(f"{both} [c2,c3]"), Kept)


def test_the_thing_is_one_of_the_same_page() -> None:
    """`The error grows` behind a sentence of another page would be an error of what that one is about."""
    placed = [
        ("a.md", "FP8 sums have few bits."),
        ("b.md", "A tree has short sums."),
        ("a.md", "The error grows with K."),
    ]
    claims = [
        Numbered(f"c{n}", Claim(text, STATEMENT, (Citation("w", page, n, n, "", "", text),)), "Why", text)
        for n, (page, text) in enumerate(placed, start=1)
    ]
    for said_before, passes in (("c1", True), ("c2", False), ("", True)):
        checked = SentenceCheck(claims, vocabulary())
        if said_before:
            assert isinstance(checked.check(f"{placed[int(said_before[1]) - 1][1]} [{said_before}]"), Kept)
        assert isinstance(checked.check("The error grows with K. [c3]"), Kept) == passes


def test_statements_of_a_page_keep_their_order() -> None:
    assert check(
        "Unrolling helps, so long as registers are left. [c5]", "A spill lies in device memory. [c2]"
    ) == Refused(Reason.ORDER, headline=False)


def test_nothing_is_said_twice() -> None:
    for first, second in (
        ("H100 SXM L2 capacity: 50 MB [c10]", "The H100 SXM has an L2 capacity of 50 MB. [c10]"),
        ("H100 SXM L2 capacity: 50 MB [c10]", "The L2 capacity of H100 SXM and H100 PCIe is 50 MB. [c10,c11]"),
        ("A spill lies in device memory. [c2]", "A spill lies in device memory. [c2]"),
    ):
        assert check(first, second) == Refused(Reason.REPEATED, headline=False)


# --- lies -------------------------------------------------------------------------------------------------------------

FACTS = [Fact(one.id, one.section, one.said) for one in numbered()]


@pytest.mark.parametrize("seed", range(4))
def test_no_lie_of_any_kind_passes(seed: int) -> None:
    made = lies(FACTS, random.Random(seed))
    told = [next(made) for _ in range(6 * len(LIES))]
    assert {lie.how for lie in told} == set(LIES)
    through = [lie for lie in told if isinstance(check(lie.line), Kept)]
    assert not through


_EDITS = st.sampled_from(["drop", "double", "swap", "insert", "replace"])


@given(st.data())
def test_a_sentence_with_a_word_changed_does_not_pass(data: st.DataObject) -> None:
    """Any edit of one or two words by words of the claims themselves."""
    fact = data.draw(st.sampled_from(FACTS))
    words = fact.text.rstrip(".").split(" ")
    at = data.draw(st.integers(0, len(words) - 2))
    other = data.draw(st.sampled_from(sorted({word for one in FACTS for word in one.text.split(" ")})))
    match data.draw(_EDITS):
        case "drop":
            changed = [*words[:at], *words[at + 1 :]]
        case "double":
            changed = [*words[: at + 1], *words[at:]]
        case "swap":
            changed = [*words[:at], words[at + 1], words[at], *words[at + 2 :]]
        case "insert":
            changed = [*words[:at], other, *words[at:]]
        case _:
            changed = [*words[:at], other, *words[at + 1 :]]
    text = " ".join(changed)
    if text.lower() != " ".join(words).lower():
        assert isinstance(check(f"{text} [{fact.id}]"), Refused)


@given(st.text(max_size=200), st.sampled_from(["c1", "c6", "c6,c7", "c99", ""]))
def test_any_text_is_checked(text: str, ids: str) -> None:
    found = check(f"{text} [{ids}]".replace("\n", " "))
    assert isinstance(found, Refused)


# --- a whole answer ---------------------------------------------------------------------------------------------------


def wording(*lines: str) -> Wording:
    made = Wording(numbered(), vocabulary())
    text = "".join(f"{line}\n" for line in lines)
    for at in range(0, len(text), 13):
        list(made.feed(text[at : at + 13]))
    list(made.finish())
    return made


def test_the_answer_stands_while_half_of_it_passes() -> None:
    good = [HONEST[0], "H100 SXM L2 capacity: 50 MB [c10]"]
    made = wording(*good, "It is the best. [c10]", "It never fails. [c10]")
    assert (len(made.kept), made.refused, made.why_withdrawn()) == (2, 2, "")
    made = wording(*good, *["It is the best. [c10]"] * 3)
    assert made.why_withdrawn() == "3 of its 5 sentences did not pass the check"


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ((), "it wrote no sentence"),
        (("", "  "), "it wrote no sentence"),
        (("Hello.",), "none of its sentences passed the check"),
        (
            (SOFTMAX.replace("below", "above") + " [c1]", "H100 SXM L2 capacity: 50 MB [c10]"),
            "the sentence with the direct answer did not pass the check: its words are not those of its claims",
        ),
        (("x" * 20_000,), "it wrote a line without an end"),
        ((HONEST[0], *["x"] * MOST_LINES), f"it wrote more than {MOST_LINES} lines"),
    ],
)
def test_where_it_does_not_the_reason_is_told(lines: tuple[str, ...], why: str) -> None:
    assert wording(*lines).why_withdrawn() == why


def test_the_direct_answer_comes_first() -> None:
    made = Wording(numbered(), vocabulary())
    lines = ["H100 SXM L2 capacity: 50 MB [c10]", HONEST[0], "H100 SXM HBM bandwidth: 3.35 TB/s [c6]"]
    told = list(made.feed("\n".join([*lines, ""])))
    assert [(one.claims[0].id, one.added) for one in told] == [("c1", True), ("c10", False), ("c6", False)]
    assert [one.claims[0].id for one in made.kept] == ["c10", "c6"]
    assert (made.left_out, made.refused) == ({Reason.REPEATED: 1}, 0)


def test_values_of_the_direct_answer_are_all_said() -> None:
    """One of two would be half an answer; a claim of prose may be left out."""
    given = [("c1", "", 5), ("c2", "", 6), ("c3", "", 1), ("c4", "Facts", 9)]
    claims = [Numbered(id, one.claim, section, one.said) for id, section, at in given for one in [numbered()[at]]]
    for lines, told in (
        (["H100 SXM HBM bandwidth: 3.35 TB/s [c1]", "H100 SXM L2 capacity: 50 MB [c4]"], ["c1", "c2", "c4"]),
        (["H100 SXM HBM bandwidth: 3.35 TB/s [c1]"], ["c1", "c2"]),
        (["H100 PCIe HBM bandwidth: 2000 GB/s [c2]"], ["c1", "c2"]),
        (["H100 SXM L2 capacity: 50 MB [c4]"], ["c1", "c2", "c4"]),
    ):
        made = Wording(claims, vocabulary())
        kept = [*made.feed("".join(f"{line}\n" for line in lines)), *made.finish(), *made.rest_of_direct()]
        assert [one.claims[0].id for one in kept] == told
