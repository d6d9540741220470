"""Edits that a careful author makes in wiki pages, and that the lint must not object to."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import TypeVar

from tests.wiki.lint.places import TABLES, Body, Row

T = TypeVar("T")
Edit = Callable[[Random, Body], "str | None"]
HARMLESS: dict[str, Edit] = {}
"""Each edit by name."""
SYNONYMS = {
    "because": "since",
    "fast": "quick",
    "faster": "quicker",
    "needs": "requires",
    "shows": "displays",
    "only": "just",
    "often": "frequently",
    "keeps": "holds",
    "small": "little",
    "big": "large",
    "begins": "starts",
    "stops": "ends",
}


def harmless(edit: Edit) -> Edit:
    HARMLESS[edit.__name__.replace("_", "-")] = edit
    return edit


def _pick(rng: Random, found: list[T]) -> T | None:
    return rng.choice(found) if found else None


def _adds(*lines: str) -> Edit:
    def edit(rng: Random, page: Body) -> str | None:
        room = [one for one in page.sections if sum(one.heading < n < one.end for n in page.prose()) < 7]
        at = _pick(rng, [n for n in page.prose() if any(one.heading < n < one.end for one in room)])
        notes = [found[1] for line in page.lines if (found := re.match(r"\[\^([^]]+)\]: ", line))]
        if at is None or not notes:
            return None
        return page.put(at + 1, at + 1, *(line.replace("[^n]", f"[^{notes[0]}]") for line in lines))

    return edit


HARMLESS |= {
    "sentence-with-a-source": _adds("A launch of this kind costs 3.2 µs on an idle GPU.[^n]"),
    "sentence-with-a-range": _adds("Streams of this kind reach 78 to 82 GB/s on that host.[^n]"),
    "sentence-with-counts": _adds("A block of 256 threads in 8 warps is a good start."),
    "sentence-about-widths": _adds("Prefer 128-bit loads, and pad 2 rows where they conflict."),
    "sentence-with-about": _adds("Read more about occupancy before you change the tile."),
    "derived-line": _adds("Derived: 132 × 4 = 528 tensor cores."),
    "derived-rounded": _adds("Derived: 1,000 / 3 = 333.3, which 334 blocks cover."),
    "derived-units": _adds("Derived: 2 × 128 × 64 × 2 B = 32,768 B = 32 KB."),
    "link-of-a-page": _adds("[Tiling](../technique/tiling.md) says more."),
    "link-of-another-site": _adds("The [CUDA documentation](https://docs.nvidia.com/cuda/#any) says more."),
    "python-block": _adds("", "```python", "x = tl.load(p + i, mask=i < n)", "```", ""),
    "cuda-block": _adds("", "```cuda", 'asm("{ }" :: "r"(x)); // a brace } in a comment', "```", ""),
    "cuda-macros": _adds("", "```cuda", "#define F(x) { (x)", "char c = '(';", 'const char *s = "}{";', "```", ""),
    "plain-block": _adds("", "```text", "{ any ( thing", "```", ""),
    "table-of-words": _adds("", "| step | what |", "|---|---|", "| first | wait |", ""),
    "list": _adds("", "- Wait first.", "- Then go on.", ""),
    "code-in-prose": _adds("Write `x[0] = (y` nowhere, and `a](b` neither."),
    "product-named": _adds("The H100 PCIe and the RTX 4090 differ from it, and so does the T4."),
    "emphasis": _adds("This is **not** what *every* warp does."),
    "numbers-with-commas": _adds("Arrays of 65,536 elements and 1,024 rows are common."),
}


def _shuffled_list(page: Body, rng: Random, *keys: str) -> str | None:
    at = _pick(rng, [at for key in keys if (at := page.key(key)) and page.lines[at].count(",") > 0])
    if at is None:
        return None
    name, _, listed = page.lines[at].partition(": ")
    items = listed.strip("[]").split(", ")
    return page.put(at, at + 1, f"{name}: [{', '.join(reversed(items))}]")


@harmless
def rows_reordered(rng: Random, page: Body) -> str | None:
    rows = [row for row in page.rows() if row.at + 1 < len(page.lines) and page.lines[row.at + 1].startswith("|")]
    row = _pick(rng, rows)
    return row and page.put(row.at, row.at + 2, page.lines[row.at + 1], page.lines[row.at])


@harmless
def asks_reordered(rng: Random, page: Body) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and page.with_asks(one, page.asks(one)[::-1])


@harmless
def ask_added(rng: Random, page: Body) -> str | None:
    one = _pick(rng, [one for one in page.asked_sections() if len(page.asks(one)) < 8])
    return one and page.with_asks(one, [*page.asks(one), f"what would grandmother say of {one.title[:30].lower()}"])


@harmless
def asks_over_two_lines(rng: Random, page: Body) -> str | None:
    one = _pick(rng, [one for one in page.asked_sections() if one.asks and one.asks[0] == one.asks[1]])
    if one is None or one.asks is None:
        return None
    head, _, tail = page.lines[one.asks[0]].rpartition(" · ")
    return page.put(one.asks[0], one.asks[0] + 1, f"{head} ·", tail)


@harmless
def blank_line_added(rng: Random, page: Body) -> str | None:
    at = _pick(rng, page.prose())
    return None if at is None else page.put(at, at, "")


@harmless
def synonym(rng: Random, page: Body) -> str | None:
    for at in rng.sample(page.prose(), len(page.prose())):
        for old, new in SYNONYMS.items():
            if re.search(rf"(?<![-`\w]){old}(?![-`\w])", page.lines[at]):
                return page.put(at, at + 1, re.sub(rf"(?<![-`\w]){old}(?![-`\w])", new, page.lines[at]))
    return None


@harmless
def two_synonyms(rng: Random, page: Body) -> str | None:
    first = synonym(rng, page)
    return first and synonym(rng, Body(page.path, first))


@harmless
def aliases_reordered(rng: Random, page: Body) -> str | None:
    return _shuffled_list(page, rng, "aliases")


@harmless
def tags_reordered(rng: Random, page: Body) -> str | None:
    return _shuffled_list(page, rng, "tags", "architectures", "languages", "symptoms", "bottlenecks")


@harmless
def alias_added(rng: Random, page: Body) -> str | None:
    at = page.key("aliases")
    return None if at is None else page.sub(at, "]", f", uncle {page.path.split('/')[1][:-3]} of ours]")


@harmless
def sources_reordered(rng: Random, page: Body) -> str | None:
    lines = [at for at, _ in page.sources()]
    if len(lines) < 2:
        return None
    return page.put(lines[0], lines[-1] + 1, *reversed(page.lines[lines[0] : lines[-1] + 1]))


@harmless
def reviewed_again(rng: Random, page: Body) -> str | None:
    at = page.key("reviewed")
    return None if at is None else page.put(at, at + 1, "reviewed: 2026-11-22")


@harmless
def title_in_quotes(rng: Random, page: Body) -> str | None:
    at = page.key("title")
    value = page.lines[at or 0].partition(": ")[2]
    return None if at is None or '"' in value else page.put(at, at + 1, f'title: "{value}"')


@harmless
def keys_reordered(rng: Random, page: Body) -> str | None:
    one, other = page.key("tags"), page.key("confidence")
    if one is None or other is None or one > other:
        return None
    return page.put(one, other + 1, page.lines[other], *page.lines[one + 1 : other], page.lines[one])


@harmless
def footnotes_reordered(rng: Random, page: Body) -> str | None:
    notes = [at for at, line in enumerate(page.lines) if re.match(r"\[\^[^]]+\]: ", line)]
    if len(notes) < 2 or notes[-1] - notes[0] != len(notes) - 1:
        return None
    return page.put(notes[0], notes[-1] + 1, *reversed(page.lines[notes[0] : notes[-1] + 1]))


@harmless
def footnote_renamed(rng: Random, page: Body) -> str | None:
    text = "\n".join(page.lines)
    label = _pick(rng, re.findall(r"^\[\^([^]]+)\]: ", text, re.M))
    return label and text.replace(f"[^{label}]", f"[^{label}-renamed]")


@harmless
def footnote_longer(rng: Random, page: Body) -> str | None:
    at = _pick(rng, [at for at, line in enumerate(page.lines) if re.match(r"\[\^[^]]+\]: ", line)])
    return None if at is None else page.put(at, at + 1, page.lines[at].rstrip(".") + ", second paragraph.")


@harmless
def sections_reordered(rng: Random, page: Body) -> str | None:
    ends = [one for one in page.sections if page.lines[one.heading].startswith("## ")]
    pairs = [(a, b) for a, b in pairwise(ends) if a.end == b.heading]
    pair = _pick(
        rng, [(a, b) for a, b in pairs if not {a.title, b.title} & {"Specifications", "Where sources disagree"}]
    )
    if pair is None or page.lines[pair[1].end - 1]:
        return None
    a, b = pair
    return page.put(a.heading, b.end, *page.lines[b.heading : b.end], *page.lines[a.heading : b.heading])


def _specified(page: Body) -> list[Row]:
    return [row for row in page.rows() if re.fullmatch(r"\d[\d.]*", row.cells[1])]


@harmless
def unit_of_the_same_value(rng: Random, page: Body) -> str | None:
    """3.35 TB/s is 3350 GB/s."""
    smaller = {"TB/s": "GB/s", "TFLOPS": "GFLOPS", "kW": "W"}
    row = _pick(rng, [row for row in _specified(page) if row.cells[2] in smaller])
    return row and page.put(
        row.at, row.at + 1, row.text(c1=f"{float(row.cells[1]) * 1000:.8g}", c2=smaller[row.cells[2]])
    )


@harmless
def cells_padded(rng: Random, page: Body) -> str | None:
    row = _pick(rng, page.rows())
    return row and page.put(row.at, row.at + 1, "|   " + "   |  ".join(row.cells) + "  |")


@harmless
def row_added(rng: Random, page: Body) -> str | None:
    """What the vendor does not publish, of a metric that the page does not have."""
    rows = page.rows()
    free = [name for name in ("L2 bandwidth", "BF16 ridge point") if all(row.cells[0] != name for row in rows)]
    source = next((id for _, id in page.sources()), None)
    if not rows or not free or source is None:
        return None
    row = f"| {free[0]} | unpublished | | | source-reported | {source} section 3 |"
    return page.put(rows[0].at, rows[0].at, row)


@harmless
def row_of_another_source_added(rng: Random, page: Body) -> str | None:
    """Another published value stands under "Where sources disagree", with its source."""
    title = next((one for one in page.sections if one.title == "Where sources disagree"), None)
    row = _pick(rng, [row for row in _specified(page) if row.cells[0] in ("TDP", "Boost clock", "L2 capacity")])
    if title is None or row is None:
        return None
    head = ["| metric | value | unit | qualifier | confidence | source |", "|---|---|---|---|---|---|"]
    other = row.text(c1=f"{float(row.cells[1]) * 1.05:.6g}", c4="source-reported")
    said = f"Another list gives another {row.cells[0]}; the first is recommended because the vendor prints it."
    return page.put(title.end, title.end, *head, other, "", said, "")


@harmless
def measured_row_added(rng: Random, page: Body) -> str | None:
    head = "| operation | gpu | dtype | shape | metric | value | unit | what | source |"
    row = _pick(rng, page.rows(head))
    return row and page.put(row.at, row.at, row.text(c3="512 x 77", c5="77.7", c7="another shape"))


@harmless
def heading_reworded(rng: Random, page: Body) -> str | None:
    heads = [one for one in page.asked_sections() if page.lines[one.heading].startswith("## ")]
    one = _pick(rng, [one for one in heads if one.title not in TABLES and one.title.endswith("?")])
    return one and page.put(one.heading, one.heading + 1, page.lines[one.heading][:-1] + ", in short?")


@harmless
def comment_in_code(rng: Random, page: Body) -> str | None:
    at = _pick(rng, [at for at, line in enumerate(page.lines) if line in ("```python", "```cuda")])
    if at is None:
        return None
    return page.put(at + 1, at + 1, "# what follows is (short" if "python" in page.lines[at] else "// what { follows")
