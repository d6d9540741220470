"""Which term a question asks the meaning of, which names a sentence defines, and that the two find each other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbs.answers.solvers.definition import _key, names_of, term_of
from kopt.services.engine import Engine
from kopt.services.knowledge.answers import Asked, ask

PAGE = Path(__file__).parents[4] / "wiki/pages/language/gpu-terms.md"
SENTENCES = [
    line
    for line in PAGE.read_text("utf-8").partition("\n## ")[2].splitlines()[1:]
    if re.match(r"[A-Z]", line) and not line.startswith("[^")
]
TERMS = [name for line in SENTENCES for name in names_of(line)]


@pytest.mark.parametrize(
    ("question", "term"),
    [
        ("what is a warp", "warp"),
        ("What is a warp?", "warp"),
        ("  what   are\nwarps ?! ", "warps"),
        ("What's an SM?", "SM"),
        ("what’s the L2 cache", "L2 cache"),
        ("what does TMA mean?", "TMA"),
        ("What does SASS stand for", "SASS"),
        ("define shared memory.", "shared memory"),
        ("explain latency hiding", "latency hiding"),
        ("what is the meaning of occupancy", "occupancy"),
        ("What is the definition of a wave", "wave"),
        ("what is a lane in CUDA?", "lane"),
        ("what is global memory on an NVIDIA GPU", "global memory"),
        ("what is a streaming multiprocessor in gpu programming", "streaming multiprocessor"),
        ("what exactly is a warp", "warp"),
        ("what does the warp scheduler do?", "warp scheduler"),
        ("what is a grid in Triton", "grid in Triton"),
        ("why is my softmax memory-bound on H100", ""),
        ("how many warps fit on an SM", ""),
        ("is a warp 32 threads", ""),
        ("warp", ""),
        ("what is", ""),
        ("", ""),
    ],
)
def test_the_term_of_a_question(question: str, term: str) -> None:
    assert term_of(question) == term


@pytest.mark.parametrize(
    ("sentence", "names"),
    [
        ("A warp is a group of threads.", ["warp"]),
        ("The L2 cache (L2) is the cache of the whole GPU.", ["L2 cache", "L2", "L2"]),
        ("PTX (Parallel Thread Execution) is a language.", ["PTX"] + ["Parallel Thread Execution"] * 2),
        (
            "A block (cooperative array, CTA) is a group.",
            ["block", "cooperative array, CTA", "cooperative array", "CTA"],
        ),
        ("Warps are groups of threads.", ["Warps"]),
        ("Latency hiding means that others run.", ["Latency hiding"]),
        ("A warp gives its lanes work.", []),
        ("In a warp, a lane is a place.", []),
        ("Warp size: it is 32.", []),
        ("", []),
    ],
)
def test_the_names_that_a_sentence_defines(sentence: str, names: list[str]) -> None:
    assert names_of(sentence) == names


@settings(deadline=500)
@given(st.text(max_size=4000), st.sampled_from(["what is ", "define a ", "what does the ", ""]))
def test_any_text_is_read_in_time(text: str, before: str) -> None:
    assert len(term_of(before + text)) <= 80
    assert all(text.find(name) >= 0 for name in names_of(text))


@pytest.mark.parametrize("text", ["what is " + " " * 100_000, "what is a" + " in" * 50_000, "what is (" * 20_000])
def test_a_long_question_is_read_in_time(text: str) -> None:
    assert term_of(text) in ("", "a", "the")


def test_the_page_defines_a_term_a_line() -> None:
    assert len(SENTENCES) >= 30
    assert [line for line in SENTENCES if not names_of(line)] == []
    keys = [_key(names_of(line)[0]) for line in SENTENCES]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("term", sorted(set(TERMS)))
def test_every_term_of_the_page_is_the_first_line_of_its_answer(engine: Engine, term: str) -> None:
    answer = ask(engine, Asked(f"what is a {term}?")).answer
    assert not answer.abstained
    assert _key(term) in map(_key, names_of(answer.claims[0].text)), answer.claims[0].text


def test_a_definition_stands_once(engine: Engine) -> None:
    answer = ask(engine, Asked("What are warps?")).answer
    texts = [claim.text for claim in answer.claims]
    assert texts[0].startswith("A warp is a group of 32 threads")
    assert texts.count(texts[0]) == 1


@pytest.mark.parametrize(
    ("question", "start"),
    [
        ("what are SFUs", "A special function unit (SFU) is"),
        ("what are LSUs on a GPU", "A load/store unit (LSU) is"),
        ("what is a CUDA kernel", "A kernel is"),
        ("what are GPU threads", "A thread is"),
        ("what is a CUDA core", "A CUDA core is"),
        ("what do registers do", "A register is"),
        ("what is the L2 cache", "The L2 cache (L2) is"),
        ("what is the register file", "The register file is"),
        ("what is TMEM", "Tensor memory (TMEM) is"),
        ("what is a block", "A thread block (block,"),
    ],
)
def test_a_term_is_found_in_other_words(engine: Engine, question: str, start: str) -> None:
    answer = ask(engine, Asked(question)).answer
    assert answer.claims[0].text.startswith(start)


def test_a_term_of_triton_is_not_answered_with_that_of_cuda(engine: Engine) -> None:
    answer = ask(engine, Asked("what is a grid in Triton")).answer
    assert "triton" in answer.claims[0].citations[0].path


def test_what_no_page_defines_is_answered_as_before(engine: Engine) -> None:
    answer = ask(engine, Asked("what is a banana")).answer
    assert answer.abstained
