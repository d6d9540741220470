"""Faults that people make in wiki pages, each planted into a page by a seeded script.

They were written from docs/wiki-format.md and docs/lint-rules.md, before the lint was looked at, and go beyond the
rules: a fault is what a reviewer would send back. A function takes a page and returns its text with one fault, or
several files, or None where the page has no place for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import TypeVar

from tests.wiki.lint.places import FIGURE, TABLES, Body, Row, other_digits

T = TypeVar("T")
Files = Mapping[str, str | bytes]
Fault = Callable[[Random, Body, dict[str, str]], "str | bytes | Files | None"]
FAULTS: dict[str, tuple[int, Fault]] = {}
"""Each fault by name, with its weight in the draw."""


def fault(weight: int = 1) -> Callable[[Fault], Fault]:
    def register(plant: Fault) -> Fault:
        FAULTS[plant.__name__.replace("_", "-")] = (weight, plant)
        return plant

    return register


def _pick(rng: Random, found: list[T]) -> T | None:
    return rng.choice(found) if found else None


def _key(name: str, value: str) -> Fault:
    """A fault that writes another value of a key of the front matter; `|` parts values to choose from."""

    def plant(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
        at = page.key(name)
        return None if at is None else page.put(at, at + 1, f"{name}: {rng.choice(value.split('|'))}")

    return plant


def _cell(column: int, values: str, *, of: Callable[[Row], bool] = lambda _: True, head: str | None = None) -> Fault:
    """A fault that writes another value into a column of a table that is read by row."""

    def plant(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
        rows = page.rows(head) if head else page.rows()
        row = _pick(rng, [row for row in rows if len(row.cells) > column and of(row)])
        wrong = [value for value in values.split("|") if row and value != row.cells[column]]
        return page.put(row.at, row.at + 1, row.text(**{f"c{column}": rng.choice(wrong)})) if row and wrong else None

    return plant


def _line(pattern: str, new: str) -> Fault:
    """A fault that rewrites one match of a pattern in a line of prose."""

    def plant(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
        at = _pick(rng, [at for at in page.prose() if re.search(pattern, page.lines[at])])
        return None if at is None else page.put(at, at + 1, re.sub(pattern, new, page.lines[at], count=1))

    return plant


def _add(*lines: str, choose: bool = False) -> Fault:
    """A fault that adds lines (or one of them) after a line of prose."""

    def plant(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
        at = _pick(rng, page.prose())
        return None if at is None else page.put(at + 1, at + 1, *([rng.choice(lines)] if choose else lines))

    return plant


def _table(*names: str) -> str:
    return "| " + " | ".join(names) + " |"


THRESHOLD = _table("symptom", "metric", "test", "value", "unit", "source")
COST = _table("operation", "cost", "count", "dims", "dtype", "note")
SIGNATURE = _table("method", "targets", "opcodes", "at least", "unclear", "source")
ADVICE = _table("technique", "bottleneck", "because", "source")
MEASURED = _table("operation", "gpu", "dtype", "shape", "metric", "value", "unit", "what", "source")


def _number(row: Row) -> bool:
    return bool(re.fullmatch(r"\d[\d.]*", row.cells[1])) and len(row.cells) == 6


# ---- front matter


@fault()
def front_matter_not_closed(rng: Random, page: Body, pages: dict[str, str]) -> str:
    return page.put(page.front, page.front + 1)


@fault()
def front_matter_bracket_open(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at in range(page.front) if page.lines[at].endswith("]")])
    return None if at is None else page.put(at, at + 1, page.lines[at][:-1])


@fault()
def key_misspelt(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key(rng.choice(["reviewed", "confidence", "title", "tags", "aliases", "vendor", "architectures"]))
    return None if at is None else page.put(at, at + 1, page.lines[at][1:])


@fault()
def key_missing(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key(rng.choice(["reviewed", "confidence", "title", "kind", "id"]))
    return None if at is None else page.put(at, at + 1)


@fault()
def key_twice(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key(rng.choice(["title", "tags", "confidence", "architectures"]))
    return None if at is None else page.put(at, at, page.lines[at])


@fault()
def id_not_the_path(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("id")
    return None if at is None else page.put(at, at + 1, page.lines[at] + rng.choice(["s", "-2", "x"]))


for _name, _weight, _fault in [
    ("kind-unknown", 1, _key("kind", "hardwear|guide|kernels|tip")),
    ("confidence-unknown", 1, _key("confidence", "certain|sourced|high|Verified")),
    ("reviewed-no-date", 1, _key("reviewed", "2026-13-02|22.11.2026|soon|2026-11-31")),
    ("reviewed-long-ago", 2, _key("reviewed", "2019-04-01|2024-11-20|2025-06-30|2016-11-22")),
    ("reviewed-in-future", 1, _key("reviewed", "2027-11-22|2062-11-22|2028-01-01")),
    ("architecture-unknown", 1, _key("architectures", "[hopper-gpu]|[Ampere]|[sm90]|[lovelace]")),
    ("tag-unknown", 1, _key("tags", "[l3]|[perf]|[drams]|[memory_hierarchy]")),
    ("operation-unknown", 1, _key("operations", "[soft-max]|[gemms]|[fft]")),
    ("symptom-unknown", 1, _key("symptoms", "[slow]|[stall-long]|[excess_traffic]")),
    ("technique-unknown", 1, _key("techniques", "[tilings]|[vectorise]|[swizzles]")),
    ("language-unknown", 1, _key("languages", "[pytorch]|[c++]|[cuda, tritone]")),
    ("axis-unknown", 1, _key("axis", "memmory|bandwidth|all")),
    ("priority-out-of-range", 1, _key("priority", "0|7|high|-1")),
    ("method-missing", 2, _key("complements", "[split-k]|[vectorised_access]|[no_such_method]")),
    ("feature-unknown", 1, _key("features", "[tmas]|[async]|[m_barrier]")),
    ("trigger-unknown", 1, _key("triggers", "[slow]|[stall_barrier]|[excess-trafic]")),
    ("metric-unknown", 2, _cell(0, "HMB bandwidth|L3 capacity|BF16 tensor rate|Boost clocks|SMs")),
    ("unit-unknown", 2, _cell(2, "TBs|Tflopz|mhz|watts/h|gigabyte", of=_number)),
    ("unit-of-another-dimension", 3, _cell(2, "W|GB|MHz|TB/s|threads|TFLOPS", of=_number)),
    ("qualifier-unknown", 1, _cell(3, "dens|sparse 4:2|peak|typical|per SM")),
    ("row-confidence-unknown", 1, _cell(4, "sure|sourced|vendor|")),
    ("row-source-unknown", 2, _cell(5, "whitepaper p. 12|datasheet|h100-wpp Table 1|Wikipedia")),
    ("row-source-empty", 2, _cell(5, "")),
    ("value-no-number", 1, _cell(1, "3.3.5|1O24|n/a|-|TBD", of=_number)),
    ("value-negative-or-zero", 1, _cell(1, "0|-32|-1", of=_number)),
    ("value-hedged", 2, _cell(1, "~300|about 72|300+|100 (approx.)|<500|ca. 64", of=_number)),
    ("threshold-test", 1, _cell(2, "=>|=|under|≥", head=THRESHOLD)),
    ("threshold-symptom", 1, _cell(0, "slow|low_throughput|stall", head=THRESHOLD)),
    ("threshold-metric", 2, _cell(1, "sm__throughtput.avg|l1tex_hit_rate|kopt__occupancy_pct", head=THRESHOLD)),
    ("threshold-value", 1, _cell(3, "sixty|6O|~60|", head=THRESHOLD)),
    ("threshold-source", 1, _cell(5, "|guide 3|unknown p. 1", head=THRESHOLD)),
    ("cost-kind", 1, _cell(1, "reads|flop|tensor FLOPs|load", head=COST)),
    ("cost-operation", 1, _cell(0, "soft max|gemmm|fft", head=COST)),
    ("cost-dims", 1, _cell(3, "M x Q|MN|Z Y", head=COST)),
    ("cost-dtype", 1, _cell(4, "float|fp12|half", head=COST)),
    ("signature-method", 1, _cell(0, "tile|vector-access|split_kk", head=SIGNATURE)),
    ("signature-target", 1, _cell(1, "sm90|hopper|sm_99|8.0", head=SIGNATURE)),
    ("signature-count", 1, _cell(3, "0|-1|one|", head=SIGNATURE)),
    ("signature-opcode", 1, _cell(2, "`ldg 128`|some loads", head=SIGNATURE)),
    ("advice-technique", 2, _cell(0, "[x](../technique/no-such.md)|tiling|[y](tiling.md)", head=ADVICE)),
    ("advice-bottleneck", 1, _cell(1, "memory|compute_bound|slow", head=ADVICE)),
    ("advice-source", 1, _cell(3, "|someone said|nosuch p. 3", head=ADVICE)),
    ("measured-operation", 1, _cell(0, "soft max|gemmm|fft", head=MEASURED)),
    ("measured-dtype", 1, _cell(2, "fp12|float|BFLOAT", head=MEASURED)),
    ("measured-value", 1, _cell(5, "fast|~3|3,0,1|", head=MEASURED)),
    ("measured-unit", 1, _cell(6, "TBs|Tflopz|speed", head=MEASURED)),
    ("measured-source", 1, _cell(8, "|nosuch Table 3|a blog", head=MEASURED)),
    ("hedge-in-prose", 5, _line(rf"(?={FIGURE.pattern})", "roughly ")),
    ("hedge-other-word", 4, _line(rf"(?={FIGURE.pattern})", "approximately ")),
    ("hedge-tilde", 2, _line(rf"(?={FIGURE.pattern})", "~")),
    ("hedge-behind", 2, _line(rf"({FIGURE.pattern})", r"\1 or so")),
    ("source-of-a-figure-missing", 5, _line(rf"({FIGURE.pattern}.*?)(?:\[\^[^]]+\])+$", r"\1")),
    ("derived-mark-missing", 3, _line(r"^Derived: (?=.*= *\d[\d.,]* (?:[TGMK]?B|W|TFLOPS|FLOP))", "")),
    ("reference-undefined", 2, _line(r"\[\^([\w-]+)\]", r"[^\1x]")),
    ("claim-without-source", 4, _add(
        "A warm cache makes this kernel 1.7 times as fast.",
        "The register file of each SM holds 256 KB.",
        "This kernel reaches 87 % of the memory bandwidth.",
        "A launch costs at least 3.2 µs here.",
        choose=True,
    )),
    ("claim-hedged", 2, _add(
        "It should be around 80 GB/s on most boards.",
        "This takes perhaps 20 µs, give or take.",
        "One can expect something like 3 TB/s.",
        choose=True,
    )),
    ("placeholder", 2, _add("TODO: say when this pays.", "TODO: add the source", choose=True)),
    ("placeholder-other-word", 1, _add("FIXME: check this number.", "XXX what about Hopper?", "TBD.", choose=True)),
    ("merge-conflict", 2, _add("<<<<<<< HEAD", "A line of mine.", "=======", "A line of yours.", ">>>>>>> other")),
    ("derived-wrong", 3, _add(
        "Derived: 132 × 4 = 530 tensor cores.",
        "Derived: 4.8 TB/s / 2 = 2.5 TB/s.",
        "Derived: 65,536 / 128 = 521.",
        "Derived: 2 × 128 × 64 × 2 B = 32,786 B.",
        choose=True,
    )),
    ("link-to-no-page", 3, _add(
        "See [tiles](../technique/no-such-page.md).",
        "See [the H100](../hardware/h100.md).",
        "See [softmax](softmaxes.md).",
        choose=True,
    )),
    ("link-to-no-heading", 3, _add(
        "See [banks](../technique/tiling.md#no-such-heading).",
        "See [below](#there-is-no-such-heading).",
        choose=True,
    )),
    ("link-of-other-case", 1, _add("See [tiling](../technique/Tiling.md).")),
    ("link-empty", 1, _add("See [tiling]().")),
    ("link-unfinished", 1, _add("See [tiling](../technique/tiling.md and more.")),
    ("image-missing", 1, _add("![The memory hierarchy](../figures/no-such-figure.svg)")),
    ("python-wrong", 2, _add("", "```python", "def kernel(x)", "    return x", "```", "")),
    ("python-indent", 1, _add("", "```python", "for i in range(4):", "x = i", "```", "")),
    ("python-bracket", 1, _add("", "```python", "x = tl.load(ptr + offs, mask=offs < n", "y = x + 1", "```", "")),
    ("cuda-brace", 2, _add("", "```cuda", "__global__ void f(float *x) {", "  if (x) { x[0] = 1;", "}", "```", "")),
    ("cuda-bracket", 1, _add("", "```cuda", "int i = (blockIdx.x * blockDim.x + threadIdx.x;", "```", "")),
    ("code-without-language", 2, _add("", "```", "x = 1", "```", "")),
    ("code-not-closed", 2, _add("", "```python", "x = 1", "")),
    ("two-sentences-a-line", 1, _add("A block waits at a barrier. Another block does not wait there.")),
    ("asks-not-closed", 1, _add("<!-- asks: one question · another question · a third")),
    ("asks-elsewhere", 2, _add("<!-- asks: how is it there · why is it there · who put it there -->")),
    ("heading-answers-nothing", 3, _line(r"^(?=\w)", "## Notes\n<!-- asks: a note · what else · more of it -->\n\n")),
    ("heading-when-it-applies", 2, _line(r"^(?=\w)", "## When it applies\n<!-- asks: when a · when b · or c -->\n\n")),
    ("heading-without-space", 1, _add("", "##A heading without a space", "")),
]:  # fmt: skip
    FAULTS[_name] = (_weight, _fault)


@fault()
def sources_missing(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("sources")
    return None if at is None else page.put(at, page.front)


@fault()
def source_kind_unknown(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, _ in page.sources()])
    return None if at is None else page.put(at, at + 1, re.sub(r"kind: [\w-]+", "kind: blog", page.lines[at]))


@fault()
def source_kind_raised(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """A repository of a third party is called the vendor's."""
    third = re.compile(
        r"github\.com/(?!NVIDIA|nvidia|AMD|amd|ROCm|rocm|GPUOpen|gpuopen|openxla|HazyR)[\w-]+/.*kind: repository"
    )
    at = _pick(rng, [at for at, _ in page.sources() if third.search(page.lines[at])])
    return None if at is None else page.sub(at, "kind: repository", "kind: vendor-repository")


