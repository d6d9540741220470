"""Numbers of a proposal: accounted for where something accounts for them, and told where nothing does."""

from __future__ import annotations

import time
from decimal import Decimal
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.profiling.profile import Launch, read_profile
from kbs.evidence.units import parse_quantity
from kbs.evidence.vocabulary import vocabulary
from loop.gate.comments import code_without_comments, each_comment, joined, strings
from loop.gate.numbers.accounting import Accountant, Mode, Unaccounted
from loop.gate.numbers.figures import Chosen, Figures, Given, Sources, equations, sentences, written_numbers
from loop.gate.numbers.plain_text import plain
from loop.gate.numbers.sources import derived, measured, receipt_figures
from tests.evaluator.ncu_reports import SOFTMAX, raw_csv

PROFILE = read_profile(raw_csv(("softmax_kernel", SOFTMAX)).encode(), "profile.csv")
CHOSEN = Chosen.of({Decimal(8192), Decimal(5000)}, {Decimal(1024), Decimal(3), Decimal("1e-6")})


def launch() -> Launch:
    return PROFILE.choose().launch


@cache
def accountant() -> Accountant:
    return Accountant(vocabulary())


def figures(text: str) -> Figures:
    found = Figures()
    found.add_text(text)
    for number in written_numbers(text):
        found.add(number)
    return found


def loose(text: str, mode: Mode = "claims", cited: str = "", product: str = "") -> list[Unaccounted]:
    known, said = measured([PROFILE], []), figures(cited)
    shown = Figures()
    for one in derived(text, (known, said), CHOSEN.has):
        for result in one.equation.results if one.grounded or one.counted else ():
            shown.add(result)
    right = [one.text for one in equations(text) if one.holds]
    given_ = (Given(said, product),) if cited else ()
    found = Sources(
        [launch()],
        [known],
        given_,
        [said],
        shown,
        Figures(),
        right,
        "h200-sxm",
        frozenset({"x0", "BLOCK_4096", "BLOCK_SIZE"}),
    )
    return list(accountant().unaccounted(text, found, CHOSEN, mode))


@pytest.mark.parametrize(
    "text",
    [
        "DRAM throughput is 88.6 %.",
        "DRAM throughput: 88.60 %",
        "dram_throughput = 88.6",
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed 88.6 %",
        "The L1 throughput is 40.2 % and the L2 throughput 52.1 %.",
        "88.6 % DRAM throughput, 31.4 % SM throughput",
        "Duration: 128.5 us, 0.1285 ms",
        "It reads 268.435456 MB, 268 MB in short.",
        "registers per thread: 32",
        "theoretical occupancy of 100 %, achieved occupancy 92.3 %",
        "long scoreboard is 48.2",
        "A block of 1024 threads, 4 warps, 7 of 9 rows, v3, sm_90a, 8192 x 8192",
        "2 * 64 * 96 * 4 B = 49152 B, 48 KiB",
        "268.435456 MB / 128.5 us = 2.089 TB/s",
        "It loads 16 bytes at once, 4 B an element.",
        "Two passes over each row become one, and three loads become two.",
        "FlashAttention-2 and top-1, bf16, e4m3, m64n256k16, LDG.E.128, cp.async.bulk, exp2, log1p",
        "Triton 3.7.1, CUDA 13.0, line 120 of kernel.py:33, section 5.3, the 2nd of 3 steps",
        "num_warps=8, num_stages=3, BLOCK_SIZE = 1024, eps 1e-6, BLOCK_4096 and x0",
        "A row of 8192 fp32 values is 32 KiB, a tile of 24576 elements three of 8192.",
        "The rows are 5000 wide, which is no power of two.",
        "a 2D grid of (8192, 2) programs; O(n^2) work",
        "each value is read 2 times and written once",
        "- 1. first\n- 2. second",
        "ipc_active 0.91 inst/cycle, issued 21.7 %, eligible_warps 0.41 warp, 32 byte/sector",
        "More registers per thread: 8192 / 256 = 32 values at a time; 7.76 / 2 = 3.88 waves, 7.76 / 8 = 97.0 % of 8.",
        "It is kept between the 2 loops and not read a second time; the load is paid 8192 times.",
        "The kernel uses 3 * 8192 B = 24576 B of shared memory per block for its buffers.",
    ],
)
def test_what_is_accounted_for_is_let_pass(text: str) -> None:
    assert loose(text) == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("DRAM throughput is 40.2 %.", "40.2 %"),
        ("dram_throughput = 40.2", "40.2"),
        ("DRAM throughput is 89 %.", "89 %"),
        ("The L1 throughput is 52.1 %.", "52.1 %"),
        ("52.1 % L1 throughput", "52.1 %"),
        ("registers per thread: 64", "64"),
        ("It takes 129.5 us.", "129.5 us"),
        ("It moves 700 MB.", "700 MB"),
        ("5 TB/s * 2 = 10 TB/s", "5 TB/s"),
        ("fma_pipe 99.9 %", "99.9 %"),
        ("It is 1.8x faster for everybody.", "1.8"),
        ("A speedup of 1.8.", "1.8"),
        ("2x faster than before", "2"),
        ("37 of the loads", "37"),
        ("The L2 gives three times what the HBM does.", "3"),
        ("A copy gets nineteen twentieths of the HBM bandwidth.", "19"),
    ],
)
def test_what_nothing_accounts_for_is_told(text: str, number: str) -> None:
    assert any(one.text.startswith(number) for one in loose(text)), loose(text)


