"""Rules on pages of boards: rows, sentences and arithmetic of a page agree with each other and with the vocabulary."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterator

from kbs.evidence.spec import ABSENT, UNPUBLISHED, Spec, same_text
from kbs.evidence.units import parse_quantity
from wiki.lint.rule import Finding, rule
from wiki.lint.view import WikiView, front_matter_line, is_derived, prose_lines
from wiki.page import Page
from wiki.quantities import quantities_of

_TARGETS = ("cc-", "gfx")
"""What ids of pages begin with that are about a compute capability or a target, and no board."""


def boards(view: WikiView) -> Iterator[Page]:
    """Pages of products that can be bought."""
    for page in view.pages:
        if page.product and not page.product.startswith(_TARGETS):
            yield page


def _leading(page: Page) -> list[int]:
    """The lines of the first two sentences of a page's lead."""
    lead = page.sections[0] if page.sections else None
    return [n for n in prose_lines(page) if lead and lead.line_start <= n <= lead.line_end][:2]


_RIDGE = re.compile(r"ridge point")


_SUBJECT = re.compile(r"(?:The|An? (?:SM|compute unit|kernel|block|thread) (?:of|on) (?:the|an?)) ")
"""What a sentence begins with that is about a board."""
_COMPARES = re.compile(r"\b(?:(?:an)?other|than|differs?|both|unlike|instead|same|like|too|also|against|so do)\b")
_HOLDS = "An SM of "


class Rows:
    """The recommended rows of a page by metric, with their values in base units."""

    def __init__(self, page: Page, view: WikiView) -> None:
        self.specs: dict[str, list[tuple[Spec, float]]] = defaultdict(list)
        self.words = [spec for spec in page.specs if spec.recommended]
        for spec in page.specs:
            base = spec.base(view.vocabulary) if spec.recommended else None
            if base:
                self.specs[spec.metric].append((spec, float(base)))

    def of(self, metric: str, qualifier: str | None = None) -> list[tuple[Spec, float]]:
        """The rows of a metric, of one qualifier if it is given."""
        return [one for one in self.specs.get(metric, ()) if qualifier is None or one[0].qualifier == qualifier]

    def one(self, metric: str) -> tuple[Spec, float] | None:
        """The first row of a metric."""
        return next(iter(self.of(metric)), None)


_LESS = (
    ("shared_memory_per_block", "shared_memory_per_sm"),
    ("shared_memory_per_sm", "l1_capacity"),
    ("max_threads_per_block", "max_threads_per_sm"),
    ("max_blocks_per_sm", "max_warps_per_sm"),
    ("fp64_throughput", "fp32_throughput"),
    ("fp32_throughput", "bf16_tensor_throughput"),
    ("fp32_throughput", "fp16_tensor_throughput"),
    ("measured_copy_bandwidth", "hbm_bandwidth"),
    ("measured_stream_bandwidth", "hbm_bandwidth"),
    ("measured_bf16_matmul", "bf16_tensor_throughput"),
)
"""Metrics of which the first cannot exceed the second on one board."""
_MEASURED = ("_throughput", "_bandwidth", "_matmul")
"""What metrics end with that are rounded."""
PIN_RATES = {
    "gddr5": (5, 9),
    "gddr5x": (10, 12),
    "gddr6": (9, 21),
    "gddr6x": (18, 24),
    "gddr7": (26, 34),
    "hbm2": (1.3, 2.5),
    "hbm2e": (2.6, 3.7),
    "hbm3": (4.5, 6.8),
    "hbm3e": (5.8, 9.9),
    "lpddr4x": (3.1, 4.4),
    "lpddr5": (5.4, 6.5),
    "lpddr5x": (7.4, 9.7),
}
"""Gbit/s of a pin at which memory of each kind is sold, with some room."""
_SAME = 0.04
"""Logarithms to base 2 of two rates that differ less are rounded from the same one."""
_ANNOUNCED_BELOW = 0.25
"""Vendors announce some rates at a clock below the boost clock: by less than this."""


@rule("row-against-row", alone=True)
def row_against_row(view: WikiView) -> Iterator[Finding]:
    """Keep the rows of a board consistent with each other.

    Checks what one board cannot state at once: more shared memory a block than an SM has; warps that are not the
    threads of an SM; a sparse rate that is not more than the dense one and at most twice; a rate that is no power of
    two for each SM and clock, and none of another rate of the page either; a bandwidth that the bus cannot have with
    its kind of memory; an FP64 rate that does not follow from the ratio.

    Why: two exchanged digits leave a plausible value, which the other rows contradict.

    Example: 58 SMs, a boost clock of 2040 MHz, and 112 TFLOPS of dense BF16 instead of 121.
    """
    for page in boards(view):
        rows = Rows(page, view)
        for spec, message in (*_limits(rows), *_sparse(rows), *_rates(rows), *_memory(rows)):
            yield Finding(page.path, spec.citation.line_start, message)


