"""Pages at the top of a run's folder: its plan, environment, specs and stop conditions, and its log."""

from __future__ import annotations

from collections.abc import Iterator

from evaluator.receipt import timing_text as words
from evaluator.receipt.verdict import Verdict
from kbs.common.canonical_json import dumps
from kbs.common.markdown import Markdown, bullets, inert, quoted, table
from loop.journal.events import Closed, Stalled, Stopped
from loop.journal.folder import RunFolder
from loop.journal.language_model import ModelChoice
from loop.journal.record import RunRecord
from loop.journal.state import RunState
from loop.journal.version_state import Attempt, VersionState
from loop.pages.artifacts import NOT_THERE, VersionFiles
from loop.pages.measured import evaluated_words, text
from loop.planning.frontier import frontier
from loop.planning.step0 import ENVIRONMENT, ROOFLINE, EnvNote, stop_conditions
from loop.planning.wanted import DISCIPLINES
from loop.proposals.evidence import render as render_searches
from loop.tools import Search, Targets

_FILES = (
    "## Where things are",
    "",
    "- `v0` is the kernel as it came; `v1`, `v2` … are the versions, each with its receipt, profile and reasons",
    "- `best` holds the best version, `trajectory` a copy of every kernel that was benchmarked",
    "- `journal.jsonl` has every event; `ITERATIONS.md` tells it; `final_report.md` sums it up at the end",
    "- `HINTS.md` is yours: it is read at every start",
)


def plan(record: RunRecord) -> bytes:
    """plan.md: what was accepted."""
    problem = record.problem
    rows = [
        ("run", record.id),
        ("created", record.created),
        ("kopt", record.kopt),
        ("kernel", f"{record.kernel.origin}, SHA-256 {record.kernel.hash}"),
        *([("version 0", record.first.words)] if record.first else []),
        ("reference", f"{record.reference.origin}, SHA-256 {record.reference.hash}"),
        ("inputs", f"{record.inputs.origin}, SHA-256 {record.inputs.hash}" if record.inputs else "from the reference"),
        ("problem", f"SHA-256 {record.problem_hash}"),
        ("sizes", words.sizes(problem.dims) or "the reference's own"),
        ("further sizes", "; ".join(map(words.sizes, problem.workloads)) or "none"),
        ("sizes that may be anything", ", ".join(problem.vary) or "none"),
        ("tolerance", _tolerance(problem.tolerance)),
        ("baselines", ", ".join(one.name for one in problem.baselines) or "none"),
        ("device", f"{record.device} ({record.device_name})" if record.device_name else record.device),
        ("GPU of specs and targets", record.gpu or "UNKNOWN"),
        ("profile", f"{record.profile}: {record.profile_why}" if record.profile_why else record.profile),
        ("proposer", " ".join((record.proposer, *record.command))),
        *_model(record.model),
        ("discipline", f"{record.discipline}: {DISCIPLINES[record.discipline]}"),
        ("iterations", str(record.iterations)),
        ("attempts a version", str(record.attempts)),
        *([("candidates a proposal", f"at most {record.branches}")] if record.branches else []),
        ("time limit", "none" if record.seconds is None else f"{record.seconds:g} s"),
        ("target", record.target or "none"),
        ("kept from", f"a lower bound above {1 + record.minimum_effect:g} times the parent"),
        ("seeds", f"secret, committed to: {record.seed_commitment}"),
        ("git", f"branch {record.branch}{' of the repository that was there' if record.in_place else ''}"),
    ]
    wikis = [(name, wiki.revision, str(len(wiki.pages))) for name, wiki in sorted(record.wikis.items())]
    rows += [(option.removeprefix("--"), value) for option, value in record.build.shown]
    if record.knowledge:
        rows.append(("notes of this run", f"{', '.join(record.knowledge)}: quoted, and no source of a number"))
    lines = ["# Plan", "", *table(("", ""), rows), "## Wikis, pinned", "", *table(("wiki", "revision", "pages"), wikis)]
    if record.accept_unmeasured:
        lines += ["Correct versions are kept where no time can be taken (--accept-unmeasured).", ""]
    return text(lines)


def _model(model: ModelChoice | None) -> list[tuple[str, str]]:
    if model is None:
        return []
    asked = f"{model.id}, {model.seconds:g} s and {model.output_tokens:,} tokens for an answer"
    return [("model", asked), ("limits of the model", model.limits()), ("prices of the model", model.prices())]


