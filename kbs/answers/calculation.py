"""Answers that need arithmetic: bytes, operations, intensity, ridge points, bounds and minimum times, step by step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from kbs.answers.knowledge import Knowledge, join
from kbs.answers.model import Answer, Claim, ClaimKind, Step
from kbs.evidence.checking import plain_text
from kbs.evidence.citation import Citation
from kbs.evidence.spec import Spec
from kbs.evidence.table_rows import AdviceRow, CostRow, MeasuredRow
from kbs.evidence.units import format_number, format_seconds
from kbs.evidence.vocabulary import is_capability
from kbs.hardware.roofline import (
    COMPUTE_BOUND,
    MEMORY_BOUND,
    Bound,
    OperationCost,
    bound_on,
    operation_cost,
    peak_metric,
    usable,
)
from kbs.questions.numbers import Premise
from kbs.questions.question import Question

ADVICE = 6
"""Techniques that are listed."""
MEASURED = 3
MANY = 8
"""Products of which each is named in one sentence; of more, the first and the last are."""
TO_TRY = "What to try"
MEASURED_OF = {
    "hbm_bandwidth": ("measured_copy_bandwidth", "measured_stream_bandwidth"),
    "bf16_tensor_throughput": ("measured_bf16_matmul",),
}
"""Metric → those that state what was measured of it."""


def cost_of(question: Question, knowledge: Knowledge) -> OperationCost | None:
    """What the operation of the question costs, at its sizes or at the vocabulary's example sizes."""
    rows: list[CostRow] = knowledge.store.rows("cost", question.operation)
    if not rows:
        return None
    operation = knowledge.vocabulary.operations[question.operation]
    newest = [
        row for row in rows if row.citation.wiki == rows[0].citation.wiki and row.citation.path == rows[0].citation.path
    ]
    dims = {name: question.dims.get(name, size) for name, size in operation.dims.items()}
    return operation_cost(newest, operation.id, dims, question.dtype or operation.dtype, knowledge.vocabulary)


def cost_steps(cost: OperationCost, knowledge: Knowledge) -> list[Step]:
    """Bytes, operations and intensity, written out."""

    def product(row: CostRow) -> str:
        return " × ".join([row.count, *(str(cost.dims[dim]) for dim in row.dims)])

    size = knowledge.vocabulary.dtypes
    moved = " + ".join(
        f"{product(row)} × {size[row.dtype or cost.dtype].bytes} B"
        for row in cost.rows
        if row.cost in ("read", "write")
    )
    steps = [Step("bytes", moved, cost.bytes, "B", f"{moved} = {cost.bytes:,f} B")]
    for pipe, flop in cost.flop.items():
        work = " + ".join(product(row) for row in cost.rows if row.cost == f"{pipe} FLOP" and Decimal(row.count))
        label = "operations" if len(cost.flop) == 1 else f"{pipe} operations"
        steps.append(Step(label, work, flop, "FLOP", f"{work} = {flop:,f} FLOP"))
    for pipe, flop in cost.flop.items():
        label = "intensity" if len(cost.flop) == 1 else f"{pipe} intensity"
        expression = f"{flop:,f} FLOP / {cost.bytes:,f} B"
        value = cost.intensity(pipe)
        steps.append(Step(label, expression, value, "FLOP/byte", f"{expression} = {format_number(value)} FLOP/byte"))
    return steps


