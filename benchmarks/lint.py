"""Time of `kopt wiki lint` for a wiki of many pages.

    python benchmarks/lint.py [--pages 10000] [--out benchmarks/results/lint.jsonl]

The pages are those of the bundled wiki without its hardware pages, copied under other names; in each copy every word of
five letters and more has its letters in another order, drawn by the page's number, so that no two pages repeat a
sentence. What the lint finds is counted and does not matter here. A line of JSON is appended.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import re
import resource
import tempfile
import time
from pathlib import Path

from kbs.evidence.vocabulary import vocabulary
from wiki.library import Wiki, bundled_wiki
from wiki.lint import lint

_PROSE = re.compile(r"(?<![\w`/.#\[(^-])[a-z]{5,}(?![\w`/.\])-])")
"""Words of sentences, and not of names, addresses, code or footnotes."""


def write_pages(folder: Path, count: int) -> None:
    """`count` pages below a folder."""
    wiki = bundled_wiki()
    paths = [file.path for file in wiki.files() if not file.path.startswith(("hardware/", "README"))]
    texts = {path: (wiki.read(path) or b"").decode() for path in paths}
    for number in range(count):
        path = paths[number % len(paths)]
        name = f"{path.removesuffix('.md')}-{number}"
        _, front, body = texts[path].split("---\n", 2)
        front = front.replace(f"id: {path.removesuffix('.md')}\n", f"id: {name}\n")
        draw = random.Random(number)
        body = _PROSE.sub(lambda word: "".join(draw.sample(word.group(), len(word.group()))), body)  # noqa: B023 # used at once
        target = folder / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"---\n{front}---\n{body}", "utf-8")


def children() -> float:
    """Processor seconds of the processes that were started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Write the pages, lint them, append a line."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--pages", type=int, default=10_000)
    words.add_argument("--out", type=Path)
    options = words.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_pages(Path(folder), options.pages)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*.md"))
        load = os.getloadavg()[0]
        wall, cpu = time.perf_counter(), time.process_time()
        found = lint(Wiki("many", Path(folder)), vocabulary(), today=datetime.date.today())
        line = {
            "pages": options.pages,
            "mebibytes": round(size / 2**20, 1),
            "seconds": round(time.perf_counter() - wall, 1),
            "cpu_seconds": round(time.process_time() - cpu + children(), 1),
            "findings": len(found),
            "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "cores": os.cpu_count(),
            "load": round(load, 1),
            "date": datetime.date.today().isoformat(),
        }
    print(json.dumps(line))
    if options.out is not None:
        with options.out.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
