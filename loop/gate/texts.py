"""What a proposer wrote, text by text, and the sources that each text may rest on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property, lru_cache

from kbs.evidence.citation import EvidenceKind
from loop.gate.comments import code_without_comments, each_comment, joined, names, strings
from loop.gate.context import GateContext
from loop.gate.numbers import sources
from loop.gate.numbers.accounting import Accountant, Mode, integers
from loop.gate.numbers.figures import Chosen, Figures, Given, OfVersion, Sources, equations, exact, written_numbers
from loop.planning.step0 import ROOFLINE
from loop.proposals.proposal import Proposal
from loop.tools import Targets

REGISTERED = ("README.md", "plan.md")
"""Files of the run, rendered by kopt, with citations that every text may use."""
_VERSION = re.compile(r"\b(?:v|version )(\d{1,4})\b", re.IGNORECASE)
_BEST = re.compile(r"\bbest\b", re.IGNORECASE)
_OPERATIONS = "floating-point operations"
_SELECTED = re.compile(r"#evidence\.selected\[(\d+)\]")


@dataclass(frozen=True)
class Text:
    """A text and its place."""

    file: str
    """Path below the run's folder; a field of a proposal as `proposal.json#hypothesis.risk`."""
    text: str
    before: int = 0
    """Lines of the file before it."""

    @property
    def mode(self) -> Mode:
        """How its numbers are read."""
        if "#hypothesis.expected" in self.file or "#evidence.queries" in self.file or self.file.endswith("#string"):
            return "predictions"
        return "limits" if self.file.endswith(("decision_rule", "hypothesis.risk")) else "claims"

    @property
    def place(self) -> str:
        """The file, as messages name it."""
        return self.file.removesuffix("#string")


def proposal_texts(context: GateContext) -> Iterator[Text]:
    """What a proposer wrote in sentences: every field except the kernel."""
    if context.proposal is not None:
        yield from _sentences_of(context.proposal_file, context.proposal)


def _sentences_of(file: str, proposal: Proposal) -> Iterator[Text]:
    said, evidence = proposal.hypothesis, proposal.evidence
    for name in ("current_evidence", "decision_link", "single_change", "rationale", "risk", "decision_rule"):
        if name == "decision_link" and said.decision_link == said.rationale:
            continue  # one sentence typed: what is wrong with it is told once
        yield Text(f"{file}#hypothesis.{name}", getattr(said, name))
    places = [(f"hypothesis.expected[{n}].size", f"{one.metric}: {one.size}") for n, one in enumerate(said.expected)]
    places += [(f"evidence.ncu_facts[{n}]", fact) for n, fact in enumerate(evidence.ncu_facts)]
    places += [(f"evidence.queries[{n}].text", query.text) for n, query in enumerate(evidence.queries)]
    places += [(f"evidence.selected[{n}].why", selected.why) for n, selected in enumerate(evidence.selected)]
    places += [(f"evidence.rejected[{n}]", rejected) for n, rejected in enumerate(evidence.rejected)]
    places += [(f"skipped[{n}].reason", skipped.reason) for n, skipped in enumerate(proposal.skipped)]
    places += [("circumstances", proposal.circumstances)] if proposal.circumstances else []
    yield from (Text(f"{file}#{place}", words) for place, words in places)


def kernel_texts(context: GateContext) -> Iterator[Text]:
    """Comments, docstrings and strings of the proposed kernel that neither the user's kernel nor the parent has."""
    if context.proposal is None:
        return
    text, file = context.proposal.kernel, context.kernel_file
    earlier = [(context.kernel(n) or "", context.kernel_name(n) or file) for n in {0, context.proposal.parent}]
    known = {said for one, name in earlier for _, said in each_comment(one, name)}
    for line, comment in joined([(line, said) for line, said in each_comment(text, file) if said not in known]):
        yield Text(file, comment, line - 1)
    there = {said for one, name in earlier for _, said in strings(one, name)}
    for line, said in strings(text, file):
        if said not in there:
            yield Text(f"{file}#string", said, line - 1)
    old = {name for one, at in earlier for _, name in names(one, at)}
    for line, name in names(text, file):
        if name not in old and any(character.isdigit() for character in name):
            yield Text(f"{file}#string", name.replace("_", " "), line - 1)


def stated_texts(context: GateContext) -> Iterator[Text]:
    """All that a proposer wrote."""
    yield from proposal_texts(context)
    yield from kernel_texts(context)


def selected_citations(quote: str, reference: str, context: GateContext) -> list[sources.Checked]:
    """Selected evidence as checked citations: its quote as words of the lines, or as the spec that they state."""
    said = quote.strip().replace("\n", " ")
    words = f'"{said.strip(chr(34)).strip("“”")}" <- {reference}' if said else reference
    found = sources.check_citations(words, context)
    spec = ": " in said and any(character.isdigit() for character in said.rsplit(": ", 1)[1])
    if spec and not all(checked.ok for checked in found):
        return sources.check_citations(f"{said} <- {reference}", context)
    return found


