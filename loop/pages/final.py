"""final_report.md and summary.json: the result of a run, only from measured artifacts; N/A if there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict

from evaluator.receipt import timing_text as words
from evaluator.receipt.receipt import Receipt, parse
from kbs.common.canonical_json import dumps
from kbs.common.errors import KoptError
from kbs.common.markdown import Markdown, bullets, inert, quoted, table
from kbs.evidence.citation import EvidenceKind, parse_reference
from loop.journal.events import FinalMeasured
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import RunState
from loop.journal.version_state import Attempt, VersionState
from loop.pages.artifacts import NOT_THERE, VersionFiles, targets
from loop.pages.attribution import helps
from loop.pages.measured import evaluated_words, text
from loop.pages.movement import movements
from loop.pages.reasons import cited
from loop.pages.run import candidates_told, closed_words, outcome, ratio, stop_words
from loop.proposals.proposal import Proposal
from loop.tools import MachineNote

PICTURES = "pictures"
"""Folder of the pictures."""


def final_receipt(folder: RunFolder, found: FinalMeasured | None) -> Receipt | None:
    """The receipt of a final measurement; None if there is none. Raises `KoptError`."""
    paths = [path for path in (found.files if found else {}) if path.endswith("receipt.json")]
    if not paths:
        return None
    try:
        return parse((folder.root / paths[0]).read_bytes())
    except OSError as error:
        raise KoptError(
            f"{paths[0]} of the final measurement cannot be read: {error.strerror}",
            code="artifact_damaged",
            hint="Restore the file from the run's git repository.",
        ) from error


def report(
    folder: RunFolder, record: RunRecord, state: RunState, files: Mapping[int, VersionFiles], pictures: tuple[str, ...]
) -> bytes:
    """final_report.md. `pictures`: names of those that are drawn."""
    lines = [f"# Report of {inert(record.id)}", "", *_plainly(record, state, files), *_result(folder, record, state)]
    lines += ["## Versions", "", *_versions(record, state), "## Hypotheses and what happened", ""]
    told = [line for version in state.versions[1:] for line in _hypothesis(files[version.number], version)]
    lines += told or ["No version was proposed.", ""]
    told = [line for version in state.versions for line in _branches(version)]
    lines += ["## Branches", "", *told] if told else []
    lines += [
        "## What bounded the kernel",
        "",
        *_drift(files, record, state),
        "## Methods",
        "",
        *_methods(files, record, state),
    ]
    told = _attribution(files)
    lines += ["## Attribution", "", *told] if told else []
    lines += ["## Evidence used", "", *_evidence(files, state), "## Gate", "", *_gate(state)]
    lines += ["## Pictures", "", *_pictures(pictures), "## Check it", "", *_check(state)]
    return text(lines)


def _plainly(record: RunRecord, state: RunState, files: Mapping[int, VersionFiles]) -> list[str]:
    """What a reader must know before the figures."""
    said = []
    if record.device == "cpu":
        said.append(
            "unmeasured: this run took place on the CPU, where no time is taken; nothing here says what is faster"
        )
    if record.accept_unmeasured:
        said.append("versions were kept without a time where none was taken (--accept-unmeasured)")
    if record.first is not None:
        said.append(f"version 0 is {record.first.words}: the user had a reference alone")
    if record.profile != "full":
        said.append(f"profile grade {record.profile}: {record.profile_why}")
    if record.benchmark is not None:
        ran = ", ".join(f"v{number}" for number, found in sorted(files.items()) if found.external is not None)
        command = quoted(" ".join(record.benchmark.command))
        said.append(
            Markdown(
                f"external: your own benchmark {command} was run for {ran or 'no version'}; benchmark.md has what it"
                " printed, which kopt did not measure, and for which no version was kept"
            )
        )
    said += _external(files, state)
    return [*bullets(said), ""] if said else []


def _result(folder: RunFolder, record: RunRecord, state: RunState) -> list[str]:
    stopped = state.stopped
    final = state.final or (state.finals[-1] if state.finals else None)
    best = final.version if final else state.best
    closed = None if best is None else state.versions[best].closed
    rows = [
        ("kernel", f"{record.kernel.origin}, against {record.reference.origin}"),
        ("device", f"{record.device} ({record.device_name})" if record.device_name else record.device),
        ("sizes", words.sizes(record.problem.dims) or "the reference's own"),
        ("best version", NOT_THERE if best is None else f"v{best}{' (the kernel as it came)' if best == 0 else ''}"),
        ("why it is the best", closed.why if closed else NOT_THERE),
        ("against version 0", _final_words(final)),
        *_against_baselines(final_receipt(folder, final)),
        *([("model", f"{record.model.id}: {state.spent.words}")] if record.model else []),
        ("end", stop_words(stopped) if stopped else NOT_THERE),
    ]
    lines = ["## Result", "", *table(("", ""), rows)]
    if len(state.finals) > 1 or (final and not final.agrees):
        lines += ["Final measurements, in their order:", ""]
        lines += [*bullets(map(_final_told, state.finals)), ""]
    return lines


def _final_words(final: FinalMeasured | None) -> str:
    if final is None:
        return NOT_THERE
    if final.version == 0:
        return "it is version 0"
    if final.ratio is None:
        return f"{NOT_THERE}: no time was taken"
    median, low, high = final.ratio
    said = "" if final.agrees else "; this does not agree with the version's own measurement"
    return f"{words.times(median)}x, 95% interval {words.times(low)} to {words.times(high)}{said}"


def _final_told(final: FinalMeasured) -> Markdown:
    """One of several final measurements. Why it does not agree may quote the kernel's output."""
    why = inert(final.why) if final.agrees else quoted(final.why)
    return Markdown(f"v{final.version}: {inert(_final_words(final))}; {why}")


