"""benchmark.md: one receipt gives one text, which says all of it; foreign text does nothing in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from evaluator.receipt.findings import DeviceKernel, LibraryOperation, NotTried, SanitizerRun, TaskCheck
from evaluator.receipt.problem import CandidateRecord
from evaluator.receipt.receipt import Receipt, parse
from evaluator.receipt.receipt import render as render_receipt
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.scan.hazards import Hazard, Severity
from evaluator.source.forms import Backend
from evaluator.store.report import MARK, check_report, render, save_report
from kbs.common.errors import KoptError, UsageError
from kbs.common.markdown import bullets, inert, table
from kbs.common.visible_text import visible
from tests.evaluator.receipts import (
    KERNEL,
    REFERENCE,
    back_to_back,
    baseline,
    clocks,
    failed_baseline,
    plan,
    problem,
    receipt,
    source_record,
    spans,
    timed,
    timed_receipt,
    timing,
    trial,
    workload_timing,
)

GOLDEN = Path(__file__).parents[2] / "golden" / "benchmark.md"
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def tokens(text: str) -> list[str]:
    """The kinds of all tokens of a document, those inside of lines too."""
    found = []
    for token in PARSER.parse(text):
        found += [token.type, *(f"{token.type}>{child.type}" for child in token.children or ())]
    return found


def seen(text: str) -> str:
    """What a reader sees of a text that was made inert, alone on a line."""
    (paragraph,) = [token for token in PARSER.parse(text) if token.type == "inline"]
    assert paragraph.children is not None
    assert {child.type for child in paragraph.children} <= {"text", "text_special"}
    return "".join(child.content for child in paragraph.children)


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table below a heading, without its head."""
    below = text.partition(f"{heading}\n")[2]
    lines = below[below.index("|") :].split("\n\n")[0].splitlines()
    return [[cell.strip().replace("\\", "") for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def section(text: str, heading: str) -> str:
    """What stands below a heading, up to the next one of any level."""
    return text.partition(f"{heading}\n\n")[2].partition("\n#")[0].strip()


# --- the whole --------------------------------------------------------------------------------------------------------


def test_the_whole_report() -> None:
    made = timed_receipt()
    text = render(made).replace(made.id, "0" * 64).replace(made.id[:16], "0" * 16)  # it changes with every schema
    assert text == GOLDEN.read_text("utf-8")


def test_a_receipt_that_was_read_gives_the_same_text() -> None:
    """Its file keeps no order of keys."""
    known = {"eager": baseline(), "compile": baseline("compile", 1.005), "apex": failed_baseline("apex")}
    made = timed_receipt(timing(workload_timing(dims={"n": 3, "m": 2}, baselines=known)))
    assert render(parse(render_receipt(made))) == render(made)


def test_kernels_with_all_figures() -> None:
    text = render(timed_receipt(timing(workload_timing(operations=10**9))))
    found = {row[0]: row[1:] for row in rows(text, "## Times")}
    assert list(found) == ["candidate", "eager", "compile", "flashinfer"]
    assert found["candidate"] == [
        "136.0 µs",
        "135.9 to 136.1",
        "135.7",
        "136.4",
        "135.3",
        "138.7",
        "0.5440",
        "19",
        "3948",
        "7.353",
    ]
    assert found["flashinfer"] == ["failed", *["N/A"] * 9]
    assert "flashinfer: it is not installed" in text


def test_ratios_with_their_intervals() -> None:
    found = {row[0]: row[1:] for row in rows(render(timed_receipt()), "### Ratios")}
    assert found["eager"] == [
        "1.312",
        "1.307 to 1.318",
        "1.310, 1.311, 1.312, 1.314, 1.315",
        "19",
        "0.40%",
        "faster",
    ]
    assert found["flashinfer"] == ["failed", *["N/A"] * 4, "not_compared"]


def test_several_workloads() -> None:
    """A line for each, and the geometric mean."""
    times = timing(
        workload_timing(dims={"n": 64}, ceiling=None, of_ceiling=None),
        workload_timing(dims={"n": 65}, baselines={"eager": baseline("eager", 1.0)}, improvement=Improvement.SAME),
    )
    text = render(timed_receipt(times))
    assert rows(text, "### Workloads") == [
        ["n=64", "136.0 µs", "1.312", "1.307 to 1.318", "faster", "N/A", "82.2%"],
        ["n=65", "136.0 µs", "1.000", "0.996 to 1.004", "same", "96.2%", "82.2%"],
        ["geometric mean, against eager", "", "1.146", "1.141 to 1.150", "", "", ""],
    ]
    assert "### Workload 1: n=64\n" in text
    assert "### Workload 2: n=65\n" in text
    assert text.count("#### Cross-checks of the device time") == 2


def test_nothing_pretends_on_the_cpu() -> None:
    text = render(receipt())
    assert section(text, "## Times") == "N/A: no time was taken."
    assert "| improvement | not\\_timed |" in text
    assert "µs" not in text
    assert "- speed: nothing is timed on the CPU" in text
    assert "| device | the CPU |" in text
    assert "| driver | N/A |" in text


def test_a_receipt_of_nothing() -> None:
    text = render(
        receipt(
            verdict=Verdict.COMPILE_ERROR,
            correctness=(),
            task_check=None,
            not_tried=(),
            not_checked=(),
            hazards=(),
            reason="it does not compile",
        )
    )
    assert "| verdict | compile\\_error: it does not compile |" in text
    assert section(text, "## Correctness") == "N/A: no call came to an end."
    assert section(text, "## Hazards") == "None was found."
    assert section(text, "## Really ran") == "N/A: nothing was seen to run."
    assert section(text, "## Not tried") == "Nothing."


def test_no_baseline() -> None:
    alone = timing(workload_timing(baselines={}, against="", notes=()), plan="signal")
    text = render(timed_receipt(alone, improvement=Improvement.NOT_COMPARED))
    assert section(text, "### Ratios") == "N/A: there is no baseline."
    assert section(text, "### Notes") == "None."


def test_calls_without_a_pause_have_a_section_where_there_were_some() -> None:
    text = render(timed_receipt(timing(workload_timing(back_to_back=back_to_back()))))
    assert section(text, "### Back to back").splitlines()[-1] == "- so called, 0.815 times as fast as eager"
    assert "Back to back" not in render(timed_receipt(timing()))


def test_what_failed_is_told() -> None:
    hazards = (
        Hazard(id="fixed_inputs", severity=Severity.NOTE, evidence="one set"),
        Hazard(id="patched", severity=Severity.REJECT, evidence="torch.allclose was replaced", line=7),
    )
    text = render(
        receipt(
            verdict=Verdict.CHEATING,
            hazards=hazards,
            correctness=(trial(), trial(index=1, passed=False, worst=12, got=3.5, expected=3.25)),
            sanitizers=(SanitizerRun(tool="memcheck", status="failed", detail="Invalid read"),),
        )
    )
    assert rows(text, "## Hazards") == [
        ["patched", "rejects", "torch.allclose was replaced", "7"],
        ["fixed_inputs", "note", "one set", ""],
    ]
    assert rows(text, "## Correctness") == [
        ["n=64", "normal", "2", "1 of 2", "FAILED: element 12 is 3.5, right is 3.25"]
    ]
    assert "- memcheck: failed: Invalid read" in text


def test_the_receipt_and_how_it_is_verified() -> None:
    made = receipt()
    text = render(made)
    assert text.startswith(f"{MARK}, receipt {made.id} -->\n")
    assert f"kopt bench verify {made.id[:16]}.json" in text
    assert text.endswith("```\n")


# --- foreign text -----------------------------------------------------------------------------------------------------

PLANTED = [
    "a | b",
    "a \\| b",
    "a\\",
    "`code`",
    "``` sh\nrm",
    "k\n# heading",
    "k\n\n| verdict | accepted |",
    "# heading",
    "- item",
    "+ item",
    "* item",
    "1. item",
    "12) item",
    "> quoted",
    "---",
    "===",
    "<b>bold</b>",
    "<!-- comment",
    "--> <script>alert(1)</script>",
    "&lt;&#124;",
    "**bold** _em_ ~~gone~~",
    "[name](https://example.org)",
    "![image](https://example.org/a.png)",
    "<https://example.org>",
    "https://example.org www.example.org",
    "[ref]: https://example.org",
    "$x^2$",
    "\x1b[2J\u202ek\u200b",
    "    indented",
    "\ttab",
    "~~~",
]


def planted(text: str) -> Receipt:
    """A receipt with this text wherever somebody else can put one."""
    file = f"{text.replace('/', '').replace(chr(0), '')}.py"[-200:]
    times = workload_timing(
        dims={text or "k": 3},
        candidate=timed(flags=(text,), detail=text),
        baselines={"eager": baseline(), text or "k": failed_baseline(text or "k", text)},
        spans=spans(detail=text),
        notes=(text,),
        unstable=(text,),
    )
    return timed_receipt(
        timing(times, clocks=clocks(throttled=(text,))),
        verdict=Verdict.CHEATING,
        improvement=Improvement.UNSTABLE,
        reason=f"patched: {text}",
        candidate=CandidateRecord(
            **source_record(file, KERNEL).model_dump(), backend=Backend.TORCH, entry="run", flags=()
        ),
        problem=problem(reference=source_record(file, REFERENCE), workloads=({text or "k": 3},)),
        plan=plan(workloads=({text or "k": 3},)),
        correctness=(
            trial(dims={text or "k": 3}, distribution=text, passed=False, detail=text),
            trial(dims={text or "k": 3}, index=1, distribution="z", output=text),
        ),
        task_check=TaskCheck(refused=False),
        not_tried=(NotTried(what=text or "k", why=text or "k"),),
        hazards=(Hazard(id="patched", severity=Severity.REJECT, evidence=text, line=3),),
        sanitizers=(SanitizerRun(tool="memcheck", status="failed", detail=text),),
        kernels=(DeviceKernel(name=text, library=False, calls=1, microseconds=1.0),),
        library_operations=(LibraryOperation(name=text, calls=1, share=0.5),),
        not_checked=(text,),
    )


def harmless(text: str) -> list[str]:
    """Tokens, with lines' contents counted as text alone."""
    return [kind for kind in tokens(text) if not kind.startswith("inline>text")]


PLAIN = harmless(render(planted("k")))


@pytest.mark.parametrize("text", PLANTED, ids=ascii)
def test_foreign_text_adds_nothing_to_the_document(text: str) -> None:
    """As many rows, cells, items, headings as with a plain word; no code, link, image, or markup of any kind."""
    assert harmless(render(planted(text))) == PLAIN


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=30) | st.text("|\\`*_<>[]()#-+.1&~ \n", max_size=12))
def test_no_text_at_all_adds_anything(text: str) -> None:
    if text.strip():
        assert harmless(render(planted(text))) == PLAIN