@dataclass(frozen=True, eq=False)
class Ledger:
    """The sources of one context's texts."""

    context: GateContext
    accountant: Accountant

    @cached_property
    def citations(self) -> tuple[tuple[Text, sources.Checked], ...]:
        """Every citation in what was proposed, those of selected evidence last."""
        found = [
            (text, replace(one, cited=replace(one.cited, line=one.cited.line + text.before)))
            for text in stated_texts(self.context)
            for one in sources.check_citations(text.text, self.context)
        ]
        return (*found, *((text, one) for text, several in self._selected.values() for one in several))

    @cached_property
    def _selected(self) -> Mapping[int, tuple[Text, list[sources.Checked]]]:
        proposal = self.context.proposal
        found: dict[int, tuple[Text, list[sources.Checked]]] = {}
        for n, one in enumerate(proposal.evidence.selected if proposal is not None else ()):
            text = Text(f"{self.context.proposal_file}#evidence.selected[{n}]", one.quote)
            found[n] = text, selected_citations(one.quote, one.reference, self.context)
        return found

    @cached_property
    def _registered(self) -> tuple[Given, ...]:
        found = [
            one for path in REGISTERED for one in sources.check_citations(self.context.text(path) or "", self.context)
        ]
        return tuple(given for one in found for given in self._given(one))

    @cached_property
    def own(self) -> tuple[Given, ...]:
        """Figures of every line that is cited by the proposal."""
        return tuple(given for _, one in self.citations for given in self._given(one))

    @cached_property
    def cited(self) -> tuple[Given, ...]:
        """Figures of every line that is cited by the proposal or registered at the run's start."""
        return (*self._registered, *self.own)

    def _given(self, one: sources.Checked) -> tuple[Given, ...]:
        """What a citation's lines are a source of, line by line: each has conditions of its own."""
        return tuple(
            Given(figures, product or self.accountant.other_product(said, self.context.record.gpu), said)
            for figures, product, said in sources.cited_figures(one, self.context)
        )

    @cached_property
    def _sizes(self) -> frozenset[Decimal]:
        record = self.context.record
        names = [record.reference.name, *([record.inputs.name] if record.inputs else [])]
        told = [
            str(record.problem.dims),
            str(record.problem.workloads),
            *(self.context.text(name) or "" for name in names),
        ]
        return frozenset(number for text in told for number in integers(text))

    def _constants(self, numbers: set[int]) -> set[Decimal]:
        kernels = [(self.context.kernel(n) or "", self.context.kernel_name(n) or "") for n in numbers]
        return {number for text, name in kernels for number in integers(code_without_comments(text, name))}

    @cached_property
    def sizes(self) -> Chosen:
        """Sizes of the run and constants of earlier kernels: what a constant of a new kernel may follow from."""
        parent = self.context.proposal.parent if self.context.proposal is not None else 0
        return Chosen.of(self._sizes, self._constants({0, parent}))

    @cached_property
    def chosen(self) -> Chosen:
        """Sizes of the run and constants of its kernels, the proposed one with them."""
        proposal = self.context.proposal
        parent = proposal.parent if proposal is not None else 0
        own = integers(code_without_comments(proposal.kernel, self.context.kernel_file)) if proposal is not None else ()
        return Chosen.of(self._sizes, self._constants({0, parent}) | set(own))

    @cached_property
    def _words(self) -> frozenset[str]:
        proposal = self.context.proposal
        told = [self.context.kernel(0) or "", self.context.text(self.context.record.reference.name) or ""]
        told += [self.context.kernel(proposal.parent) or "", proposal.kernel] if proposal is not None else []
        return frozenset(word for text in told for word in re.findall(r"[A-Za-z_]\w*", text))

    def _versions(self, said: str) -> tuple[int, ...]:
        """Versions whose measurements a text may quote: its parent, version 0, and those that it names."""
        proposal, state = self.context.proposal, self.context.state
        named = {int(match[1]) for match in _VERSION.finditer(said)}
        parent = proposal.parent if proposal is not None else 0
        named |= {state.best} if state.best is not None and _BEST.search(said) else set()
        return (parent, *sorted((named | {0}) - {parent}))

    @lru_cache(maxsize=64)  # noqa: B019  # the ledger lives as long as its context
    def _measured(self, version: int) -> tuple[Figures, Figures]:
        """(all figures of a version's profile and receipts, the ratios in its receipts)"""
        profile = self.context.profile(version) if version <= self.context.reached else None
        below = f"v{version}/"
        receipts = [one for path, one in self.context.receipts.items() if path.startswith(below)]
        return sources.measured([profile] if profile else [], receipts), sources.ratios(receipts)

    def sources(self, text: Text) -> Sources:
        """What the numbers of a text may rest on."""
        versions = self._versions(text.text)
        measured = [self._measured(version) for version in versions]
        launches = [one for n in versions if n <= self.context.version and (one := self.context.launch(n)) is not None]
        own = [
            replace(given, claimed=one.cited.claim is not None)
            for one in sources.check_citations(text.text, self.context)
            for given in self._given(one)
        ]
        chosen = _SELECTED.search(text.file)
        if chosen is not None:
            cited = (*self._registered, *own, *self._quoted(int(chosen[1])))
            gains = [given.figures for given in self._quoted(int(chosen[1]))]
        else:
            cited = (*self.cited, *(given for given in own if given.claimed))
            several = [given for _, checked in self._selected.values() for one in checked for given in self._given(one)]
            gains = [given.figures for given in own or several]
        diagnoses = (self.context.diagnosis(n) for n in versions)
        headroom = [line for note in diagnoses if note for line in note.headroom]
        return Sources(
            launches,
            [*(figures for figures, _ in measured), self._counted],
            cited,
            [*gains, *(ratios for _, ratios in measured)],
            self._computed("\n".join([*headroom, text.text]), [f for f, _ in measured], cited),
            self._shown,
            [one.text for one in equations(text.text) if one.holds],
            self.context.record.gpu,
            self._words,
            self._others,
            self._logged,
            {n: self._of_version(n) for n in range(self.context.reached + 1) if self.context.profile(n)},
        )

    def _of_version(self, version: int) -> OfVersion:
        launch = self.context.launch(version)
        return OfVersion(launches=[launch] if launch else [], measured=[self._measured(version)[0], self._counted])

    @cached_property
    def _others(self) -> Figures:
        """Times of other programs than the run's kernels, in its receipts."""
        found = Figures()
        for receipt in self.context.receipts.values():
            for quantity in sources.baseline_figures(receipt):
                found.add(quantity)
        return found

    @cached_property
    def _logged(self) -> Figures:
        """Numbers of the records of the experience log that this version's queries found."""
        found = Figures()
        for hit in (hit for search in self.context.searches for hit in search.hits if hit.reference.startswith("log/")):
            for number in written_numbers(f"{hit.text} {hit.title}"):
                found.add(number)
        return found

    @cached_property
    def _counted(self) -> Figures:
        """Bytes and operations that step 0 counted."""
        found, targets = Figures(), self.context.read_as(ROOFLINE, Targets.model_validate_json)
        for value, dimension in ((targets.bytes, "bytes"), (targets.operations, _OPERATIONS)) if targets else ():
            if value is not None:
                found.add(exact(Decimal(value), dimension))
                found.add(exact(Decimal(value), ""))
        return found

    @cached_property
    def _shown(self) -> Figures:
        """Results of arithmetic in any text of the proposal."""
        measured = [self._measured(number)[0] for number in self._versions("")]
        everything = "\n".join(text.text for text in stated_texts(self.context) if text.mode != "predictions")
        return self._computed(everything, [*measured, self._counted], self.cited)

    def _quoted(self, n: int) -> list[Given]:
        """What the quotation of selected evidence says; for a receipt or a profile, the value that is referred to."""
        proposal = self.context.proposal
        assert proposal is not None
        one, found = proposal.evidence.selected[n], []
        for checked in self._selected[n][1]:
            given, kind = self._given(checked), checked.cited.reference.kind
            if kind in (EvidenceKind.WIKI, EvidenceKind.LOG, EvidenceKind.NOTE) and checked.ok:
                quoted = Figures()
                quoted.add_text(one.quote)
                for number in written_numbers(one.quote):
                    quoted.add(number)
                products = {line.product for line in given if line.product}
                product = products.pop() if len(products) == 1 else ""
                product = product or self.accountant.other_product(one.quote, self.context.record.gpu)
                lines = {line.said for line in given}
                found.append(Given(quoted, product, lines.pop() if len(lines) == 1 else one.quote))
            elif checked.ok:
                found += given
        return found

    def _computed(self, text: str, measured: list[Figures], cited: tuple[Given, ...]) -> Figures:
        results = Figures()
        known = [*measured, *(given.figures for given in cited)]
        for one in sources.derived(text, known, self.chosen.has):
            for result in one.equation.results if one.grounded or one.counted else ():
                results.add(result)
        return results


_accountant = lru_cache(maxsize=2)(Accountant)  # it reads every name of the vocabulary


@lru_cache(maxsize=4)
def ledger(context: GateContext) -> Ledger:
    """The sources of a context, computed once."""
    return Ledger(context, _accountant(context.terms))


def known_values(context: GateContext) -> frozenset[Decimal]:
    """Values of the specs of the run's GPU, in the units that code has them in."""
    found: set[Decimal] = set()
    for wiki, pinned in context.record.wikis.items() if context.record.gpu else ():
        for path in pinned.pages:
            for spec in context.wikis.specs(wiki, path):
                quantity = spec.quantity(context.terms) if spec.product == context.record.gpu else None
                if quantity is not None:
                    base = quantity.base
                    found |= {base, quantity.number.value, base / 10**9, base / 10**12, base / 1024}
    return frozenset(found)
