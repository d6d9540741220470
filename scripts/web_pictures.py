#!/usr/bin/env python3
"""Pictures of `kopt web` for docs/web.md, taken in a headless Chromium: docs/pictures/web-*.png.

    python -m scripts.web_pictures

The pages show the runs of benchmarks/results/loop/h200, imported into a log of their own.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image

from kopt.services.viewing.runs import KnownRuns
from tests.browser import NAMES, Browser, installed
from tests.conftest import run_kopt
from tests.kopt.web.site import TOKEN, Site, served

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
RUNS = ROOT / "benchmarks/results/loop/h200"
QUESTION = "/?q=why%20is%20my%20softmax%20memory-bound%20on%20H100"
COLOURS = 255
"""Of a picture, for a third of the size."""


def main() -> int:
    """Take each picture; 1 where there is no browser."""
    program = installed()
    if program is None:
        print(f"no browser is installed: none of {', '.join(NAMES)}", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        home, root = Path(folder) / "home", Path(folder) / "work"
        shutil.copytree(RUNS, root / "runs")
        run_kopt(home, "ingest", cwd=root)
        for name in ("agent", "command", "llm"):
            run_kopt(home, "log", "import", str(RUNS / name), cwd=root)
        os.environ["KOPT_HOME"] = str(home)
        run = next(key for key, one in KnownRuns.of(home, root).all.items() if one.name == "agent")
        shots = (
            ("ask", QUESTION, 1200, 760, False),
            ("page", "/wiki/gpu-wiki/kernel/softmax.html#L45", 1200, 620, False),
            ("run", f"/runs/{run}", 1200, 880, True),
            ("compare", f"/runs/{run}/compare", 1200, 900, False),
            ("log", "/log?op=softmax", 1200, 620, True),
            ("narrow", QUESTION, 400, 760, True),
        )
        site = Site(home, root)
        site.desk().warm()  # the first question would wait for the model
        browser = Browser(program, Path(folder) / "profile")
        with served(site) as address:
            browser.open(f"{address}/?token={TOKEN}")
            browser.until("location.search === '' && !!document.querySelector('#ask')")
            for name, page, width, height, dark in shots:
                browser.size(width, height, dark=dark)
                browser.open(address + page)
                browser.until("document.readyState === 'complete'")
                write(FOLDER / f"web-{name}.png", browser.picture())
        browser.close()
    return 0


def write(path: Path, data: bytes) -> None:
    """A picture with few colours."""
    picture = (
        Image.open(io.BytesIO(data))
        .convert("RGB")
        .quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    )
    path.parent.mkdir(exist_ok=True)
    picture.save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    sys.exit(main())
