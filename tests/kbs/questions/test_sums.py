"""Numbers that only a sum needs, the clause that asks, and words that name nothing."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.forms import Form, asking_clause
from kbs.questions.numbers import premises
from kbs.questions.question import understand
from kbs.questions.spelling import is_talk
from kbs.questions.sums import Repeated, extent, limit_given, repeated

V = vocabulary()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("280 kernels per token with ~20us overhead each", Repeated(280, Decimal(20), "µs")),
        ("1,200 tiny kernel launches and each takes 4.5 µs", Repeated(1200, Decimal("4.5"), "µs")),
        ("32 layers, 1.5 ms per layer", Repeated(32, Decimal("1.5"), "ms")),
        ("my kernel takes 20 us", None),
        ("280 kernels in 3 ms", None),
    ],
)
def test_what_repeats(text: str, found: Repeated | None) -> None:
    assert repeated(text) == found


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("vocab 128256, 81920 tokens in bf16", [128256, 81920]),
        ("a 4096x4096 fp16 matrix", [4096, 4096]),
        ("batch size 8, seq len 4k, hidden 4096", [8, 4096, 4096]),
        ("8 heads, 128k tokens", [8, 131072]),
        ("an 80 GB A100", []),
    ],
)
def test_sizes_of_a_tensor(text: str, sizes: list[int]) -> None:
    assert extent(text) == sizes


@given(st.integers(2, 99_999), st.integers(2, 99_999))
def test_any_shape_is_read(rows: int, columns: int) -> None:
    assert extent(f"how big is a {rows} x {columns} tensor in fp32") == [rows, columns]


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("Required: 167936, Hardware limit: 166912.", 166912),
        ("over the 101376 bytes limit", 101376),
        ("the limit is 48 KB", None),
    ],
)
def test_a_limit_in_a_message(text: str, limit: int | None) -> None:
    assert limit_given(text) == limit


@pytest.mark.parametrize(
    ("sentence", "clause"),
    [
        ("sm_89 is missing from the table - what is the max threads per SM?", "what is the max threads per SM?"),
        ("it spills: how do I stop that on an A100?", "how do I stop that on an A100?"),
        ("the limit is 1536, is it?", "the limit is 1536, is it?"),
        ("why is it slow, and what is the peak?", "why is it slow, and what is the peak?"),
    ],
)
def test_the_clause_that_asks(sentence: str, clause: str) -> None:
    assert asking_clause(sentence) == clause


def test_circumstances_before_the_clause_are_not_left() -> None:
    read = understand("RTX 4090 is missing from the CUDA docs table - what is the max threads per SM?", V)
    assert (read.products, read.metrics, read.form) == (("rtx-4090",), ("max_threads_per_sm",), Form.VALUE)
    assert "docs" not in read.left()


def test_a_difference_of_gpus_asks_for_more_than_a_rate_before_it() -> None:
    read = understand("1,979 sparse bf16 TFLOPS here - what is the difference between H100 SXM and H100 NVL?", V)
    assert read.products == ("h100-sxm", "h100-nvl")
    assert read.metrics == ()


@pytest.mark.parametrize(
    ("word", "talk"),
    [("please", True), ("currently", True), ("latency", False), ("speed", False), ("price", False), ("swizzle", False)],
)
def test_words_that_name_nothing(word: str, talk: bool) -> None:
    assert is_talk(word, V) is talk


@pytest.mark.parametrize(
    ("text", "metric", "number"),
    [
        ("so the maximum threads per block is 1536, correct?", "max_threads_per_block", 1536),
        ("the SM count of an H100 is 144 right?", "sm_count", 144),
    ],
)
def test_a_count_without_its_unit_is_a_premise(text: str, metric: str, number: int) -> None:
    [premise] = premises(text, (metric,), (), V)
    assert (premise.metric, premise.quantity.base) == (metric, number)


@pytest.mark.parametrize("unit", ["TFLOPs", "TFlops", "tflops", "TFLOP/s"])
def test_teraflops_of_a_gpu_are_a_rate(unit: str) -> None:
    [premise] = premises(f"MI300X BF16 is 980.6 {unit}, right?", ("bf16_tensor_throughput",), ("bf16",), V)
    assert premise.quantity.unit.dimension == "floating-point operations per second"


def test_a_limit_that_is_asked_for_is_no_reason() -> None:
    assert understand("what is the shared memory limit per block on A100?", V).form is Form.VALUE
    assert understand("what limits my kernel on A100?", V).form is Form.REASON
