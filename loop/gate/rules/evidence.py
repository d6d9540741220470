"""Rules on the evidence that a proposal rests on: the diagnosis, earlier failures, its queries and what it selects."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.evidence.checking import Status
from kbs.evidence.citation import EvidenceKind, find_citations, parse_reference
from loop.gate.claims import cut_away
from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.gate.texts import selected_citations
from loop.proposals.evidence import MANDATORY

_QUOTED = frozenset({EvidenceKind.WIKI, EvidenceKind.LOG, EvidenceKind.NOTE})
"""Evidence that says something in words."""


def _no_priorities(context: GateContext) -> str:
    if context.parent is None:
        return "version 0 was proposed by nobody"
    if context.launch(context.parent) is None:
        return f"v{context.parent} has no profile that would call for one method before another"
    found = any(method.priority is not None for method in context.methods.all)
    return "" if found else "no method page of this run's wikis states a priority"


@rule("skipped-priority", "proposal", lapses=_no_priorities)
def skipped_priority(context: GateContext) -> Iterator[Broken]:
    """Try methods of higher priority first, or give a reason for skipping them.

    What it checks: each method under `skipped` has a reason. Method pages say which symptoms a method helps with, and
    which methods of an axis are tried first (1 before 5). A method that a symptom of the parent's diagnosis calls for,
    and that comes before the declared one on its axis, must be listed under `skipped`. This does not apply to methods
    that this GPU or language does not have, that HINTS.md forbids, or that a version of this run tried.

    Why: the profile says what costs the time, and the method pages say what to try first against that.

    Fix: try the method, or add it to `skipped` with the reason.
    """
    proposal = context.proposal
    diagnosis = context.diagnosis(context.parent) if context.parent is not None else None
    if proposal is None or diagnosis is None:
        return
    for one in proposal.skipped:
        if not one.reason.strip():
            yield broken(f"{context.proposal_file}#skipped", f"{one.method} is skipped without a reason", "Say why.")
    symptoms = {symptom.id for symptom in diagnosis.symptoms}
    product = context.terms.products.get(context.record.gpu)
    architecture = product.architecture if product else ""
    tried = {name for state in context.state.versions[: context.version] for name in state.methods}
    excused = {*tried, *proposal.methods, *(s.method for s in proposal.skipped), *context.hints.values("forbid")}
    language = context.record.problem.backend or ("cuda" if proposal.language == "cuda" else "triton")
    for name in proposal.methods:
        method = context.methods.by_id.get(name)
        for other in context.methods.above(method, architecture, language, symptoms) if method else ():
            if other.id not in excused:
                called = ", ".join(sorted(symptoms & set(other.triggers)))
                message = f"{other.id} comes before {name} on its axis, and the profile calls for it: {called}"
                fix = f"Try {other.id} first, or list it under `skipped` with the reason ({other.page})."
                yield broken(f"{context.proposal_file}#skipped", message, fix)


@rule("known-failure", "proposal")
def known_failure(context: GateContext) -> Iterator[Broken]:
    """Say what is different now when you repeat a method that did not help.

    What it checks: `circumstances` is filled in if the evaluator found a kernel of an earlier version of this run
    wrong, or not faster, with the method (what the gate refused speaks against none), or if the experience log shows it
    as a known failure in similar circumstances.

    Why: trying the same thing again brings the same result, unless something has changed.

    Fix: write under `circumstances` what changed: another parent, another size, another cause that was found since.
    """
    proposal = context.proposal
    if proposal is None or len(proposal.circumstances.split()) >= 3:
        return
    file = f"{context.proposal_file}#circumstances"
    fix = "Write under `circumstances` what is different now, or choose another method."
    found = (hit for search in context.searches for hit in search.hits)
    hits = [hit for hit in found if hit.past is not None and hit.past.advice == "known failure"]
    for name in proposal.methods:
        earlier = (state for state in context.state.versions[: context.version] if name in state.methods)
        before = [state for state in earlier if state.judged and not state.kept]
        if before:
            where = ", ".join(f"v{state.number}" for state in before)
            why = before[-1].closed.why if before[-1].closed else ""
            yield broken(file, f"{name} did not help in {where} ({why[:200]})", fix)
        elif logged := [hit for hit in hits if hit.past and hit.past.method == name]:
            message = f"{name} failed on similar kernels: {logged[0].reference} ({logged[0].title})"
            yield broken(file, message, fix)


@rule("evidence-queries", "proposal")
def evidence_queries(context: GateContext) -> Iterator[Broken]:
    """Ask about the kernel, the bottleneck and past experience.

    What it checks: searches.jsonl of the version has at least one query about each of the three. The query to the
    experience log may find nothing.

    Why: a change starts from what is known.

    Fix: the request already asks these queries; if one is missing, add it under `evidence.queries`.
    """
    if context.version == 0:
        return
    asked = {search.about for search in context.searches}
    for about in MANDATORY:
        if about not in asked:
            message = f"it has no query about {about if about == 'experience' else f'the {about}'}"
            fix = f"Add a query with `about: {about}` under `evidence.queries`."
            yield broken(context.in_version("searches.jsonl"), message, fix)


@rule("evidence-reference", "proposal")
def evidence_reference(context: GateContext) -> Iterator[Broken]:
    """Select evidence that exists and says what is quoted.

    What it checks: each reference under `evidence.selected` can be looked up: wiki/path:L12, receipt/ID#FIELD of this
    run, profile/HASH#METRIC with the SHA-256 of a profile.csv, or log/ID of a record that a query of this run found.
    The quote is words of those lines, or a spec as they state it; it may be empty for a receipt or a profile, whose
    value the reference names. What is quoted of a clause has the words that would turn it round (`no`, `unless`).

    Why: evidence that nobody can look up proves nothing.

    Fix: cite the line that says it, or quote what the line says.
    """
    proposal = context.proposal
    for number, one in enumerate(proposal.evidence.selected if proposal is not None else ()):
        file = f"{context.proposal_file}#evidence.selected[{number}]"
        if parse_reference(one.reference) is None:
            fix = "Write wiki/path:L12, wiki/path:L12-L14, receipt/ID#FIELD, profile/HASH#METRIC or log/ID."
            yield broken(file, f"{one.reference!r} is not a reference", fix)
            continue
        reference = parse_reference(one.reference)
        if reference is not None and reference.kind in _QUOTED and not one.quote.strip():
            fix = "Copy the words of the cited lines that say it into `quote`."
            yield broken(file, f"{one.reference} is selected, and nothing of it is quoted", fix)
            continue
        for checked in selected_citations(one.quote, one.reference, context):
            if checked.result.status in (Status.NOT_FOUND, Status.MISMATCH) and not checked.unpinned:
                says = f" The lines say: {checked.result.says[:200]}" if checked.result.says else ""
                fix = f"Cite the line that says it, or quote what it says.{says}"
                yield broken(file, f"{one.reference}: {checked.result.detail}", fix)
            elif (
                reference is not None
                and reference.kind in _QUOTED
                and (word := cut_away(one.quote, checked.result.says))
            ):
                message = f"{one.reference}: the quotation leaves out “{word}”, which its sentence has beside it"
                yield broken(file, message, f"Quote the sentence whole. The lines say: {checked.result.says[:200]}")


@rule("evidence-found", "proposal")
def evidence_found(context: GateContext) -> Iterator[Broken]:
    """Select only wiki lines and log records that a query of this version found.

    What it checks: the page or record of each reference is among the hits of the version's queries. Pages that the
    run's README.md cites count as found.

    Why: a query without hits supports nothing, and a page that no query returned was not looked up for this change.

    Fix: add a query that finds it under `evidence.queries`.
    """
    proposal = context.proposal
    if proposal is None:
        return
    hits = [hit.reference for search in context.searches for hit in search.hits]
    found = {(reference.wiki, reference.target) for hit in hits if (reference := parse_reference(hit))}
    readme = context.text("README.md") or ""
    found |= {(cited.reference.wiki, cited.reference.target) for cited in find_citations(readme)}
    empty = [search.text for search in context.searches if not search.hits]
    for number, one in enumerate(proposal.evidence.selected):
        reference = parse_reference(one.reference)
        if reference is None or (reference.wiki, reference.target) in found:
            continue
        if not reference.of_lines and reference.kind is not EvidenceKind.LOG:
            continue
        nothing = f"; these queries found nothing: {', '.join(repr(text) for text in empty[:3])}" if empty else ""
        message = f"no query of v{context.version} found {reference.wiki or 'log'}/{reference.target}{nothing}"
        fix = "Add a query that finds it under `evidence.queries`, or select evidence that was found."
        yield broken(f"{context.proposal_file}#evidence.selected[{number}]", message, fix)
