"""The docs say what the program does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kopt.cli.schema import COMMANDS
from scripts.generated_docs import PAGES

ROOT = Path(__file__).parents[3]


@pytest.mark.processes
@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_fresh(name: str) -> None:
    assert (ROOT / "docs" / name).read_text("utf-8") == PAGES[name](), "run `just docs`"


def test_every_command_is_in_the_guide() -> None:
    guide = (ROOT / "docs" / "guide.md").read_text("utf-8")
    for command in COMMANDS:
        assert f"kopt {command}" in guide, command


def test_links_of_the_docs_exist() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"(?ms)^(`{3,})[^\n]*\n.*?^\1$", "", page.read_text("utf-8"))  # what stands in code is no link
        prose = re.sub(r"(?m)^ {4}.*$|`[^`\n]*`", "", text)
        for target in re.findall(r"\]\((?!https?://)([^)#:\s]+)", prose):  # addresses of the web are not opened
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_commands_are_what_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert "./scripts/check" in readme
    assert "scripts/check" in (ROOT / ".ci" / "run").read_text("utf-8")
    assert "pip install -c constraints.txt" in readme