def bound_steps(bound: Bound, knowledge: Knowledge, *, with_time: bool) -> list[Step]:
    """Ridge point and, where sizes were given, the minimum time, written out."""
    name = knowledge.name(bound.product)
    rate = f"{bound.bandwidth.value} {bound.bandwidth.unit}"
    steps: list[Step] = []
    for pipe, peak in bound.peaks.items():
        expression = f"{peak.value} {peak.unit} / {rate}"
        shown = f"{expression} = {format_number(bound.ridge[pipe])} FLOP/byte"
        label = f"ridge point of {name}" + (f", {pipe}" if len(bound.peaks) > 1 else "")
        steps.append(Step(label, expression, bound.ridge[pipe], "FLOP/byte", shown))
    if with_time:
        expression = f"{bound.cost.bytes:,f} B / {rate}"
        shown = f"{expression} = {format_seconds(bound.memory_time)}"
        steps.append(Step(f"memory time on {name}", expression, bound.memory_time, "s", shown))
        for pipe, peak in bound.peaks.items():
            expression = f"{bound.cost.flop[pipe]:,f} FLOP / {peak.value} {peak.unit}"
            shown = f"{expression} = {format_seconds(bound.compute_time[pipe])}"
            steps.append(Step(f"{pipe} time on {name}", expression, bound.compute_time[pipe], "s", shown))
    return steps


def bound_citations(bound: Bound) -> tuple[Citation, ...]:
    """The lines that a bound was calculated from."""
    rows = tuple(row.citation for row in bound.cost.rows)
    return (*rows, bound.bandwidth.citation, *(peak.citation for peak in bound.peaks.values()))


def answer_operation(question: Question, knowledge: Knowledge, answer: Answer, *, with_time: bool) -> bool:
    """What bounds an operation on products; False if its cost is not known. `with_time`: its least time too."""
    cost = cost_of(question, knowledge)
    if cost is None:
        return False
    products = _boards(question, knowledge)
    bounds: list[Bound] = []
    for product in products:
        found = bound_on(cost, product, knowledge.about(product), knowledge.vocabulary)
        if isinstance(found, Bound):
            bounds.append(found)
        else:
            needed = join([_peak_name(metric, cost.dtype, knowledge) for metric in dict.fromkeys(found)])
            answer.gaps.append(
                f"{knowledge.name(product)} {needed}: UNKNOWN (gpu-wiki not found), so nothing is computed for it."
            )
    if not bounds:
        return False
    answer.add("", _direct(question, knowledge, cost, bounds, with_time))
    answer.add("Why", _why(question, knowledge, cost, bounds, with_time))
    facts = {
        claim.text: claim
        for b in bounds
        for s in (b.bandwidth, *b.peaks.values())
        for claim in [knowledge.spec_claim(s)]
    }
    answer.add("Hardware facts", list(facts.values()))
    kinds = list(dict.fromkeys(b.bound for b in bounds))
    answer.add(TO_TRY, what_to_try(question, knowledge, kinds))
    answer.add("Measured by others", measured(question, knowledge))
    answer.gaps += _limits_of(question, knowledge, cost)
    return True


def _boards(question: Question, knowledge: Knowledge) -> list[str]:
    """The products to compute for: those that were named, or all that have memory. A compute capability has none
    of its own and stands for the boards that state it, where the wikis have one."""

    def has_memory(product: str) -> bool:
        return usable(knowledge.about(product), product, "hbm_bandwidth", knowledge.vocabulary) is not None

    if question.products and not any(is_capability(product) for product in question.products):
        return list(dict.fromkeys(question.products))
    boards = [product for product in knowledge.documented if has_memory(product)]
    if not question.products:
        return boards
    stated = {
        product: {spec.value for spec in knowledge.of(product, "compute_capability")}
        for product in (*boards, *question.products)
    }
    chosen: list[str] = []
    for product in question.products:
        same = [board for board in boards if stated[board] & stated[product]]
        chosen += same if is_capability(product) and same else [product]
    return list(dict.fromkeys(chosen))


def _peak_name(metric: str, dtype: str, knowledge: Knowledge) -> str:
    """What a metric is called; for an element type that has no metric of its peak rate, that."""
    terms = knowledge.vocabulary
    return terms.metrics[metric].name if metric else f"{terms.dtypes[dtype].name} peak rate"


def _sizes(dims: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in dims.items())


