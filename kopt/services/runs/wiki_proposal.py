"""Propose a wiki page from what a run learned, for review. Its figures come from intact receipts."""

from __future__ import annotations

import datetime
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluator.receipt.receipt import Receipt, parse
from evaluator.receipt.timing_text import sizes, times
from evaluator.store.seal import load_key, measurement_problem
from kbs.common.errors import KoptError, UsageError
from kbs.common.markdown import inert
from kbs.common.visible_text import visible
from kbs.evidence.vocabulary import Vocabulary
from kbs.experience.experiment import op_name
from loop.journal.events import FinalMeasured
from loop.journal.state import Phase
from loop.journal.version_state import VersionState
from loop.pages.artifacts import VersionFiles, targets
from loop.planning.decisions import median_of, ratio_of
from loop.run.driver import View
from wiki.asks import written_asks
from wiki.library import Wiki, open_wiki
from wiki.lint import lint
from wiki.page import Problem
from wiki.tables import MEASURED_HEADER

ELSEWHERE = frozenset({"orphan", "index-entry"})
"""Rules about a page's place in its wiki, which a page that is not in one yet cannot keep."""
FINAL = "final"
"""Source id of the final measurement; a version's own receipt is `v3`."""
_COUNTED = re.compile(
    r"read [^,]{1,80}, (?P<dtype>\w{1,20}): (?P<sizes>[\d,]+(?: × [\d,]+)*) × \d+ B = (?P<bytes>[\d,]+) B"
)


@dataclass(frozen=True)
class Source:
    """An intact receipt that the page draws on."""

    id: str
    receipt: Receipt
    path: str
    """In the run's folder."""
    device: str

    @property
    def day(self) -> str:
        """`2026-11-21`"""
        return self.receipt.created[:10]

    @property
    def footnote(self) -> str:
        """The receipt by hash, device and time."""
        one = self.receipt
        return f"[^{self.id}]: {self.id} receipt {one.id}, {inert(self.device)}, {one.created}, `{self.path}`."


@dataclass(frozen=True)
class ProposedPage:
    """A page to be reviewed."""

    run: str
    id: str
    text: str
    receipts: tuple[str, ...]
    """Those that the page draws on."""
    left_out: tuple[str, ...]
    """Versions whose receipts do not count, and why."""
    problems: tuple[Problem, ...]
    """What `kopt wiki lint` finds in the page alone."""


def propose(view: View, home: Path, terms: Vocabulary, today: datetime.date) -> ProposedPage:
    """The page of a finished run. Raises `UsageError`: `run_unfinished`, `no_improvement`, `receipt_refused`."""
    page = _Page(view, home, terms)
    text = page.text()
    made = ProposedPage(
        run=view.record.id,
        id=page.id,
        text=text,
        receipts=tuple(source.receipt.id for source in page.sources.values()),
        left_out=tuple(page.left_out),
        problems=(),
    )
    return replace(made, problems=tuple(problems_of(made, terms, today)))


def problems_of(page: ProposedPage, terms: Vocabulary, today: datetime.date) -> Iterator[Problem]:
    """What the lint finds in a page alone, without the rules about its place in a wiki."""
    with tempfile.TemporaryDirectory(prefix="kopt-") as name:
        file = Path(name) / f"{page.id}.md"
        file.parent.mkdir(parents=True)
        file.write_text(page.text, "utf-8")
        yield from (p for p in lint(open_wiki(Path(name)), terms, today=today) if p.rule not in ELSEWHERE)