def _tolerance(tolerance: tuple[float, float] | None) -> str:
    return "the evaluator's own" if tolerance is None else f"atol {tolerance[0]:g}, rtol {tolerance[1]:g}"


def environment_page(found: EnvNote) -> bytes:
    """env_check.md of what was found."""
    rows = [(check.name, check.found or "missing", check.why) for check in found.checks]
    device = f"{found.device} ({found.device_name})" if found.device_name else found.device
    lines = ["# Environment", "", f"Device of the run: {inert(device)}", ""]
    lines += table(("what", "found", "what its absence means"), rows)
    return text([*lines, *(["## Clocks", "", *bullets(found.clocks.lines())] if found.clocks else [])])


def readme(record: RunRecord, found: Targets) -> bytes:
    """README.md: specs with sources, targets of the problem, stop conditions."""
    lines = [
        f"# Run {inert(record.id)}",
        "",
        f"{inert(record.kernel.origin)} against {inert(record.reference.origin)}.",
        "",
    ]
    lines += ["## Hardware specs", ""]
    for spec in found.specs:
        lines += [f"- {spec.line}", *(f"  - in place of an earlier wiki's: {old}" for old in spec.overridden)]
    lines += [] if found.specs else [f"{NOT_THERE}: no GPU is named."]
    lines += ["", "## What the problem needs, and what follows", "", *(f"    {line}" for line in found.lines), ""]
    if found.instructions is not None:
        lines += ["## Instructions that the machine code should show", "", *_instructions(found), ""]
    lines += ["## Gaps of the wiki", "", *(bullets(found.gaps) or ["None."]), ""]
    lines += ["## When the run ends", "", *bullets(stop_conditions(record, found)), ""]
    return text([*lines, *_FILES])


def _instructions(found: Targets) -> Iterator[str]:
    for one in found.instructions or ():
        yield f"- {' or '.join(f'`{opcode}`' for opcode in one.opcodes)}, for {one.what}, method {one.method}:"
        yield f"  {one.line}"
    if not found.instructions:
        yield f"UNKNOWN: {inert(found.instructions_why)}"


def step0_files(record: RunRecord, machine: EnvNote, found: Targets) -> dict[str, bytes]:
    """What step 0 writes: env.json and roofline.json, and the pages that are rendered from them."""
    return {
        ENVIRONMENT: dumps(machine.model_dump(mode="json")),
        ROOFLINE: dumps(found.model_dump(mode="json")),
        "env_check.md": environment_page(machine),
        "README.md": readme(record, found),
    }


def log(record: RunRecord, state: RunState) -> bytes:
    """ITERATIONS.md: the journal as text, version by version."""
    lines = ["# Iterations", ""]
    if record.device == "cpu":
        lines += ["No time is taken on the CPU: nothing here says which version is faster.", ""]
    rows = [_row(record, version, state) for version in state.versions]
    head = ("version", "from", "methods", "verdict", "median", "against its parent", "outcome")
    lines += table(head, rows) if rows else ["No version was opened.", ""]
    for version in state.versions:
        lines += [f"## v{version.number}", "", *bullets(_told(version)), ""]
    if state.stalls:
        lines += ["## Stalls", "", *bullets(map(_stall, state.stalls)), ""]
    if state.asked:
        lines += ["## What the model used", "", *bullets([state.spent.words]), ""]
    if state.stopped:
        lines += ["## End", "", *bullets([stop_words(state.stopped)]), ""]
    return text(lines)


def _row(record: RunRecord, version: VersionState, state: RunState) -> list[str]:
    last = version.last_result
    return [
        f"v{version.number}{' (best)' if version.number == state.best else ''}{' (masked)' if version.masked else ''}",
        "" if version.parent is None else f"v{version.parent}",
        ", ".join(version.methods),
        str(last.verdict) if last else NOT_THERE,
        words.duration(last.median_us) if last else NOT_THERE,
        ratio(version),
        outcome(record, version),
    ]


def outcome(record: RunRecord, version: VersionState) -> str:
    """The outcome of a version."""
    if version.closed is None:
        return "open"
    if version.closed.outcome == "failed":
        return "failed"
    unmeasured = record.device == "cpu" or (version.result is not None and version.result.ratio is None)
    said = "kept" if version.kept else "passed, not kept"
    return f"{said}, unmeasured" if unmeasured and version.number and version.kept else said