def _direct(
    question: Question, knowledge: Knowledge, cost: OperationCost, bounds: Sequence[Bound], with_time: bool
) -> list[Claim]:
    operation = knowledge.vocabulary.operations[cost.operation].name
    dtype = knowledge.vocabulary.dtypes[cost.dtype].name
    where = "at every size" if cost.scale_free else f"at {_sizes(cost.dims)}"
    groups: dict[str, list[Bound]] = {}
    for bound in bounds:
        groups.setdefault(bound.bound, []).append(bound)
    claims: list[Claim] = []
    for kind, members in groups.items():
        steps = cost_steps(cost, knowledge)
        for member in members:
            steps += bound_steps(member, knowledge, with_time=with_time)
        pipe = members[0].pipe
        if pipe is None:
            why = f"{operation} computes nothing, so only the bytes that it must move cost time, {where}"
        else:
            ridges = _ridges(members, knowledge)
            intensity = f"{format_number(cost.intensity(pipe))} FLOP per byte that it must move"
            side = "below" if kind == MEMORY_BOUND else "above"
            why = f"{operation} in {dtype} does {intensity} {where}, {side} the ridge point of {ridges}"
        few = len(members) <= MANY or pipe is None
        names = f" on {knowledge.names([m.product for m in members])}" if len(groups) > 1 and few else ""
        text = f"{kind.capitalize()}{names}: {why}."
        if with_time:
            times = _each(
                sorted(members, key=lambda m: m.floor) if len(members) > MANY else members,
                lambda m: f"{format_seconds(m.floor)} on {knowledge.name(m.product)}",
            )
            text += f" The minimum time at {_sizes(cost.dims)} is {times}."
        claimed = [b for b in question.bottlenecks if b in (MEMORY_BOUND, COMPUTE_BOUND) and b != kind]
        if claimed:
            text = f"Not {claimed[0]} by what it must do. " + text
        first = _ends(members) if len(members) > MANY and pipe is not None else ()  # what the sentence names
        citations = tuple(dict.fromkeys(c for member in (*first, *members) for c in bound_citations(member)))
        sizes = "" if cost.scale_free and not with_time else _whose_sizes(question, cost)
        claims.append(Claim(text, ClaimKind.DERIVED, citations, tuple(steps), note=sizes))
    return claims


def _each(members: Sequence[Bound], said: Callable[[Bound], str]) -> str:
    """What is said of each; of many, which are in order, of the first and the last."""
    return (
        join([said(m) for m in members]) if len(members) <= MANY else f"from {said(members[0])} to {said(members[-1])}"
    )


def _ridge(bound: Bound) -> Decimal:
    assert bound.pipe is not None
    return bound.ridge[bound.pipe]


def _ends(members: Sequence[Bound]) -> tuple[Bound, Bound]:
    return min(members, key=_ridge), max(members, key=_ridge)


def _ridges(members: Sequence[Bound], knowledge: Knowledge) -> str:
    """The ridge points of products, all for one pipe; of many, those of the lowest and the highest."""
    ordered = sorted(members, key=_ridge) if len(members) > MANY else members
    found = _each(ordered, lambda m: f"{knowledge.name(m.product)} ({format_number(_ridge(m))} FLOP/byte)")
    return f"each GPU {found}" if len(members) > MANY else found


def _whose_sizes(question: Question, cost: OperationCost) -> str:
    assumed = {name: size for name, size in cost.dims.items() if name not in question.dims}
    return f"example sizes {_sizes(assumed)}; give yours with --dims" if assumed else ""


