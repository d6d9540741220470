"""Directives of HINTS.md: read, merged with flags, acknowledged; what is not understood is passed on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.common.errors import UsageError
from loop.planning.hints import Hints, appended, is_preference, merge, of_flag, parse_hints

METHODS = ("split_k", "cuda_graphs", "vectorized_access", "tensor_core", "rewrite")
TEXT = """# Hints

- forbid: split_k, cuda-graphs
* Do not use `tensor core`.
1. prefer vectorized_access
- [ ] no ncu
at most 5 iterations
attempts: 2
time: 30 min
no more than 48 KiB of shared memory
at most 128 registers per thread
precision: fp32
The rows are short.
<!-- forbid: rewrite
attempts: 9 -->
```
iterations: 7
```
forbid: warp_magic
time: 5 parsecs
iterations: 100000
"""


def read() -> Hints:
    return parse_hints(TEXT, METHODS)


def test_every_form_is_understood() -> None:
    assert [one.canonical for one in read().directives] == [
        "forbid: split_k",
        "forbid: cuda_graphs",
        "forbid: tensor_core",
        "prefer: vectorized_access",
        "no ncu",
        "iterations: 5",
        "attempts: 2",
        "time: 1800 s",
        "shared memory: 49152 B",
        "registers: 128",
        "precision: fp32",
    ]


def test_each_directive_names_its_line() -> None:
    assert read().directives[2].acknowledged == "forbid: tensor_core (HINTS.md:L4: “Do not use `tensor core`.”)"


def test_a_preference_is_said_to_sort_and_not_to_be_enforced() -> None:
    [prefer] = [one for one in read().directives if one.kind == "prefer"]
    assert prefer.acknowledged.endswith(": offered first, not enforced")
    assert [is_preference(one.canonical) for one in read().directives] == [one == prefer for one in read().directives]


def test_what_is_not_understood_is_passed_on_with_the_reason() -> None:
    assert [(one.line, one.why) for one in read().passed_on] == [
        (13, ""),
        (19, "warp_magic is no method that a page is about"),
        (20, "parsecs is no unit of time"),
        (21, "iterations goes from 1 to 1,000, in whole numbers"),
    ]
    assert "not enforced" in read().passed_on[0].acknowledged


def test_the_canonical_form_reads_back() -> None:
    found = read()
    again = parse_hints("\n".join(one.canonical for one in found.directives), METHODS)
    assert [(one.kind, one.value) for one in again.directives] == [(one.kind, one.value) for one in found.directives]
    assert not again.passed_on


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("forbid: split_k\n\nplease use split_k", "HINTS.md:L1", "HINTS.md:L3"),
        ("iterations: 3\nat most 4 iterations", "HINTS.md:L1", "HINTS.md:L2"),
        ("precision: fp32\nprecision: bf16", "HINTS.md:L1", "HINTS.md:L2"),
    ],
)
def test_a_contradiction_names_both_lines(text: str, first: str, second: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_hints(text, METHODS)
    assert caught.value.code == "hints_contradict"
    assert first in caught.value.message
    assert second in caught.value.message


def test_a_flag_may_contradict_the_file() -> None:
    flag = of_flag("forbid", "vectorized-access", "--forbid", METHODS)
    with pytest.raises(UsageError, match=r"HINTS\.md:L1.*--forbid"):
        parse_hints("prefer: vectorized_access", METHODS, [flag])


def test_the_same_twice_is_no_contradiction() -> None:
    flag = of_flag("time", "1800 s", "--time", METHODS)
    found = parse_hints("time: 30 min", METHODS, [flag])
    assert [one.source for one in found.directives] == ["HINTS.md:L1"]


def test_a_flag_with_an_unknown_method_is_an_error() -> None:
    with pytest.raises(UsageError) as caught:
        of_flag("forbid", "warp_magic", "--forbid", METHODS)
    assert caught.value.code == "method_unknown"
    assert "--help" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        of_flag("prefer", "split-kk", "--prefer", METHODS)
    assert caught.value.hint.startswith("The nearest methods are split_k")


def test_flags_are_appended_and_nothing_is_overwritten() -> None:
    flags = [of_flag("forbid", "split_k", "--forbid", METHODS), of_flag("iterations", "4", "--iterations", METHODS)]
    text = appended("# Mine\nforbid: split_k", flags, METHODS)
    assert text.startswith("# Mine\nforbid: split_k\n\n")
    assert text.count("split_k") == 1
    assert parse_hints(text, METHODS).values("iterations") == ("4",)
    assert appended(text, flags, METHODS) == text


def test_prose_is_no_directive() -> None:
    prose = "There is no split of the work that helps.\nUse your judgement.\nno idea\nPrefer readable code."
    found = parse_hints(prose, METHODS)
    assert not found.directives
    assert len(found.passed_on) == 4


@given(st.text(max_size=400))
def test_any_text_is_read_and_nothing_is_lost(text: str) -> None:
    try:
        found = parse_hints(text, METHODS)
    except UsageError as error:
        if error.code != "hints_contradict":
            raise
        return
    for one in found.directives:
        assert one.source.startswith("HINTS.md:L")
    assert merge(found.directives) == found.directives


@given(st.sampled_from(("iterations", "attempts", "registers")), st.integers(1, 10))
def test_caps_read_back(kind: str, value: int) -> None:
    found = parse_hints(f"- max {kind}: {value}\n", METHODS)
    assert found.values(kind) == (str(value),)  # type: ignore[arg-type]  # one of the kinds