@given(st.text("|\\`*_<>[]()!{}#-+=.:/1a&;~$@ \n\r\t", max_size=16) | st.text(max_size=16))
def test_it_is_shown_as_it_is(text: str) -> None:
    shown = inert(text)
    assert "\n" not in shown
    if shown:
        assert seen(shown) == visible(text).strip()
        assert seen(bullets([text])[0]) == visible(text).strip()


@given(st.lists(st.text("|\\`*a ", max_size=6), min_size=2, max_size=4))
def test_cells_stay_cells(texts: list[str]) -> None:
    lines = table([str(n) for n in range(len(texts))], [texts])
    inline = [token for token in PARSER.parse("\n".join(lines)) if token.type == "inline"]
    assert [token.content.replace("\\", "") for token in inline[len(texts) :]] == [
        text.strip().replace("\\", "") for text in texts
    ]


# --- the file ---------------------------------------------------------------------------------------------------------


def test_a_report_is_written_and_written_again(tmp_path: Path) -> None:
    path = tmp_path / "benchmark.md"
    save_report(path, receipt())
    save_report(path, timed_receipt())
    assert path.read_text("utf-8") == render(timed_receipt())
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"# My notes\n", b"\xff\xfe", b"\n" + MARK.encode()], ids=ascii)
def test_other_files_are_never_overwritten(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "benchmark.md"
    path.write_bytes(content)
    with pytest.raises(UsageError, match="it is not overwritten"):
        check_report(path)
    with pytest.raises(UsageError, match="it is not overwritten") as caught:
        save_report(path, receipt())
    assert caught.value.code == "report_exists"
    assert "--report" in caught.value.hint
    assert path.read_bytes() == content


def test_a_folder_is_no_report(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_report(tmp_path)
    assert caught.value.code == "report_exists"


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        check_report(tmp_path / "no" / "benchmark.md")
    assert caught.value.code == "report_folder"


def test_a_report_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kbs.common.files.os.open", full)
    with pytest.raises(KoptError) as caught:
        save_report(tmp_path / "benchmark.md", receipt())
    assert caught.value.code == "disk_full"
