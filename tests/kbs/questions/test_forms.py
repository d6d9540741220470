"""Which form of answer a question wants, and which of its words only say that."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.forms import MEASURED, Form, asking, cues, form_of, wants_account
from kbs.questions.question import understand


def form(text: str, names: int = 0) -> Form:
    return form_of(text, names=names, past=False)


@pytest.mark.parametrize(
    ("wanted", "texts"),
    [
        (Form.VALUE, ["how much L2 does it have", "what is the bandwidth", "list the specs", "maximum registers"]),
        (Form.YES_NO, ["does it help", "so is it good", "it is 3 TB/s, right?", "It runs at 3 TB/s: is it good?"]),
        (Form.YES_NO, ["can I use TMA", "isn't it slow?", "why so slow? is it the memory?"]),
        (Form.DIFFERENCE, ["TMA vs cp.async", "how does TMA differ from cp.async", "Use one rather than two?"]),
        (Form.DEFINITION, ["explain TMA", "what does TMA mean", "how does TMA work", "can you explain TMA"]),
        (Form.REASON, ["why is it slow", "what limits my kernel", "how come it waits", "my kernel is slow"]),
        (Form.REMEDY, ["how do I speed it up", "what could I try", "Optimize my softmax", "is there a way to fix it"]),
        (Form.HOW_TO, ["how to use TMA", "when should I use TMA", "best way to transpose"]),
        (Form.CALCULATION, ["how long does it take", "ridge point", "how many bytes does it move"]),
        (Form.EXPERIENCE, ["did padding help", "what worked on softmax", "have we tried padding"]),
        (Form.TOPIC, ["bank conflicts", "we have tried padding", "I get 10. Bad?", "", "?"]),
    ],
)
def test_forms(wanted: Form, texts: list[str]) -> None:
    assert {text: form(text) for text in texts} == dict.fromkeys(texts, wanted)


def test_two_names_are_compared_but_not_asked_why() -> None:
    assert form("which has more L2, one or the other", 2) is Form.COMPARISON
    assert form("which has more L2, one or the other", 1) is Form.VALUE
    assert form("why is one faster than the other", 2) is Form.REASON
    assert form("bandwidth of one, of the other", 2) is Form.TOPIC


def test_words_of_the_past_count_before_all() -> None:
    assert form_of("why is it slow", names=0, past=True) is Form.EXPERIENCE


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("My kernel is slow. What limits it?", "What limits it?"),
        ("What limits it? It is slow.", "What limits it?"),
        ("Is it the memory? Or what limits it?", "Or what limits it?"),
        ("What limits it? Why?", "What limits it?"),  # one word is no question of its own
        ("It runs at 3.5 TB/s on sm_90. why so slow?", "why so slow?"),
        ("It uses e.g. ten of them. fast?", "It uses e.g. ten of them. fast?"),
        ("There is no mention of it. [...] It should work, correct?", "It should work, correct?"),
        ("It has 64 of them [...] Does it use x[1] Y?", "Does it use x[1] Y?"),
        ("  no question at all. ", "no question at all."),
        ("", ""),
    ],
)
def test_the_sentence_that_asks(text: str, asked: str) -> None:
    assert asking(text) == asked


def test_a_sentence_before_says_what_the_last_one_does_not() -> None:
    assert form("How do I speed it up? Any hints here?") is Form.REMEDY
    assert form("It is slow. How many bytes does it move? Some more words?") is Form.CALCULATION


def test_a_text_of_many_sentences_without_a_form_is_a_topic() -> None:
    """It was read by recursion, a call for each sentence, and broke off at the depth that Python allows."""
    assert form("foo bar? " * 1500) is Form.TOPIC


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("how many bytes does it move", ["how many bytes", "how many"]),
        ("what is the bandwidth", ["what is the", "what is"]),
        ("which techniques reduce spills", ["which", "reduce"]),
        ("optimizing softmax", ["optimizing"]),
        ("is it faster", ["faster"]),
        ("what sort of cache is", []),  # five words, of which some are its subject
        ("bank conflicts", []),
    ],
)
def test_cues(text: str, found: list[str]) -> None:
    assert cues(text) == found


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("what bandwidth do others get", True),
        ("measured bandwidth", True),
        ("what is achievable in practice", True),
        ("can I actually reach it", True),
        ("micro-benchmarked latency", True),
        ("what is the peak bandwidth", False),
        ("measurements of others", False),
    ],
)
def test_words_that_ask_for_what_was_measured(text: str, measured: bool) -> None:
    assert bool(MEASURED.search(text)) is measured


@given(st.text(alphabet="what how is ?.,:whyvs\n10", max_size=80), st.integers(0, 3))
def test_every_text_has_a_form(text: str, names: int) -> None:
    assert asking(text) in text
    assert form(text, names) in Form
    assert form(f"{text.strip()} ", names) is form(text, names), "blanks around it say nothing"
    assert all(cue.lower() in text.lower() for cue in cues(text))


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("The RTX 2070 has a very low FP64 peak, what is the reason?", Form.REASON),
        ("at batch 256 AWQ is slower than FP16. Any insights into this?", Form.REASON),
        ("the kernel takes 3 ms, any idea why?", Form.REASON),
        ("what is the ideal block size?", Form.VALUE),
        ("May I know why the rate is 160 GB/s?", Form.REASON),
        ("Could someone please explain why it waits?", Form.REASON),
        ("Can you tell me if it waits?", Form.YES_NO),
        ("How is this 48GB/s calculated?", Form.REASON),
        ("how is occupancy calculated?", Form.TOPIC),
    ],
)
def test_more_ways_to_ask_for_a_reason(text: str, form: Form) -> None:
    assert form_of(text, names=0, past=False) is form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("My kernel fills a float16 tensor, and when it is ten times larger it stops with an error", Form.REASON),
        ("the profiler shows two blocks an SM, the limit is registers, but by my sum three would fit", Form.REASON),
        ("A100 memory bandwidth and the limit of registers", Form.VALUE),
        ("max threads of a block", Form.VALUE),
        ("I run this kernel with 256 threads and it takes 3 ms. What is the limit of registers?", Form.VALUE),
        ("我的内核在 A100 上用 256 线程 很 慢 a b c d e f g h i j k l 怎么办", Form.TOPIC),
    ],
)  # fmt: skip
def test_who_tells_of_a_problem_at_length_and_asks_nothing_wants_a_reason(text: str, form: Form) -> None:
    assert form_of(text, names=1, past=False) is form


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("did swizzling help on softmax", True),
        ("what did we try, and did it work out", True),
        ("Did loop unrolling ever improve the reduction?", True),
        ("How did vectorized loads work for layernorm", True),
        ("With flash attention the speed did not improve for short prompts", False),
        ("I expected an error, but when I did it, it worked. Please help me to confirm", False),
    ],
)
def test_only_what_asks_is_a_question_about_past_experiments(text: str, past: bool) -> None:
    assert (form_of(text, names=0, past=False) is Form.EXPERIENCE) is past


@pytest.mark.parametrize(
    ("text", "wants"),
    [
        ("I want to know how the 25GBps was obtained. Is it a test?", True),
        ("It has 25. Why not 32?", False),
        ("Is the bandwidth 25 GB/s?", False),
        ("How is occupancy computed?", False),
    ],
)
def test_who_wants_an_account_of_a_number_tells_it(text: str, wants: bool) -> None:
    assert wants_account(text) is wants


def test_experience_is_an_ordinary_word() -> None:
    text = "Does anyone have an estimate or experience with the overhead of it?"
    assert understand(text, vocabulary()).form is not Form.EXPERIENCE
    assert understand("what is in the experience log of softmax", vocabulary()).form is Form.EXPERIENCE
