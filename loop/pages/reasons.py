"""Pages of why a version is what it is: its hypothesis, the evidence, its plan, its methods."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.common.canonical_json import dumps
from kbs.common.markdown import bullets, inert, table
from kbs.common.visible_text import visible
from kbs.evidence.citation import parse_claim, parse_reference
from loop.pages.artifacts import NOT_THERE, VersionFiles
from loop.pages.measured import text
from loop.proposals.proposal import Proposal
from loop.tools import DiagnosisNote


def hypothesis(proposal: Proposal) -> bytes:
    """hypothesis.txt: what the proposer wrote, one line per field."""
    said = proposal.hypothesis
    return text(
        [
            f"Version: v{proposal.version} (from v{proposal.parent})",
            f"Current evidence: {_line(said.current_evidence)}",
            f"Decision link: {_line(said.decision_link)}",
            f"Single change: {_line(said.single_change)}",
            f"Rationale: {_line(said.rationale)}",
            "Expected metric movement:",
            *(f"  {_line(one.metric)} {one.direction}: {_line(one.size)}" for one in said.expected),
            f"Risk: {_line(said.risk)}",
            "Evidence used:",
            *(f"  {_line(one.reference)}: {_line(one.why)}" for one in proposal.evidence.selected),
            f"Decision rule: {_line(said.decision_rule)}",
        ]
    )


def evidence(files: VersionFiles) -> bytes:
    """kbs_evidence.md."""
    proposal = files.proposal
    found = proposal.evidence if proposal else None
    lines = ["# KBS Evidence", "", "## NCU Facts", "", *_facts(files), "## Queries", "", *_queries(files)]
    lines += ["## Selected Evidence", ""]
    for selected in found.selected if found else ():
        said = f"“{inert(selected.quote)}” <- " if selected.quote else ""
        lines += [f"- {said}{cited(selected.reference)}", f"  {inert(selected.why)}"]
    lines += [*([] if found else ["Nothing is selected for the user's own kernel."]), "", "## Rejected / Limits", ""]
    limits = [*(found.rejected if found else ()), *_limits(files)]
    lines += [*(bullets(limits) or ["None."]), "", "## Decision Link", ""]
    lines.append(inert(proposal.hypothesis.decision_link) if proposal else "None: nothing is changed.")
    return text(lines)


def _facts(files: VersionFiles) -> Iterator[str]:
    proposal = files.proposal
    if proposal is not None and proposal.evidence.ncu_facts:
        yield from bullets(proposal.evidence.ncu_facts)
    elif proposal is not None and files.parent is not None and files.parent.profile is not None:
        yield f"The proposer states none; the profile of v{proposal.parent} is in v{proposal.parent}/ncu_summary.md."
    else:
        yield f"{NOT_THERE}: no counters were taken."
    yield ""


def _queries(files: VersionFiles) -> Iterator[str]:
    if not files.searches:
        yield from ("None was asked.", "")
    for search in files.searches:
        noun = "record" if search.about == "experience" else "passage"
        found = f"{len(search.hits) or 'no'} {noun}{'s' * (len(search.hits) != 1)}"
        if not search.hits and search.why:
            found = f"none similar: {inert(search.why)}"
        yield f"- {search.about}: “{inert(search.text)}”: {found}"
        yield from (f"  - {cited(hit.reference)} ({inert(hit.title)})" for hit in search.hits)
    if files.searches:
        yield ""


def _limits(files: VersionFiles) -> Iterator[str]:
    yield from dict.fromkeys(f"a search was less than whole: {one.degraded}" for one in files.searches if one.degraded)
    for search in files.searches:
        if not search.hits and search.about == "experience":
            yield "the experience log recommends and warns of nothing here"
        elif not search.hits:
            yield f"no passage was found for “{search.text}”"


def plan(files: VersionFiles) -> bytes:
    """plan.md of a version: what is changed, which methods were skipped, which specs it uses."""
    proposal, diagnosis = files.proposal, files.parent.diagnosis if files.parent else files.diagnosis
    if proposal is None:
        said = "The user's kernel as it is: evaluated, profiled and diagnosed, nothing changed."
        return text(["# Plan of v0", "", said, "", *_bound(files.diagnosis, "v0")])
    lines = [f"# Plan of v{proposal.version}", "", *bullets([f"parent: v{proposal.parent}", *_words(proposal)]), ""]
    lines += [*_bound(diagnosis, f"v{proposal.parent}"), "## Methods", "", *bullets(proposal.methods), ""]
    if files.record.discipline == "budget" and files.parent is not None:
        lines += [f"## Budget, by the time of v{proposal.parent}", "", *bullets(files.parent.budget.lines()), ""]
    if proposal.skipped:
        rows = [(one.method, one.reason) for one in proposal.skipped]
        lines += ["## Passed over", "", *table(("method", "why"), rows)]
    if proposal.circumstances:
        lines += ["## What is different now", "", inert(proposal.circumstances), ""]
    specs = [one for one in proposal.evidence.selected if parse_claim(one.quote)]
    listed = [f"- {inert(one.quote)} <- {cited(one.reference)}" for one in specs]
    lines += ["## Hardware specs", "", *(listed or ["None are used."]), ""]
    return text([*lines, "## Decision rule", "", inert(proposal.hypothesis.decision_rule)])


def _words(proposal: Proposal) -> list[str]:
    name = {"python": "kernel.py", "cuda": "kernel.cu"}[proposal.language]
    return [f"file: {name}", f"change: {proposal.hypothesis.single_change}", f"risk: {proposal.hypothesis.risk}"]


def _bound(diagnosis: DiagnosisNote | None, version: str) -> list[str]:
    """What bounds a version, according to its diagnosis."""
    if diagnosis is None or diagnosis.bottleneck in ("", "unknown"):
        return [f"What bounds {version}: unknown.", ""]
    said = [f"What bounds {version}: {inert(diagnosis.bottleneck)}"]
    if diagnosis.resource:
        said.append(f"; {inert(diagnosis.resource)}")
    return ["".join(said) + ".", ""]


def methods(files: VersionFiles) -> bytes:
    """methods.json: what the proposal declares, and what came of each method."""
    proposal, note = files.proposal, files.machine
    page: dict[str, object] = {
        "version": files.number,
        "discipline": files.record.discipline,
        "declared": list(proposal.methods) if proposal else [],
        "skipped": [one.model_dump() for one in proposal.skipped] if proposal else [],
        "circumstances": proposal.circumstances if proposal else "",
    }
    if note is not None and note.opcodes is not None:  # not in runs of before, whose pages stay as they are
        page["outcomes"] = [one.model_dump(mode="json") for one in files.outcomes]
    return dumps(page)


def cited(reference: str) -> str:
    """A reference unchanged, because Markdown leaves its syntax alone; any other text made inert."""
    return reference if parse_reference(reference) else inert(reference)


def _line(words: str) -> str:
    """Untrusted text on one line of plain text."""
    return visible(" ".join(words.split()))