def ratio(version: VersionState) -> str:
    """Parent's time over the last attempt's, with its interval; for version 0 its first baseline's."""
    last = version.last_result
    if last is None or last.ratio is None:
        return NOT_THERE
    median, low, high = last.ratio
    said = "the first baseline: " if version.number == 0 else ""
    return f"{said}{words.times(median)}x ({words.times(low)} to {words.times(high)})"


def _told(version: VersionState) -> Iterator[str]:
    for refused in version.refused:
        # Reasons quote what was refused: they stay beside it, so that nothing of it stands in a page of the run.
        place = f"v{version.number}/refused/s{refused.submission}/"
        yield f"submission {refused.submission} was refused: {', '.join(refused.rules)} ({place} has it, and why)"
    for attempt in version.attempts:
        found = attempt.evaluated
        said = "not evaluated yet" if found is None else f"{evaluated_words(found)}; receipt {found.receipt}"
        yield Markdown(f"attempt {attempt.number}: {said}")
        yield from (f"attempt {attempt.number}, {line}" for line in candidates_told(attempt))
    yield from (line for attempt in version.attempts for line in _ablations(attempt))
    if version.profiled is not None:
        why = f" ({quoted(version.profiled.why)})" if version.profiled.why else ""
        yield Markdown(f"profile: {version.profiled.grade}{why}; bottleneck: {inert(version.profiled.bottleneck)}")
    if version.gated is not None:
        broken = ", ".join(version.gated.rules) or "none"
        lapsed = ", ".join(version.gated.lapsed) or "none"
        yield f"gate: {'passed' if version.gated.passed else 'not passed'}; broken: {broken}; lapsed: {lapsed}"
    if version.closed is not None:
        yield Markdown(f"closed: {closed_words(version.closed)}")
    if version.recorded is not None:
        left = version.recorded
        said = f"experience: log/{left.record} ({left.outcome})"
        yield said if left.record else Markdown(f"experience: {quoted(left.why)}")
    if version.masked:
        yield "masked: proposers do not see it"


def _ablations(attempt: Attempt) -> Iterator[Markdown]:
    """The accepted kernel without each of its methods, in a line each."""
    for name in attempt.ablations:
        found = attempt.found("ablation", name)
        if found is not None:
            why = inert(found.reason) if found.verdict is Verdict.ACCEPTED else quoted(found.reason)
            said = found.verdict or "it cannot be run"
            yield Markdown(f"without {inert(name)}: {said}: {why}; median {words.duration(found.median_us)}")


def candidates_told(attempt: Attempt) -> Iterator[Markdown]:
    """Every candidate of an attempt that had several: its signal, and what came of it. Why one was rejected may quote
    the kernel's output."""
    for one in frontier(attempt) if len(attempt.candidates) > 1 and attempt.measured else ():
        why = quoted(one.why) if one.outcome == "rejected" else inert(one.why)
        yield Markdown(f"{inert(one.name)}: {one.outcome}; signal {words.duration(one.signal_us)}; {why}")


def closed_words(found: Closed) -> Markdown:
    """How a version ended. Why it failed is quoted, because it repeats the reasons of its attempts."""
    return Markdown(f"{found.outcome}: {inert(found.why) if found.outcome == 'passed' else quoted(found.why)}")


def stop_words(found: Stopped) -> Markdown:
    """Why the run ended; a reason that the user gave is quoted."""
    said = quoted(found.evidence) if found.reason == "user" else inert(found.evidence)
    return Markdown(f"{found.reason}: {said}")


def _stall(one: Stalled) -> str:
    hidden = f"; masked: {', '.join(f'v{number}' for number in one.masked)}" if one.masked else ""
    tried, untried = ", ".join(one.tried) or "nothing", ", ".join(one.untried) or "nothing"
    return f"after v{one.version}: tried {tried}; not tried {untried}{hidden}"


def searches(folder: RunFolder, record: RunRecord, state: RunState) -> bytes:
    """searches.jsonl of the run: those of all versions, in their order."""
    found: list[Search] = []
    for version in state.versions:
        found += VersionFiles(folder, record, version.number).searches
    return render_searches(found)