def _said(spec: Spec) -> str:
    return f"{spec.value} {spec.unit}".strip()


def _limits(rows: Rows) -> Iterator[tuple[Spec, str]]:
    for less, more in _LESS:
        for spec, value in rows.of(less):
            limit = max((value for _, value in rows.of(more)), default=math.inf)
            if value > limit * (1.01 if less.endswith(_MEASURED) else 1):
                yield spec, f"{less} of {_said(spec)} is more than {more} of this page"
    threads, warps, size = (rows.one(f"{name}") for name in ("max_threads_per_sm", "max_warps_per_sm", "warp_size"))
    if threads and warps and size and warps[1] * size[1] != threads[1]:
        yield threads[0], f"{_said(warps[0])} of {_said(size[0])} are not {_said(threads[0])}"
    single, double, ratio = (rows.one(name) for name in ("fp32_throughput", "fp64_throughput", "fp32_fp64_ratio"))
    if single and double and ratio and abs(single[1] / double[1] / ratio[1] - 1) > 0.03:
        yield double[0], f"{_said(double[0])} of FP64 is not {_said(single[0])} of FP32 / {ratio[0].value}"


def _sparse(rows: Rows) -> Iterator[tuple[Spec, str]]:
    for metric in rows.specs:
        dense, sparse = rows.of(metric, "dense"), rows.of(metric, "sparse 2:4")
        if sparse and not dense:
            yield sparse[0][0], "a sparse rate stands here without the dense one"
        for spec, value in sparse if dense else ():
            if not 1.2 < value / dense[0][1] < 2.06:
                yield spec, f"{_said(spec)} sparse against {_said(dense[0][0])} dense: sparse is at most twice as fast"


def _rates(rows: Rows) -> Iterator[tuple[Spec, str]]:
    count, clocks = rows.one("sm_count"), [value for _, value in rows.of("boost_clock")]
    rates = [
        one
        for metric, found in rows.specs.items()
        if metric.endswith("_throughput")
        for one in found
        if one[0].qualifier in ("", "dense")
    ]
    if count is None or not clocks or not rates:
        return

    def off(rate: float, other: float) -> float:
        power = math.log2(rate / other)
        return power - round(power)

    def fits(rate: float, below: float = _SAME) -> bool:
        return any(-below <= off(rate, count[1] * clock) <= _SAME for clock in clocks)

    for spec, rate in rates:
        others = (value for other, value in rates if other.metric != spec.metric)
        if not fits(rate) and not any(abs(off(rate, other)) <= _SAME for other in others):
            yield spec, f"{_said(spec)} follows neither from SMs and clock nor from another rate of this page"
    if not any(
        fits(rate, _ANNOUNCED_BELOW) for spec, rate in rates if spec.metric == "fp32_throughput" or len(rates) == 1
    ):
        yield count[0], f"no rate of this page follows from {_said(count[0])} and its boost clock"


def _memory(rows: Rows) -> Iterator[tuple[Spec, str]]:
    width, bus = rows.one("hbm_bandwidth"), rows.one("memory_bus_width")
    if not width or not bus:
        return
    if bus[1] * 8 % 32:
        yield bus[0], f"{_said(bus[0])} are no whole channels of 32 bit"
    kind = next((spec for spec in rows.words if spec.metric == "memory_type"), None)
    low, high = PIN_RATES.get((kind.value if kind else "").casefold(), (0.5, 40))
    rate = width[1] / bus[1] / 1e9
    if not low <= rate <= high:
        yield width[0], f"{_said(width[0])} over {_said(bus[0])} are {rate:.3g} Gbit/s a pin, and not {low} to {high}"


@rule("board-identity", alone=True)
def board_identity(view: WikiView) -> Iterator[Finding]:
    """Call a board by one name, vendor and architecture.

    Checks front matter and rows of a product of the vocabulary against it: its vendor, its architecture, and that the
    compute capability is of that architecture.

    Why: limits and advice are looked up by architecture.

    Example: `architectures: [ada]` on the page of an Ampere board.
    """
    terms = view.vocabulary
    for page in boards(view):
        product = terms.products.get(page.product or "")
        if product is None or not product.architecture or product.architecture not in terms.architectures:
            continue
        meta, name = page.meta, terms.architectures[product.architecture].name
        if meta.vendor and meta.vendor != product.vendor:
            yield Finding(page.path, front_matter_line(page, "vendor"), f"{product.name} is by {product.vendor}")
        if meta.architectures and product.architecture not in meta.architectures:
            yield Finding(page.path, front_matter_line(page, "architectures"), f"{product.name} is of {name}")
        for spec in page.specs:
            line = spec.citation.line_start
            if spec.metric == "architecture" and spec.recommended and not _names(spec.value, name):
                yield Finding(page.path, line, f"{product.name} is of the architecture {name}, not {spec.value}")
            stated = spec.metric == "compute_capability" and spec.recommended
            if stated and spec.value not in (UNPUBLISHED, ABSENT):
                targets = terms.resolve("architecture", f"sm_{spec.value.replace('.', '')}")
                if product.architecture not in targets:
                    yield Finding(page.path, line, f"{spec.value} is no compute capability of {name}")