@pytest.mark.parametrize(
    "text",
    [
        "The board moves 3.9-TB/s.",
        "a 144-SM part",
        "144 streaming multiprocessors",
        "144 available multiprocessors",
        "3,9 TB/s",
        "3,9 To/s",
        r"$3.9\,\mathrm{TB/s}$",
        "three point nine terabytes per second",
        "3.9 trillion bytes a second",
        "four trillion bytes every second",
        "80K registers per SM",
        "2131 B/clk",
        "3.8-4.0 TB/s",
        "4&nbsp;TB/s",
        "4 TB/s/GPU",
        "a hundred and forty-four SMs",
        "The SM count is 144.",
        "SMs: 144",
        "HBM bandwidth: 4800",
        "Ｔhe card does ４ TB/s",
        "<b>4</b>&thinsp;TB/s",
        "an SM hosts 64 warps",
        "each multiprocessor has 1024 threads",
        "up to 2048 threads per SM",
        "16 memory channels",
        "8 HBM stacks",
        "| L2 capacity | 96 | MB |",
        "| GPU | L2 capacity (MB) |\n|---|---|\n| H200 | 96 |",
        "the SM count is\n128",
        "boost clock 1980 MHz",
        "BW3900GBs of it",
        "228 KB of shared memory per SM",
        "TDP: 700 W",
        "an SM has eight warp schedulers",
        "The package has stacks of HBM. There are six of them.",
        "an L2 hit takes 262 cycles",
    ],
)
def test_a_spec_is_found_in_any_notation(text: str) -> None:
    assert any(one.hardware for one in loose(text)), loose(text)
    assert any(one.hardware for one in loose(text, "limits")), "a limit of a rule is a spec too"


def test_a_line_on_another_product_speaks_of_that_alone() -> None:
    cited = "| HBM bandwidth | 3.35 | TB/s |"
    assert loose("The H100 SXM has 3.35 TB/s.", cited=cited, product="h100-sxm") == []
    said = loose("The H100 SXM has 3.35 TB/s, so our HBM gives 3.35 TB/s.", cited=cited, product="h100-sxm")
    assert [one.text for one in said] == ["3.35 TB/s"]
    assert loose("Our HBM gives 3.35 TB/s.", cited=cited, product="h200-sxm") == []


def test_a_hedge_beside_a_cited_spec_is_told() -> None:
    (found,) = loose("First.\n\nThe HBM bandwidth is roughly 4.8 TB/s.", cited="4.8 TB/s", product="h200-sxm")
    assert (found.line, found.text, found.hedge) == (3, "4.8 TB/s", "roughly")


def test_what_the_profile_has_is_told() -> None:
    (found,) = loose("DRAM throughput is 40.2 %.")
    assert (found.metric, found.is_there, found.line) == ("dram_throughput", "88.6 %", 1)


def test_the_line_of_a_number_is_told_over_ends_of_lines() -> None:
    assert [(one.line, one.text) for one in loose("It takes\nas long as\n77.5 us\n\nor 78.5 us")] == [
        (3, "77.5 us"),
        (5, "78.5 us"),
    ]


def test_cited_numbers_are_let_pass() -> None:
    assert loose("Sectors have 48.5 KB.")
    assert loose("Sectors have 48.5 KB.", cited="| size | 48.5 | KB |") == []


def test_limits_in_a_rule_are_no_statements() -> None:
    text = "Keep it below 75.5 us, or if DRAM throughput rises to 95 %; it is 77 us now."
    assert [one.text for one in loose(text, "limits")] == ["77 us"]
    assert [one.text for one in loose(text)] == ["75.5 us", "95 %", "77 us"]


