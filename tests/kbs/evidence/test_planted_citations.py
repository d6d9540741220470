"""1,000 wrong citations are planted over the rows of the bundled wiki, and none passes; 1,000 right ones all do.

What is right is worked out here with fractions, from the rows as text: nothing of the checker is used for it.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kbs.evidence.checking import Status, check_text
from kbs.evidence.vocabulary import vocabulary
from kopt.cli.main import app
from wiki.library import Wiki, Wikis, bundled_wiki

COUNT = 1_000
DELETED = "hardware/a100-pcie-40gb.md"
V = vocabulary()


def powers(suffixes: tuple[str, ...], base: int, prefixes: str) -> dict[str, Fraction]:
    return {
        f"{prefix}{suffix}": Fraction(base) ** " kMGTP".index(prefix.replace("K", "k") or " ")
        for suffix in suffixes
        for prefix in ["", *prefixes]
    }


RATES = powers(("B/s",), 1000, "kMGTP") | {
    "GBps": Fraction(10**9),
    "TB/sec": Fraction(10**12),
    "GiB/s": Fraction(2**30),
}
FLOPS = powers(("FLOPS", "FLOP/s", "FLOPs/s"), 1000, "GTP")
OPS = powers(("OPS", "OP/s"), 1000, "GTP")
SIZES = powers(("B", "bytes"), 1000, "") | powers(("B",), 1000, "kKMGT")
SIZES |= {"KiB": Fraction(2**10), "MiB": Fraction(2**20), "GiB": Fraction(2**30)}
CAPACITIES = powers(("B", "bytes"), 1024, "") | powers(("B", "iB"), 1024, "KMG") | {"kB": Fraction(1024)}
del CAPACITIES["iB"]
HERTZ = powers(("Hz",), 1000, "kMG")
WATTS = powers(("W",), 1000, "k") | {"watts": Fraction(1)}
BITS = {"bit": Fraction(1, 8), "bits": Fraction(1, 8), "B": Fraction(1), "bytes": Fraction(1)}


def plain(*spellings: str) -> dict[str, Fraction]:
    return {spelling: Fraction(1) for spelling in spellings}


BINARY_METRICS = {
    "L2 capacity",
    "Register file per SM",
    "Shared memory per SM",
    "Shared memory per block",
    "Unified L1 and shared capacity",
}
FAMILIES: dict[str, dict[str, Fraction]] = {
    **dict.fromkeys(("TB/s", "GB/s"), RATES),
    "TFLOPS": FLOPS,
    "TOPS": OPS,
    "GB": SIZES,
    **dict.fromkeys(("KB", "MB"), CAPACITIES),
    "B": plain("B", "bytes"),
    "barriers": plain("barriers", "barrier"),
    "MHz": HERTZ,
    "W": WATTS,
    "bit": BITS,
    "SM": plain("SM", "SMs"),
    "CU": plain("CU", "CUs"),
    "threads": plain("threads", "thread"),
    "warps": plain("warps", "warp"),
    "blocks": plain("blocks", "CTAs"),
    "registers": plain("registers", "regs"),
    "units": plain("units", "unit"),
    "cycles": plain("cycles", "clocks", "clk"),
    "FLOP/byte": plain("FLOP/byte", "FLOP/B"),
    "x": plain("x", "×"),
}
OTHER_UNITS = (
    "TB/s",
    "TFLOPS",
    "TOPS",
    "GB",
    "MHz",
    "W",
    "SM",
    "threads",
    "blocks",
    "cycles",
    "FLOP/byte",
    "ms",
    "%",
    "x",
)


@dataclass(frozen=True)
class Row:
    """A row of a spec table, as text."""

    path: str
    line: int
    text: str
    product: str
    metric: str
    value: str
    unit: str
    qualifier: str
    rivals: int
    """How many qualifiers the page states the metric with."""

    @property
    def units(self) -> dict[str, Fraction]:
        return FAMILIES[self.unit]

    @property
    def base(self) -> Fraction:
        return Fraction(self.value) * self.units[self.unit]

    @property
    def digits(self) -> int:
        return len(self.value.replace(".", "").lstrip("0"))


def read_rows(root: Path) -> list[Row]:
    found: list[Row] = []
    for file in sorted((root / "hardware").glob("*.md")):
        path = f"hardware/{file.name}"
        lines = file.read_text("utf-8").split("\n")
        product = next((line.split(": ", 1)[1] for line in lines if line.startswith("product: ")), file.stem)
        table, rows = False, []
        for number, line in enumerate(lines, start=1):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if cells[:4] == ["metric", "value", "unit", "qualifier"]:
                table = True
            elif not line.startswith("|"):
                table = False
            elif table and not set(line) <= set("|- "):
                rows.append((number, line, cells))
        qualifiers = defaultdict(set)
        for _, _, cells in rows:
            qualifiers[cells[0]].add(cells[3])
        for number, line, cells in rows:
            metric, value, unit, qualifier = cells[:4]
            if re.fullmatch(r"\d+(?:\.\d+)?", value) and unit:
                assert unit in FAMILIES, f"{path}:{number} has the unit {unit}, which this test does not know"
                assert metric not in BINARY_METRICS or FAMILIES[unit] is CAPACITIES
                rivals = len(qualifiers[metric])
                found.append(Row(path, number, line, product, metric, value, unit, qualifier, rivals))
    return found


def in_digits(value: Fraction, digits: int) -> tuple[int, int]:
    """(mantissa, place): `value` rounded half to even to significant digits, mantissa × 10**place."""
    place = 0
    while value >= 10**digits:
        value, place = value / 10, place + 1
    while 0 < value < 10 ** (digits - 1):
        value, place = value * 10, place - 1
    return round(value), place


def exactly(value: Fraction) -> Decimal | None:
    """`value` as a decimal with at most 15 digits; None where it is none."""
    if not value:
        return Decimal(0)
    mantissa, place = in_digits(value, 15)
    if mantissa * Fraction(10) ** place != value:
        return None
    found = Decimal(mantissa).scaleb(place).normalize()
    return found.quantize(Decimal(1)) if found == found.to_integral_value() else found


def grouped(text: str, mark: str) -> str:
    whole, dot, rest = text.partition(".")
    return f"{int(whole):,}".replace(",", mark) + dot + rest


def power_of_ten(rng: random.Random, value: Decimal) -> str:
    """A value with all its digits as mantissa and power of ten."""
    sign, digits, place = value.as_tuple()
    assert isinstance(place, int)
    assert not sign
    text = "".join(map(str, digits))
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    power = place + len(text) - 1
    raised = str(power).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    forms = [f"{mantissa}e{power}", f"{mantissa}E{power:+d}", f"{mantissa} x 10^{power}", f"{mantissa}×10^{power}"]
    forms += [f"{mantissa}*10**{power}"] + ([f"{mantissa}·10{raised}"] if power >= 0 else [])
    return rng.choice(forms)


def written(rng: random.Random, value: Fraction, digits: int, allow_power: bool) -> str:
    """`value` in some notation that states it faithfully, with at least `digits` significant digits."""
    exact = exactly(value)
    if exact is None or (rng.random() < 0.3 and digits >= 3):
        mantissa, place = in_digits(value, max(digits, 3) if exact is None else rng.randint(3, max(3, digits)))
        assert abs(mantissa * Fraction(10) ** place - value) <= Fraction(10) ** place / 2
        number = Decimal(mantissa).scaleb(place)
    else:
        number, place = exact, min(int(exact.as_tuple().exponent), 0)
    if place > 0 or (allow_power and rng.random() < 0.35) or not Decimal("1e-6") < number < Decimal("1e15"):
        return power_of_ten(rng, number)
    text = f"{number:f}"
    return grouped(text, rng.choice([",", ",", "\u202f", "\u2009"])) if number >= 1000 and rng.random() < 0.5 else text


def cased(rng: random.Random, text: str) -> str:
    return rng.choice([text, text, text.lower(), text.upper(), text.replace(" ", "-"), text.replace(" ", "_")])


def head(rng: random.Random, row: Row, product: str | None = None, metric: str | None = None) -> str:
    """Product and metric in one of their spellings."""
    known = V.products[product or row.product]
    measured = next(m for m in V.metrics.values() if m.name == (metric or row.metric))
    # An alias that belongs to several metrics, or reads as a sentence with a colon, is left to other tests.
    aliases = [a for a in measured.aliases if len(V.resolve("metric", a)) == 1 and ":" not in a]
    name = rng.choice([known.id, known.name, known.name, *known.aliases])
    what = rng.choice([measured.name, measured.name, measured.id, *aliases])
    return f"{cased(rng, name)} {cased(rng, what)}"


def qualified(rng: random.Random, qualifier: str) -> str:
    return f" ({rng.choice([qualifier, *V.qualifiers[qualifier].aliases])})" if qualifier else ""


def reference(row: Row, line: int | None = None, path: str | None = None) -> str:
    return f"gpu-wiki/{path or row.path}:L{row.line if line is None else line}"


def right(rng: random.Random, rows: list[Row]) -> str:
    row = rng.choice(rows)
    unit = rng.choice(sorted(row.units))
    powers_allowed = unit not in ("x", "×")
    number = written(rng, row.base / row.units[unit], row.digits, powers_allowed)
    name = head(rng, row)
    if rng.random() < 0.1:
        name = row.metric
    qualifier = "" if row.rivals == 1 and rng.random() < 0.5 else qualified(rng, row.qualifier)
    cited = reference(row)
    extra = rng.random()
    if extra < 0.1:
        cited += "@" + hashlib.sha256(row.text.rstrip().encode()).hexdigest()[: rng.randint(8, 64)]
    elif extra < 0.2:
        cited += f"-L{row.line}"
    blank = rng.choice([" ", " ", ""])
    mark = rng.choice(["", "", "- ", "[3] ", "> ", "1. "])
    return f"{mark}{name}{qualifier}: {number}{blank}{unit} {rng.choice(['<-', '<-', '←'])} {cited}"


def line_of(row: Row, number: str | None = None, unit: str | None = None, qualifier: str | None = None) -> str:
    shown = row.qualifier if qualifier is None else qualifier
    said = f" ({shown})" if shown else ""
    product = V.products[row.product].name
    return f"{product} {row.metric}{said}: {number or row.value} {unit or row.unit} <- "


def digit(rng: random.Random, row: Row) -> str | None:
    """One digit changed, or two neighbours swapped, so that the value differs."""
    places = [i for i, c in enumerate(row.value) if c.isdigit()]
    changed = list(row.value)
    at = rng.choice(places)
    if rng.random() < 0.5:
        changed[at] = rng.choice([d for d in "0123456789" if d != row.value[at]])
    else:
        other = rng.choice(places)
        changed[at], changed[other] = changed[other], changed[at]
    text = "".join(changed)
    if Fraction(text) == Fraction(row.value):
        return None
    if rng.random() < 0.5:
        unit = rng.choice(sorted(row.units))
        exact = exactly(Fraction(text) * row.units[row.unit] / row.units[unit])
        if exact is not None and Decimal("1e-6") < exact < Decimal("1e15"):
            # 102.4 changed to 102.0 and written as 0.102 of a larger unit is the old value, rounded.
            place = Fraction(10) ** min(int(exact.as_tuple().exponent), 0)
            differs = abs(Fraction(exact) * row.units[unit] - row.base) > place * row.units[unit] / 2
            return line_of(row, f"{exact:f}", unit) + reference(row) if differs else None
    return line_of(row, text) + reference(row)


def unit(rng: random.Random, row: Row) -> str | None:
    """Another power, or another dimension."""
    # Nothing is as much in each power of a unit.
    powers_of = [u for u, scale in row.units.items() if scale != row.units[row.unit]] if row.base else []
    foreign = [u for u in OTHER_UNITS if FAMILIES.get(u) is not row.units and u not in row.units]
    if row.unit == "bit":
        foreign.remove("GB")
    chosen = rng.choice(sorted(powers_of)) if powers_of and rng.random() < 0.5 else rng.choice(foreign)
    return line_of(row, unit=chosen) + reference(row)


def product(rng: random.Random, row: Row) -> str | None:
    """Another product, or a family that leaves open which."""
    own = V.products[row.product]
    names = (
        [p.name for p in V.products.values() if p is not own] + [V.families[f].name for f in own.families] + ["H150"]
    )
    return line_of(row).replace(own.name, rng.choice(names), 1) + reference(row)


def sparsity(rng: random.Random, row: Row) -> str | None:
    """Dense said to be sparse, or sparse to be dense."""
    if row.qualifier not in ("dense", "sparse 2:4"):
        return None
    other = "sparse 2:4" if row.qualifier == "dense" else "dense"
    return line_of(row, qualifier=rng.choice([other, *V.qualifiers[other].aliases])) + reference(row)


def elsewhere(rng: random.Random, row: Row, rows: list[Row], length: int) -> str | None:
    """A line that says something else, or that is not there."""
    line = rng.choice([rng.randint(1, length), rng.randint(1, length), row.line + 1, 0, length + rng.randint(1, 50)])
    there = next((r for r in rows if (r.path, r.line) == (row.path, line)), None)
    if there and (there.metric, there.qualifier) == (row.metric, row.qualifier):
        return None
    return line_of(row) + reference(row, line)


def page(rng: random.Random, row: Row) -> str | None:
    """A page that was deleted, or never was, or of no wiki."""
    if row.path == DELETED:
        return line_of(row) + reference(row)
    gone = rng.choice([row.path.replace(".md", "-old.md"), DELETED, "hardware/h150.md"])
    if rng.random() < 0.2:
        return line_of(row) + reference(row).replace("gpu-wiki", "our-wiki")
    return line_of(row) + reference(row, path=gone)


def unqualified(row: Row) -> str | None:
    """No qualifier where the page has several."""
    return line_of(row, qualifier="") + reference(row) if row.qualifier and row.rivals > 1 else None


def metric(rng: random.Random, row: Row) -> str | None:
    """Another metric of the same unit, where the page has one."""
    names = [m.name for m in V.metrics.values() if m.unit == row.unit and m.name != row.metric]
    return line_of(row).replace(f" {row.metric}", f" {rng.choice(names)}", 1) + reference(row) if names else None


def stale(rng: random.Random, row: Row) -> str | None:
    """The hash of lines that read otherwise."""
    changed = row.text.replace(row.value, row.value + "0", 1)
    return line_of(row) + reference(row) + "@" + hashlib.sha256(changed.encode()).hexdigest()[: rng.randint(8, 64)]


def wrong(rng: random.Random, rows: list[Row], lengths: dict[str, int]) -> Iterator[tuple[str, str]]:
    """(kind, citation line), the kinds in turn."""
    while True:
        for kind in ("digit", "unit", "product", "sparsity", "line", "page", "qualifier", "metric", "stale"):
            made: str | None = None
            while made is None:
                row = rng.choice(rows)
                if row.path == DELETED and kind != "page":
                    continue
                makers: dict[str, Callable[[Row], str | None]] = {
                    "digit": lambda r: digit(rng, r),
                    "unit": lambda r: unit(rng, r),
                    "product": lambda r: product(rng, r),
                    "sparsity": lambda r: sparsity(rng, r),
                    "line": lambda r: elsewhere(rng, r, rows, lengths[r.path]),
                    "page": lambda r: page(rng, r),
                    "qualifier": unqualified,
                    "metric": lambda r: metric(rng, r),
                    "stale": lambda r: stale(rng, r),
                }
                made = makers[kind](row)
            yield kind, made


@pytest.fixture(scope="module")
def wiki(tmp_path_factory: pytest.TempPathFactory) -> Wiki:
    """A copy of the bundled wiki from which one page was deleted."""
    root = tmp_path_factory.mktemp("wiki") / "pages"
    shutil.copytree(bundled_wiki().root, root)
    (root / DELETED).unlink()
    return Wiki("gpu-wiki", root)


@pytest.fixture(scope="module")
def library(wiki: Wiki) -> Wikis:
    return Wikis([wiki])


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    found = read_rows(bundled_wiki().root)
    assert len(found) > 300
    return found


@pytest.fixture(scope="module")
def planted(rows: list[Row]) -> list[tuple[str, str]]:
    """1,000 different wrong citations with their kinds."""
    lengths = {row.path: len((bundled_wiki().root / row.path).read_text("utf-8").splitlines()) for row in rows}
    made: dict[str, str] = {}
    for kind, line in wrong(random.Random(20261121), rows, lengths):
        made.setdefault(line, kind)
        if len(made) == COUNT:
            return [(kind, line) for line, kind in made.items()]
    raise AssertionError


@pytest.fixture(scope="module")
def faithful(rows: list[Row]) -> list[str]:
    """1,000 different right citations."""
    rng = random.Random(20261122)
    present = [row for row in rows if row.path != DELETED]
    made: dict[str, None] = {}
    while len(made) < COUNT:
        made[right(rng, present)] = None
    return list(made)


@pytest.mark.slow
@pytest.mark.processes  # a stale citation is looked for in the history of git
def test_wrong_citations_are_all_rejected(planted: list[tuple[str, str]], library: Wikis) -> None:
    kinds = Counter(kind for kind, _ in planted)
    assert len(kinds) == 9
    assert min(kinds.values()) >= 60
    checked = check_text("\n".join(line for _, line in planted), library, V)
    assert len({c.line for c in checked}) == COUNT
    assert [c.text for c in checked if c.status is Status.OK] == []
    for (kind, line), found in zip(planted, checked, strict=True):
        assert found.detail, line
        assert (found.status is Status.STALE) is (kind == "stale"), line
        assert (found.status is Status.NOT_FOUND) is (
            kind == "page" or "names no" in found.detail or "ends" in found.detail
        )


def test_right_citations_are_all_accepted(faithful: list[str], library: Wikis) -> None:
    checked = check_text("\n".join(faithful), library, V)
    assert len(checked) == COUNT
    assert [(c.text, c.detail) for c in checked if c.status is not Status.OK] == []


def test_right_citations_come_in_many_notations(faithful: list[str]) -> None:
    text = "\n".join(faithful)
    for pattern in (r"\de\d", r"\dE\+", r"10\^\d", r"10\*\*", r"10[⁰¹²³⁴⁵⁶⁷⁸⁹]", r"\d,\d{3}", "\u202f", r"\dGB", "KiB"):
        assert re.search(pattern, text), pattern
    for unit_name in ("TB/s", "GB/s", "B/s", "KB", "MB", "bytes", "GHz", "MHz", "kW", "TFLOPS", "TFLOP/s", "PFLOPS"):
        assert f" {unit_name} " in text, unit_name


def test_rounding_in_this_script_is_pythons_own(rows: list[Row]) -> None:
    for row in rows:
        mantissa, place = in_digits(Fraction(row.value), 3)
        value = Decimal(row.value)
        expected = value.quantize(Decimal(1).scaleb(value.adjusted() - 2), ROUND_HALF_EVEN)
        assert mantissa * Fraction(10) ** place == Fraction(expected)


@pytest.mark.processes
def test_through_the_command(
    planted: list[tuple[str, str]], faithful: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty of each through `kopt cite`, against the wiki as it ships."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    shipped = [line for _, line in planted if DELETED not in line][:20]
    for line in shipped:
        done = runner.invoke(app, ["cite", line])
        assert done.exit_code == 4, done.output
        assert "0 ok, 1 failed" in done.output
    for line in faithful[:20]:
        done = runner.invoke(app, ["cite", "-"], input=line)
        assert done.exit_code == 0, done.output
        assert "1 ok, 0 failed" in done.output