def _why(
    question: Question, knowledge: Knowledge, cost: OperationCost, bounds: Sequence[Bound], with_time: bool
) -> list[Claim]:
    rows = tuple(row.citation for row in cost.rows)
    notes = "; ".join(f"{row.cost}: {row.note}" for row in cost.rows if row.note)
    claims = [
        Claim(
            f"{knowledge.vocabulary.operations[cost.operation].name} at {_sizes(cost.dims)}: "
            f"{'; '.join(step.shown for step in cost_steps(cost, knowledge))}.",
            ClaimKind.DERIVED,
            rows,
            tuple(cost_steps(cost, knowledge)),
            note="; ".join(filter(None, [notes, _whose_sizes(question, cost)])),
        )
    ]
    for bound in bounds:
        steps = bound_steps(bound, knowledge, with_time=with_time)
        if not steps:
            continue
        text = f"{knowledge.name(bound.product)}: {'; '.join(step.shown for step in steps)}: {bound.bound}."
        citations = (bound.bandwidth.citation, *(peak.citation for peak in bound.peaks.values()))
        if with_time:
            citations = bound_citations(bound)
        notes = ", ".join(
            f"{knowledge.vocabulary.metrics[s.metric].name} {s.confidence}"
            for s in (bound.bandwidth, *bound.peaks.values())
        )
        claims.append(Claim(text, ClaimKind.DERIVED, citations, tuple(steps), subject=bound.product, note=notes))
    claims += [claim for bound in bounds for claim in _achieved(question, knowledge, bound)]
    for kind in dict.fromkeys(b.bound for b in bounds):
        for page in knowledge.store.page_ids("bottleneck", kind):
            if page.rsplit("/", 1)[-1] == kind:
                lead = knowledge.lead(page)
                claims += [lead] if lead else []
    return claims


def share_of_peak(premise: Premise, product: str, knowledge: Knowledge) -> tuple[Claim, list[Spec]] | None:
    """What share of a product's cited peak a rate is that the question gives, and the rows of peak and of what was
    measured elsewhere; None where it is no such rate."""
    terms = knowledge.vocabulary
    metric = premise.metric or "fp32_throughput"
    peak = usable(knowledge.about(product), product, metric, terms)
    top = peak.quantity(terms) if peak is not None else None
    if not premise.quantity.unit.dimension.endswith("per second"):
        return None
    if peak is None or top is None or premise.quantity.unit.dimension != top.unit.dimension or not top.base:
        return None
    share = premise.quantity.base / top.base * 100
    shown_peak = f"{peak.value} {peak.unit}"
    expression = f"{premise.text} / {shown_peak} × 100"
    shown = f"{expression} = {format_number(share)}"
    step = Step("share of the peak", expression, share, "%", shown)
    name = terms.metrics[metric].name
    text = (
        f"{premise.text} is {format_number(share)} % of the {shown_peak} {name} of {knowledge.name(product)}: {shown}."
    )
    measured = [
        spec
        for other in MEASURED_OF.get(metric, ())
        for spec in knowledge.of(product, other)
        if spec.published and spec.base(terms) is not None
    ]
    return Claim(text, ClaimKind.DERIVED, (peak.citation,), (step,), subject=product), [peak, *measured]


def _achieved(question: Question, knowledge: Knowledge, bound: Bound) -> list[Claim]:
    """What share of the cited bandwidth a rate is that the question says was measured."""
    of_bandwidth = [p for p in question.premises if p.measured and p.metric == "hbm_bandwidth"]
    made = [share_of_peak(premise, bound.product, knowledge) for premise in of_bandwidth]
    return [claim for claim, _ in filter(None, made)]


def what_to_try(question: Question, knowledge: Knowledge, bottlenecks: Sequence[str]) -> list[Claim]:
    """Techniques against the bottlenecks, those of the operation's own page first, in the order of the pages."""
    rows: list[AdviceRow] = []
    if question.operation:
        page = knowledge.vocabulary.operations[question.operation].page
        rows += knowledge.store.rows("advice", page_id=page)
    for bottleneck in bottlenecks:
        rows += knowledge.store.rows("advice", bottleneck, page_id=f"bottleneck/{bottleneck}")
    fitting = [row for row in rows if row.bottleneck in bottlenecks and runs_on(row.technique, question, knowledge)]
    claims: dict[str, Claim] = {}
    for row in fitting:
        if row.technique in claims or len(claims) == ADVICE:
            continue
        name = knowledge.vocabulary.techniques[row.technique].name
        lead = knowledge.lead(f"technique/{row.technique}")
        citations = (row.citation, *(lead.citations if lead else ()))
        claims[row.technique] = Claim(
            f"{name}: {row.because}",
            ClaimKind.RECORD,
            citations,
            subject=row.technique,
            note=f"against {row.bottleneck}",
        )
    return list(claims.values())