def write(page: ProposedPage, out: Path, wikis: Sequence[Wiki]) -> Path:
    """Write the page to a new file outside of all wikis.

    Raises `UsageError`: `out_in_wiki`, `out_exists`, `out_unwritable`.
    """
    place = out.absolute().resolve()
    inside = next((wiki for wiki in wikis if wiki.root.resolve() in place.parents), None)
    if inside is not None:
        raise UsageError(
            f"{out} is inside the wiki {inside.name}; proposed pages are not written into wikis",
            code="out_in_wiki",
            hint="Write it elsewhere, review it, then copy it into the wiki yourself.",
        )
    try:
        with place.open("x", encoding="utf-8") as stream:
            stream.write(page.text)
    except FileExistsError as error:
        raise UsageError(f"{out} already exists", code="out_exists", hint="Name a new file with --out.") from error
    except OSError as error:
        raise UsageError(
            f"cannot write {out}: {error.strerror}", code="out_unwritable", hint="Name another file with --out."
        ) from error
    return place


class _Page:
    """The page of one run."""

    def __init__(self, view: View, home: Path, terms: Vocabulary) -> None:
        self.view, self.terms = view, terms
        self.record, self.state = view.record, view.state
        self.key = load_key(home)
        self.id = f"experiment/{self.record.id}"
        self.left_out: list[str] = []
        self.sources: dict[str, Source] = {}
        final, ratio = self._improved()
        self.final, self.ratio = final, ratio
        place = next(path for path in final.files if path.endswith("receipt.json"))
        found = self._source(FINAL, place, final.receipt, lambda one: ratio_of(one) == ratio)
        if isinstance(found, str):
            raise UsageError(
                f"the final measurement of {self.record.id} does not count: {found}",
                code="receipt_refused",
                hint=f"Restore {place} from the run's git repository, or measure again with `kopt bench`.",
            )
        self.closing = found
        self.tried = [version for version in self.state.versions[1:] if version.closed and not version.masked]
        for version in self.tried:
            self._version_source(version)

    def _improved(self) -> tuple[FinalMeasured, tuple[float, float, float]]:
        """The final measurement, and its ratio to version 0."""
        phase = self.state.phase(self.record)
        if phase is not Phase.FINISHED:
            raise UsageError(
                f"the run {self.record.id} has not ended: it is at {phase}",
                code="run_unfinished",
                hint="Go on with `kopt run resume`, or end it with `kopt run final`; then propose the page.",
            )
        final = self.state.final
        if final is None or final.version == 0 or final.ratio is None or final.ratio[1] <= 1 or not final.agrees:
            why = "nothing was kept" if final is None or final.version == 0 else final.why
            raise UsageError(
                f"the run {self.record.id} measured no improvement over the kernel that it began with: {visible(why)}",
                code="no_improvement",
                hint="What it tried stands in the log: `kopt log import FOLDER` adds it where it is not there yet.",
            )
        return final, final.ratio

    # --- receipts -----------------------------------------------------------------------------------------------------

    def _source(self, id: str, path: str, wanted: str, agrees: Callable[[Receipt], bool]) -> Source | str:
        """The receipt, or why it does not count; `agrees`: whether it has the figures that the journal has of it."""
        try:
            data = (self.view.folder.root / path).read_bytes()
            wrong = measurement_problem(data, self.key)
            receipt = None if wrong else parse(data)
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}"
        except KoptError as error:
            return error.message
        if receipt is None or receipt.id != wanted:
            return wrong or f"{path} is another receipt"
        if not agrees(receipt):
            return f"{path} has other figures than the journal"
        machine = receipt.environment
        found = Source(id, receipt, path, machine.device_name or machine.device)
        self.sources[id] = found
        return found

    def _version_source(self, version: VersionState) -> None:
        found = version.last_result
        if found is None:
            return
        path = next((path for path in found.files if path.endswith("receipt.json")), None)
        figures = (found.verdict, found.ratio, found.median_us)

        def agrees(one: Receipt) -> bool:
            return (one.verdict, ratio_of(one), median_of(one)) == figures

        made = self._source(f"v{version.number}", path, found.receipt, agrees) if path else "its receipt is not there"
        if isinstance(made, str):
            self.left_out.append(f"v{version.number}: {visible(made)}")

    # --- what the page says -------------------------------------------------------------------------------------------

    def text(self) -> str:
        """The whole page."""
        helped, not_helped = self._steps()
        lines = [*self._front_matter(), ""]
        said = ([self._lead()], helped, not_helped, list(self._limits()))
        for (mark, heading, asks), sentences in zip(self._sections(), said, strict=True):
            lines += [f"{mark} {inert(heading)}", written_asks(asks), "", *sentences, ""] if sentences else []
        lines += ["## Measured", "", *self._table(), ""]
        lines += [source.footnote for source in self.sources.values()]
        return "\n".join(lines) + "\n"

    @property
    def _operation(self) -> str:
        kernel, reference = Path(self.record.kernel.origin).stem, Path(self.record.reference.origin).stem
        return op_name(kernel) or op_name(reference)

    @property
    def _what(self) -> str:
        known = self.terms.operations
        return known[self._operation].name if self._operation else Path(self.record.kernel.origin).stem

    @property
    def _gpu(self) -> str:
        products = self.terms.products
        return products[self.record.gpu].name if self.record.gpu in products else visible(self.record.device_name)

    @property
    def _title(self) -> str:
        return visible(f"{self._what} on {self._gpu}: run {self.record.id}")[:300]

    @property
    def _counted(self) -> tuple[str, str]:
        """(element type, shape) of the greatest input that step 0 counted; empty where it counted none."""
        found = targets(self.view.folder)
        reads = [match for line in (found.lines if found else ()) if (match := _COUNTED.match(line))]
        if not reads:
            return "", ""
        greatest = max(reads, key=lambda read: int(read["bytes"].replace(",", "")))
        dtype = self.terms.resolve("dtype", greatest["dtype"])
        return dtype[0] if len(dtype) == 1 else greatest["dtype"], greatest["sizes"].replace(",", "").replace("×", "x")

    def _shape(self, receipt: Receipt) -> str:
        """The sizes of the first workload, which is what was timed first; else what step 0 counted."""
        dims = dict(receipt.plan.workloads[0]) or dict(self.record.problem.dims)
        return sizes(dims) if dims else self._counted[1]

    def _front_matter(self) -> Iterator[str]:
        product = self.terms.products.get(self.record.gpu)
        backend = self.terms.resolve("language", str(self.closing.receipt.candidate.backend))
        bottlenecks = [v.profiled.bottleneck for v in self.state.versions if v.profiled]
        lists = {
            "architectures": [product.architecture] if product and product.architecture else [],
            "languages": backend[:1],
            "operations": [self._operation] if self._operation else [],
            "bottlenecks": [name for name in dict.fromkeys(bottlenecks) if name in self.terms.bottlenecks],
        }
        title = json.dumps(self._title, ensure_ascii=False)
        yield from ("---", f"id: {self.id}", "kind: experiment", f"title: {title}")
        for name, values in lists.items():
            if values:
                yield f"{name}: [{', '.join(values)}]"
        yield from ("confidence: experimental", f"reviewed: {self.closing.day}", "sources:")
        for one in self.sources.values():
            title = json.dumps(visible(f"Receipt {one.receipt.id} of kopt, {one.device}")[:300], ensure_ascii=False)
            url = json.dumps(f"{self.record.id}/{one.path}")
            yield f"  - {{id: {one.id}, title: {title}, url: {url}, kind: measurement, accessed: {one.day}}}"
        yield "---"

    def _sections(self) -> Iterator[tuple[str, str, tuple[str, ...]]]:
        """(mark, heading, asks) of each section: what it answers, and how people ask for it."""
        what, run = visible(f"{self._what} on {self._gpu}")[:60], self.record.id
        yield "#", self._title, (f"speedup of run {run}", f"how fast did {what} become", f"optimization run {run}")
        asks = (f"how to make {what} faster", f"which changes sped up {what}", f"what did run {run} keep")
        yield "##", f"What made {what} faster in the run {run}?", asks
        asks = (f"what slowed {what} down", f"ideas that failed for {what}", f"what did run {run} not keep")
        yield "##", f"What did not make {what} faster in the run {run}?", asks
        asks = (
            f"do the figures of run {run} hold elsewhere",
            f"limits of run {run}",
            f"driver and Triton of run {run}",
        )
        yield "##", f"How far do the figures of the run {run} carry?", asks

    def _lead(self) -> str:
        median, low, high = map(times, self.ratio)
        where = ", ".join(part for part in (self._gpu, self._counted[0], self._shape(self.closing.receipt)) if part)
        return (
            f"The run {self.record.id} made {inert(self._what)} {median}x as fast as the kernel that it began with, "
            f"95 % interval {low} to {high}, on {inert(where)}.[^{FINAL}]"
        )

    def _steps(self) -> tuple[list[str], list[str]]:
        """A paragraph a version: those that were kept, and those that were not."""
        helped: list[str] = []
        not_helped: list[str] = []
        for version in self.tried:
            source = self.sources.get(f"v{version.number}")
            last = version.last_result
            if source is None or last is None:
                continue
            name = f"v{version.number}"
            methods = _methods(version)
            if last.ratio is not None and last.verdict == "accepted":
                median, low, high = map(times, last.ratio)
                said = f"was {median}x as fast as v{version.parent}, 95 % interval {low} to {high}"
            else:
                said = f"came to the verdict {last.verdict}: {inert(last.reason)}"
            lines = [f"The version {name} of {self.record.id}, with {methods}, {said}.[^{name}]"]
            proposal = VersionFiles(self.view.folder, self.record, version.number).proposal
            if proposal is not None and proposal.hypothesis.single_change:
                change = inert(" ".join(proposal.hypothesis.single_change.split())).rstrip(".")
                lines.append(f"The change of {name}, in the words of its proposer: {change}.[^{name}]")
            target = helped if version.kept else not_helped
            target += [*([""] if target else []), *lines]
        return helped or [f"No version's own receipt counts; the final measurement does.[^{FINAL}]"], not_helped

    def _limits(self) -> Iterator[str]:
        machine = self.closing.receipt.environment
        programs = (("driver", machine.driver), ("torch", machine.torch), ("Triton", machine.triton))
        known = [f"{name} {version}" for name, version in programs if version]
        yield f"These figures hold for one device and these sizes; nothing else was measured.[^{FINAL}]"
        if known:
            yield f"They were taken with {inert(', '.join(known))}.[^{FINAL}]"
        if self.left_out:
            versions = ", ".join(one.partition(":")[0] for one in self.left_out)
            yield f"Versions whose receipts do not count are left out: {versions}."

    def _table(self) -> Iterator[str]:
        yield f"| {' | '.join(MEASURED_HEADER)} |"
        yield f"|{'---|' * len(MEASURED_HEADER)}"
        median, low, high = map(times, self.ratio)
        what = f"v{self.final.version} over v0, 95 % interval {low} to {high}"
        yield self._row(self.closing, "speedup", median, "x", what)
        for version in self.tried:
            source = self.sources.get(f"v{version.number}")
            last = version.last_result
            if source is None or last is None or last.verdict != "accepted":
                continue
            if last.ratio is not None:
                median, low, high = map(times, last.ratio)
                what = (
                    f"v{version.number} over v{version.parent} with {_methods(version)}, 95 % interval {low} to {high}"
                )
                yield self._row(source, "speedup", median, "x", what)
            if last.median_us is not None:
                median = f"{last.median_us:.4g}"
                yield self._row(source, "time", median, "us", f"v{version.number}, median of its calls")

    def _row(self, source: Source, metric: str, value: str, unit: str, what: str) -> str:
        cells = (self._operation, self._gpu, self._counted[0], self._shape(source.receipt), metric, value, unit)
        return f"| {' | '.join((*map(inert, cells), what, f'{source.id} {source.path}'))} |"


def _methods(version: VersionState) -> str:
    """The methods of a version. An id needs no mark that takes its underscores by their word."""
    plain = (name if re.fullmatch(r"[a-z0-9]+(?:_[a-z0-9]+)*", name) else inert(name) for name in version.methods)
    return ", ".join(plain) or "no method of the registry"
