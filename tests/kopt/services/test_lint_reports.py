"""Which reports of the lint are written where."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kopt.services.wikis import check_report, report_lines
from wiki.library import Wiki
from wiki.page import Problem


def test_what_cannot_be_printed_or_written_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine", "utf-8")
    for format, output, json, code in (
        ("xml", None, False, "format_unknown"),
        ("text", tmp_path / "new", False, "format_unknown"),
        ("github", None, True, "no_output"),
        ("sarif", None, True, "no_output"),
        ("github", mine, False, "output_exists"),
        ("sarif", mine, True, "output_exists"),
    ):
        with pytest.raises(UsageError) as error:
            check_report(format, output, json=json)
        assert error.value.code == code


def test_a_report_is_written_over_by_the_next(tmp_path: Path) -> None:
    sarif, github = tmp_path / "out.sarif", tmp_path / "annotations"
    sarif.write_text("\n".join(report_lines("sarif", [])) + "\n", "utf-8")
    check_report("sarif", sarif, json=True)
    github.write_text("", "utf-8")
    check_report("github", github, json=False)
    github.write_text("::error file=a::b\n", "utf-8")
    check_report("github", github, json=False)
    check_report("text", None, json=True)


def test_a_workflow_reads_files_from_its_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "docs" / "mine"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\nid: x\n---\n", "utf-8")
    found = [(Wiki("mine", folder), Problem("a.md", 1, "front-matter", "no"))]
    monkeypatch.chdir(tmp_path / "docs")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    for running, other, named in (("", "", "mine/a.md"), ("true", "", "docs/mine/a.md"), ("true", "/x", "mine/a.md")):
        monkeypatch.setenv("GITHUB_ACTIONS", running)
        if other:
            monkeypatch.setenv("GITHUB_WORKSPACE", other)
        assert f"file={named}," in report_lines("github", found)[0]
        assert f'"uri": "{named}"' in "\n".join(report_lines("sarif", found))