def runs_on(technique: str, question: Question, knowledge: Knowledge) -> bool:
    """Whether a technique exists on a product of the question: its page may name the architectures that it needs."""
    needed = set(knowledge.of_techniques.get(technique, {}).get("arch", ()))
    present = {knowledge.vocabulary.products[product].architecture for product in question.products}
    return not needed or not present or bool(needed & present)


def measured(question: Question, knowledge: Knowledge) -> list[Claim]:
    """Published measurements of the operation, on the products of the question where there are any."""
    rows: list[MeasuredRow] = knowledge.store.rows("measured", question.operation)
    names = {knowledge.name(product) for product in question.products}
    here = {(row.gpu, row.dtype, row.shape, row.metric, row.value): row for row in reversed(rows) if row.gpu in names}
    return [measurement(row) for row in list(reversed(here.values()))[:MEASURED]]


def measurement(row: MeasuredRow) -> Claim:
    """What a row says was measured."""
    parts = (row.dtype, row.shape, f"{row.metric} {row.value} {row.unit}", plain_text(row.what))
    return Claim(f"{row.gpu}: {' · '.join(filter(None, parts))}", ClaimKind.RECORD, (row.citation,))


def _limits_of(question: Question, knowledge: Knowledge, cost: OperationCost) -> list[str]:
    gaps = []
    if not question.beside:
        gaps.append(
            "Your kernel itself was not looked at: this holds for the bytes and operations that every kernel of this"
            " operation needs. A profile tells how many more yours moves: --profile, --kernel, --ref."
        )
    if not question.dtype:
        name = knowledge.vocabulary.dtypes[cost.dtype].name
        gaps.append(f"No element type was named, so {name} was taken.")
    return gaps


def answer_ridge(question: Question, knowledge: Knowledge, answer: Answer) -> bool:
    """The ridge point of products for an element type, with no operation named; False if nothing is known."""
    vocabulary = knowledge.vocabulary
    dtypes = [question.dtype] if question.dtype else ["fp32", "bf16"]
    claims: list[Claim] = []
    facts: list[Claim] = []
    for product in question.products:
        for dtype in dtypes:
            bandwidth = usable(knowledge.about(product), product, "hbm_bandwidth", vocabulary)
            metric = peak_metric("tensor", dtype, vocabulary)
            peak = usable(knowledge.about(product), product, metric, vocabulary)
            if bandwidth is None or peak is None:
                answer.gaps.append(
                    f"{knowledge.name(product)} {_peak_name(metric, dtype, knowledge)}: UNKNOWN (gpu-wiki not found)"
                )
                continue
            top, speed = peak.base(vocabulary), bandwidth.base(vocabulary)
            assert top is not None
            assert speed is not None
            expression = f"{peak.value} {peak.unit} / {bandwidth.value} {bandwidth.unit}"
            shown = f"{expression} = {format_number(top / speed)} FLOP/byte"
            step = Step("ridge point", expression, top / speed, "FLOP/byte", shown)
            text = f"{knowledge.name(product)} {vocabulary.metrics[metric].name}, ridge point: {shown}."
            claims.append(Claim(text, ClaimKind.DERIVED, (peak.citation, bandwidth.citation), (step,), subject=product))
            facts += [knowledge.spec_claim(peak), knowledge.spec_claim(bandwidth)]
    answer.add("", claims)
    answer.add("Hardware facts", list({claim.text: claim for claim in facts}.values()))
    return bool(claims)