@fault()
def source_id_twice(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, _ in page.sources()])
    return None if at is None else page.put(at, at, page.lines[at])


@fault()
def source_address_broken(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, _ in page.sources() if 'url: "https://' in page.lines[at]])
    new = rng.choice(["htps://", "https//", "https:/", "https://https://", ""])
    return None if at is None else page.sub(at, 'url: "https://', f'url: "{new}')


@fault()
def source_accessed_in_future(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, _ in page.sources()])
    return None if at is None else page.put(at, at + 1, re.sub(r"accessed: \d+", "accessed: 2029", page.lines[at]))


@fault()
def source_accessed_no_date(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, _ in page.sources()])
    return None if at is None else page.put(at, at + 1, re.sub(r"accessed: [\d-]+", "accessed: ???", page.lines[at]))


@fault(3)
def source_unused(rng: Random, page: Body, pages: dict[str, str]) -> str:
    entry = '{id: extra-doc, title: "An extra", url: "https://example.org/x", kind: article, accessed: 2026-11-21}'
    return page.put(page.front, page.front, f"  - {entry}")


@fault(3)
def source_removed(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, _ in page.sources()])
    return None if at is None else page.put(at, at + 1)


@fault(2)
def source_renamed_in_page_alone(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """The new id is used everywhere on the page, and the record of sources does not have it."""
    id = _pick(rng, [id for _, id in page.sources()])
    if id is None:
        return None
    new = re.sub(rf"(?<![\w/.-]){re.escape(id)}(?= )", f"{id}-new", "\n".join(page.lines))
    return new.replace(f"{{id: {id},", f"{{id: {id}-new,")


@fault(2)
def source_address_of_the_record_differs(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, _ in page.sources() if 'url: "https://' in page.lines[at]])
    return None if at is None else page.put(at, at + 1, re.sub(r'(url: "[^"]+)"', r'\1/other"', page.lines[at]))


