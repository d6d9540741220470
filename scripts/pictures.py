"""Draws the pictures of README.md: an answer, and a run.

    python -m scripts.pictures            # from docs/pictures/*.txt, which hold what a terminal showed
    python -m scripts.pictures --record   # play the commands again first

A picture is an SVG without a font, script or address of elsewhere, and the same text always gives the same picture.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import subprocess
import sys
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS = 100
_MONOSPACE = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


@dataclass(frozen=True)
class Picture:
    """What was typed, what is really called, and the first line that is left out."""

    typed: str
    words: tuple[str, ...]
    until: str


SHOWN = {
    "answer": Picture(
        "kopt ask why is my softmax memory-bound on H200",
        ("ask", "why", "is", "my", "softmax", "memory-bound", "on", "H200"),
        until="  [13] ",
    ),
    "run": Picture(
        "kopt run status --run h200/command",
        ("run", "status", "--run", "benchmarks/results/loop/h200/command"),
        until="  reports ",
    ),
}


def record(shown: Picture) -> str:
    """What a terminal shows of the command, with its colours. Folders of this machine are left out."""
    master, slave = pty.openpty()
    variables = {"TERM": "xterm-256color", "COLUMNS": str(COLUMNS), "FORCE_HYPERLINK": "0", "PAGER": "cat"}
    words = [sys.executable, "-m", "kopt", *shown.words]
    with subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=slave, cwd=ROOT, env={**os.environ, **variables}
    ) as run:
        os.close(slave)
        told = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # the command has ended
                break
            if not part:
                break
            told += part
    os.close(master)
    if run.returncode:
        raise SystemExit(f"{shown.typed} ended with {run.returncode}")
    lines = told.decode("utf-8").replace("\r\n", "\n").replace(str(ROOT), "~/kopt").splitlines()
    kept = next((n for n, line in enumerate(lines) if line.startswith(shown.until)), len(lines))
    end = ["  ..."] if kept < len(lines) else []
    return "\n".join([f"\x1b[1m$ {shown.typed}\x1b[0m", *lines[:kept], *end]) + "\n"


def draw(text: str, title: str) -> str:
    """The SVG of what a terminal showed."""
    from rich._export_format import CONSOLE_SVG_FORMAT
    from rich.console import Console
    from rich.text import Text

    out = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for line in text.splitlines():
        shown = Text.from_ansi(line)
        for start in range(0, max(1, len(shown)), COLUMNS):  # a terminal breaks lines that are left whole
            out.print(shown[start : start + COLUMNS], soft_wrap=True)
    form = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    form = form.replace("Fira Code, monospace", _MONOSPACE).replace("font-family: arial", "font-family: sans-serif")
    form = re.sub(r" *<!--.*?-->\n", "", form)
    svg = out.export_svg(title=title, code_format=form, unique_id=title.split()[0])
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def main() -> None:
    """Write the pictures, and with `--record` the texts before."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--record", action="store_true", help="Play the commands again first.")
    again = parser.parse_args().record
    for name, shown in SHOWN.items():
        text = PICTURES / f"{name}.txt"
        if again:
            text.write_text(record(shown), "utf-8")
        text.with_suffix(".svg").write_text(draw(text.read_text("utf-8"), name), "utf-8")


if __name__ == "__main__":
    main()
