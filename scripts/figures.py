"""Draws the figures of the bundled wiki, as SVG: `just docs`, or `python -m scripts.figures`.

Numbers come from rows of the wiki's own pages, which each figure names below itself. Colors follow the reader's
choice of light or dark, and every figure is legible 360 pixels wide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import cache
from html import escape
from math import log10

from kbs.evidence.spec import Spec
from kbs.evidence.vocabulary import vocabulary
from kbs.hardware.occupancy import Usage, occupancy, sm_limits
from wiki.library import Wikis, bundled_wiki

FOLDER = bundled_wiki().root / "figures"
WIDTH = 480
_STYLE = """
text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328}
.bg{fill:#fff}.t{font-weight:600;font-size:15px}.m{fill:#59636e;font-size:12px}.b{font-weight:600}
.box{fill:#f0f3f6;stroke:#afb8c1}.a{fill:#b6d7f2;stroke:#0969da}.h{fill:#f6c79a;stroke:#bc4c00}
.g{fill:#b7e3c0;stroke:#1a7f37}.grid{fill:none;stroke:#d1d9e0}.axis{fill:none;stroke:#59636e}
.l{fill:none;stroke-width:2.5}.s1{stroke:#0969da}.s2{stroke:#bc4c00}.s3{stroke:#1a7f37}.dash{stroke-dasharray:4 3}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bg{fill:#151b23}.m{fill:#9aa4af}
.box{fill:#262c36;stroke:#656c76}.a{fill:#12406b;stroke:#4da3ff}.h{fill:#6b3410;stroke:#f0883e}
.g{fill:#14502a;stroke:#3fb950}.grid{stroke:#3d444d}.axis{stroke:#9aa4af}
.s1{stroke:#4da3ff}.s2{stroke:#f0883e}.s3{stroke:#3fb950}}
""".replace("\n", "")


def text(x: float, y: float, said: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text; `y` is its base line."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}" text-anchor="{anchor}">{escape(said)}</text>'


def box(x: float, y: float, width: float, height: float, kind: str = "box", round: float = 3) -> str:
    """A rectangle."""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{round:g}" class="{kind}"/>'


def path(points: Iterator[tuple[float, float]] | list[tuple[float, float]], kind: str) -> str:
    """A line through points."""
    return f'<path d="M{"L".join(f"{x:g} {y:g}" for x, y in points)}" class="{kind}"/>'


def drawn(height: int, title: str, parts: Iterator[str]) -> str:
    """The file of a figure."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    body = [f"<style>{_STYLE}</style>", box(0, 0, WIDTH, height, "bg", 6), text(16, 26, title, "t"), *parts]
    return "\n".join([f'{head} role="img">', f"<title>{escape(title)}</title>", *body, "</svg>"]) + "\n"


@cache
def _wikis() -> Wikis:
    return Wikis([bundled_wiki()])


def row(page: str, metric: str, qualifier: str = "") -> Spec:
    """The recommended row of a hardware page. Raises `StopIteration` where the page has none."""
    terms, specs = vocabulary(), _wikis().specs(bundled_wiki().name, f"hardware/{page}.md")
    wanted = (metric, qualifier, True)
    return next(s for s in specs if (terms.metrics[s.metric].name, s.qualifier, s.recommended) == wanted)


def shown(page: str, metric: str, qualifier: str = "") -> str:
    """Value and unit as the page states them."""
    found = row(page, metric, qualifier)
    return f"{found.value} {found.unit}".strip()


def base(page: str, metric: str, qualifier: str = "") -> Decimal:
    """The value in base units: B/s, FLOP/s, Hz, B."""
    value = row(page, metric, qualifier).base(vocabulary())
    assert value is not None, f"{metric} of {page} is no number"
    return value


def cited(y: float, page: str, what: str) -> str:
    """The line that says where a figure's numbers stand."""
    return text(16, y, f"gpu-wiki/hardware/{page}.md: {what}", "m")


def memory_hierarchy() -> str:
    """Levels of memory: how much, how fast, how late."""
    of = "h100-pcie"
    clock, count = base(of, "Boost clock", "FP32 and FP64 rows"), base(of, "SM count")
    banks = Decimal(32 * 4) * count * clock / 10**12
    levels = [
        ("Registers", f"{shown(of, 'Register file per SM')} per SM", "", ""),
        ("Shared memory", f"up to {shown(of, 'Shared memory per SM')} per SM", f"{banks:.1f} TB/s", ""),
        ("L1", f"{shown(of, 'Unified L1 and shared capacity')} per SM, with shared", "", "L1"),
        ("L2", shown(of, "L2 capacity"), shown(of, "L2 bandwidth", "read"), "L2"),
        ("HBM", shown(of, "Memory capacity"), shown(of, "HBM bandwidth"), "DRAM"),
        ("Host, by PCIe", "", f"{shown(of, 'PCIe bandwidth', 'per direction')} each way", ""),
    ]

    def parts() -> Iterator[str]:
        yield text(250, 52, "bandwidth", "m")
        yield text(420, 52, "latency", "m", "end")
        for place, (name, size, rate, latency) in enumerate(levels):
            y, inset = 62 + 50 * place, 25 - 5 * place
            yield box(16 + inset, y, 448 - 2 * inset, 42, "a" if place < 3 else "g" if place == 3 else "h")
            yield text(50, y + (18 if size else 26), name, "b")
            yield text(50, y + 34, size, "m")
            yield text(250, y + 26, rate)
            if latency:
                yield text(420, y + 26, shown(of, "Measured latency", latency), "", "end")
        yield text(16, 384, "Shared memory: 32 banks × 4 B × SM count × boost clock. The rest:", "m")
        yield cited(400, of, "Specifications")

    return drawn(414, "Memory of an H100 PCIe, from near to far", parts())


def bank_conflicts() -> str:
    """Where a column of a tile lies in the banks, without and with padding."""
    cell, top = 6.5, 92

    def grid(x: float, row_words: int, title: str, said: str) -> Iterator[str]:
        words = range(0, 32 * row_words, row_words)
        yield text(x, 54, title, "b")
        yield text(x, 72, said, "m")
        yield text(x, 87, "bank 0", "m")
        yield text(x + 32 * cell, 87, "bank 31", "m", "end")
        yield box(x, top, 32 * cell, 33 * cell, "box", 0)
        for line in range(1, 33):
            yield path([(x, top + line * cell), (x + 32 * cell, top + line * cell)], "grid")
        for word in words:
            yield box(x + word % 32 * cell, top + word // 32 * cell, cell, cell, "h" if row_words == 32 else "g", 0)
            if row_words > 32:
                pad = word + 32
                yield box(x + pad % 32 * cell, top + pad // 32 * cell, cell, cell, "axis", 0)

    def parts() -> Iterator[str]:
        yield from grid(16, 32, "float tile[32][32]", "column 0: 32 times bank 0")
        yield from grid(256, 33, "float tile[32][33]", "column 0: each bank once")
        below = top + 33 * cell
        yield text(16, below + 22, "32-way: 32 wavefronts", "b")
        yield text(256, below + 22, "no conflict: 1 wavefront", "b")
        yield text(16, below + 46, "A line is 32 words of shared memory. Filled: the words of column 0.", "m")
        yield text(16, below + 62, "Framed: the word of padding behind each row of the tile.", "m")
        yield text(16, below + 78, "Bank = (row × words of a row + column) mod 32.", "m")

    return drawn(400, "A warp reads a column of a tile", parts())


def gemm_tiling() -> str:
    """The three levels at which a matrix product is tiled."""

    def parts() -> Iterator[str]:
        # A is M × K, B is K × N; the tile of C needs a panel of each, walked in steps of BK.
        yield text(64, 52, "B", "b")
        yield box(84, 44, 144, 108)
        yield box(132, 44, 48, 108, "g", 0)
        yield from (path([(132, 44 + 27 * n), (180, 44 + 27 * n)], "axis") for n in (1, 2, 3))
        yield text(238, 62, "a panel of B, BN wide,")
        yield text(238, 79, "in steps of BK")
        yield text(16, 178, "A", "b")
        yield box(16, 184, 60, 144)
        yield box(16, 232, 60, 48, "a", 0)
        yield from (path([(16 + 15 * n, 232), (16 + 15 * n, 280)], "axis") for n in (1, 2, 3))
        yield box(84, 184, 144, 144)
        yield box(132, 232, 48, 48, "h", 0)
        yield text(84, 178, "C", "b")
        yield text(16, 348, "a panel of A, BM high", "m")
        yield from (path([(180, y), (268, z)], "axis dash") for y, z in ((232, 150), (280, 278)))
        # The block tile, with its warps; of one warp, its threads or instruction tiles.
        yield box(268, 150, 128, 128, "h", 0)
        yield from (path([(268 + 64 * n, 150), (268 + 64 * n, 278)], "axis") for n in (1,))
        yield from (path([(268, 150 + 32 * n), (396, 150 + 32 * n)], "axis") for n in (1, 2, 3))
        yield box(332, 182, 64, 32, "a", 0)
        yield from (path([(332 + 16 * n, 182), (332 + 16 * n, 214)], "axis") for n in (1, 2, 3))
        yield from (path([(332, 182 + 16 * n), (396, 182 + 16 * n)], "axis") for n in (1,))
        yield text(268, 142, "one tile of C: a block")
        yield text(404, 194, "a warp")
        yield text(404, 210, "and its")
        yield text(404, 226, "patches")
        yield text(268, 298, "block: in shared memory", "m")
        yield text(268, 315, "warp: sums in registers", "m")
        yield text(268, 332, "patch: thread or tensor core", "m")
        yield text(16, 374, "Each step loads BM × BK of A and BK × BN of B for the block,", "m")
        yield text(16, 390, "and does 2 · BM · BN · BK FLOP with them.", "m")

    return drawn(404, "A matrix product is tiled three times", parts())


def occupancy_limits() -> str:
    """What limits the resident blocks of one kernel."""
    specs = _wikis().specs(bundled_wiki().name, "hardware/cc-9-0.md")
    limits = sm_limits(specs, "cc-9-0", vocabulary())
    assert not isinstance(limits, list), limits
    found = occupancy(Usage(threads=256, registers=72, shared_memory=48 * 1024), limits)
    bars = [(one.resource, one.blocks, one.limiting) for one in found.limits[:4] if one.blocks is not None]

    def parts() -> Iterator[str]:
        yield text(16, 48, "256 threads, 72 registers a thread, 48 KB of shared memory a block", "m")
        for place, (name, blocks, limiting) in enumerate(bars):
            y = 66 + 38 * place
            yield text(16, y + 18, name, "b" if limiting else "")
            yield from (box(144 + 8 * n, y + 2, 7, 22, "h" if limiting else "a", 1) for n in range(blocks))
            yield text(150 + 8 * blocks, y + 18, f"{blocks} blocks", "b" if limiting else "m")
        y = 66 + 38 * len(bars)
        yield path([(144 + 8 * found.blocks - 0.5, 60), (144 + 8 * found.blocks - 0.5, y - 4)], "l s2 dash")
        share = 100 * found.warps / found.max_warps
        by = " and ".join(found.limiters)
        yield text(16, y + 18, f"The smallest counts: {found.blocks} blocks, by {by}.", "b")
        sum_ = f"{found.blocks} × {found.warps_per_block} warps = {found.warps} of {found.max_warps}"
        yield text(16, y + 38, f"{sum_}, an occupancy of {share:g} %.")
        yield cited(y + 62, "cc-9-0", "Specifications, limits of an SM")

    return drawn(66 + 38 * len(bars) + 76, "What limits occupancy on compute capability 9.0", parts())


def pipeline() -> str:
    """A loop of loads and computation, one after the other and overlapped."""
    load, compute = 52, 40

    def bar(x: float, y: float, width: float, kind: str, step: int) -> Iterator[str]:
        yield box(x, y, width - 2, 26, kind)
        yield text(x + width / 2 - 1, y + 18, str(step), "", "middle")

    def parts() -> Iterator[str]:
        yield text(16, 56, "One buffer", "b")
        for step in range(4):
            yield from bar(16 + step * (load + compute), 64, load, "a", step)
            yield from bar(16 + load + step * (load + compute), 94, compute, "h", step)
        yield text(390, 81, "load tile", "m")
        yield text(390, 111, "compute", "m")
        yield text(16, 140, "Every load is waited for: the time of a step is load + compute.", "m")
        yield text(16, 178, "Three buffers", "b")
        for step in range(7):
            begun = 14 * step if step < 3 else load + (step - 2) * compute  # as soon as its buffer is free
            yield from bar(16 + begun, 186 + 28 * (step % 3), load, "a", step)
            yield from bar(16 + load + step * compute, 276, compute, "h", step)
        for buffer in range(3):
            yield text(390, 203 + 28 * buffer, f"buffer {buffer}", "m")
        yield text(390, 293, "compute", "m")
        yield path([(16 + load + compute, 182), (16 + load + compute, 306)], "l s3 dash")
        yield text(16, 326, "Tile 3 is loaded into buffer 0 as soon as tile 0 is used up, while 1 and 2", "m")
        yield text(16, 342, "are computed: after the first load, the time of a step is compute.", "m")

    return drawn(358, "A software pipeline of three stages", parts())


def roofline() -> str:
    """Roofs of one GPU, with the intensities of four operations."""
    of = "h100-sxm"
    bandwidth = base(of, "HBM bandwidth")
    roofs = [
        ("FP8", "s3", base(of, "FP8 tensor throughput", "dense")),
        ("BF16", "s1", base(of, "BF16 tensor throughput", "dense")),
        ("FP32", "s2", base(of, "FP32 throughput")),
    ]

    def at(intensity: float | Decimal, rate: float | Decimal) -> tuple[float, float]:
        """Axes: 0.1 to 10,000 FLOP/byte, 0.1 to 10,000 TFLOPS."""
        return 60 + 78 * (log10(intensity) + 1), 300 - 47 * (log10(float(rate) / 1e12) + 1)

    def parts() -> Iterator[str]:
        for power in range(-1, 5):
            name = f"{10**power:,g}"
            x, y = at(10.0**power, 10.0 ** (power + 12))
            yield path([(x, 65), (x, 300)], "grid") + path([(60, y), (450, y)], "grid")
            yield text(x, 317, name, "m", "middle") + text(54, y + 4, name, "m", "end")
        yield text(255, 336, "arithmetic intensity, FLOP/byte", "m", "middle")
        yield text(16, 52, "TFLOPS", "m")
        low = Decimal("0.1")
        for name, kind, peak in roofs:
            ridge = peak / bandwidth
            yield path([at(low, low * bandwidth), at(ridge, peak), at(10_000, peak)], f"l {kind}")
            x, y = at(ridge, peak)
            yield path([(x, y), (x, 300)], f"axis dash {kind}")
            label = f"{name}: {peak / 10**12:g}"
            under = name == "BF16"
            yield text(446, y + (-7 if name == "FP8" else 17), label, "b", "end")
            yield text(x + (-4 if under else 4), 294, f"{ridge:.0f}", "m", "end" if under else "start")
        for name, intensity, left in (("SAXPY", 1 / 6, 0), ("softmax", 0.625, 1), ("GEMV, BF16", 1, 0)):
            x, y = at(intensity, intensity * float(bandwidth))
            yield f'<circle cx="{x:g}" cy="{y:g}" r="4" class="h"/>'
            yield text(x - 9, y - 3, name, "", "end") if left else text(x + 9, y + 7, name)
        x, y = at(4096 / 3, roofs[1][2])
        yield f'<circle cx="{x:g}" cy="{y:g}" r="4" class="a"/>' + text(446, y + 34, "GEMM", "", "end")
        yield text(150, 150, f"{shown(of, 'HBM bandwidth')} × intensity", "m", "middle")
        yield cited(360, of, "HBM bandwidth and dense peaks")

    return drawn(374, "Roofline of an H100 SXM", parts())


FIGURES: dict[str, Callable[[], str]] = {
    "memory-hierarchy.svg": memory_hierarchy,
    "bank-conflicts.svg": bank_conflicts,
    "gemm-tiling.svg": gemm_tiling,
    "occupancy-limits.svg": occupancy_limits,
    "software-pipeline.svg": pipeline,
    "roofline.svg": roofline,
}


if __name__ == "__main__":
    for file, draw in FIGURES.items():
        (FOLDER / file).write_text(draw(), "utf-8")
