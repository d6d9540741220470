"""`kopt wiki gaps`: what was refused, grouped and counted, the newest first."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.common.errors import ConfigurationError
from kopt.services.curation.gaps import Gaps, read_gaps

Runner = Callable[..., Any]


def line(asked: str, time: str, *missing: str, reason: str = "not_in_wiki") -> str:
    """A line of the log as `Engine.log_gap` writes it; `time`: day and hour."""
    record = {"time": f"2026-11-{time}:00:00Z", "asked": asked, "reason": reason, "gaps": list(missing)}
    return json.dumps(record, ensure_ascii=False) + "\n"


def read(tmp_path: Path, *lines: str) -> Gaps:
    """The gaps of a log."""
    file = tmp_path / "gaps.jsonl"
    file.write_text("".join(lines), "utf-8", errors="surrogatepass")
    return read_gaps(file)


def test_questions_are_grouped_and_counted_and_the_newest_comes_first(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        line("L2 latency of B300?", "20T10", "L2 latency: unpublished"),
        line("What is split-K?", "21T10", "split-K"),
        line("l2  latency of b300", "22T10", "B300", reason="unknown_product"),
        line("an old one", "19T10"),
        line("L2 Latency of B300 ?", "21T11", "L2 latency: unpublished", "no page"),
    )
    assert [(gap.asked, gap.count) for gap in found.questions] == [
        ("l2  latency of b300", 3),
        ("What is split-K?", 1),
        ("an old one", 1),
    ]
    assert (found.refusals, found.unreadable) == (5, 0)
    gap = found.questions[0]
    assert (gap.first, gap.last) == ("2026-11-20T10:00:00Z", "2026-11-22T10:00:00Z")
    assert gap.reasons == {"not_in_wiki": 2, "unknown_product": 1}
    assert gap.missing == ["B300", "L2 latency: unpublished", "no page"]


def test_of_one_second_the_later_line_is_the_newer(tmp_path: Path) -> None:
    found = read(tmp_path, line("a", "20T10"), line("b", "20T10"), line("A?", "20T10"))
    assert [gap.asked for gap in found.questions] == ["A?", "b"]


def test_no_log_is_no_gap(tmp_path: Path) -> None:
    assert read_gaps(tmp_path / "gaps.jsonl") == Gaps([], 0)
    assert read(tmp_path, "\n", " \n") == Gaps([], 0)


@pytest.mark.parametrize(
    "wrong",
    [
        "{\n",
        "[]\n",
        "\xff\n",
        "[" * 100_000 + "\n",
        line("a", "20T10").replace('"a"', "1"),
        line("a", "20T10").replace('"a"', "null"),
        line("a", "20T10").replace("2026", "last year"),
        line("a", "20T10", "b").replace('["b"]', '"b"'),
        line("a", "20T10", "b").replace('["b"]', "[1]"),
        line("a" * 1_000_001, "20T10"),
        line("cut", "20T10")[:-20],
    ],
)
def test_what_is_no_record_is_counted_and_left_out(tmp_path: Path, wrong: str) -> None:
    found = read(tmp_path, line("before", "20T10"), wrong if wrong.endswith("\n") else wrong + "\n", line("b", "21T10"))
    assert ([gap.asked for gap in found.questions], found.unreadable) == (["b", "before"], 1)


def test_a_question_is_shown_and_obeyed_by_no_terminal(tmp_path: Path) -> None:
    found = read(tmp_path, line("a\x1b[31m\nb", "20T10", "c\x07", reason="d\x08"), line("\ud800", "19T10"))
    gap, other = found.questions
    assert (gap.asked, gap.missing, list(gap.reasons)) == ("a\\x1b[31m\\nb", ["c\\x07"], ["d\\x08"])
    assert other.asked.isprintable()


def test_a_long_text_is_cut(tmp_path: Path) -> None:
    (gap,) = read(tmp_path, line("x" * 5_000, "20T10", *map(str, range(50)))).questions
    assert (len(gap.asked), len(gap.missing)) == (2_000, 20)


def test_a_log_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_gaps(tmp_path)
    assert caught.value.code == "gaps_unreadable"


@given(st.binary(max_size=400))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    file = tmp_path_factory.mktemp("gaps") / "gaps.jsonl"
    file.write_bytes(data)
    assert read_gaps(file).refusals == 0


def test_the_command(run: Runner, home: Path, tmp_path: Path) -> None:
    (home / "gaps.jsonl").unlink(missing_ok=True)
    none = run(home, "wiki", "gaps", cwd=tmp_path)
    assert (none.code, none.out) == (0, "No question was refused yet.\n")

    for asked in ("h300 hbm_bandwidth", "h100-pcie nvlink_bandwith_of_nothing"):
        run(home, "ask", f"What is the bandwidth of the {asked}?", cwd=tmp_path)
    refused = run(home, "wiki", "gaps", "--json", cwd=tmp_path).json["data"]
    assert refused["refusals"] == len((home / "gaps.jsonl").read_text("utf-8").splitlines()) > 0

    with (home / "gaps.jsonl").open("w", encoding="utf-8") as stream:
        stream.write(line("how fast is X", "20T10", "no page on X") + line("and Y?", "21T10", reason="not_understood"))
        stream.write(line("how fast is X?", "22T10", "no page on X", *"abcd") + "{\n")
    done = run(home, "wiki", "gaps", cwd=tmp_path)
    assert done.out.splitlines() == [
        "2x  2026-11-22  not_in_wiki  how fast is X?",
        "      no page on X",
        "      a",
        "      b",
        "      and 2 more",
        "1x  2026-11-21  not_understood  and Y?",
        "2 questions, refused 3 times since 2026-11-20",
    ]
    assert "1 line of" in done.err

    one = run(home, "wiki", "gaps", "--reason", "not_in_wiki", "--limit", "1", "--json", cwd=tmp_path).json
    assert one["data"]["questions"] == [
        {
            "asked": "how fast is X?",
            "count": 2,
            "first": "2026-11-20T10:00:00Z",
            "last": "2026-11-22T10:00:00Z",
            "reasons": {"not_in_wiki": 2},
            "missing": ["no page on X", "a", "b", "c", "d"],
        }
    ]
    assert (one["data"]["total"], one["data"]["refusals"]) == (1, 2)
    cut = run(home, "wiki", "gaps", "--limit", "1", cwd=tmp_path)
    assert cut.out.splitlines()[-1] == "2 questions, refused 3 times since 2026-11-20; 1 shown"
    wrong = run(home, "wiki", "gaps", "--reason", "nothing", "--json", cwd=tmp_path)
    assert (wrong.code, wrong.json["errors"][0]["code"]) == (2, "reason_unknown")
    assert wrong.json["errors"][0]["hint"] == "Reasons in the log: not_in_wiki, not_understood."
