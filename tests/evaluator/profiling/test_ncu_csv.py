"""The reader of reports: forms of several versions, a named error for each fault, and no crash on any bytes.

The reports are made up (`ncu_reports.py`); real ones are to join them.
"""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.profiling.ncu_csv import read_table
from evaluator.profiling.profile import Profile, read_profile
from kbs.common.errors import ConfigurationError, KoptError, UsageError
from tests.evaluator.ncu_reports import KERNELS, SOFTMAX, details_csv, raw_csv

TWO = raw_csv(("first(float *)", SOFTMAX), ("second<float, 4>(float *, int)", SOFTMAX))
CODES = {
    "report_not_text", "report_too_large", "report_of_another_tool", "report_no_kernel", "report_truncated",
    "report_damaged", "counters_forbidden",
}  # fmt: skip


def code(data: bytes | str) -> str:
    """The error of a report."""
    with pytest.raises(KoptError) as caught:
        read_table(data.encode() if isinstance(data, str) else data, "r.csv")
    assert caught.value.hint
    assert caught.value.message.startswith("r.csv")
    return caught.value.code


def tried(data: bytes) -> Profile | None:
    """What is read of a report; None where it is refused by one of the named errors."""
    refused: KoptError | None = None
    try:
        return read_profile(data, "r.csv")
    except KoptError as error:
        refused = error
    assert refused.code in CODES
    return None


def test_launches_are_rows() -> None:
    table = read_table(TWO.encode(), "r.csv")
    assert table.page == "raw"
    assert [launch.head["Kernel Name"] for launch in table.launches] == [
        "first(float *)",
        "second<float, 4>(float *, int)",
    ]
    assert len(table.launches[0].cells) == len(SOFTMAX)


@pytest.mark.parametrize(
    "data",
    [
        raw_csv(("k", SOFTMAX), before='==PROF== Connected\n"hello", said the program\n', after="==PROF== Done\n"),
        "\ufeff" + raw_csv(("k", SOFTMAX)),
        raw_csv(("k", SOFTMAX)).replace("\n", "\r\n"),
        raw_csv(("k", SOFTMAX)).rstrip("\n"),
    ],
    ids=["between prints", "byte order mark", "CRLF", "no newline at the end"],
)
def test_what_surrounds_a_report_does_not_matter(data: str) -> None:
    assert read_table(data.encode(), "r.csv").launches == read_table(raw_csv(("k", SOFTMAX)).encode(), "r").launches


def test_a_windows_shell_writes_utf_16() -> None:
    assert read_table(TWO.encode("utf-16"), "r.csv").launches == read_table(TWO.encode(), "r.csv").launches


def test_the_details_page_and_rules_between() -> None:
    rows = [
        ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "91.2"),
        ("GPU Speed Of Light Throughput", "Duration", "us", "12.5"),
        ("Memory Workload Analysis", "Memory Throughput", "Tbyte/second", "4.1"),
    ]
    launch = read_profile(details_csv("k(int)", rows).encode(), "r.csv").launches[0]
    assert launch.value("memory_throughput") == Decimal("91.2")
    assert launch.value("dram_bandwidth") == 4_100_000_000_000
    assert launch.value("duration") == Decimal("12.5")
    assert launch.value("sm_throughput") is None


def test_faults_have_names() -> None:
    assert code(b"\xff\xfe\xfd\x00\x01") == "report_not_text"
    assert code("\x00" + TWO) == "report_not_text"
    assert code("") == "report_of_another_tool"
    assert code('"Time (%)","Total Time (ns)","Instances"\n1,2,3\n') == "report_of_another_tool"
    assert code('{"traceEvents": []}') == "report_of_another_tool"
    assert code(b"SQLite format 3\x00....") == "report_of_another_tool"
    assert code("Type,Time(%),Time,Calls,Avg\n") == "report_of_another_tool"
    assert code("==WARNING== No kernels were profiled.\n") == "report_no_kernel"
    assert code("\n".join(TWO.split("\n")[:2]) + "\n") == "report_no_kernel"
    assert code("\n".join(TWO.split("\n")[:1]) + "\n") == "report_no_kernel"
    assert code(TWO[:-20]) == "report_truncated"
    assert code("\n".join(line for at, line in enumerate(TWO.split("\n")) if at != 1)) == "report_damaged"
    assert code(TWO.replace('"31.4"', '"31.4","7"', 1)) == "report_damaged"
    assert code(TWO.replace('"31.4"', '"31,45"')) == "report_damaged"
    assert code(TWO.replace('"lts__t_sector_hit_rate.pct"', '"l1tex__t_sector_hit_rate.pct"')) == "report_damaged"


def test_another_tool_is_named() -> None:
    with pytest.raises(UsageError, match="Nsight Systems"):
        read_table(b'"Time (%)","Total Time (ns)","Instances"\n1,2,3\n', "r.csv")


def test_forbidden_counters_have_three_remedies() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_table(b"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission", "r.csv")
    assert caught.value.code == "counters_forbidden"
    for remedy in ("root", "NVreg_RestrictProfilingToAdminUsers", "CAP_SYS_ADMIN"):
        assert remedy in caught.value.hint


def test_a_report_cut_anywhere_is_refused_or_loses_whole_launches_only() -> None:
    whole = read_profile(TWO.encode(), "r.csv").launches
    rows = TWO.split("\n")
    ends = {len("\n".join(rows[:count])) for count in (3, 4)} | {len("\n".join(rows[:count])) + 1 for count in (3, 4)}
    accepted = set()
    for cut in range(len(TWO)):
        found = tried(TWO[:cut].encode())
        if found is not None:
            accepted.add(cut)
            assert found.launches == whole[: len(found.launches)]
    assert accepted == {end for end in ends if end < len(TWO)}


@settings(deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for made in (data, TWO.encode()[:200] + data, TWO.encode() + data):
        tried(made)


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 12))
def test_a_damaged_report_is_read_or_refused(seed: int, changes: int) -> None:
    chance = random.Random(seed)
    data = bytearray(raw_csv(("k(int)", KERNELS["matmul_fma"])).encode())
    for _ in range(changes):
        at = chance.randrange(len(data))
        data[at : at + chance.randrange(3)] = bytes(chance.randrange(256) for _ in range(chance.randrange(3)))
    found = tried(bytes(data))
    for launch in found.launches if found else ():
        assert all(counter.value is None or counter.value.is_finite() for counter in launch.counters.values())
