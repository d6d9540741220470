"""Chinese terms and typing errors: read as what was meant, and left alone where nobody can say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.question import understand
from kbs.questions.spelling import corrected, in_english

V = vocabulary()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("H100 的显存带宽是多少？", "H100 memory bandwidth is how much ?"),
        ("为什么我的softmax很慢", "why is my softmax slow"),
        ("共享内存 bank 冲突", "shared memory bank conflict"),
        ("线程束分化（H100）", "warp divergence (H100)"),
        ("带宽利用率 90％", "bandwidth utilization 90%"),
        ("饕餮 softmax", "softmax"),
        ("饕餮", ""),
        ("softmax  of 4096，8192", "softmax  of 4096，8192"),
        ("", ""),
    ],
)
def test_chinese_terms(text: str, read: str) -> None:
    assert in_english(text) == read


def test_a_question_in_chinese_has_the_slots_of_one_in_english() -> None:
    read = understand("H100 SXM 的显存带宽是多少？", V)
    assert (read.products, read.metrics, read.form.value) == (("h100-sxm",), ("hbm_bandwidth",), "value")
    assert read.text == "H100 SXM 的显存带宽是多少？"


@pytest.mark.parametrize(
    ("text", "read", "made"),
    [
        ("sofmax bandwith on H100", "softmax bandwidth on H100", (("sofmax", "softmax"), ("bandwith", "bandwidth"))),
        ("Latecny and latecny", "latency and latency", (("Latecny", "latency"), ("latecny", "latency"))),
        ("ocupancy, ocupancy", "occupancy, occupancy", (("ocupancy", "occupancy"),)),
        ("transpsoe", "transpose", (("transpsoe", "transpose"),)),  # two letters exchanged are one error
        ("tirton", "triton", (("tirton", "triton"),)),
        ("bandwdtt", "bandwidth", (("bandwdtt", "bandwidth"),)),  # two errors of a long word
        ("hoppxx", "hoppxx", ()),  # two errors of a short one
        ("OCUPANCY", "OCUPANCY", ()),  # it may be the name of a constant
        ("ocupancy_x x.ocupancy ocupancy-1 9ocupancy", "ocupancy_x x.ocupancy ocupancy-1 9ocupancy", ()),
        ("softmaxs throughputt", "softmaxs throughputt", ()),  # another form of the word
        ("coalescd", "coalescd", ()),  # as near to "coalesce" as to "coalesced"
        ("the wrap of a thread", "the wrap of a thread", ()),  # ordinary English
        ("slep tma", "slep tma", ()),  # too short to tell
    ],
)
def test_typing_errors(text: str, read: str, made: tuple[tuple[str, str], ...]) -> None:
    assert corrected(text, V) == (read, made)


def test_a_word_of_the_wikis_is_no_typing_error() -> None:
    asked: list[str] = []

    def known(word: str) -> bool:
        asked.append(word)
        return word == "ocupancy"

    assert corrected("Ocupancy of sofmax on H100", V, known) == (
        "Ocupancy of softmax on H100",
        (("sofmax", "softmax"),),
    )
    assert asked == ["ocupancy", "sofmax"]


TARGETS = ("occupancy", "bandwidth", "throughput", "divergence", "transpose", "triton")


@given(st.sampled_from(TARGETS), st.data())
def test_two_letters_exchanged_are_read_as_the_word_or_not_at_all(word: str, data: st.DataObject) -> None:
    place = data.draw(st.integers(1, len(word) - 2))
    typed = word[:place] + word[place + 1] + word[place] + word[place + 2 :]
    read, made = corrected(f"my {typed} (4096)", V)
    assert (read, made) == ((f"my {word} (4096)", ((typed, word),)) if typed != word else (f"my {word} (4096)", ()))


@given(st.text(max_size=60))
def test_what_is_read_has_what_was_corrected(text: str) -> None:
    read, made = corrected(text, V)
    assert all(meant in read and typed in text for typed, meant in made)
    assert (read == text) is not bool(made)
    assert corrected(read, V) == (read, ()), "what was mended needs no mending"


@given(st.text(max_size=60))
def test_what_was_read_has_no_chinese_and_is_read_once(text: str) -> None:
    read = in_english(text)
    assert not any("\u3400" <= letter <= "\u9fff" for letter in read)
    assert in_english(read) == read
