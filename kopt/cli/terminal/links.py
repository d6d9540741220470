"""Links from a citation that is printed to the line that it names, for terminals that open them (OSC 8)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import IO, TYPE_CHECKING

from kbs.common.errors import KoptError

if TYPE_CHECKING:
    from wiki.library import Wiki

REFERENCE = re.compile(
    r"(?<![\w/.-])[\w.-]+(?:/[\w.%-]+)+\.(?:md|markdown|txt|rst):L\d{1,9}(?:-L?\d{1,9})?(?![\w@])", re.ASCII
)
"""What may be a citation of lines; `kbs.evidence.citation` decides."""
_PROGRAMS = {"iterm.app", "wezterm", "vscode", "ghostty", "hyper", "rio", "warpterminal", "tabby", "contour"}
_TERMINALS = ("xterm-kitty", "xterm-ghostty", "alacritty", "foot", "contour", "wezterm")
_VTE = 5000
"""The first version of VTE (GNOME Terminal, Tilix …) whose links work."""


def opens_links(stream: IO[str], environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the stream is a terminal that is known to open links; FORCE_HYPERLINK=1 or 0 decides for itself."""
    if not stream.isatty():
        return False
    if forced := environment.get("FORCE_HYPERLINK", ""):
        return forced != "0"
    terminal = environment.get("TERM", "")
    if "CI" in environment or terminal == "dumb" or terminal.startswith(("screen", "tmux")):
        return False
    vte = environment.get("VTE_VERSION", "")
    return (
        environment.get("TERM_PROGRAM", "").lower() in _PROGRAMS
        or terminal.startswith(_TERMINALS)
        or (vte.isdecimal() and int(vte) >= _VTE)
        or any(name in environment for name in ("WT_SESSION", "KONSOLE_VERSION", "DOMTERM"))
    )


def page_links() -> Callable[[str], str]:
    """Address of the cited line of a page, by its reference; empty where no wiki in use has such a page.

    The wikis are looked up when the first reference is printed. An address is percent-encoded, so a terminal obeys
    nothing in it, and names a file inside of a wiki.
    """

    @cache
    def address(reference: str) -> str:
        from kbs.evidence.citation import parse_reference

        found = parse_reference(reference)
        wiki = _wikis().get(found.wiki) if found is not None and found.of_lines else None
        if found is None or wiki is None:
            return ""
        try:
            file = wiki.place(found.target).resolve()
            if not file.is_relative_to(wiki.root.resolve()) or not file.is_file():
                return ""
        except (OSError, RuntimeError, ValueError):
            return ""
        # GNOME's terminals hand the address to programs that take `#` for a part of the name.
        line = "" if "VTE_VERSION" in os.environ else f"#{found.line_start}"
        return f"{file.as_uri()}{line}"

    return address


@cache
def _wikis() -> Mapping[str, Wiki]:
    from kopt.services.engine import Engine
    from kopt.services.settings import load_settings

    try:
        return {wiki.name: wiki for wiki in Engine(load_settings()).wikis}
    except KoptError:  # the command itself has said so
        return {}
