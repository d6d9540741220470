"""Which reports of the lint are written where."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kopt.services.wikis import check_report, report_lines


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
