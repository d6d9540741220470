"""What a terminal gets: folded sentences, whole citations, links, and nothing that it would obey."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kopt.cli.terminal import links
from kopt.cli.terminal.console import console
from wiki.library import Wiki

LINE = "gpu-wiki/kernel/softmax.md:L3"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """As it is."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal of 40 columns without colours or links."""
    for name, value in (("COLUMNS", "40"), ("TERM", "xterm-256color"), ("NO_COLOR", "1"), ("FORCE_HYPERLINK", "0")):
        monkeypatch.setenv(name, value)
    return Terminal()


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of the one wiki in use."""
    file = tmp_path / "kernel" / "softmax.md"
    file.parent.mkdir()
    file.write_text("a page")
    monkeypatch.setattr(links, "_wikis", lambda: {"gpu-wiki": Wiki("gpu-wiki", tmp_path)})
    monkeypatch.delenv("VTE_VERSION", raising=False)
    return file


def test_sentences_are_folded_and_set_in_and_what_is_copied_is_not(terminal: Terminal) -> None:
    out = console(terminal)
    out.print("  - a claim that is much longer than this terminal is wide", markup=False)
    out.print(f"  [1] HBM bandwidth: 3.35 TB/s <- {LINE}", markup=False)
    out.print("  3  |  a row  |  of a table that a reader copies whole", markup=False)
    out.print("  stopped      since a version is near the peak", markup=False)
    folded = ["  - a claim that is much longer than", "    this terminal is wide"]
    assert terminal.getvalue().splitlines() == [
        *folded,
        f"  [1] HBM bandwidth: 3.35 TB/s <- {LINE}",
        "  3  |  a row  |  of a table that a reader copies whole",
        "  stopped      since a version is near",
        "               the peak",
    ]


def test_what_a_terminal_would_obey_is_written_out_in_folded_text_too(terminal: Terminal) -> None:
    console(terminal).print(
        "a \x1b]8;;http://x.org/\x1b\\ claim [bold] of :fire: others \x1b[2K which is long", markup=False
    )
    assert "\x1b" not in terminal.getvalue()
    assert "[bold] of :fire:" in terminal.getvalue()


def test_a_citation_is_linked_to_its_line_on_terminals_alone(
    terminal: Terminal, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_HYPERLINK", "1")
    console(terminal).print(f"see {LINE}", markup=False)
    assert f";{page.as_uri()}#3\x1b\\" in terminal.getvalue()
    pipe = io.StringIO()
    console(pipe).print(f"see {LINE}", markup=False)
    assert pipe.getvalue() == f"see {LINE}\n"


@pytest.mark.parametrize(
    "reference",
    [
        "gpu-wiki/kernel/gone.md:L3",
        "other/kernel/softmax.md:L3",
        "gpu-wiki/../secret.md:L1",
        "gpu-wiki/kernel/out.md:L1",
    ],
)
def test_nothing_else_is_linked(page: Path, reference: str) -> None:
    secret = page.parent.parent.parent / "secret.md"
    secret.write_text("no page")
    (page.parent / "out.md").symlink_to(secret)
    assert links.page_links()(LINE)
    assert links.page_links()(reference) == ""


@pytest.mark.parametrize(
    ("environment", "opens"),
    [
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM": "xterm-256color", "VTE_VERSION": "6800"}, True),
        ({"TERM": "xterm-256color", "TERM_PROGRAM": "vscode"}, True),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "tmux-256color", "TERM_PROGRAM": "vscode"}, False),
        ({"TERM": "xterm-kitty", "CI": "true"}, False),
        ({"TERM": "xterm-kitty", "FORCE_HYPERLINK": "0"}, False),
    ],
)
def test_terminals_that_open_links(environment: dict[str, str], opens: bool) -> None:
    assert links.opens_links(Terminal(), environment) is opens
    assert not links.opens_links(io.StringIO(), {**environment, "FORCE_HYPERLINK": "1"})