@fault(3)
def alias_of_another_page(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("aliases")
    others = [
        found[1].split(",")[0]
        for path, text in pages.items()
        if path != page.path and (found := re.search(r"^aliases: \[([^]]+)\]", text, re.M))
    ]
    return None if at is None else page.sub(at, "[", f"[{rng.choice(others)}, ")


@fault(2)
def alias_is_another_product(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("aliases")
    name = rng.choice(["H100 SXM", "L40S", "RTX 4090", "MI300X", "B200", "A30"])
    title = page.lines[page.key("title") or 0]
    return None if at is None or name in title else page.sub(at, "[", f"[{name}, ")


@fault(2)
def title_of_another_page(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("title")
    other = Body("", pages[rng.choice([path for path in sorted(pages) if path != page.path])])
    return None if at is None else page.put(at, at + 1, other.lines[other.key("title") or 0])


@fault(2)
def vendor_of_another_board(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("vendor") if page.path.startswith("hardware/") else None
    return None if at is None else page.put(at, at + 1, "vendor: nvidia" if "amd" in page.lines[at] else "vendor: amd")


@fault(2)
def architecture_of_another_board(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("architectures") if page.path.startswith("hardware/") else None
    if at is None:
        return None
    wrong = [one for one in ("ampere", "hopper", "turing", "ada") if one not in page.lines[at]]
    return page.put(at, at + 1, f"architectures: [{rng.choice(wrong)}]")


@fault()
def copied_page(rng: Random, page: Body, pages: dict[str, str]) -> Files | None:
    """A page is begun as a copy, with another id alone."""
    at = page.key("id")
    path = page.path.replace(".md", "-copy.md")
    return None if at is None else {path: page.put(at, at + 1, page.lines[at] + "-copy")}


# ---- rows


@fault(10)
def digits_swapped_in_a_spec(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, [row for row in page.rows() if _number(row)])
    return row and page.put(row.at, row.at + 1, row.text(c1=other_digits(rng, row.cells[1])))


@fault(8)
def digits_swapped_in_a_limit(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """Against the page of the compute capability, or the target, which states the same."""
    limits = ("Maximum", "Register file", "Shared memory", "Warp size", "Unified L1")
    row = _pick(rng, [row for row in page.rows() if _number(row) and row.cells[0].startswith(limits)])
    if row is None or page.path.startswith(("hardware/cc-", "hardware/gfx")):
        return None
    return page.put(row.at, row.at + 1, row.text(c1=other_digits(rng, row.cells[1])))


@fault(4)
def value_of_a_sister_board(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """The same row of another page of the architecture, where the two differ."""
    at = page.key("architectures") if page.path.startswith("hardware/") else None
    if at is None:
        return None
    rows = [row for row in page.rows() if _number(row)]
    choices = []
    for path, text in pages.items():
        if path != page.path and path.startswith("hardware/") and page.lines[at] in text:
            theirs = {
                (row.cells[0], row.cells[2], row.cells[3]): row.cells[1]
                for row in Body(path, text).rows()
                if _number(row)
            }
            for row in rows:
                value = theirs.get((row.cells[0], row.cells[2], row.cells[3]))
                if value and value != row.cells[1]:
                    choices.append(page.put(row.at, row.at + 1, row.text(c1=value)))
    return _pick(rng, choices)


@fault(4)
def point_slipped(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, [row for row in page.rows() if _number(row) and row.cells[1] != "0"])
    value = row and f"{float(row.cells[1]) * rng.choice([10, 0.1]):.6g}"
    return row and page.put(row.at, row.at + 1, row.text(c1=str(value)))


@fault(4)
def unit_a_thousandfold(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    other = {
        "TB/s": "GB/s",
        "GB/s": "MB/s",
        "TFLOPS": "GFLOPS",
        "MHz": "GHz",
        "KB": "MB",
        "MB": "KB",
        "GB": "TB",
        "W": "kW",
    }
    row = _pick(rng, [row for row in page.rows() if _number(row) and row.cells[2] in other])
    return row and page.put(row.at, row.at + 1, row.text(c2=other[row.cells[2]]))


@fault(4)
def dense_or_sparse_not_said(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, [row for row in page.rows() if _number(row) and row.cells[3] in ("dense", "sparse 2:4")])
    return row and page.put(row.at, row.at + 1, row.text(c3=""))


@fault(4)
def sparse_called_dense(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """The sparse value stands in the dense row, or the row is called the other."""
    row = _pick(rng, [row for row in page.rows() if _number(row) and row.cells[3] == "dense"])
    if row is None:
        return None
    if rng.random() < 0.5:
        return page.put(row.at, row.at + 1, row.text(c3="sparse 2:4"))
    return page.put(row.at, row.at + 1, row.text(c1=f"{float(row.cells[1]) * 2:.6g}"))


@fault(4)
def row_verified_by_no_vendor(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    third = {
        id for at, id in page.sources() if re.search(r"kind: (repository|article|fact-card|paper)", page.lines[at])
    }
    row = _pick(
        rng, [row for row in page.rows() if row.cells[-1].split(" ")[0] in third and row.cells[4] != "verified"]
    )
    return row and page.put(row.at, row.at + 1, row.text(c4="verified"))


@fault(3)
def page_verified_by_no_vendor(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.key("confidence")
    if at is None or "verified" in page.lines[at] or re.search(r"kind: (vendor|measurement)", "\n".join(page.lines)):
        return None
    return page.put(at, at + 1, "confidence: verified")


@fault(2)
def row_twice_with_another_value(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, [row for row in page.rows() if _number(row)])
    return row and page.put(row.at, row.at, row.text(c1=f"{float(row.cells[1]) * 1.02:.6g}"))


@fault()
def row_twice(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, [row for row in page.rows() if _number(row)])
    return row and page.put(row.at, row.at, page.lines[row.at])


@fault(2)
def cell_missing(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(
        rng, [row for head in (None, MEASURED, ADVICE, COST) for row in (page.rows(head) if head else page.rows())]
    )
    return row and page.put(row.at, row.at + 1, "| " + " | ".join(row.cells[:-2] + row.cells[-1:]) + " |")


@fault(2)
def header_of_a_table_misspelt(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """The table is no longer read, and its rows are ordinary text."""
    heads = [at for at, line in enumerate(page.lines) if line in HEADS]
    at = _pick(rng, heads)
    old, new = rng.choice(
        [("source", "sources"), ("| metric", "| metrics"), ("unit", "units"), ("| operation", "| op")]
    )
    return None if at is None or old not in page.lines[at] else page.sub(at, old, new)


HEADS = (
    _table("metric", "value", "unit", "qualifier", "confidence", "source"),
    THRESHOLD,
    COST,
    SIGNATURE,
    ADVICE,
    MEASURED,
)


@fault()
def table_without_its_dashes(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at, line in enumerate(page.lines) if line in HEADS])
    return None if at is None else page.put(at + 1, at + 2)


@fault(2)
def values_of_two_rows_exchanged(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """Such as shared memory per SM and per block, or dense and sparse."""
    rows = {(row.cells[0], row.cells[3]): row for row in page.rows() if _number(row)}
    pairs = [
        (one, other)
        for a, b in [
            (("Shared memory per SM", ""), ("Shared memory per block", "")),
            (("Maximum threads per SM", ""), ("Maximum threads per block", "")),
            (("Maximum warps per SM", ""), ("Maximum blocks per SM", "")),
            *(((f"{t} tensor throughput", "dense"), (f"{t} tensor throughput", "sparse 2:4")) for t in ("BF16", "FP8")),
            (("FP32 throughput", ""), ("BF16 tensor throughput", "dense")),
        ]
        if (one := rows.get(a)) and (other := rows.get(b)) and one.cells[1] != other.cells[1]
    ]
    pair = _pick(rng, pairs)
    if pair is None:
        return None
    changed = Body(page.path, page.put(pair[0].at, pair[0].at + 1, pair[0].text(c1=pair[1].cells[1])))
    return changed.put(pair[1].at, pair[1].at + 1, pair[1].text(c1=pair[0].cells[1]))


@fault(2)
def architecture_row_wrong(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, [row for row in page.rows() if row.cells[0] == "Architecture"])
    wrong = rng.choice(["Ampere", "Hopper", "Turing", "Ada Lovelace", "CDNA 3", "Blackwell"])
    return row and (page.put(row.at, row.at + 1, row.text(c1=wrong)) if row.cells[1] != wrong else None)


@fault(2)
def compute_capability_wrong(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, [row for row in page.rows() if row.cells[0] == "Compute capability"])
    wrong = rng.choice(["7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "6.8"])
    return row and (page.put(row.at, row.at + 1, row.text(c1=wrong)) if row.cells[1] != wrong else None)


@fault(2)
def signature_twice(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    row = _pick(rng, page.rows(SIGNATURE))
    return row and page.put(row.at, row.at, row.text(c3="2"))


# ---- prose


@fault(5)
def figure_of_a_row_changed_in_prose(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """A sentence about a board gives another value than its row."""
    values = {f"{row.cells[1]} {row.cells[2]}" for row in page.rows() if _number(row)}
    places = [
        (at, found[0])
        for at in page.prose()
        if page.path.startswith("hardware/") and not page.lines[at].startswith("Derived:")
        for found in FIGURE.finditer(page.lines[at])
        if found[0] in values
    ]
    place = _pick(rng, places)
    if place is None:
        return None
    number = place[1].split(" ")[0]
    return page.sub(place[0], place[1], place[1].replace(number, other_digits(rng, number), 1))


@fault(5)
def result_of_arithmetic_changed(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    places = [
        (at, found)
        for at in page.prose()
        if page.lines[at].startswith("Derived:")
        for found in re.finditer(r"(?<== )\d[\d.,]*\d", page.lines[at])
    ]
    place = _pick(rng, places)
    if place is None:
        return None
    line, found = page.lines[place[0]], place[1]
    return page.put(place[0], place[0] + 1, line[: found.start()] + other_digits(rng, found[0]) + line[found.end() :])


@fault(3)
def operand_of_arithmetic_changed(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    places = [
        (at, found)
        for at in page.prose()
        if page.lines[at].startswith("Derived:")
        for found in re.finditer(
            r"(?<![\w.,])\d[\d.,]*\d(?= (?:[TGMK]?B/s |TFLOPS |[TGMK]?B )?[×/+−] )", page.lines[at]
        )
    ]
    place = _pick(rng, places)
    if place is None:
        return None
    line, found = page.lines[place[0]], place[1]
    return page.put(place[0], place[0] + 1, line[: found.start()] + other_digits(rng, found[0]) + line[found.end() :])


@fault(5)
def product_swapped(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """The lead of a board names another board."""
    title = page.lines[page.key("title") or 0].removeprefix("title: ")
    if not page.path.startswith("hardware/") or re.search(r"^(CC|gfx)", title):
        return None
    other = rng.choice(["L40S", "H100 PCIe", "RTX 4090", "A30", "MI300X", "T4", "B200", "RTX 3080"])
    places = [at for at in page.prose() if re.match(rf"(The|Two numbers of the) {re.escape(title)} ", page.lines[at])]
    at = _pick(rng, places)
    return None if at is None or other == title else page.sub(at, title, other)


@fault(2)
def product_swapped_in_a_section(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    title = page.lines[page.key("title") or 0].removeprefix("title: ")
    if not page.path.startswith("hardware/") or re.search(r"^(CC|gfx)", title):
        return None
    other = rng.choice(["L40S", "H100 PCIe", "RTX 4090", "A30", "MI300X", "T4", "B200", "RTX 3080"])
    heads = [one for one in page.asked_sections() if title in one.title and page.lines[one.heading].startswith("## ")]
    one = _pick(rng, heads)
    return None if one is None or other == title else page.sub(one.heading, title, other)


@fault(2)
def ridge_point_of_other_rows(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    """A right division, but not of the values of the page."""
    at = _pick(rng, [at for at in page.prose() if re.match(r"Derived: the \w+ ridge point", page.lines[at])])
    found = at is not None and re.search(r"([\d.]+) TFLOPS / ([\d.]+) TB/s = [\d.,]+", page.lines[at])
    if at is None or not found:
        return None
    rate, width = float(found[1]) * 1.25, float(found[2])
    return page.sub(at, found[0], f"{rate:g} TFLOPS / {found[2]} TB/s = {rate / width:.1f}")


@fault(3)
def sentence_of_another_page(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    other = Body("", pages[rng.choice([path for path in sorted(pages) if path != page.path])])
    plain = [other.lines[at] for at in other.prose() if not re.search(r"\[|Derived|^\W", other.lines[at])]
    theirs, at = _pick(rng, [line for line in plain if len(line) > 60]), _pick(rng, page.prose())
    return None if theirs is None or at is None else page.put(at + 1, at + 1, theirs)


@fault()
def sentence_twice(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, [at for at in page.prose() if len(page.lines[at]) > 60])
    return None if at is None else page.put(at, at, page.lines[at])


# ---- footnotes


def _notes(page: Body) -> list[int]:
    return [at for at, line in enumerate(page.lines) if re.match(r"\[\^[^]]+\]: ", line)]


@fault(3)
def footnote_removed(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, _notes(page))
    return None if at is None else page.put(at, at + 1)


@fault(2)
def footnote_of_no_source(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, _notes(page))
    new = rng.choice(["the guide", "nosuch", "Wikipedia,", "see"])
    return None if at is None else page.put(at, at + 1, re.sub(r"(?<=\]: )[\w.-]+", new, page.lines[at], count=1))


@fault(2)
def footnote_twice(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, _notes(page))
    return None if at is None else page.put(at, at, page.lines[at] + " Again.")


@fault(2)
def footnote_never_used(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at, id = _pick(rng, _notes(page)), _pick(rng, [id for _, id in page.sources()])
    return None if at is None or id is None else page.put(at + 1, at + 1, f"[^never]: {id}, section 4.")


@fault()
def footnote_without_a_place(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, _notes(page))
    return None if at is None else page.put(at, at + 1, re.sub(r"(\]: [\w.-]+).*", r"\1", page.lines[at]))


# ---- sections and asks


@fault(3)
def asks_missing(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and one.asks and page.put(one.asks[0], one.asks[1] + 1)


@fault(2)
def asks_too_few(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and page.with_asks(one, page.asks(one)[: rng.randint(1, 2)])


@fault(2)
def asks_too_many(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and page.with_asks(one, [*page.asks(one), *(f"is it so in case {n}" for n in range(8))][:9])


@fault(2)
def ask_too_long(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and page.with_asks(one, [*page.asks(one)[:3], "why does it take so very long " * 5])


@fault(2)
def asks_parted_by_commas(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and one.asks and page.put(one.asks[0], one.asks[1] + 1, f"<!-- asks: {', '.join(page.asks(one))} -->")


@fault(2)
def ask_empty(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and page.with_asks(one, [*page.asks(one)[:2], "", *page.asks(one)[2:]][:8])


@fault(2)
def ask_twice_in_a_section(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and page.with_asks(one, [*page.asks(one)[:7], page.asks(one)[0].upper()])


@fault(5)
def ask_of_another_page(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    other = Body("", pages[rng.choice([path for path in sorted(pages) if path != page.path])])
    one, theirs = _pick(rng, page.asked_sections()), _pick(rng, other.asked_sections())
    return one and theirs and page.with_asks(one, [*page.asks(one)[:7], rng.choice(other.asks(theirs))])


@fault(3)
def ask_is_a_heading_elsewhere(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    other = Body("", pages[rng.choice([path for path in sorted(pages) if path != page.path])])
    one, theirs = _pick(rng, page.asked_sections()), _pick(rng, other.asked_sections())
    return one and theirs and page.with_asks(one, [*page.asks(one)[:7], theirs.title.lower().rstrip("?")[:119]])


@fault()
def asks_misspelt(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    return one and one.asks and page.sub(one.asks[0], "asks:", rng.choice(["ask:", "Asks:", "asks", "questions:"]))


@fault()
def asks_below_the_text(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, [one for one in page.asked_sections() if one.end - one.heading > 4])
    if one is None or one.asks is None:
        return None
    first, last = one.asks
    return page.put(first, one.end, *page.lines[last + 1 : one.end], *page.lines[first : last + 1], "")


@fault(4)
def section_without_text(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, [one for one in page.asked_sections() if page.lines[one.heading].startswith("## ")])
    last = one and (one.asks[1] if one.asks and rng.random() < 0.5 else one.heading)
    return one and page.put(int(last or 0) + 1, one.end, "")


@fault(2)
def section_of_twelve_sentences(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    one = _pick(rng, page.asked_sections())
    more = [f"Step {number} waits until the step before it is done." for number in range(11)]
    return one and page.put(one.end, one.end, *more, "")


@fault(3)
def section_without_a_source(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    text = "A barrier joins the warps of a block, and none goes on before all have come."
    asks = "<!-- asks: who waits at a barrier here · what joins warps so · when do all warps come -->"
    one = _pick(rng, page.asked_sections())
    return one and page.put(one.end, one.end, "## Why do warps join at such a place?", asks, "", text, "")


@fault(2)
def heading_twice(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    heads = [one for one in page.sections if page.lines[one.heading].startswith("## ") and one.title not in TABLES]
    if len(heads) < 2:
        return None
    one, other = rng.sample(heads, 2)
    return page.put(one.heading, one.heading + 1, page.lines[other.heading])


@fault()
def title_removed(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = page.sections[0].heading if page.sections else None
    return None if at is None else page.put(at, at + 1)


@fault()
def specifications_renamed(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(
        rng, [one.heading for one in page.sections if one.title in ("Specifications", "What to try", "Measured")]
    )
    return None if at is None else page.put(at, at + 1, rng.choice(["## Specs", "## Results", "## Details"]))


# ---- the file


@fault()
def latin_1(rng: Random, page: Body, pages: dict[str, str]) -> bytes:
    return "\n".join(page.lines).encode("latin-1", "replace").replace(b"---\n", "---\n# für\n".encode("latin-1"), 1)


@fault()
def carriage_returns(rng: Random, page: Body, pages: dict[str, str]) -> bytes:
    return "\r\n".join(page.lines).encode()


@fault(2)
def blanks_at_the_end(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, page.prose())
    return None if at is None else page.put(at, at + 1, page.lines[at] + "  ")


@fault()
def no_line_feed_at_the_end(rng: Random, page: Body, pages: dict[str, str]) -> str:
    return "\n".join(page.lines).rstrip("\n")


@fault()
def character_that_nobody_sees(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, page.prose())
    if at is None:
        return None
    return page.put(at, at + 1, page.lines[at].replace(" ", rng.choice(["\u200b ", "\u00a0", "\x07 ", "\ufeff "]), 1))


@fault()
def page_of_a_megabyte(rng: Random, page: Body, pages: dict[str, str]) -> str | None:
    at = _pick(rng, page.prose())
    return None if at is None else page.put(at, at, *["A warp waits."] * 90_000)


@fault(2)
def page_that_nothing_links_to(rng: Random, page: Body, pages: dict[str, str]) -> Files | None:
    """A sound new page, in the index, and no page leads to it."""
    head = """---
id: technique/lonely-page
kind: technique
title: Lonely page
confidence: source-reported
reviewed: 2026-11-21
sources:
  - {id: cuda-pg, title: "CUDA", url: "https://docs.nvidia.com/cuda/", kind: vendor-doc, accessed: 2026-11-21}
---

# Lonely page
<!-- asks: what is a lonely page · who reads a lonely page · where does a lonely page lie -->

A lonely page keeps warps apart.[^pg]

[^pg]: cuda-pg, section 1.
"""
    index = (
        pages["README.md"].rstrip("\n")
        + "\n- [Lonely page](technique/lonely-page.md): A lonely page keeps warps apart.\n"
    )
    return {"technique/lonely-page.md": head, "README.md": index}


@fault()
def index_without_a_page(rng: Random, page: Body, pages: dict[str, str]) -> Files:
    lines = pages["README.md"].split("\n")
    return {"README.md": "\n".join(line for line in lines if f"({page.path})" not in line)}


@fault()
def index_with_a_page_that_is_gone(rng: Random, page: Body, pages: dict[str, str]) -> Files:
    return {"README.md": pages["README.md"].replace(f"({page.path})", "(kernel/gone.md)")}


@fault()
def index_of_an_old_lead(rng: Random, page: Body, pages: dict[str, str]) -> Files:
    return {"README.md": pages["README.md"].replace(f"({page.path}): ", f"({page.path}): Once, ")}
