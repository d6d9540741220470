"""What is a hardware spec and what is none: on pages, profiles, reports, receipts and hostile text."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.diagnosis.report import details, summary
from evaluator.profiling.profile import read_profile
from evaluator.receipt.receipt import Receipt
from kbs.evidence.vocabulary import vocabulary
from loop.gate.comments import code_without_comments, comments
from loop.gate.figures import Figures, equations, sentences
from loop.gate.sources import measured
from loop.gate.spec_scanner import SpecScanner, known_specs
from tests.conftest import ROOT
from tests.evaluator.ncu_reports import KERNELS, raw_csv
from tests.evaluator.receipts import timed_receipt
from wiki.library import Wikis, bundled_wiki
from wiki.lint.view import is_derived
from wiki.page import Page

REPORTS = sorted((ROOT / "tests/evaluator/profiles").glob("reports/*.csv"))


@cache
def scanner() -> SpecScanner:
    wikis, terms = Wikis([bundled_wiki()]), vocabulary()
    found = [
        ((quantity,), spec.metric)
        for path in wikis.pages_of("gpu-wiki") or ()
        for spec in wikis.specs("gpu-wiki", path)
        if (quantity := spec.quantity(terms)) is not None
    ]
    return SpecScanner(terms, known_specs(found))


def specs(text: str, name: str = "a.md") -> list[str]:
    return [found.text for found in scanner().scan(text, name)]


@pytest.mark.parametrize(
    "text",
    [
        "The H200 has 4.8 TB/s.",
        "HBM bandwidth: 4.8 TB/s",
        "peak memory bandwidth of 4,800 GB/s",
        "4.8 terabytes per second of memory bandwidth",
        "a memory bandwidth of 4.8tb/s",
        "an L2 cache of 60 MB",
        "60 MB of L2 cache",
        "228 KB of shared memory per SM",
        "Each SM has 227 KB of shared memory for a block.",
        "The register file is 256 KB.",
        "| L2 capacity | 50 | MB |",
        "| GPU | L2 capacity (MB) |\n|---|---|\n| H100 | 50 |",
        "132 SMs",
        "boost clock 1980 MHz",
        "an H100 runs at 1.98 GHz",
        "TDP: 700 W",
        "up to 2048 threads per SM",
        "at most 255 registers per thread",
        "a maximum cluster size of 16 blocks",
        "BF16 tensor throughput = 989.5 TFLOPS",
        "989.5 TFLOPS",
        "SM count: 132",
        "L2 bandwidth is\n9.68 TB/s",
    ],
)
def test_a_spec_is_found(text: str) -> None:
    assert specs(text)


@pytest.mark.parametrize(
    "text",
    [
        "It takes 128.5 us, 3 % of the run.",
        "A block of 256 threads handles 8 rows of 4096 elements.",
        "256 threads per block are launched.",
        "The kernel uses 48 KB of shared memory.",
        "A tile of 64 KB is loaded through the L2.",
        "It reads 268 MB and writes 263 MB.",
        "Triton 3.7.1, CUDA 13.0, driver 580.95, line 120, v3",
        "DRAM throughput is 88.6 % of its peak.",
        "A 128-bit load, a 32-byte sector, 4096 x 4096 in bf16",
        "The ratio is 1.31x, from 1.30 to 1.32.",
        "num_warps=8, num_stages=3, BLOCK_SIZE = 1024",
        "2 blocks on 1 SM; 4 SMs are idle",
        "H100 SXM HBM bandwidth: UNKNOWN (gpu-wiki not found)",
        "see gpu-wiki/hardware/h200-sxm.md:L54 for 3 more",
        "the year 2026, 10 s of waiting, 3 retries after 5 seconds",
    ],
)
def test_what_is_no_spec_is_let_pass(text: str) -> None:
    assert specs(text) == []


def test_the_line_metric_and_hedge_are_told() -> None:
    (found,) = scanner().scan("First.\n\nThe HBM bandwidth is roughly 4.8 TB/s.", "a.md")
    assert (found.line, found.text, found.metrics, found.hedge) == (3, "4.8 TB/s", ("hbm_bandwidth",), "roughly")


@pytest.mark.parametrize(
    ("document", "found"),
    [
        ({"hbm_bandwidth_tb_s": 4.8}, True),
        ({"sm_count": 132}, True),
        ({"notes": ["the TDP is 700 W"]}, True),
        ({"metric": "L2 capacity", "value": 50, "unit": "MB"}, True),
        ({"a": {"b": {"l2_capacity": "50 MB"}}}, True),
        ({"threads": 256, "warps": 8, "dims": {"n": 4096}, "time_us": 12.5}, False),
        ({"block_size": 128, "grid_size": 8192, "dram_throughput": 88.6}, False),
    ],
)
def test_json_is_read(document: object, found: bool) -> None:
    assert bool(specs(json.dumps(document, indent=1), "a.json")) is found
    assert bool(specs(json.dumps(document), "a.jsonl")) is found


def test_the_line_of_json_is_told() -> None:
    text = json.dumps({"first": 1, "second": 2, "hbm_bandwidth_tb_s": 4.8}, indent=1)
    assert [found.line for found in scanner().scan(text, "a.json")] == [4]


@pytest.mark.parametrize("name", ["k.py", "k.cu"])
def test_comments_are_read_and_code_is_not(name: str) -> None:
    mark = "#" if name == "k.py" else "//"
    text = f"x = 4.8\n{mark} the HBM bandwidth is\n{mark} 4.8 TB/s\ny = 'SM count: 132 SMs'\n"
    assert [(f.line, f.text) for f in scanner().scan(text, name)] == [(3, "4.8 TB/s")]
    assert [line for line, _ in comments(text, name)] == [2]
    assert "TB/s" not in code_without_comments(text, name)
    assert "132" in code_without_comments(text, name)


@pytest.mark.slow
def test_no_alarm_on_the_pages_of_the_wiki() -> None:
    wikis = Wikis([bundled_wiki()])
    found, pages = 0, 0
    for path in wikis.pages_of("gpu-wiki") or ():
        page = wikis.page("gpu-wiki", path)
        assert isinstance(page, Page)
        pages += 1
        cited = [row.citation for rows in (page.specs, page.thresholds, page.measured) for row in rows]
        rows = {citation.line_start for citation in cited}
        ids = tuple(source.id for source in page.meta.sources)
        # What a section is asked states nothing.
        stated = ["" if line.startswith("<!--") or line.endswith("?") else line for line in page.lines]
        for spec in scanner().scan("\n".join(stated), path):
            line = page.lines[spec.line - 1]
            found += 1
            sourced = (
                spec.line in rows
                or "[^" in line
                or is_derived(line)
                or _row_has(line, ids)
                or _table_has(page, spec.line)
            )
            assert sourced, f"{path}:{spec.line}: {spec.text}"
    assert pages >= 60
    assert found > 200


def _row_has(line: str, ids: tuple[str, ...]) -> bool:
    """Whether the last cell of a row names a source."""
    return line.startswith("|") and line.rstrip("| ").rsplit("|", 1)[-1].strip().startswith(ids)


def _table_has(page: Page, line: int) -> bool:
    """Whether the line below its table says where the table is from."""
    end = line
    while end <= len(page.lines) and page.lines[end - 1].startswith("|"):
        end += 1
    return end > line and "[^" in "".join(page.lines[end - 1 : end + 1])


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_alarm_on_profiles_and_their_reports(kernel: str) -> None:
    profile = read_profile(raw_csv((kernel, KERNELS[kernel])).encode(), "profile.csv")
    _no_alarm(measured([profile], []), summary(profile, profile.choose()), details(profile, profile.choose()))


@pytest.mark.slow
@pytest.mark.parametrize("file", REPORTS, ids=lambda file: file.stem)
def test_no_alarm_on_real_profiles(file: Path) -> None:
    profile = read_profile(file.read_bytes(), file.name)
    _no_alarm(measured([profile], []), summary(profile, profile.choose()), details(profile, profile.choose()))


def test_no_alarm_on_receipts_and_benchmarks() -> None:
    receipt: Receipt = timed_receipt()
    figures = measured([], [receipt])
    golden = [(ROOT / "tests/golden" / name).read_text("utf-8") for name in ("bench_report.txt", "benchmark.md")]
    cited = [line for text in golden for line in text.splitlines() if "<- gpu-wiki" in line]
    for text in golden:
        for found in scanner().scan(text, "a.md"):
            shown = any(found.text in line for line in cited) or "peak" in found.sentence
            assert figures.has(found.readings) or shown, found


def _no_alarm(figures: Figures, *texts: str) -> None:
    for text in texts:
        for found in scanner().scan(text, "ncu_summary.md"):
            assert figures.has(found.readings), found


HOSTILE = {
    "digits": "1" * 75_000,
    "numbers": "1 GB/s " * 10_000,
    "commas": "1,111" * 15_000,
    "equations": "1 * " * 15_000 + "= 2",
    "brackets": "(1+" * 20_000,
    "names": "HBM bandwidth " * 5_000,
    "names and numbers": "HBM bandwidth 4.8 TB/s " * 2_500,
    "cells": "| 1 " * 20_000,
    "tables": ("| L2 (MB) | b |\n|---|---|\n| 1 | 2 |\n") * 1_000,
    "lines": "HBM\n4.8 TB/s\n" * 2_000,
    "references": "a/b.md:L1 " * 7_500,
    "hedges": "about " * 12_500 + "4.8 TB/s of HBM bandwidth",
    "braces": "[" * 30_000,
    "deep JSON": '{"a":' * 10_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("name", ["a.md", "a.json", "k.py", "k.cu"])
def test_hostile_text_takes_a_time_linear_in_its_length(what: str, name: str) -> None:
    text = ("# " if name == "k.py" else "// " if name == "k.cu" else "") + HOSTILE[what]
    start = time.process_time()
    list(scanner().scan(text, name))
    list(equations(text))
    assert time.process_time() - start < 2


_words = st.sampled_from(
    [
        "HBM bandwidth",
        "4.8 TB/s",
        "H200",
        "|",
        "\n",
        "L2",
        "60 MB",
        "about",
        "is",
        ":",
        "=",
        "`",
        "1,000",
        "×",
        "{",
        '"',
        "#",
    ]
)


@given(
    st.lists(st.one_of(_words, st.text(max_size=6)), max_size=40).map(" ".join),
    st.sampled_from(["a.md", "a.json", "k.py", "k.cu"]),
)
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_scanned(text: str, name: str) -> None:
    lines = text.count("\n") + 1
    for found in scanner().scan(text, name):
        assert 1 <= found.line <= lines + 1
        assert found.readings
    for sentence in sentences(text):
        for stated in sentence.stated:
            assert stated.readings


@given(st.decimals(min_value=2, max_value=900, places=2), st.sampled_from(["TB/s", "GB/s", "TFLOPS", "W"]))
@settings(max_examples=100, deadline=None)
def test_an_invented_spec_is_found_wherever_it_stands(value: object, unit: str) -> None:
    said = {"TB/s": "HBM bandwidth", "GB/s": "NVLink bandwidth", "TFLOPS": "FP32 throughput", "W": "TDP"}[unit]
    for text, name in (
        (f"The {said} is {value} {unit}.", "a.md"),
        (f"| {said} | {value} | {unit} |", "a.md"),
        (json.dumps({said.lower().replace(" ", "_"): f"{value} {unit}"}), "a.json"),
        (f"def f():\n    # {said}: {value} {unit}\n    return 1\n", "k.py"),
        (f"/* {said}\n {value} {unit} */", "k.cu"),
    ):
        assert specs(text, name), text