def test_predictions_state_nothing_but_specs() -> None:
    assert loose("from 90 % to 97 %, 12.5 us less", "predictions") == []
    for text in ("since the L2 bandwidth is 12.5 TB/s", "as an L2 hit takes 262 cycles", "an l2 of 48 mib"):
        assert loose(text, "predictions")


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("twenty-one and two thousand one hundred", "21 and 2100"),
        ("one pass, no one, a dozen", "one pass, no one, a dozen"),
        ("3.5 million", "3500000"),
        ("10¹²", "1000000000000"),
        ("num_warps=8, a*b, 2 * 3", "num_warps=8, a*b, 2 * 3"),
        ("line one\nline 2", "line one\nline 2"),
    ],
)
def test_a_text_is_read_as_it_shows(text: str, read: str) -> None:
    assert plain(text) == read


def test_a_figure_is_found_by_its_value_and_name() -> None:
    found = Figures()
    quantity = parse_quantity("3.35", "TB/s")
    assert quantity is not None
    found.add(quantity, ("hbm_bandwidth",))
    for number, unit, there in (
        ("3,350", "GB/s", True),
        ("3.35", "TB/s", True),
        ("3.4", "TB/s", False),
        ("3", "TB/s", False),
    ):
        claim = parse_quantity(number, unit)
        assert claim is not None
        assert found.has([claim]) is there
        assert found.has([claim], ("hbm_bandwidth",)) is there
        assert not found.has([claim], ("l2_bandwidth",))


def test_numbers_of_a_receipt_have_the_units_of_their_fields() -> None:
    found = list(receipt_figures({"median_us": 131.25, "series": {"us": [7.0]}, "gb_per_s": 3947.6, "ok": True}, ""))
    said = {(q.unit.dimension, q.base) for q in found}
    assert ("seconds", Decimal("131.25") * Decimal("1e-6")) in said
    assert ("bytes per second", Decimal("3947.6") * 10**9) in said
    assert all(base != 7 for _, base in said)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("67 TFLOPS / 4.8 TB/s = 13.96 FLOP/byte", True),
        ("67 TFLOPS / 4.8 TB/s = 14.96 FLOP/byte", False),
        ("88.6 % - 31.4 % = 57.2 %", True),
        ("(2 + 3) * 4 = 20", True),
        ("2 + 2 = 5", False),
        ("122.5 - 112.0 = 10.5 us", True),
        ("122.5 - 112.0 = 11.5 us", False),
    ],
)
def test_equations_are_computed_again(text: str, holds: bool) -> None:
    (found,) = equations(text)
    assert found.holds is holds


def test_a_result_may_be_used_again_and_one_from_nothing_may_not() -> None:
    known = measured([PROFILE], [])
    shown = derived("128.5 us / 2 = 64.25 us\n64.25 us / 2 = 32.125 us\n9 us / 3 = 3 us", (known,))
    assert [one.grounded for one in shown] == [True, True, False]


@pytest.mark.parametrize("name", ["k.py", "k.cu"])
def test_comments_and_strings_are_told_apart_from_code(name: str) -> None:
    mark = "#" if name == "k.py" else "//"
    text = f'x = 4.8\n{mark} the HBM bandwidth is\n{mark} 4.8 TB/s\ny = "132 SMs"\n'
    assert [line for line, _ in joined(each_comment(text, name))] == [2]
    assert "TB/s" not in code_without_comments(text, name)
    assert strings(text, name) == ((4, "132 SMs"),)


HOSTILE: dict[str, tuple[str, int, str]] = {
    "digits": ("1", 75_000, ""),
    "numbers": ("1 GB/s ", 10_000, ""),
    "commas": ("1,111", 15_000, ""),
    "equations": ("1 * ", 15_000, "= 2"),
    "brackets": ("(1+", 20_000, ""),
    "names": ("HBM bandwidth ", 5_000, ""),
    "names and numbers": ("HBM bandwidth 4.8 TB/s ", 2_500, ""),
    "cells": ("| 1 ", 20_000, ""),
    "tables": ("| L2 (MB) | b |\n|---|---|\n| 1 | 2 |\n", 1_000, ""),
    "lines": ("HBM\n4.8 TB/s\n", 2_000, ""),
    "references": ("a/b.md:L1 ", 7_500, ""),
    "hedges": ("about ", 12_500, "4.8 TB/s of HBM bandwidth"),
    "metrics": ("registers per thread ", 8_000, "5"),
    "dots": ("1.1.1", 15_000, ""),
    "words": ("two hundred and ", 5_000, ""),
    "words of other languages": ("vier und ", 8_000, "zwanzig"),
    "glued words": ("dreihundert", 6_000, "x"),
    "numerals": ("三千", 30_000, ""),
    "Roman numerals": ("MDCLXVI ", 9_000, ""),
    "doubts": ("it may be, ", 6_000, "4.8 TB/s"),
    "versions": ("in v1 ", 12_000, "9 us"),
    "tex": ("\\mathrm{", 9_000, ""),
    "blanks": (" ", 75_000, ""),
}
"""(what is repeated, how often, what follows)"""