def _against_baselines(receipt: Receipt | None) -> Iterator[tuple[str, str]]:
    """Ratios of the final measurement to all baselines except version 0."""
    timing = receipt.timing if receipt else None
    if timing is None:
        return
    for name, baseline in sorted(timing.workloads[0].baselines.items()):
        if name != timing.against:
            found = baseline.ratio
            shown = found and f"{words.times(found.median)}x, 95% interval {words.interval(found)}"
            yield f"against {name}, first sizes", shown or NOT_THERE


def _versions(record: RunRecord, state: RunState) -> list[str]:
    head = (
        "version",
        "from",
        "methods",
        "attempts",
        "verdict",
        "median",
        "against its parent",
        "bottleneck",
        "outcome",
    )
    rows = []
    for version in state.versions:
        last = version.last_result
        rows.append(
            (
                f"v{version.number}",
                "" if version.parent is None else f"v{version.parent}",
                ", ".join(version.methods),
                str(len(version.attempts)),
                str(last.verdict) if last else NOT_THERE,
                words.duration(last.median_us) if last else NOT_THERE,
                ratio(version),
                version.profiled.bottleneck if version.profiled else NOT_THERE,
                outcome(record, version),
            )
        )
    return table(head, rows)


def _hypothesis(files: VersionFiles, version: VersionState) -> list[str]:
    lines = [f"### v{version.number}", ""]
    if version.closed is not None:
        lines += [closed_words(version.closed), ""]
    failed = [attempt for attempt in version.attempts if not attempt.accepted]
    lines += [line for attempt in failed for line in _failed(files, attempt)]
    proposal = files.proposal
    if proposal is None:
        return [*lines, f"{NOT_THERE}: no attempt at it was accepted.", ""]
    said = proposal.hypothesis
    lines += [*bullets([f"change: {said.single_change}", f"because: {said.decision_link}"]), ""]
    rows = [(one.metric, one.expected, one.observed, one.outcome) for one in movements(files)]
    head = ("metric", "foretold", f"measured, v{proposal.parent} -> v{version.number}", "outcome")
    return [*lines, *table(head, rows)]


def _failed(files: VersionFiles, attempt: Attempt) -> list[str]:
    """An attempt that was not accepted: its purpose and its result."""
    found, proposal = attempt.evaluated, files.attempted(attempt.number)
    foretold = [f"{one.metric} {one.direction}: {one.size}" for one in proposal.hypothesis.expected] if proposal else []
    came = evaluated_words(found) if found else "not evaluated"
    said: list[str] = [Markdown(f"attempt {attempt.number}: {came}")]
    said += [f"change: {proposal.hypothesis.single_change}"] if proposal else []
    said += [f"foretold: {'; '.join(foretold)}; measured: {NOT_THERE}"] if foretold else []
    return [*bullets(said), ""]