def _names(said: str, architecture: str) -> bool:
    return same_text(said, architecture) or architecture.split(" (")[0].casefold() in said.casefold()


@rule("board-named", alone=True)
def board_named(view: WikiView) -> Iterator[Finding]:
    """Let a page of a board speak of that board.

    Checks the first two sentences, the headings and the ridge points of a board's page: where they name a board without
    a link, they name the page's own too. No other sentence begins with "The" and another board, unless it compares.

    Why: a page is begun as a copy of another, and a name that was left is quoted with the wrong values.

    Example: `Two numbers of the L40S rule kernels` on the page of the L4.
    """
    names = quantities_of(view.vocabulary)
    for page in boards(view):
        prose, leading = prose_lines(page), _leading(page)
        heads = {section.line_start: page.lines[section.line_start - 1] for section in page.sections}
        checked = {*leading, *heads, *(n for n, text in prose.items() if is_derived(text) and _RIDGE.search(text))}
        for number, line in {**prose, **heads}.items():
            named = [name for name in names.boards(line) if not re.match(r"(?:compute|cc|sm|gfx)", name, re.IGNORECASE)]
            begun = None if _COMPARES.search(line) else _SUBJECT.match(line)
            if number not in checked and not (named and begun and line.startswith(named[0], begun.end())):
                continue
            if named and all(page.product not in view.vocabulary.resolve("product", name) for name in named):
                yield Finding(page.path, number, f"this names the {named[0]}, and not the board of the page")


@rule("figure-against-row", alone=True)
def figure_against_row(view: WikiView) -> Iterator[Finding]:
    """Repeat values of rows as they stand in the rows.

    Checks hardware pages: each quantity of the first two sentences of a board's lead, where they name it, of sentences
    that begin with "An SM of", and the operands of lines that derive a ridge point stand in a row. Elsewhere, a figure
    that is a row's with its digits exchanged is told of. Not checked: sentences with a link, which compare boards.

    Why: an answer quotes the sentence in one case and the row in the other.

    Example: a lead with 390 GB/s above a row with 300 GB/s.
    """
    quantities = quantities_of(view.vocabulary)
    for page in view.pages:
        stated = [
            (quantity.unit.dimension, float(quantity.base), spec)
            for spec in page.specs
            for binary in (False, True)
            if (quantity := parse_quantity(spec.value, spec.unit, capacity=binary))
        ]
        stated += [("registers", base / 4, spec) for _, base, spec in stated if spec.metric == "register_file_per_sm"]
        if not stated:
            continue
        board = bool(page.product and not page.product.startswith(_TARGETS))
        prose, leading = prose_lines(page), _leading(page) if board else []
        for number, line in prose.items():
            derived = is_derived(line)
            if "](" in line or (derived and not _RIDGE.search(line)):
                continue
            strict = (
                (number in leading and bool(quantities.boards(line))) or derived or (board and line.startswith(_HOLDS))
            )
            sentence = quantities.sentence(line.partition("=")[0] if derived else line)
            for match in (*quantities.measured.finditer(sentence), *quantities.counted.finditer(sentence)):
                unit = match[0][match.end("number") - match.start() :].strip()
                read = [q for binary in (False, True) if (q := parse_quantity(match["number"], unit, capacity=binary))]
                if not read or any(
                    one == q.unit.dimension and abs(float(q.base) - base) <= base * 0.006
                    for q in read
                    for one, base, _ in stated
                ):
                    continue
                digits = re.sub(r"\D", "", match["number"])
                slips = (
                    spec
                    for one, _, spec in stated
                    if one == read[0].unit.dimension
                    and digits != (other := re.sub(r"\D", "", spec.value))
                    and sorted(other) == sorted(digits)
                )
                near = next(slips, None)
                if strict or near:
                    row = f"; a row says {_said(near)}" if near else ""
                    yield Finding(page.path, number, f"{match[0].strip()} stands in no row of this page{row}")
