"""`kopt cite` as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wiki.library import bundled_wiki

PAGE = "hardware/h100-sxm.md"
ROW = "| HBM bandwidth | 3.35 | TB/s |"
LINE = next(n for n, line in enumerate((bundled_wiki().root / PAGE).read_text("utf-8").split("\n"), 1) if ROW in line)
HERE = f"gpu-wiki/{PAGE}:L{LINE}"
RIGHT = f"H100 SXM HBM bandwidth: 3,350 GB/s <- {HERE}"
WRONG = f"H100 SXM HBM bandwidth: 3.53 TB/s <- {HERE}"
Kopt = Callable[..., Any]


@pytest.fixture(scope="module")
def answer(kopt: Kopt) -> dict[str, Any]:
    """The JSON of an answer with many citations."""
    done = kopt("ask", "why is my softmax memory-bound on H100", "--json")
    assert done.code == 0
    return dict(done.json)


def citations(document: Any) -> list[dict[str, Any]]:
    """Every citation object of a JSON document; changing one changes the document."""
    if isinstance(document, list):
        return [found for item in document for found in citations(item)]
    if not isinstance(document, dict):
        return []
    if {"hash", "quote"} <= document.keys():
        return [document]
    return [found for item in document.values() for found in citations(item)]


def copy(document: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(document)))


def statuses(kopt: Kopt, document: object) -> tuple[int, list[str]]:
    done = kopt("cite", "-", "--json", stdin=json.dumps(document, ensure_ascii=False))
    return done.code, [item["status"] for item in done.json["data"]["citations"]]


def test_a_right_line(kopt: Kopt) -> None:
    done = kopt("cite", RIGHT)
    assert done.code == 0
    assert done.out.splitlines() == [f"1: ok        {RIGHT}", "1 ok, 0 failed"]
    assert done.err == ""


def test_a_wrong_line_shows_what_the_page_says(kopt: Kopt) -> None:
    done = kopt("cite", WRONG)
    assert done.code == 4
    assert "mismatch" in done.out
    assert "3.53 TB/s is not 3.35 TB/s" in done.out
    assert f"the line says: {ROW}" in done.out
    assert done.out.endswith("0 ok, 1 failed\n")


@pytest.mark.parametrize(
    ("text", "status", "detail"),
    [
        (f"H100 PCIe HBM bandwidth: 3.35 TB/s <- {HERE}", "mismatch", "the line is about H100 SXM"),
        (f"H100 HBM bandwidth: 3.35 TB/s <- {HERE}", "mismatch", "leaves open which of"),
        ("TDP: 700 W <- gpu-wiki/hardware/h150.md:L3", "not found", "gpu-wiki has no page hardware/h150.md"),
        ("TDP: 700 W <- our-wiki/hardware/h100-sxm.md:L3", "not found", "there is no wiki named our-wiki"),
        (f"TDP: 700 W <- gpu-wiki/{PAGE}:L0", "not found", "names no lines"),
        (f"TDP: 700 W <- gpu-wiki/{PAGE}:L99999", "not found", "ends at line"),
        (f"{RIGHT}@00000000", "stale", "the lines have changed since they were cited"),
        ("median: receipt/1f0c9a77#median", "not found", "has no receipt 1f0c9a77, and none was given"),
    ],
)
def test_each_failure_has_its_status(kopt: Kopt, text: str, status: str, detail: str) -> None:
    done = kopt("cite", text, "--json")
    assert done.code == 4
    [found] = done.json["data"]["citations"]
    assert found["status"] == status
    assert detail in found["detail"]


def test_the_envelope(kopt: Kopt) -> None:
    done = kopt("cite", f"{RIGHT}\nno citation here\n{WRONG}", "--json")
    assert done.code == 4
    assert done.err == ""
    assert done.out.count("\n") == 1
    envelope = done.json
    assert (envelope["schema_version"], envelope["command"], envelope["status"]) == (1, "cite", "rejected")
    assert (envelope["warnings"], envelope["errors"]) == ([], [])
    data = envelope["data"]
    assert (data["ok"], data["failed"]) == (1, 1)
    assert [(item["line"], item["status"]) for item in data["citations"]] == [(1, "ok"), (3, "mismatch")]
    assert all(item["reference"] == HERE and ROW in item["says"] for item in data["citations"])


def test_a_file(kopt: Kopt, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    file.write_bytes(f"# Report\r\n\r\n- {RIGHT}\r\n".encode() + b"\xff\xfe is no text\r\n")
    assert kopt("cite", str(file)).code == 0
    file.write_text(f"# Report\n\n- {RIGHT}\n- {WRONG}\n", "utf-8")
    done = kopt("cite", "report.md", cwd=tmp_path)
    assert done.code == 4
    assert done.out.splitlines()[-1] == "1 ok, 1 failed"
    assert "4: mismatch" in done.out


def test_a_file_that_is_not_there(kopt: Kopt, tmp_path: Path) -> None:
    done = kopt("cite", str(tmp_path / "gone.md"), "--json")
    assert done.code == 2
    assert done.json["errors"][0]["code"] == "file_not_found"
    assert done.json["data"] is None


def test_a_folder_is_no_text(kopt: Kopt, tmp_path: Path) -> None:
    done = kopt("cite", str(tmp_path), "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, "not_a_file")


def test_standard_input(kopt: Kopt) -> None:
    done = kopt("cite", "-", stdin=f"{RIGHT}\n\n`{RIGHT}`\n")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "2 ok, 0 failed"


@pytest.mark.parametrize("text", ["there is nothing to check here", "{}", "[]", '{"a": [1, null, "b"]}'])
def test_a_text_without_citations_is_said_to_have_none(kopt: Kopt, text: str) -> None:
    done = kopt("cite", text)
    assert (done.code, done.err) == (3, "")
    assert done.out.startswith("No citation was found in the text")


def test_the_json_of_an_answer_is_all_ok(kopt: Kopt, answer: dict[str, Any]) -> None:
    code, found = statuses(kopt, answer)
    assert code == 0
    assert len(found) >= len(citations(answer)) >= 20
    assert set(found) == {"ok"}


@pytest.mark.parametrize(
    ("field", "value", "status"),
    [
        ("quote", "| HBM bandwidth | 9.99 | TB/s |", "mismatch"),
        ("quote", None, "mismatch"),
        ("hash", "0" * 64, "stale"),
        ("hash", "", "stale"),
        ("hash", None, "stale"),
        ("path", "hardware/h150.md", "not found"),
        ("path", "../../pyproject.toml", "not found"),
        ("wiki", "our-wiki", "not found"),
        ("line_start", 0, "not found"),
        ("line_start", -1, "not found"),
        ("line_start", "3", "not found"),
        ("line_end", 99999, "not found"),
        ("line_end", None, "not found"),
    ],
)
def test_an_edited_citation_of_an_answer_fails(
    kopt: Kopt, answer: dict[str, Any], field: str, value: object, status: str
) -> None:
    edited = copy(answer)
    citations(edited)[3][field] = value
    code, found = statuses(kopt, edited)
    assert code == 4
    assert [s for s in found if s != "ok"] == [status]


def test_the_old_quote_is_shown_beside_the_line_of_today(kopt: Kopt, answer: dict[str, Any]) -> None:
    edited = copy(answer)
    chosen = citations(edited)[3]
    now, chosen["quote"], chosen["hash"] = chosen["quote"], "what stood there", "1" * 64
    done = kopt("cite", "-", stdin=json.dumps(edited))
    assert done.code == 4
    assert f"the line says: {now}" in done.out
    assert "it said:       what stood there" in done.out


def test_citation_lines_in_the_strings_of_a_json_document_are_checked(kopt: Kopt) -> None:
    done = kopt("spec", "h100-sxm", "hbm_bandwidth", "--json")
    specs = done.json
    assert statuses(kopt, specs)[0] == 0
    edited = copy(specs)
    row = edited["data"]["specs"][0]
    row["citation_line"] = row["citation_line"].replace("3.35", "3.53")
    code, found = statuses(kopt, edited)
    assert code == 4
    assert found.count("mismatch") == 1
    assert statuses(kopt, [WRONG]) == (4, ["mismatch"])
    assert statuses(kopt, WRONG) == (4, ["mismatch"])
    assert statuses(kopt, {"a": {"b": [RIGHT]}}) == (0, ["ok"])


def test_the_text_of_an_answer_is_all_ok(kopt: Kopt, answer: dict[str, Any]) -> None:
    done = kopt("cite", "-", stdin=answer["data"]["answer"])
    assert done.code == 0
    assert "0 failed" in done.out


def test_what_looks_like_json_and_is_none_is_read_as_text(kopt: Kopt) -> None:
    assert kopt("cite", f"[1] {WRONG}").code == 4
    assert kopt("cite", f"{{ {RIGHT}").code == 0
    assert kopt("cite", "-", stdin="[" * 100_000 + f"\n{WRONG}").code == 4


def test_a_large_document_is_read_to_its_end(kopt: Kopt) -> None:
    assert statuses(kopt, [[1] * 300_000, {"x": WRONG}]) == (4, ["mismatch"])


def test_a_text_that_is_cut_off_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    import kopt.cli.knowledge.cite
    from kopt.cli.main import app

    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kopt.cli.knowledge.cite, "MAX_TEXT", 200)
    (tmp_path / "long.md").write_text("\n" * 300 + WRONG)
    for words, text in ((["cite", "long.md"], ""), (["cite", "-"], "\n" * 300 + WRONG)):
        done = CliRunner().invoke(app, words, input=text)
        assert done.exit_code == 2
        assert "more than 200 characters" in done.output


@pytest.mark.parametrize("name", ["nope.md", "folder/nope", "report.txt"])
def test_a_file_that_is_not_there_is_no_text_without_citations(kopt: Kopt, tmp_path: Path, name: str) -> None:
    done = kopt("cite", name, "--json", cwd=tmp_path)
    assert (done.code, done.json["errors"][0]["code"]) == (2, "file_not_found")


def test_a_bare_reference_to_the_log_is_a_reference_and_no_file(kopt: Kopt) -> None:
    done = kopt("cite", "log/01M7ZBJTWR0003XY03Q6XH86ZV", "--json")
    assert done.json["errors"] == []


def test_nothing_in_json_hides_a_citation(kopt: Kopt, answer: dict[str, Any]) -> None:
    for one in ({WRONG: 1}, {"a": {WRONG: []}}, {**citations(answer)[0], "note": WRONG}):
        code, found = statuses(kopt, one)
        assert (code, found[-1]) == (4, "mismatch")
