"""A follow-up takes what it leaves open, and nothing that it says itself."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.forms import Form
from kbs.questions.inherit import inherit
from kbs.questions.question import Question, understand

SOFTMAX = "why is my fp16 softmax memory-bound on H100 SXM"


def read(text: str) -> Question:
    return understand(text, vocabulary())


@pytest.mark.parametrize(
    ("text", "slots", "taken"),
    [
        (
            "and on H200?",
            {"products": ("h200-sxm",), "operation": "softmax", "dtype": "fp16", "bottlenecks": ("memory-bound",)},
            ["operation softmax", "dtype fp16", "bottleneck memory-bound"],
        ),
        (
            "what about layernorm?",
            {"products": ("h100-sxm",), "operation": "layernorm", "dtype": "fp16"},
            ["GPU h100-sxm", "dtype fp16", "bottleneck memory-bound"],
        ),
        (
            "and in bf16",
            {"products": ("h100-sxm",), "operation": "softmax", "dtype": "bf16"},
            ["GPU h100-sxm", "operation softmax", "bottleneck memory-bound"],
        ),
        ("and on a B999?", {"products": (), "unknown_products": ("B999",), "operation": "softmax"}, None),
        ("and on Hopper?", {"products": (), "architectures": ("hopper",), "operation": "softmax"}, None),
        ("and its L2 capacity?", {"metrics": ("l2_capacity",), "bottlenecks": (), "form": Form.TOPIC}, None),
    ],
)
def test_open_slots_are_taken(text: str, slots: dict[str, object], taken: list[str] | None) -> None:
    found, told = inherit(read(text), read(SOFTMAX))
    assert {name: getattr(found, name) for name in slots} == slots
    assert taken is None or told == taken
    assert found.text == text
    assert SOFTMAX in found.sought


def test_sizes_are_taken_for_the_same_operation_alone() -> None:
    before = read("how long does a 4096x8192 softmax take on H200")
    same, told = inherit(read("and on H100 SXM?"), before)
    assert (dict(same.dims), told[-1]) == ({"M": 4096, "N": 8192}, "sizes M=4096, N=8192")
    assert not inherit(read("and a transpose?"), before)[0].dims


def test_a_comparison_goes_on_as_one_between_several_alone() -> None:
    before = read("compare H100 SXM and H100 PCIe memory bandwidth")
    assert before.form is Form.COMPARISON
    assert inherit(read("and in fp16?"), before)[0].form is Form.COMPARISON
    one = inherit(read("what about the H200?"), before)[0]
    assert (one.form, one.products, one.metrics) == (Form.VALUE, ("h200-sxm",), before.metrics)


@pytest.mark.parametrize(
    ("before", "text", "form", "taken"),
    [
        ("L2 capacity of H100 SXM", "and the TDP?", Form.TOPIC, ["GPU h100-sxm"]),
        ("does H100 SXM support FP8", "and T4?", Form.YES_NO, ["dtype fp8"]),
        ("why is softmax slow on T4", "and how do I fix it?", Form.REMEDY, ["GPU t4", "operation softmax"]),
        ("how do I fix bank conflicts", "in Triton?", Form.REMEDY, ["symptom bank-conflicts"]),
        ("H100 SXM vs T4 bandwidth", "and H200?", Form.VALUE, ["metric hbm_bandwidth"]),
        ("how do I use tensor cores", "on Hopper", Form.HOW_TO, ["technique tensor-cores"]),
        ("dense BF16 throughput of T4", "on H200", Form.TOPIC, ["dtype bf16", "metric bf16_tensor_throughput",
                                                                 "qualifier dense"]),
    ],
)  # fmt: skip
def test_the_form_is_that_of_the_question_before_where_no_word_asks(
    before: str, text: str, form: Form, taken: list[str]
) -> None:
    found, told = inherit(read(text), read(before))
    assert (found.form, told) == (form, taken)
    assert found.sought == f"{text} {before}"


_NAMES = ("softmax", "layernorm", "matmul", "H100 SXM", "A100", "H200", "fp16", "bf16", "L2", "HBM bandwidth", "Hopper")
_OTHERS = ("slow", "why", "memory-bound", "bank conflict", "4096x4096", "how fast", "compare", "dense", "and", "Triton")
_WORDS = st.sampled_from(_NAMES + _OTHERS)
_TEXTS = st.lists(_WORDS, max_size=6).map(" ".join)
_OWN = ("beside", "named", "form", "spans")
"""`named` goes with the products; the form is that of the question before where no word asks for another."""


@given(_TEXTS, _TEXTS)
def test_what_a_follow_up_says_itself_stays(text: str, before: str) -> None:
    question, earlier = read(text), read(before)
    found, told = inherit(question, earlier)
    for field in dataclasses.fields(Question):
        own, now = getattr(question, field.name), getattr(found, field.name)
        if field.name == "dims":
            assert own.items() <= now.items()
        elif own and field.name not in _OWN:
            assert now == own
        elif field.name not in _OWN:
            assert now in (own, getattr(earlier, field.name))
    assert {p for group in found.named for p in group} == set(found.products)
    changed = [f.name for f in dataclasses.fields(Question) if getattr(question, f.name) != getattr(found, f.name)]
    assert bool(told) == bool(set(changed) - set(_OWN))