def _branches(version: VersionState) -> list[str]:
    """The candidates of each attempt that had several."""
    lines = []
    for attempt in version.attempts:
        told = list(candidates_told(attempt))
        if told:
            lines += [f"v{version.number}, attempt {attempt.number}:", "", *bullets(told), ""]
    return lines


def _drift(files: Mapping[int, VersionFiles], record: RunRecord, state: RunState) -> list[str]:
    """How the bottleneck moved from each version's parent to it, and the metrics that its hypothesis named."""
    seen = [version for version in state.versions if version.profiled is not None]
    if not seen:
        return [f"{NOT_THERE}: no version was diagnosed.", ""]
    if record.reports == 1:
        told = ((version.number, version.profiled) for version in seen)
        return [*bullets(f"v{n}: {found.bottleneck} (profile: {found.grade})" for n, found in told if found), ""]
    head = ("version", "bottleneck, before -> after", "dominant stall, before -> after", "metrics", "profile")
    rows = []
    for version in seen:
        own = files[version.number]
        parent = own.parent if version.parent is not None else None
        notes = (parent.diagnosis if parent else None, own.diagnosis)
        moved = [f"{one.metric}: {one.observed} ({one.outcome})" for one in movements(own)]
        rows.append(
            (
                f"v{version.number}",
                " -> ".join(note.bottleneck for note in notes if note is not None),
                " -> ".join(note.dominant_stall or NOT_THERE for note in notes if note is not None),
                "; ".join(moved) or NOT_THERE,
                version.profiled.grade if version.profiled else NOT_THERE,
            )
        )
    return table(head, rows)


def _methods(files: Mapping[int, VersionFiles], record: RunRecord, state: RunState) -> list[str]:
    rows = []
    for version in state.versions[1:]:
        note = files[version.number].machine
        found = {one.method: one.found for one in files[version.number].outcomes}
        for method in version.methods:
            shown = NOT_THERE if note is None else note.methods.get(method) or _unverifiable(note)
            ended = "implementation_failed" if version.judged and not version.passed else NOT_THERE
            rows.append(
                (method, f"v{version.number}", outcome(record, version), found.get(method, ended), shown)
            )  # fmt: skip
    if not rows:
        return ["None was used.", ""]
    if record.reports == 1:
        before = [(method, version, came, shown) for method, version, came, _, shown in rows]
        return table(("method", "version", "outcome", "in the machine code"), before)
    return table(("method", "version", "outcome", "ended as", "in the machine code"), rows)


def _attribution(files: Mapping[int, VersionFiles]) -> list[str]:
    """What each of several methods of a version brought, by leaving it out."""
    rows = []
    for number, own in sorted(files.items()):
        for one in own.proposal.ablations if own.proposal else ():
            found = own.left_out(one.method)
            shown = NOT_THERE if found is None else f"{words.times(found[0])}x"
            interval = NOT_THERE if found is None else f"{words.times(found[1])} to {words.times(found[2])}"
            rows.append((f"v{number}", one.method, shown, interval, helps(found, own.record.minimum_effect)))
    if not rows:
        return []
    head = ("version", "method", "time without it over time with it", "95% interval", "it made the kernel")
    return table(head, rows)


def _unverifiable(note: MachineNote) -> Markdown:
    """The reason may quote what the kernel wrote while it was compiled."""
    return Markdown(f"unverifiable: {quoted(note.why) or 'not looked for'}")


def _evidence(files: Mapping[int, VersionFiles], state: RunState) -> list[str]:
    lines = [
        f"- v{number}: {cited(one.reference)}: {inert(one.why)}"
        for number, proposal in _proposals(files, state)
        for one in proposal.evidence.selected
    ]
    return [*(lines or ["None was used."]), ""]


def _proposals(files: Mapping[int, VersionFiles], state: RunState) -> Iterator[tuple[int, Proposal]]:
    for version in state.versions:
        proposal = files[version.number].proposal
        if proposal is not None:
            yield version.number, proposal


