"""A kernel's problem under a GPU's roofline: work from its reference, peaks from the wikis, ceilings from KOPT_HOME."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from kbs.answers.kernel_roofline import Demand, MeasuredCeilings, Placed, Roof, Term, achieved, place
from kbs.answers.model import Step
from kbs.common.errors import KoptError, NoGpuError, UsageError
from kbs.common.json_model import JsonDataclass
from kbs.evidence.units import format_number
from kbs.hardware.roofline import peak_metric, usable
from kopt.services.peaks import product_of as product_of_device

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evaluator.diagnosis.measured_point import MeasuredPoint
    from evaluator.timing.ceilings import Ceilings
    from evaluator.work import Traffic, Work
    from kbs.evidence.spec import Spec
    from kbs.evidence.vocabulary import Vocabulary
    from kopt.services.engine import Engine

BANDWIDTH = "hbm_bandwidth"
_MATMULS = {
    "fp32": "fp32_throughput",
    "tf32": "tf32_tensor_throughput",
    "fp16": "fp16_tensor_throughput",
    "bf16": "bf16_tensor_throughput",
}
"""The metric whose ceiling a measured matrix product of an element type is."""
_NAMES = {"input": "read input", "weight": "read weight", "constant": "read", "output": "write", "read": "read",
          "write": "write"}  # fmt: skip


@dataclass(frozen=True)
class Declared(JsonDataclass):
    """What somebody said that the problem needs, in place of what is counted."""

    expression: str
    """With the sizes in it, such as `2 × 4096 × 4096`."""
    amount: int
    by: str
    """`command line` or `reference`."""


@dataclass
class Roofline:
    """What was found."""

    product: str
    """Product id."""
    gpu: str
    """Name of the product."""
    placed: Placed
    work: Work | None
    declared: dict[str, Declared]
    """`bytes` and `operations`, where they were declared."""
    ceilings: Ceilings | None
    roofs: list[Roof]
    """Cited peaks, then measured ceilings that were used."""
    point: MeasuredPoint | None = None
    point_steps: list[Step] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def product_of(engine: Engine, gpu: str, documented: Sequence[str]) -> str:
    """The one product that a name is of; `auto`: the first GPU of this machine. UsageError `gpu_unknown`,
    `gpu_ambiguous`; `NoGpuError`."""
    terms = engine.terms
    if gpu == "auto":
        from evaluator.receipt.environment import gpu_names

        present = gpu_names()
        if not present:
            raise NoGpuError(
                "--gpu auto was asked for, and there is no GPU",
                code="no_gpu",
                hint="Name one, such as --gpu h200; `kopt spec --list` lists those of the wikis.",
            )
        found = product_of_device(engine, present[0])
        if not found:
            raise UsageError(
                f"no page is about {present[0]}, or its name is a name of several",
                code="gpu_unknown",
                hint="Name the product, such as --gpu h200-sxm; see `kopt spec --list`.",
            )
        return found
    products = terms.resolve("product", gpu)
    if not products:
        near = terms.nearest_products(gpu, list(documented))
        raise UsageError(
            f"{gpu!r} is no GPU that is known",
            code="gpu_unknown",
            hint=f"The nearest known ones are {', '.join(near)}." if near else "See `kopt spec --list`.",
        )
    if len(products) > 1:
        raise UsageError(
            f"{gpu!r} is a name of {len(products)} products",
            code="gpu_ambiguous",
            hint=f"Name one of them: {', '.join(products)}.",
        )
    return products[0]


def declared(expression: str, dims: Mapping[str, int], by: str, option: str) -> Declared:
    """An expression of the dims, evaluated. UsageError `size_invalid`."""
    from evaluator.source.cuda_signature import evaluate_size

    try:
        amount = evaluate_size(expression, dict(dims))
    except UsageError as error:
        hint = error.hint.partition(": --ptr-size")[0]
        raise UsageError(error.message, code=error.code, hint=f"{hint}: {option} '5*M*N'.") from error
    shown = re.sub(r"[A-Za-z_]\w*", lambda name: str(dims[name[0]]), expression)
    plain = re.fullmatch(r"[\d\s+\-*()]+", shown) is not None and len(shown) < 200
    spaced = re.sub(r"\s*([*+\-])\s*", r" \1 ", shown).replace("*", "×").strip()
    return Declared(spaced if plain else str(amount), amount, by)


def roofline(
    engine: Engine,
    product: str,
    specs: Sequence[Spec],
    work: Work | None,
    said: Mapping[str, Declared],
    peak: str | None,
) -> Roofline:
    """Put the work under the roofline. `said`: declared `bytes` and `operations`; `peak`: the metric at which products
    of matrices run, or declared operations. Raises `UsageError` `peak_needed`."""
    terms = engine.terms
    notes: list[str] = []
    demand = demand_of(work, said, peak, terms, notes)
    operations = demand.operations
    cited = {metric: _cited(specs, product, metric, terms) for metric in (BANDWIDTH, *operations)}
    found = newest_ceilings(engine, product)
    measured = None if found is None else _measured(found, terms)
    bandwidth = cited.pop(BANDWIDTH)
    placed = place(demand, bandwidth, cited, measured)
    name = terms.products[product].name
    gaps = [f"{name} {terms.metrics[m].name}: UNKNOWN (gpu-wiki not found)" for m in placed.missing]
    made = Roofline(product, name, placed, work, dict(said), found, _roofs(placed, measured), gaps=gaps, notes=notes)
    if work is not None:
        notes += limits(work, said)
    return made


def add_point(engine: Engine, found: Roofline, point: MeasuredPoint) -> None:
    """Put a measured time beside it. UsageError `profile_of_another_gpu`."""
    product = product_of_device(engine, point.device)
    if product != found.product:
        raise UsageError(
            f"the time was measured on {point.device}, and the roofline is that of {found.gpu}",
            code="profile_of_another_gpu",
            hint=f"Give --gpu {product}." if product else "Give the --gpu on which it was measured.",
        )
    found.point = point
    found.point_steps = achieved(found.placed, point.seconds, point.shown, point.bytes)
    if point.doubt:
        found.notes.append(point.doubt)


def newest_ceilings(engine: Engine, product: str) -> Ceilings | None:
    """What `kopt bench ceilings` measured last on a device of this product; None where it never did."""
    from evaluator.timing.ceilings import FOLDER, load

    found = []
    for path in sorted((engine.settings.home / FOLDER).glob("*.json")):
        try:
            kept = load(path)
        except KoptError as error:
            engine.warnings.append(f"{error.message} {error.hint}")
            continue
        if kept is not None and product_of_device(engine, kept.device) == product:
            found.append(kept)
    return max(found, key=lambda kept: kept.created, default=None)


# --- the demand -------------------------------------------------------------------------------------------------------


def demand_of(
    work: Work | None, said: Mapping[str, Declared], peak: str | None, terms: Vocabulary, notes: list[str]
) -> Demand:
    """Bytes and operations as they were counted or declared; what is not counted is added to `notes`. Raises
    `UsageError` `peak_needed`."""
    return _demand(work, said.get("bytes"), _operations(work, said.get("operations"), peak, terms, notes))


def _operations(
    work: Work | None, said: Declared | None, peak: str | None, terms: Vocabulary, notes: list[str]
) -> dict[str, tuple[Term, ...]]:
    counted: dict[str, list[Term]] = {}
    rows = () if work is None else work.operations
    products = any(row.pipe == "tensor" for row in rows)
    for row in rows:
        dtype = dtype_of(row.dtype, terms)
        if row.pipe == "integer" or dtype is None:
            notes.append(f"{row.name} on {row.dtype}: {row.count:,} operations that no peak rate is stated for;"
                         " they are not counted")  # fmt: skip
            continue
        metric = peak if peak and (row.pipe == "tensor" or not products) else peak_metric(row.pipe, dtype, terms)
        factors = row.factors if row.calls == 1 else (*row.factors, row.calls)
        times = f", {row.calls} calls" if row.calls > 1 else ""
        counted.setdefault(metric, []).append(Term(f"{row.name}, {terms.dtypes[dtype].name}{times}", factors))
    if said is None:
        return {metric: tuple(found) for metric, found in counted.items()}
    sums = {metric: sum(term.amount for term in found) for metric, found in counted.items()}
    metric = peak or max(sums, key=lambda name: sums[name], default="")
    if not metric:
        raise UsageError(
            "nothing says at which peak rate the declared operations run",
            code="peak_needed",
            hint="Give --peak, such as --peak bf16_tensor_throughput or --peak fp32_throughput.",
        )
    return {metric: (Term(f"operations, declared ({said.by})", (said.amount,), said.expression),)}


def _demand(work: Work | None, said: Declared | None, operations: dict[str, tuple[Term, ...]]) -> Demand:
    if said is not None:
        term = Term(f"bytes, declared ({said.by})", (said.amount,), f"{_bracketed(said.expression)} × 1 B")
        return Demand((term,), (), operations, mixed=True)
    assert work is not None
    return Demand(_terms(work.read), _terms(work.written), operations)


def _bracketed(expression: str) -> str:
    return f"({expression})" if re.search(r"[+\-]", expression) else expression


def _terms(rows: Sequence[Traffic]) -> tuple[Term, ...]:
    return tuple(
        Term(f"{_NAMES[row.what]} {row.name}, {row.dtype}{'' if row.exact else ', no less'}", row.factors)
        for row in rows
    )


def limits(work: Work, said: Mapping[str, Declared]) -> list[str]:
    """What a reader must know of how it was counted."""
    notes = []
    if work.uncounted and "operations" not in said:
        notes.append(f"no rule counts the operations of {', '.join(work.uncounted)}: there are more than are shown."
                     " Declare them with --operations")  # fmt: skip
    if not all(row.exact for row in (*work.read, *work.written)) and "bytes" not in said:
        notes.append("what is read of a tensor depends on values, such as indices: the bytes may be other ones")
    if work.how == "real":
        notes.append(f"the reference ran on the CPU, since fake tensors did not do: {work.why}")
    if work.how == "none":
        notes.append("the kernel is its own reference and was not run: each input is taken to be read whole, once")
    return notes


def dtype_of(name: str, terms: Vocabulary) -> str | None:
    """The vocabulary's element type of PyTorch's."""
    if name.startswith("float8"):
        return "fp8"
    return next((id for id, found in terms.dtypes.items() if name in found.aliases and found.vector), None)


# --- roofs ------------------------------------------------------------------------------------------------------------


def _cited(specs: Sequence[Spec], product: str, metric: str, terms: Vocabulary) -> Roof | None:
    spec = usable(specs, product, metric, terms)
    if spec is None:
        return None
    rate = spec.base(terms)
    assert rate is not None
    shown = f"{spec.value} {spec.unit}"
    return Roof(metric, terms.metrics[metric].name, rate, shown, "cited", spec.citation_line(terms))


def _measured(found: Ceilings, terms: Vocabulary) -> MeasuredCeilings:
    def roof(prefix: str, metric: str) -> Roof | None:
        figures = [f for f in found.figures if f.name.startswith(prefix) and f.unit in ("GB/s", "TFLOP/s")]
        if not figures:
            return None
        best = max(figures, key=lambda figure: figure.value)
        value = Decimal(format_number(Decimal(str(best.value)), 4).replace(",", ""))
        unit, scale = ("GB/s", Decimal(10**9)) if best.unit == "GB/s" else ("TFLOPS", Decimal(10**12))
        said = f"{best.name}, measured {found.created[:10]} on {found.device}, driver {found.driver}"
        return Roof(metric, terms.metrics[metric].name, value * scale, f"{value} {unit}", "measured", said)

    compute = {metric: roof(f"{dtype} ", metric) for dtype, metric in _MATMULS.items()}
    return MeasuredCeilings(
        copy=roof("copy ", BANDWIDTH),
        read=roof("read ", BANDWIDTH),
        fill=roof("fill ", BANDWIDTH),
        compute={metric: one for metric, one in compute.items() if one is not None},
    )


def _roofs(placed: Placed, measured: MeasuredCeilings | None) -> list[Roof]:
    """Those that were used: cited ones, then measured ones."""
    cited = [*([placed.bandwidth] if placed.bandwidth else []), *placed.peaks.values()]
    if measured is None:
        return cited
    shown = " ".join(step.expression for step in placed.steps)
    memory = [roof for roof in (measured.copy, measured.read, measured.fill) if roof is not None]
    used = [roof for roof in memory if roof.shown in shown] or memory[:1]
    return [*cited, *used, *(roof for metric, roof in measured.compute.items() if metric in placed.peaks)]
