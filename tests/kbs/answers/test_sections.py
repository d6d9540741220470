"""Answers by sections: which fit a question, what is said of them, and from which score on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.answers.compose import compose
from kbs.answers.knowledge import NOTE, Knowledge
from kbs.answers.model import Answer, Claim, ClaimKind
from kbs.answers.sections import (
    HIGH,
    LONGEST,
    MIDDLE,
    MISSING,
    NAMED,
    ROWS,
    WORDLESS,
    _missing,
    answer_of,
    by_heading,
    certainty,
    claims_of,
    fitting,
    is_note,
    of_others,
    plainly,
)
from kbs.evidence.citation import Citation
from kbs.evidence.passage import Passage, Section
from kbs.index.search import SearchResult
from kbs.index.sections import SECTION_WORDS, SectionHit, SectionResult
from kbs.index.tokens import query_words
from tests.kbs.answers.small_wiki import read, texts
from wiki.library import Wikis

SHORT_ROWS = "Why does a softmax of short rows wait?"
SPLIT = "How is the L2 of the H100 SXM split?"


def section(knowledge: Knowledge, page: str, heading: str) -> Section:
    return next(one for one in knowledge.store.sections(page) if one.heading == heading)


def hit(of: Section, score: float = 0.6, dense: float = 0.6, words: float = 0.0) -> SectionHit:
    return SectionHit(of, score, dense, words, 0.0, dense, of.passages[0])


def waits(knowledge: Knowledge) -> Section:
    return section(knowledge, "kernel/softmax", SHORT_ROWS)


def split(knowledge: Knowledge) -> Section:
    return section(knowledge, "hardware/h100-sxm", SPLIT)


# --- which fit --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "text", "others"),
    [
        ("L2 of H100 SXM", "The L2 of the H100 PCIe is split.", True),
        ("L2 of H100 SXM", "The L2 of the H100 is split.", False),  # its family
        ("L2 of H100 SXM", "On CC 9.0 the L2 is split.", False),  # its capability
        ("L2 of T4", "On CC 9.0 the L2 is split.", True),
        ("L2 of H100 SXM", "The H100 SXM and the T4 have one.", False),
        ("L2 of H100 SXM", "The L2 is split.", False),
        ("L2 of B999", "The L2 of the T4 is whole.", True),
        ("L2", "The L2 of the T4 is whole.", False),  # a question that names no GPU is about all
    ],
)
def test_what_is_said_of_other_gpus(question: str, text: str, others: bool, knowledge: Knowledge) -> None:
    assert of_others(text, read(question), knowledge) is others


@pytest.mark.parametrize(
    ("question", "page", "heading", "fits"),
    [
        ("how is the L2 split on H100 SXM", "hardware/h100-sxm", SPLIT, True),
        ("how is the L2 split on H100 PCIe", "hardware/h100-sxm", SPLIT, False),
        ("how is the L2 split on Hopper", "hardware/h100-sxm", SPLIT, True),
        ("how is the L2 split on Turing", "hardware/h100-sxm", SPLIT, False),
        ("how is the L2 split", "hardware/h100-sxm", SPLIT, False),  # a page of one GPU says nothing of all
        ("what is the H100 SXM", "hardware/h100-sxm", "H100 SXM", False),  # it has no asks
        ("specs of the H100 SXM", "hardware/h100-sxm", "Specifications", False),  # rows alone
        ("why does a softmax wait", "kernel/softmax", SHORT_ROWS, True),
        ("why does a softmax wait on T4", "kernel/softmax", SHORT_ROWS, True),
        ("why does a layernorm wait", "kernel/softmax", SHORT_ROWS, False),
        ("why does a kernel wait", "kernel/softmax", SHORT_ROWS, True),
        ("what did others measure of softmax", "kernel/softmax", "Measured", False),
        ("how does online softmax work for layernorm", "technique/online-softmax", "Online softmax", True),
    ],
)
def test_which_sections_fit(question: str, page: str, heading: str, fits: bool, knowledge: Knowledge) -> None:
    found = fitting([hit(section(knowledge, page, heading))], read(question), knowledge, {})
    assert [one.section.heading for one in found] == ([heading] if fits else [])


@pytest.mark.parametrize(
    ("question", "more"),
    [
        ("why does it wait", 0),
        ("why does my softmax wait", 1),
        ("why is my softmax memory-bound", 2),
        ("why is my matmul memory-bound", None),
        ("why do bank conflicts make my kernel memory-bound", 1),
    ],
)
def test_each_name_that_a_page_is_about_counts(question: str, more: int | None, knowledge: Knowledge) -> None:
    found = fitting([hit(waits(knowledge), 0.6)], read(question), knowledge, {})
    assert [one.score for one in found] == ([] if more is None else [pytest.approx(0.6 + more * NAMED)])


def test_a_section_whose_rows_are_looked_up_counts_less(knowledge: Knowledge) -> None:
    banks = section(knowledge, "profiling/banks", "Bank conflicts in a profile")
    [found] = fitting([hit(banks, 0.6)], read("why do they conflict"), knowledge, {})
    assert found.score == pytest.approx(0.6 - ROWS)


def test_the_best_comes_first_whatever_the_search_said(knowledge: Knowledge) -> None:
    plain = section(knowledge, "technique/kernel-fusion", "Kernel fusion")
    found = fitting([hit(plain, 0.62), hit(waits(knowledge), 0.6)], read("my softmax waits"), knowledge, {})
    assert [one.section.heading for one in found] == [SHORT_ROWS, "Kernel fusion"]
    assert [one.score for one in found] == [pytest.approx(0.65), pytest.approx(0.62)]


@pytest.mark.parametrize("words", [0.0, 0.2, 0.5, 1.0])
def test_without_vectors_the_words_alone_count(words: float, knowledge: Knowledge) -> None:
    plain = section(knowledge, "technique/kernel-fusion", "Kernel fusion")
    asked = read("why does it wait")
    [wordless] = fitting([hit(plain, SECTION_WORDS * words, 0.0, words)], asked, knowledge, {})
    assert wordless.score == pytest.approx(WORDLESS + words)
    assert (wordless.score >= HIGH) is (words >= 0.5), "half of all there could be answers"
    beside = [hit(plain, SECTION_WORDS * words, 0.0, words), hit(waits(knowledge), 0.1, 0.1)]  # one has a vector
    scores = {one.section.heading: one.score for one in fitting(beside, asked, knowledge, {})}
    assert scores == {"Kernel fusion": pytest.approx(SECTION_WORDS * words), SHORT_ROWS: pytest.approx(0.1)}


@pytest.mark.parametrize(
    ("question", "share"),
    [
        ("near partition of the L2 on H100 SXM", 0.0),  # it has all of them
        ("partitioned L2 on H100 SXM", 0.0),  # another form of a word that it has
        ("near atomics on H100 SXM", 0.5),
        ("atomics of tensors on H100 SXM", 1.0),
        ("what is the H100 SXM", 0.0),  # nothing is asked beside the name
    ],
)
def test_what_a_section_of_a_gpu_lacks_of_the_question(question: str, share: float, knowledge: Knowledge) -> None:
    asked = read(question)
    weights = dict.fromkeys(asked.left(), 2.0)
    assert _missing(hit(split(knowledge)), asked, knowledge, weights) == pytest.approx(MISSING * share)
    value = bool(asked.metrics)  # then a page that is about something else must have what is asked as well
    assert _missing(hit(waits(knowledge)), asked, knowledge, weights) == (MISSING if value else 0.0), "of no GPU's page"


def test_a_word_that_weighs_more_is_missed_more(knowledge: Knowledge) -> None:
    asked = read("near atomics on H100 SXM")
    assert _missing(hit(split(knowledge)), asked, knowledge, {"near": 1.0, "atomics": 3.0}) == pytest.approx(
        MISSING * 3 / 4
    )
    assert _missing(hit(split(knowledge)), asked, knowledge, {"near": 1.0}) == 0.0
    assert _missing(hit(split(knowledge)), asked, knowledge, {}) == 0.0


@pytest.mark.parametrize(
    ("scores", "sure"),
    [
        ([], 0.0),
        ([0.7], 0.7),
        ([0.7, 0.7], 0.7),
        ([0.7, 0.6], 0.8),
        ([0.7, MIDDLE - 0.2], 1.4 - MIDDLE),  # what is not near does not compete
    ],
)
def test_the_farther_the_next_one_the_more_certain_is_the_first(
    scores: list[float], sure: float, knowledge: Knowledge
) -> None:
    assert certainty([hit(waits(knowledge), score) for score in scores]) == pytest.approx(sure)


def test_a_page_about_another_vendor_answers_for_no_gpu(knowledge: Knowledge) -> None:
    usual, of_amd = waits(knowledge), replace(waits(knowledge), about={"vendor": ("amd",)})
    of_nvidia = replace(waits(knowledge), about={"vendor": ("nvidia",)})

    def fits(one: Section, question: str) -> bool:
        return bool(fitting([hit(one)], read(question), knowledge, {}))

    assert not fits(of_amd, "why does it wait on an H100 SXM")
    assert fits(of_amd, "why does it wait"), "no GPU is named"
    assert fits(of_nvidia, "why does it wait on an H100 SXM")
    assert fits(usual, "why does it wait on an H100 SXM")


def test_tools_of_the_usual_vendor_answer_for_no_other(knowledge: Knowledge) -> None:
    tools = replace(written("Look at sm__throughput in ncu for the share of each pipe."), about={"vendor": ("nvidia",)})
    general = replace(written("Look at the share of each pipe in a profile."), about={"vendor": ("nvidia",)})
    both = replace(written("rocprof-compute is the counterpart of ncu."), about={"vendor": ("nvidia",)})

    def fits(one: Section, question: str) -> bool:
        return bool(fitting([hit(one)], read(question), knowledge, {}))

    asked = "what are the counterparts of ncu for MFMA and VALU"
    assert not fits(tools, asked)
    assert not fits(tools, "why is the pipe of an MI300X busy")
    assert fits(general, asked)
    assert fits(both, asked)
    assert fits(tools, "which pipe is busy")
    assert fits(tools, "which pipe does ncu call busy")


def test_for_a_value_of_a_gpu_only_what_is_said_of_it_counts(knowledge: Knowledge) -> None:
    of_it = written("The price of waiting is high.", "On the H100 SXM it waits 30 cycles.")
    asked = read("what is the price of an H100 SXM")
    assert _missing(hit(of_it), asked, knowledge, {"price": 1.0}) == pytest.approx(MISSING)
    told = written("The price of an H100 SXM is not published.")
    assert _missing(hit(told), asked, knowledge, {"price": 1.0}) == 0.0
    kernel = read("what is the price of a softmax on an H100 SXM")  # of a kernel, which a general sentence may answer
    assert _missing(hit(of_it), kernel, knowledge, {"price": 1.0}) == 0.0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.sampled_from(["near", "partition", "atomics", "tensors", "L2", "why"]), max_size=6),
    st.dictionaries(st.sampled_from(["near", "partition", "atomics", "tensors", "l2"]), st.floats(0.01, 9)),
)
def test_no_more_is_lost_than_all(knowledge: Knowledge, said: list[str], weights: dict[str, float]) -> None:
    lost = _missing(hit(split(knowledge)), read(f"{' '.join(said)} on H100 SXM"), knowledge, weights)
    assert -1e-9 <= lost <= MISSING + 1e-9


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_section_is_said_sentence_by_sentence(knowledge: Knowledge) -> None:
    """Without the one that only says on which page something stands."""
    assert texts(list(claims_of(waits(knowledge)))) == [
        "A softmax of short rows waits because a block has too few bytes under way.",
        "On the T4 the same softmax keeps the memory busy all the time.",
        "Several rows in each block put more bytes under way.",
    ]


def test_what_is_said_of_other_gpus_is_left_out(knowledge: Knowledge) -> None:
    direct, rest = answer_of(waits(knowledge), read("why does my softmax wait on H100 SXM"), knowledge, {})
    assert (texts(direct), rest) == ([FIRST, REST[1]], [])
    assert direct[0].citations[0].quote == f"{direct[0].text}[^a]"
    every, _ = answer_of(waits(knowledge), read("why does my softmax wait"), knowledge, {})
    assert texts(every) == [FIRST, *REST]


def written(*lines: str) -> Section:
    """A section of a page that has just these lines."""
    text = "\n".join(lines)
    cited = Citation("w", "p.md", 1, len(lines), "", "", text)
    return Section("technique/x", "X", 0, ("X",), (), (Passage("1", "technique/x", "X", ("X",), text, text, cited),))


def test_a_sentence_leads_and_no_row(knowledge: Knowledge) -> None:
    table = ("| a | b |", "|---|---|", "| one | two |", "It says so here.", "| three | four |")
    direct, rest = answer_of(written(*table), read("what"), knowledge, {})
    assert (texts(direct), texts(rest)) == (["It says so here."], ["one | two"])


def test_what_has_most_of_the_whole_text_comes_next(knowledge: Knowledge) -> None:
    lines = ("A grid has blocks.", "It is so.", "It was so.", "Tails idle multiprocessors.", "Waves end.")
    question = read("My waves idle multiprocessors. Why does a grid of blocks do that?")
    direct, rest = answer_of(written(*lines), question, knowledge, dict.fromkeys(question.left(everywhere=True), 1.0))
    assert (texts(direct), texts(rest)) == ([lines[0], lines[3], lines[4]], [lines[1], lines[2]])


def test_a_long_section_is_cut(knowledge: Knowledge) -> None:
    direct, rest = answer_of(written(*(f"Line {n} says this." for n in range(40))), read("what"), knowledge, {})
    assert texts([*direct, *rest]) == [f"Line {n} says this." for n in range(LONGEST)]


def test_the_next_section_is_offered_by_its_heading(knowledge: Knowledge) -> None:
    [claim] = by_heading([hit(waits(knowledge))])
    cited = waits(knowledge).citation
    assert claim.text == f"{SHORT_ROWS} (Softmax): kopt show w/kernel/softmax.md:L{cited.line_start}-L{cited.line_end}"
    assert (claim.kind, claim.citations) == (ClaimKind.ABSENCE, (cited,))
    assert by_heading([]) == []


def test_notes_are_known_by_their_confidence() -> None:
    claim = Claim("So.", ClaimKind.STATEMENT)
    assert not is_note([claim])
    assert is_note([claim, replace(claim, note=NOTE)])


# --- the bands --------------------------------------------------------------------------------------------------------

WAIT = "why does my kernel idle"


def composed(knowledge: Knowledge, pages: Wikis, *hits: SectionHit, notes: tuple[SectionHit, ...] = ()) -> Answer:
    """An answer where the search finds these sections."""
    found = Knowledge(
        knowledge.store, knowledge.vocabulary, lambda _: SectionResult(list(hits)), lambda _: SectionResult(list(notes))
    )
    return compose(read(WAIT), found, pages)


def shown(answer: Answer) -> list[tuple[str, list[str]]]:
    return [(one.title, texts(one.claims)) for one in answer.sections]


FIRST = "A softmax of short rows waits because a block has too few bytes under way."
REST = [
    "On the T4 the same softmax keeps the memory busy all the time.",
    "Several rows in each block put more bytes under way.",
]
FUSED = "Kernel fusion puts two kernels into one and saves a launch."


@pytest.mark.parametrize("score", [HIGH, 1.0])
def test_from_a_high_score_on_a_section_answers(score: float, knowledge: Knowledge, pages: Wikis) -> None:
    answer = composed(knowledge, pages, hit(waits(knowledge), score))
    assert shown(answer) == [("", [FIRST, *REST])]
    assert (answer.abstained, answer.reason, answer.dropped) == (False, "", 0)


@pytest.mark.parametrize("score", [MIDDLE, HIGH - 0.001])
def test_from_a_middle_score_on_what_is_near_is_shown_as_that(score: float, knowledge: Knowledge, pages: Wikis) -> None:
    answer = composed(knowledge, pages, hit(waits(knowledge), score))
    assert shown(answer) == [("", ["Not certain that this is what you ask; the nearest sections say:", FIRST, *REST])]
    assert (answer.abstained, answer.reason) == (True, "partial")


@pytest.mark.parametrize("score", [0.0, MIDDLE - 0.001])
def test_below_it_nothing_is_near(score: float, knowledge: Knowledge, pages: Wikis) -> None:
    answer = composed(knowledge, pages, hit(waits(knowledge), score))
    assert answer.abstained
    assert answer.reason in ("not_in_wiki", "not_understood")
    assert FIRST not in [claim.text for claim in answer.claims]


def test_a_refusal_names_no_filler_and_no_number(knowledge: Knowledge, pages: Wikis) -> None:
    text = "I did not get it, wondering whether the frobnicator of 0x00000000 differs from 146kb, please clarify"
    found = SearchResult(terms=query_words(text, knowledge.vocabulary))
    searcher = lambda _: SectionResult(passages=found)  # noqa: E731
    answer = compose(read(text), Knowledge(knowledge.store, knowledge.vocabulary, searcher), pages)
    assert answer.abstained
    assert "frobnicator" in answer.direct
    assert not {"wondering", "0x00000000", "146kb", "please", "differs"} & set(answer.direct.replace(",", " ").split())
    found.terms = query_words("why is my javascript slow", knowledge.vocabulary)
    alone = compose(
        read("why is my javascript slow"), Knowledge(knowledge.store, knowledge.vocabulary, searcher), pages
    )
    assert alone.reason == "not_understood"
    assert "javascript" in alone.direct, "an ordinary word is named where no other is left"


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (0.96, [("", [FIRST, FUSED, REST[0]]), (SHORT_ROWS, REST[1:])]),
        (0.94, [("", [FIRST, *REST]), ("Kernel fusion", [FUSED])]),
        (0.86, [("", [FIRST, *REST]), ("Kernel fusion", [FUSED])]),
        (0.84, [("", [FIRST, *REST])]),
    ],
)
def test_a_second_section_stands_in_the_lead_below_or_nowhere(
    second: float, expected: list[tuple[str, list[str]]], knowledge: Knowledge, pages: Wikis
) -> None:
    fusion = section(knowledge, "technique/kernel-fusion", "Kernel fusion")
    assert shown(composed(knowledge, pages, hit(waits(knowledge), 1.0), hit(fusion, second))) == expected


def test_three_are_shown_and_the_next_is_offered_by_its_heading(knowledge: Knowledge, pages: Wikis) -> None:
    fusion = section(knowledge, "technique/kernel-fusion", "Kernel fusion")
    online = section(knowledge, "technique/online-softmax", "Online softmax")
    banks = section(knowledge, "technique/bank-conflict-avoidance", "Bank conflict avoidance")
    near = [hit(waits(knowledge), 0.7), hit(fusion, 0.65), hit(online, 0.6), hit(banks, 0.55)]
    answer = composed(knowledge, pages, *near)
    first = [claim.subject for claim in answer.sections[0].claims[1:]]
    assert first == ["kernel/softmax", "technique/kernel-fusion", "technique/online-softmax"]
    assert answer.sections[-1].title == "Also near"
    [last] = answer.sections[-1].claims
    assert last.text.startswith("Bank conflict avoidance (Bank conflict avoidance): kopt show w/technique/")


def test_notes_answer_where_the_wiki_does_not(knowledge: Knowledge, pages: Wikis) -> None:
    near = (hit(waits(knowledge), MIDDLE),)
    answer = composed(knowledge, pages, notes=near)
    assert shown(answer) == [("", [FIRST, *REST])]
    assert answer.gaps[-1].startswith("Only notes answer this. Not ")
    assert composed(knowledge, pages, notes=(hit(waits(knowledge), MIDDLE - 0.001),)).abstained


def test_the_sentence_that_has_what_is_asked_leads(knowledge: Knowledge) -> None:
    lines = ("A grid has blocks.", "A wave quantization tail wastes multiprocessors.", "It is so.")
    question = read("why does wave quantization waste multiprocessors")
    weights = dict.fromkeys(question.left(), 1.0)
    direct, rest = answer_of(written(*lines), question, knowledge, weights)
    assert (texts(direct), rest) == ([lines[1], lines[0], lines[2]], [])
    direct, _ = answer_of(written(*lines), question, knowledge, {})
    assert texts(direct)[0] == lines[0]


def test_yes_and_no_of_a_heading_go_where_something_else_is_asked(knowledge: Knowledge) -> None:
    [one, other] = claims_of(written("No: caches are shared.", "Nothing is."))
    assert texts(plainly([one, other])) == ["Caches are shared.", "Nothing is."]
    assert plainly([other]) == [other]