def _external(files: Mapping[int, VersionFiles], state: RunState) -> list[str]:
    """Receipts of other runs that a proposal cites."""
    own = {one.evaluated.receipt for version in state.versions for one in version.attempts if one.evaluated}
    own |= {one.receipt for one in state.finals}
    printed = {found.external.id for found in files.values() if found.external is not None}
    named = {}
    for number, proposal in _proposals(files, state):
        for one in proposal.evidence.selected:
            known = parse_reference(one.reference)
            if known and known.kind is EvidenceKind.RECEIPT and not any(id.startswith(known.target) for id in own):
                named[known.text] = number
    return [f"external: {text}, cited by v{number}, {_whose(text, printed)}" for text, number in sorted(named.items())]


def _whose(reference: str, printed: set[str]) -> str:
    known = parse_reference(reference)
    ours = known is not None and any(id.startswith(known.target) for id in printed)
    return "is what your own benchmark printed" if ours else "is no receipt of this run"


def _gate(state: RunState) -> list[str]:
    lapsed = sorted({rule for version in state.versions if version.gated for rule in version.gated.lapsed})
    refused = [(v.number, one) for v in state.versions for one in v.refused]
    failed = [(v.number, v.gated.rules) for v in state.versions if v.gated and not v.gated.passed]
    said = [f"rules that lapsed in this run: {', '.join(lapsed) or 'none'}"]
    said += [f"v{number}, submission {one.submission}, refused: {', '.join(one.rules)}" for number, one in refused]
    said += [f"v{number} was not passed: {', '.join(rules)}" for number, rules in failed]
    return [*bullets(said), ""]


def _pictures(pictures: tuple[str, ...]) -> list[str]:
    shown = [name for name in pictures if name.endswith(".png")]
    if not shown:
        return [f"{NOT_THERE}: none could be drawn: matplotlib is not installed, or no time was taken.", ""]
    return [*(f"![{name.removesuffix('.png')}]({PICTURES}/{name})" for name in shown), ""]


def _check(state: RunState) -> list[str]:
    final = state.final
    lines = ["python test_kernel.py                # the best kernel against the reference, with plain PyTorch"]
    for path in [path for path in (final.files if final else ()) if path.endswith("receipt.json")][:1]:
        lines += [f"kopt bench verify {path}", f"kopt bench replay {path}"]
    return ["```sh", *lines, "```"]


def summary(folder: RunFolder, record: RunRecord, state: RunState, files: Mapping[int, VersionFiles]) -> bytes:
    """summary.json: the report for programs."""
    final, found = state.final, targets(folder)
    versions = []
    for version in state.versions:
        last = version.last_result
        versions.append(
            {
                "version": version.number,
                "parent": version.parent,
                "methods": list(version.methods),
                "attempts": len(version.attempts),
                "refused": len(version.refused),
                "verdict": str(last.verdict) if last else None,
                "improvement": str(last.improvement) if last else None,
                "receipt": last.receipt if last else None,
                "median_us": last.median_us if last else None,
                "ratio": list(last.ratio) if last and last.ratio else None,
                "bottleneck": version.profiled.bottleneck if version.profiled else None,
                "outcome": version.closed.outcome if version.closed else "open",
                "kept": version.kept,
                "masked": version.masked,
                "why": version.closed.why if version.closed else "",
                "movements": [asdict(one) for one in movements(files[version.number])],
            }
        )
    external = {
        f"v{number}": {"receipt": found.external.id, "exit_code": found.external.exit_code}
        for number, found in sorted(files.items())
        if found.external is not None
    }
    return dumps(
        {
            **({"external": external} if record.benchmark is not None else {}),
            "run": record.id,
            "kernel": record.kernel.origin,
            "problem": record.problem_hash,
            "device": record.device,
            "device_name": record.device_name,
            "gpu": record.gpu,
            "profile": record.profile,
            "measured": any(v["median_us"] is not None for v in versions),
            "accept_unmeasured": record.accept_unmeasured,
            "best": final.version if final else state.best,
            "final": final and final.model_dump(mode="json", include={"receipt", "agrees", "ratio", "why"}),
            "finals": [one.model_dump(mode="json", exclude={"kind"}) for one in state.finals],
            "stopped": state.stopped and state.stopped.model_dump(include={"reason", "evidence"}),
            "floor_us": found.floor_us if found else None,
            "target_us": found.target_us if found else None,
            "versions": versions,
        }
    )