def _cost(text: str) -> float:
    start = time.process_time()
    loose(text)
    list(equations(text))
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_takes_a_time_linear_in_its_length(what: str) -> None:
    """Four times the text is four times the work, and sixteen times where it is quadratic. Another load of the machine
    can hide that for once, and cannot do so each time, one right after the other."""
    part, count, tail = HOSTILE[what]
    loose(part)
    costs = []
    for _ in range(4):
        few, many = _cost(part * (count // 4) + tail), _cost(part * count + tail)
        costs.append((few, many))
        if many < 9 * few + 0.3:
            return
    raise AssertionError(f"four times as long takes {costs} seconds of the processor")


WORDS = ("H200", "four", "point", "million", "$", "{", "×", "SMs", "²", "4.8 TB/s", "about", "`")
_parts = st.sampled_from(
    [
        "DRAM throughput",
        "88.6 %",
        "is",
        "12 us",
        "=",
        "*",
        "1e9",
        "GB/s",
        "\n",
        "registers",
        ":",
        "32",
        "|",
        "---",
        "#",
        *WORDS,
    ]
)


@given(st.lists(st.one_of(_parts, st.text(max_size=5)), max_size=40).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_accounted_for(text: str) -> None:
    lines = text.count("\n") + 1
    for mode in ("claims", "limits", "predictions"):
        for found in loose(text, mode):
            assert 1 <= found.line <= lines
    for sentence in sentences(text):
        for stated in sentence.stated:
            assert stated.readings


@given(st.decimals(min_value=1, max_value=99, places=1))
@settings(max_examples=100, deadline=None)
def test_a_metric_has_one_value(value: Decimal) -> None:
    assert (loose(f"DRAM throughput is {value} %.") == []) is (value == Decimal("88.6"))


@given(st.decimals(min_value=2, max_value=900, places=2), st.sampled_from(["TB/s", "GB/s", "TFLOPS", "W"]))
@settings(max_examples=100, deadline=None)
def test_an_invented_spec_is_found_wherever_it_stands(value: object, unit: str) -> None:
    said = {"TB/s": "HBM bandwidth", "GB/s": "NVLink bandwidth", "TFLOPS": "FP32 throughput", "W": "TDP"}[unit]
    for text in (
        f"The {said} is {value} {unit}.",
        f"| {said} | {value} | {unit} |",
        f"{said}\n {value} {unit}",
        f"{said}: {value}&nbsp;{unit}",
    ):
        assert any(one.hardware for one in loose(text)), text


@pytest.mark.parametrize(
    "text",
    [
        "SM이 백사십칠 개 있다.", "SM이 백마흔일곱 개 있다.", "SM は ひゃくよんじゅうなな ある。", "It has ፻፵፯ SMs.",
        "A cluster of multiprocessors counts ||||| ||||| ||||| ||| of them.", "Each has 𝍸𝍸𝍷 SMs.",
        "На этой карте сто сорок семь multiprocessors.", "It has 1\u200b4\u200b7 SMs.",
        "The card carries two packs of cards and four jokers in multiprocessors.",
        "It has as many SMs as a year has weeks.", "The memory interface (bus v384, in bits) is idle.",
        "This is an SM147-type part.", "8 warps * 8 = 64 warps: every warp slot of an SM is taken.",
        "9 blocks fill the multiprocessor.", "It gained an eighth by that.", "It took a good tenth off each call.",
        "The tile took under two thirds of what v0 took.",
    ],
)  # fmt: skip
def test_a_number_counts_in_any_writing(text: str) -> None:
    assert loose(text)


@pytest.mark.parametrize(
    "text",
    [
        "sm_90 and SM89 are known; v2, v16 and ldmatrix.x4 on this GPU.", "It runs for driver v550 on the device.",
        "a || b, and /// is a comment", "Two passes in SMs that are idle.", "As many SMs as programs are busy.",
        "It waits a third time for HBM.", "しかし、せんたくする。", "열 단위로 읽는다.", "The rows fill the tile.",
        "Registers of the block are all used.",
    ],
)  # fmt: skip
def test_other_writing_is_no_number(text: str) -> None:
    assert loose(text) == []


def test_a_figure_that_is_cited_of_another_gpu_is_told_of_that_one() -> None:
    line = "MI300X Warp size: 96 threads"
    sources = Sources([], [], (Given(figures("96"), "mi300x", line, claimed=True),), [], Figures(), Figures(), [],
                      "h200-sxm", frozenset())  # fmt: skip
    every = Chosen.of({Decimal(96) * 2}, {Decimal(2)})
    assert list(accountant().unaccounted("Each warp covers 96 columns at once.", sources, every))
    assert not list(accountant().unaccounted("A warp of the MI300X covers 96 columns.", sources, every))
