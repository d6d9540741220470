"""Figures from what a stranger's benchmark printed: what is read, what is not guessed, and that nothing hangs."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.external import figures
from evaluator.external.command import KEPT, Printed
from evaluator.external.figure_text import UNITS, WORDS
from evaluator.external.figures import MAX_FIGURES, Figure, read_figures, read_patterns, readable
from kbs.common.errors import ExitCode, UsageError


def printed(text: str) -> Printed:
    """All of what a stream said."""
    data = text.encode("utf-8", "surrogatepass")
    return Printed.of(data[-KEPT - 1 :], len(data))


def read(out: str, err: str = "", patterns: dict[str, str] | None = None) -> list[Figure]:
    """The figures alone."""
    return read_figures(printed(out), printed(err), patterns or {})[0]


def brief(found: list[Figure]) -> list[tuple[str, float, str]]:
    """(name, value, unit) of each."""
    return [(figure.name, figure.value, figure.unit) for figure in found]


# --- the usual words --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("latency: 136.3 us", [("latency", 136.3, "us")]),
        ("Latency = 136.3µs", [("latency", 136.3, "us")]),
        ("latency 136.3 μs", [("latency", 136.3, "us")]),
        ("elapsed 2 seconds", [("elapsed", 2, "s")]),
        ("best: 12ns", [("best", 12, "ns")]),
        ("median: 0.136 ms", [("median", 0.136, "ms")]),
        ("time: 1.5e-3 s", [("time", 0.0015, "s")]),
        ("time: .5 ms/iter", [("time", 0.5, "ms")]),
        ("p50: 1.25 ms, p99: 2.5 ms", [("p50", 1.25, "ms"), ("p99", 2.5, "ms")]),
        ("min: 1 ms, mean: 2 ms, max: 3 ms", [("min", 1, "ms"), ("mean", 2, "ms"), ("max", 3, "ms")]),
        ("Time (mean ± σ):      10.0 ms ±   0.3 ms", [("time", 10, "ms"), ("mean", 10, "ms")]),
        ("mean 136.3 ± 0.5 us", [("mean", 136.3, "us")]),
        ("median_us: 136.3", [("median", 136.3, "us")]),
        ("{'mean_ms': 0.25}", [("mean", 0.25, "ms")]),
        ("Mean (ms): 0.25", [("mean", 0.25, "ms")]),
        ("latency [us] = 3", [("latency", 3, "us")]),
        ("kernel_time: 5 us", [("time", 5, "us")]),
        ("time: 1,234.5 us", [("time", 1234.5, "us")]),
        ("time: -3 ms", [("time", -3, "ms")]),
        ("\x1b[1mtime:\x1b[0m \x1b[32m3 ms\x1b[0m", [("time", 3, "ms")]),
        ("speedup: 1.70x", [("speedup", 1.7, "x")]),
        ("Speed-up of 2 ×", [("speedup", 2, "x")]),
        ("1.7x faster than eager", [("speedup", 1.7, "x")]),
        ("3.35 TB/s", [("bandwidth", 3.35, "TB/s")]),
        ("copy: 2900.1 GB/s of 3350 GB/s", [("bandwidth", 2900.1, "GB/s"), ("bandwidth", 3350, "GB/s")]),
        ("reached 512.5 TFLOPS", [("flops", 512.5, "TFLOP/s")]),
        ("reached 512.5 TFLOP/s, 12 gflops", [("flops", 512.5, "TFLOP/s"), ("flops", 12, "GFLOP/s")]),
        ("time 3 ms, 900 GB/s, 2x speedup", [("time", 3, "ms"), ("speedup", 2, "x"), ("bandwidth", 900, "GB/s")]),
    ],
)
def test_usual_lines(line: str, expected: list[tuple[str, float, str]]) -> None:
    found = read(line + "\n")
    assert sorted(brief(found)) == sorted(expected)
    assert all(figure.source == "default" for figure in found)


@pytest.mark.parametrize(
    "line",
    [
        "latency: 136.3",  # no unit
        "latency: 1,234 us",  # one and a quarter, or twelve hundred
        "latency: 3,5 ms",
        "time for 100 iterations: 5 ms",  # the first number is not the time's
        "time: v2 3 ms",
        "timeout: 60 s",
        "sometimes 5 ms",
        "time: 12:03:04 s",
        "version 1.2.3 ms time",
        "min, median, max: 1 ms, 2 ms, 3 ms",
        "min/median/max: 1.0/2.0/3.0 ms",
        "time: nan ms",
        "time: inf ms",
        "time: 1e999 ms",
        "speed: 3 m/s time",
        "time: 3 msa",
        "speedup at 4096 x 4096",
        "speedup: 15%",
        "64 Gb/s",
        "12 TFLOP",
        "30 it/s",
        "",
    ],
)
def test_nothing_is_guessed(line: str) -> None:
    found, notes = read_figures(printed(line), printed(""), {})
    assert found == []
    assert any("no figure was found" in note for note in notes)


def test_both_streams_are_read_and_told_apart() -> None:
    found = read("hello\r\n\ntime: 1 ms\r\n", "warm\nmean: 2 us\n")
    assert [(f.stream, f.line, f.text) for f in found] == [("stdout", 3, "time: 1 ms"), ("stderr", 2, "mean: 2 us")]


def test_progress_on_one_line() -> None:
    assert brief(read("time: 1 ms\rtime: 2 ms\r")) == [("time", 1, "ms"), ("time", 2, "ms")]


def test_every_word_and_every_unit_of_time() -> None:
    for word in (*WORDS, "p20"):
        for unit in ("ns", "us", "ms", "s"):
            assert brief(read(f"{word.upper()} 1.5 {unit}")) == [(word, 1.5, unit)]


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_json_at_any_depth() -> None:
    document = {"kernel": {"median_us": 136.3, "runs": [1, 2.5]}, "ok": True, "name": "9 ms", "none": None}
    for text in (json.dumps(document), json.dumps(document, indent=2) + "\n", "\n" + json.dumps(document)):
        found = read(text)
        assert brief(found) == [("kernel.median_us", 136.3, ""), ("kernel.runs.0", 1, ""), ("kernel.runs.1", 2.5, "")]
        assert {figure.source for figure in found} == {"json"}


def test_json_over_many_lines_has_their_numbers() -> None:
    found = read('{\n "a": 1,\n "b": {\n  "c": 2, "d": 3}\n}\n')
    assert [(f.name, f.line, f.text) for f in found] == [
        ("a", 2, ' "a": 1,'),
        ("b.c", 4, '  "c": 2, "d": 3}'),
        ("b.d", 4, '  "c": 2, "d": 3}'),
    ]


def test_every_number_has_its_place_in_its_line() -> None:
    found = read('{"k": "' + "x" * 500 + '",\n "a": [1, 2]}')
    assert [(f.name, f.line, f.text) for f in found] == [("a.0", 2, ' "a": [1, 2]}'), ("a.1", 2, ' "a": [1, 2]}')]
    (found,) = read("x" * 500 + " time: 5 ms " + "y" * 500)
    assert "time: 5 ms" in found.text


def test_the_last_line_that_is_an_object() -> None:
    text = 'time: 5 ms\n{"a": 1}\n{"b": 2}\n[3]\n{"c": 4\n'
    assert [(f.name, f.value, f.line) for f in read(text)] == [("b", 2, 3)]


def test_a_list_is_read_where_it_is_everything() -> None:
    assert brief(read('[{"ms": 1}, {"ms": 2}]')) == [("0.ms", 1, ""), ("1.ms", 2, "")]


@pytest.mark.parametrize("text", ["0.136\n", '"0.136"', "true", "null"])
def test_a_bare_value_has_no_name(text: str) -> None:
    assert read(text) == []


def test_a_name_twice_gives_both() -> None:
    assert brief(read('{"a": 1, "a": 2}')) == [("a", 1, ""), ("a", 2, "")]


def test_what_is_not_finite_is_left_out_and_told() -> None:
    found, notes = read_figures(
        printed('{"a": NaN, "b": -Infinity, "c": 1e999, "d": 2, "e": ' + "9" * 5000 + "}"), printed(""), {}
    )
    assert brief(found) == [("d", 2, "")]
    assert "left out because they are not finite: 4 numbers" in notes


def test_nested_too_deep() -> None:
    for deep in ("[" * 40 + "1" + "]" * 40, "[" * 30_000, '{"a":' * 12_000, "[" * 5000 + "1" + "]" * 5000):
        found, notes = read_figures(printed(deep), printed(""), {})
        assert found == []
        assert notes


def test_more_figures_than_are_kept() -> None:
    found, notes = read_figures(printed(json.dumps(list(range(9000)))), printed(""), {})
    assert [figure.value for figure in found] == list(range(MAX_FIGURES))
    assert any(f"first {MAX_FIGURES}" in note for note in notes)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=25,
)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for child in value.values() for number in _numbers(child)]
    if isinstance(value, list):
        return [number for child in value for number in _numbers(child)]
    return [float(value)] if isinstance(value, int | float) and not isinstance(value, bool) else []


@settings(deadline=None)
@given(st.lists(JSON, max_size=4) | st.dictionaries(st.text(), JSON, max_size=4), st.sampled_from([None, 1]))
def test_any_json(value: Any, indent: int | None) -> None:
    """Every finite number comes back, in its order, and stands where it is said to stand."""
    text = json.dumps(value, indent=indent)
    found = read(text)
    assert [f.value for f in found] == [n for n in _numbers(value) if math.isfinite(n)]
    lines = text.split("\n")
    for figure in found:
        assert figure.text in lines[figure.line - 1]


# --- patterns of the user's -------------------------------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize(
    ("regex", "line", "value", "unit"),
    [
        (r"latency: ([\d.]+)", "latency: 136.3 us", 136.3, "us"),
        (r"latency: (.*)", "latency: 136.3 us", 136.3, "us"),
        (r"(\d+) iterations", "took 100 iterations", 100, ""),
        (r"bw=(\S+)", "bw=3.35TB/s", 3.35, "TB/s"),
        (r"(\S+)x", "1.7x", 1.7, "x"),
        (r"usage (\d+)", "usage 15%", 15, "%"),
        (r"mean ([\d.]+)", "mean 1.5 ± 0.2 ms", 1.5, "ms"),
        (r"err (\S+)", "err -1e-05", -1e-5, ""),
        (r"t=([\d.]+)", "t=3 it/s", 3, ""),
    ],
)
def test_a_pattern_names_its_figure(regex: str, line: str, value: float, unit: str) -> None:
    (found,) = read(f"time: 9 ms\n{line}\n", patterns={"mine": regex})
    assert (found.name, found.value, found.unit, found.source, found.line) == ("mine", value, unit, "pattern", 2)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("regex", "line"),
    [
        (r"time: (\d+)", "time: 1.5 ms"),  # a part of a number
        (r"time: ([\d.]+)", "time: 1.5e-3 s"),
        (r"time: .(\d)", "time: 15 s"),
        (r"time: (\w+)", "time: nan"),
        (r"time: (\w+)", "time: fast"),
        (r"time: ([\d,]+)", "time: 1,234 us"),
        (r"time:(\s*)", "time: "),
    ],
)
def test_a_group_that_holds_no_whole_number(regex: str, line: str) -> None:
    found, notes = read_figures(printed(line), printed(""), {"mine": regex})
    assert found == []
    assert any("held no whole number" in note for note in notes)


@pytest.mark.processes
def test_patterns_are_all_that_is_read_and_each_is_accounted_for() -> None:
    found, notes = read_figures(
        printed('time: 1 ms\n{"a": 2}\n'), printed("time: 3 ms\n"), {"t": r"time: (\d+)", "gone": r"gone (\d+)"}
    )
    assert [(f.name, f.value, f.stream) for f in found] == [("t", 1, "stdout"), ("t", 3, "stderr")]
    assert notes == ["the pattern gone matched nothing"]


@pytest.mark.processes
def test_two_patterns_that_match_one_line_give_both() -> None:
    found = read("x 5 ms", patterns={"a": r"x (\d)", "b": r"(\d) ms"})
    assert brief(found) == [("a", 5, "ms"), ("b", 5, "ms")]


@pytest.mark.processes
def test_an_optional_group_that_is_not_there() -> None:
    assert brief(read("ab\nab1\n", patterns={"a": r"ab(\d)?"})) == [("a", 1, "")]


@pytest.mark.processes
def test_a_pattern_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "SEARCH_SECONDS", 1.0)
    started = time.monotonic()
    found, notes = read_figures(
        printed("t 5\n" + "a" * 5000 + "!"), printed(""), {"t": r"t (\d)", "endless": r"(?:a+)+b(\d)", "u": r"t (\d)"}
    )
    assert time.monotonic() - started < 10
    assert brief(found) == [("t", 5, "")]
    assert any(note.startswith("the pattern endless did not come to an end") for note in notes)
    assert any(note.startswith("the pattern u was not looked for") for note in notes)


@pytest.mark.processes
def test_many_matches_of_a_pattern() -> None:
    found, notes = read_figures(printed("1 " * 30_000), printed(""), {"n": r"(\d)"})
    assert len(found) == MAX_FIGURES
    assert any(f"first {MAX_FIGURES}" in note for note in notes)


def test_patterns_are_read() -> None:
    assert read_patterns([r"a=x=(\d)", " b c =(?:y)(.)"]) == {"a": r"x=(\d)", "b c": "(?:y)(.)"}
    assert read_patterns([]) == {}


@pytest.mark.parametrize(
    "texts",
    [
        ["a"],
        ["=(1)"],
        ["a="],
        ["a=(1"],
        ["a=1"],
        ["a=(1)(2)"],
        ["a=(1)", "a=(2)"],
        ["a\nb=(1)"],
        ["a" * 300 + "=(1)"],
        ["a=(" + "(" * 5000 + ")" * 5000 + ")"],
        ["a=(x{99999999999999999999})"],
        ["a=(?P<n>1)(?P<n>2)"],
    ],
    ids=lambda texts: texts[0][:20],
)
def test_patterns_that_make_no_sense(texts: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        read_patterns(texts)
    assert caught.value.code == "figure_invalid"
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint


# --- what is cut ------------------------------------------------------------------------------------------------------


@pytest.mark.processes
def test_a_line_that_has_lost_its_beginning_is_not_read() -> None:
    out = Printed.of(b"x" + b"9" * (KEPT - 20) + b" time: 5 ms, 7 GB/s ", KEPT * 2)
    assert out.partial
    assert read_figures(out, printed(""), {})[0] == []
    assert read_figures(out, printed(""), {"n": r"(\d+) GB"})[0] == []


def test_a_last_line_that_has_lost_its_end_is_not_read() -> None:
    assert [f.value for f in read_figures(printed("time: 5 ms\ntime: 1"), printed(""), {})[0]] == [5]
    found, _ = read_figures(printed("time: 5 ms\ntime: 13 ms"), printed(""), {}, whole=False)
    assert [f.value for f in found] == [5]


def test_the_end_of_long_output_is_read() -> None:
    out = printed("x" * 70_000 + "\n" + "noise\n" * 3 + '{"a": 1}\n')
    found, notes = read_figures(out, printed(""), {})
    assert brief(found) == [("a", 1, "")]
    assert found[0].line == 4
    assert "stdout was longer than 64 KiB: only its end was read" in notes


def test_json_whose_beginning_is_lost_is_not_taken_for_whole() -> None:
    out = printed("#" * 70_000 + "\n[1, 2]")
    assert out.text == "[1, 2]"
    assert out.cut
    assert read_figures(out, printed(""), {})[0] == []


# --- anything ---------------------------------------------------------------------------------------------------------

PIECES = [
    *WORDS, *UNITS, "speedup", "faster", "1", "23", "0.5", "1e9", "1e999", ",", ".", "-", "+", "±", ":", "=", " ", "\n",
    "\r", "\t", "\0", "\x1b[3", "m", "{", "}", "[", "]", '"', "\\", "NaN", "_", "/", "|", "(", ")", "\u2028", "٣", "²",
]  # fmt: skip
NONSENSE = st.text(st.characters(), max_size=200) | st.lists(st.sampled_from(PIECES), max_size=60).map("".join)


@settings(max_examples=500, deadline=None)
@given(NONSENSE, NONSENSE, st.booleans())
def test_nonsense(out: str, err: str, whole: bool) -> None:
    """Whatever is printed, a figure is finite, has a known unit, and stands in the line that it names."""
    streams = {"stdout": printed(out), "stderr": printed(err)}
    found, notes = read_figures(streams["stdout"], streams["stderr"], {}, whole=whole)
    assert found or notes
    for figure in found:
        assert math.isfinite(figure.value)
        assert figure.unit in ("", *UNITS)
        assert figure.text in readable(streams[figure.stream], whole)[figure.line - 1]


@pytest.mark.parametrize(
    "piece", [*PIECES, "1 ", "1,111", "1±1", "min ", "time 1", "time ", "1e", "+1", "[1,", '{"a":']
)
def test_no_text_takes_long(piece: str) -> None:
    text = (piece * KEPT)[:KEPT]
    started = time.process_time()
    read_figures(printed(text), printed(text), {})
    assert time.process_time() - started < 5
