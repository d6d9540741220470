"""The user's own kernel in an answer: its files are read, held against each other, counted, diagnosed, and told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evaluator.source.forms import recognise
from evaluator.source.source_file import SourceFile, read_source
from kbs.answers.kernel_roofline import place
from kbs.answers.model import Claim, ClaimKind, KernelPart, Section
from kbs.common.errors import KoptError, UsageError
from kbs.common.visible_text import visible
from kbs.hardware.roofline import usable
from kbs.questions.question import Question, Told, understand
from kopt.services.peaks import product_of
from kopt.services.user_kernel.claims import (
    Counted,
    binding,
    bound,
    ceiling_evidence,
    excess,
    file_says,
    headroom,
    moved,
    needs,
    reached,
    remedies,
    stalls,
    symptoms,
    target,
    verdict,
)
from kopt.services.user_kernel.evidence import OwnFiles
from kopt.services.user_kernel.files import KernelFile, Measured, choose

if TYPE_CHECKING:
    from pathlib import Path

    from evaluator.request import Request
    from evaluator.source.forms import Recognised
    from evaluator.work import Work
    from kbs.evidence.file_evidence import FileEvidence
    from kbs.evidence.spec import Spec
    from kopt.services.diagnosis import Diagnosed
    from kopt.services.engine import Engine
    from kopt.services.roofline import Declared

BANDWIDTH = "hbm_bandwidth"
TOLD = 3
"""Symptoms that are looked for beside the question."""


@dataclass(frozen=True)
class Given:
    """What the user gave beside a question; at least one of the three files."""

    kernel: Path | None = None
    reference: Path | None = None
    profile: Path | None = None
    launch: str = ""
    entry: str | None = None
    request: Request | None = None
    """How the reference is called; there is one where a reference is given."""
    dims: Mapping[str, int] = field(default_factory=dict)
    peak: str | None = None
    """Metric id of the rate at which products of matrices or declared operations run."""


@dataclass
class OwnKernel:
    """What is known of the kernel."""

    told: Told
    part: KernelPart
    evidence: OwnFiles
    product: str
    """The product that it was measured on, or that the question names; empty where none or several are."""
    kernel: KernelFile | None = None
    recognised: Recognised | None = None
    measured: Measured | None = None
    diagnosed: Diagnosed | None = None
    counted: tuple[Counted, ...] = ()
    """By product, or one without a product."""
    work: Work | None = None
    dims: dict[str, int] = field(default_factory=dict)
    """At which it was counted."""


def own_kernel(engine: Engine, text: str, gpus: tuple[str, ...], given: Given) -> OwnKernel:
    """Gather all that the files tell.

    UsageError: `profile_of_another`, `profile_of_other_sizes`, `profile_of_another_gpu`, `dims_do_not_fit`, and what
    reading the files raises. What cannot be had for another reason is a gap, which says why.
    """
    return _Gathering(engine, understand(text, engine.terms, gpus=gpus), given).all_of_it()


class _Gathering:
    """One question's files, step by step."""

    def __init__(self, engine: Engine, asked: Question, given: Given) -> None:
        self.engine, self.asked, self.given = engine, asked, given
        self.gaps: list[str] = []
        self.taken: list[str] = []
        self.rows: set[tuple[str, str]] = set()
        self.said: dict[str, Declared] = {}
        """Bytes and operations that the reference declares."""
        self.done = False
        """Whether what it must do is known."""
        self.ceilings: dict[str, tuple[FileEvidence, ...]] = {}
        source = read_source(given.kernel, "kernel") if given.kernel else None
        self.kernel = KernelFile.of(source) if source else None
        self.reference = read_source(given.reference, "reference") if given.reference else None
        self.specs: list[Spec] = engine.with_store(lambda store: store.specs(), vectors=False)

    def all_of_it(self) -> OwnKernel:
        """Everything."""
        recognised = self._recognised()
        measured = self._measured()
        product, products = self._products(measured)
        counted, work, dims = self._counted(measured, products)
        diagnosed = self._diagnosed(measured, product, work)
        told = self._told(product, diagnosed, work)
        direct, sections = self._say(recognised, measured, diagnosed, counted, product)
        if self.given.kernel is not None and not direct:
            self.gaps.append(
                "How fast this kernel is and what bounds it: neither a profile (--profile) nor a reference (--ref) was"
                " given, and its machine code was not looked at (`kopt sass`)."
            )
        return OwnKernel(
            told,
            KernelPart(
                tuple(direct),
                tuple(sections),
                tuple(visible(gap) for gap in dict.fromkeys(self.gaps)),
                tuple(visible(one) for one in self.taken),
            ),
            OwnFiles(
                measured.evidence if measured else None,
                self.given.profile,
                tuple(path for path in (self.given.kernel, self.given.reference) if path is not None),
                frozenset(self.rows),
                frozenset((e.place, e.states) for found in self.ceilings.values() for e in found),
            ),
            product,
            self.kernel,
            recognised,
            measured,
            diagnosed,
            tuple(counted),
            work,
            dims,
        )

    # --- reading ------------------------------------------------------------------------------------------------------

    def _recognised(self) -> Recognised | None:
        if self.kernel is None:
            return None
        request = self.given.request
        inputs = request.inputs.name if request is not None and request.inputs else "its inputs"
        try:
            return recognise(self.kernel.source, self.reference, inputs=inputs, entry=self.given.entry, backend=None)
        except UsageError as error:
            if self.reference is not None or error.code == "syntax_error":
                raise
            self.gaps.append(f"How {self.kernel.source.name} is called: {error.message.splitlines()[0]}")
            return None

    def _measured(self) -> Measured | None:
        if self.given.profile is None:
            return None
        dims = dict(self.given.dims)
        found = choose(self.given.profile, self.given.launch, self.kernel, self.reference, dims)
        self.gaps += found.doubts
        if found.evidence.kind == "receipt":
            from kopt.services.work_counts import seal_notes

            self.gaps += seal_notes(self.engine, self.given.profile)
        return found

    def _products(self, measured: Measured | None) -> tuple[str, tuple[str, ...]]:
        """The one product that all is about, if there is one; and those to count for."""
        terms, asked = self.engine.terms, self.asked.products
        if measured is None:
            return (asked[0] if len(asked) == 1 else ""), asked
        device = measured.launch.device
        own = product_of(self.engine, device) if device else ""
        if own:
            if asked and own not in asked:
                names = ", ".join(terms.products[product].name for product in asked)
                raise UsageError(
                    f"{measured.evidence.name} was taken on {visible(device)}, and the question is about {names}",
                    code="profile_of_another_gpu",
                    hint=f"Ask about {terms.products[own].name}, or leave the GPU out.",
                )
            if asked != (own,):
                self.taken.append(f"GPU: {terms.products[own].name}, since {measured.evidence.name} names {device}")
            return own, (own,)
        said = f"is of {device}, which is no GPU of the wikis" if device else "names no GPU"
        if len(asked) == 1:
            self.gaps.append(f"{measured.evidence.name} {said}: that it is {terms.products[asked[0]].name} is taken"
                             " from the question.")  # fmt: skip
            return asked[0], asked
        self.gaps.append(f"Headroom: {measured.evidence.name} {said}, and the question names not one; say --gpu GPU.")
        return "", ()

    # --- diagnosis ----------------------------------------------------------------------------------------------------

    def _diagnosed(self, measured: Measured | None, product: str, work: Work | None) -> Diagnosed | None:
        if measured is None:
            return None
        from kopt.services.diagnosis import NO_TASK, diagnose_launch, task_of

        task = NO_TASK
        if self.done and product and measured.grade == "full":  # a receipt counts needed bytes, and none that moved
            task = task_of(self.engine, measured.launch, product, work, self.said, peak=self.given.peak)
        found = diagnose_launch(self.engine, measured.launch, product, grade=measured.grade, task=task)
        self.gaps += [note for note in found.notes if product or "--gpu GPU" not in note]
        if found.diagnosis.unjudged:
            missing = len({one.row.symptom for one in found.diagnosis.unjudged})
            self.gaps.append(f"{missing} symptoms could not be judged, or not by every source: the profile does not"
                             " have their metrics (`kopt diagnose --json` lists them).")  # fmt: skip
        if product:
            self.ceilings[product] = self._ceilings(product)
        return found

    def _ceilings(self, product: str) -> tuple[FileEvidence, ...]:
        """What was measured on a device of a product."""
        folder = self.engine.settings.home / "ceilings"
        if not folder.is_dir() or not any(folder.glob("*.json")):
            return ()
        from kopt.services.roofline import newest_ceilings  # with what it imports torch

        found = newest_ceilings(self.engine, product)
        if found is None:
            return ()
        return tuple(
            ceiling_evidence(f.name, f.value, f.unit, found.device, found.driver, found.created)
            for f in found.figures
            if f.unit in ("GB/s", "TFLOP/s")
        )

    # --- the count ----------------------------------------------------------------------------------------------------

    def _counted(
        self, measured: Measured | None, products: tuple[str, ...]
    ) -> tuple[list[Counted], Work | None, dict[str, int]]:
        request = self.given.request
        if request is None or self.reference is None:
            if measured is not None:
                self.gaps.append("Its compulsory bytes and operations, and so how much of its time is needed: no"
                                 " reference was given (--ref, with --dims).")  # fmt: skip
            return [], None, {}
        from evaluator.workloads import check_dims

        if measured is None:
            self.gaps.append("What it really moves, how long it takes, and where its warps wait: no profile was given"
                             " (--profile).")  # fmt: skip
        elif measured.dims and not request.dims:
            request = request.model_copy(update={"dims": measured.dims})
            sizes = ", ".join(f"{name}={size}" for name, size in measured.dims.items())
            self.taken.append(f"sizes: {sizes}, at which {measured.evidence.name} was measured")
        elif measured.evidence.kind == "profile":
            self.gaps.append("Whether the profile was taken at the sizes of the count: a profile does not say it.")
        recognised = recognise(
            request.candidate,
            request.reference,
            inputs=request.inputs.name if request.inputs else None,
            entry=request.entry,
            backend=None,
        )
        check_dims(request, recognised)
        try:
            found, work = self._placed(request, recognised, self.reference, products)
        except KoptError as error:
            if isinstance(error, UsageError) and error.code in ("size_invalid", "dims_do_not_fit"):
                raise
            self.gaps.append(f"Its compulsory bytes and operations: {error.message}. {error.hint}".strip())
            return [], None, {}
        return found, work, dict(request.dims)

    def _placed(
        self, request: Request, recognised: Recognised, reference: SourceFile, products: tuple[str, ...]
    ) -> tuple[list[Counted], Work | None]:
        from kopt.services.roofline import demand_of, limits, roofline
        from kopt.services.work_counts import count, declared_work

        said = self.said = declared_work(request, recognised)
        work = None if len(said) == 2 else count(self.engine, request, recognised, said)
        self.done = True
        found = []
        for product in products:
            made = roofline(self.engine, product, self.specs, work, said, self.given.peak)
            self.gaps += [f"{gap}; what needs it is not computed." for gap in made.gaps]
            self.gaps += made.notes
            self.ceilings.setdefault(product, self._ceilings(product))
            specs = {m: usable(self.specs, product, m, self.engine.terms) for m in (BANDWIDTH, *made.placed.peaks)}
            citations = {metric: spec.citation for metric, spec in specs.items() if spec is not None}
            found.append(Counted(reference.name, reference.hash, made.placed, made.gpu, citations,
                                 self.ceilings[product]))  # fmt: skip
        if not found:
            notes = [] if work is None else limits(work, said)
            demand = demand_of(work, said, self.given.peak, self.engine.terms, notes)
            self.gaps += [*notes, "Ridge point, bound and least time: no GPU is named; say --gpu GPU."]
            found.append(Counted(reference.name, reference.hash, place(demand, None, {}, None), "", {}, ()))
        self.rows |= {(row.place, row.states) for one in found for row in one.evidence}
        return found, work

    # --- what it comes to ---------------------------------------------------------------------------------------------

    def _told(self, product: str, diagnosed: Diagnosed | None, work: Work | None) -> Told:
        terms = self.engine.terms
        operation = dtype = ""
        names = {row.name for row in work.operations} if work is not None else set()
        if len(names) == 1 and not self.asked.operation:
            [name] = names
            found = {mention.id for mention in terms.find(name, "operation")}
            if len(found) == 1:
                [operation] = found
                self.taken.append(f"operation: {terms.operations[operation].name}, the one operator of the reference")
        if work is not None and work.read and not self.asked.dtype:
            from kopt.services.roofline import dtype_of

            types = {dtype_of(row.dtype, terms) for row in work.read if row.what == "input"} - {None}
            if len(types) == 1:
                [dtype] = (name for name in types if name)
                self.taken.append(f"element type: {terms.dtypes[dtype].name}, that of the reference's inputs")
        first = diagnosed.diagnosis.symptoms[:TOLD] if diagnosed is not None else ()
        bottleneck = diagnosed.diagnosis.bottleneck.value if diagnosed is not None else ""
        bottlenecks = (bottleneck,) if bottleneck in terms.bottlenecks else ()
        words = [f.symptom.name for f in first] + list(bottlenecks)
        if operation:
            words.append(terms.operations[operation].name)
        if first or bottlenecks:
            self.taken.append(f"also looked for: {', '.join(words)}")
        single = (product,) if product and len(self.asked.named) <= 1 else ()
        symptoms_found = tuple(finding.symptom.id for finding in first)
        return Told(single, operation, dtype, symptoms_found, bottlenecks, " ".join(words))

    def _say(
        self,
        recognised: Recognised | None,
        measured: Measured | None,
        diagnosed: Diagnosed | None,
        counted: list[Counted],
        product: str,
    ) -> tuple[list[Claim], list[Section]]:
        name = self.engine.terms.products[product].name if product else ""
        direct: list[Claim] = []
        profiled: list[Claim | None] = []
        sections: list[Section] = []
        if measured is not None and diagnosed is not None:
            said = verdict(measured, diagnosed, name)
            if said.kind is ClaimKind.ABSENCE:
                self.gaps.insert(0, said.text)
            else:
                direct = [said]
            spec = usable(self.specs, product, BANDWIDTH, self.engine.terms) if product else None
            profiled = [
                moved(measured),
                *headroom(measured, diagnosed, spec.citation if spec else None, self.ceilings.get(product, ()), name),
                *(made for one in counted for made in (excess(measured, one), reached(measured, one))),
                *binding(measured, diagnosed),
                *stalls(measured),
            ]
        required = [claim for one in counted for claim in (needs(one), bound(one), target(one))]
        if not direct and counted:
            sides = [claim for one in counted if (claim := bound(one)) is not None]
            first = sides or ([needs(counted[0])] if measured is None else [])
            direct, required = first, [claim for claim in required if claim not in first]
        in_file = file_says(self.kernel, recognised) if self.kernel is not None else None
        told = (
            ("Your kernel, measured", profiled),
            ("What its problem needs", list(dict.fromkeys(required))),
            (
                "Symptoms",
                symptoms(measured, diagnosed, counted[0] if counted else None) if measured and diagnosed else [],
            ),
            ("What to try", remedies(diagnosed) if diagnosed else []),
            ("Your kernel's file", [in_file]),
        )
        for title, claims in told:
            kept = tuple(claim for claim in claims if claim is not None)
            if kept:
                sections.append(Section(title, kept))
        return direct, sections
