"""Rules on the files of a run's folder: journal, run.json, history, and the artifacts of a version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pydantic import BaseModel, ValidationError

from evaluator.profiling.ncu_csv import read_table
from kbs.common.errors import KoptError
from loop.gate.bytecode import is_of_its_source
from loop.gate.context import GateContext
from loop.gate.rule import Broken, broken, rule
from loop.journal import journal as journals
from loop.journal.events import Committed
from loop.journal.folder import HINTS, JOURNAL
from loop.journal.record import RunRecord
from loop.journal.repository import Repository, blob_id
from loop.journal.state import replay
from loop.proposals.proposal import Proposal
from loop.tools import DiagnosisNote, MachineNote, Search

_PLACES = re.compile(r"^(?:v\d{1,6}|trajectory|profiles|best|final|pictures|replaced)(?:/|$)")
"""Folders in which kopt alone writes."""
_LEFT_BY_PROGRAMS = re.compile(
    r"(?:^|/)(?:[^/]*~|\.#[^/]*|#[^/]*#|\.[^/]*\.sw[a-p]|4913|\.nfs[0-9a-f]+|\.DS_Store|\._[^/]*|Thumbs\.db|desktop\.ini"
    r"|\.[^/]*\.[0-9a-f]{16}\.tmp|[^/]*\.(?:bak|orig|swp)|\.gitignore|\.(?:vscode|idea)/[^/]*)$"
)
"""What editors, file browsers, file systems and a killed kopt leave beside a file; nobody reads it."""
_COMMITTED = re.compile(r"^(?:v\d{1,6}|trajectory|profiles)/")
"""Recorded files that never change, and that the commit of their version holds."""
_OF_A_VERSION = re.compile(r"^(?:v(?P<folder>\d{1,6})/|(?:trajectory|profiles)/v(?P<file>\d{1,6})[-.])")
_MODELS: dict[str, type[BaseModel]] = {
    "proposal.json": Proposal,
    "diagnosis.json": DiagnosisNote,
    "machine.json": MachineNote,
}


def left_by_programs(path: str, context: GateContext) -> bool:
    """Whether it is what programs leave beside a file, and of bytecode what Python makes of that file."""
    return bool(_LEFT_BY_PROGRAMS.search(path)) or is_of_its_source(context.folder.root / path)


@rule("journal", "proposal", always=True)
def journal(context: GateContext) -> Iterator[Broken]:
    """Keep the journal as kopt wrote it.

    What it checks: each line has the hash of the line before it, so that an edit, a lost line or a changed order shows.

    Why: everything else about a run is derived from its journal.

    Fix: restore the journal from the run's git repository. To hide a version, use `kopt run mask`.
    """
    file, fix = "journal.jsonl", "Restore journal.jsonl from the run's git repository."
    data = context.bytes_of(file)
    if data is None:
        yield broken(file, "it is missing", fix)
        return
    try:
        found = journals.read(data).entries
    except KoptError as error:
        line = next((int(word) for word in error.message.split() if word.isdigit()), 0)
        yield broken(file, error.message, fix, line)
        return
    known = tuple(context.state.entries)
    if found != known:
        differing = (n for n, (one, other) in enumerate(zip(found, known, strict=False), 1) if one != other)
        line = next(differing, min(len(found), len(known)) + 1)
        yield broken(file, "it does not have the events that this process has read", fix, line)


@rule("journal-seal", "proposal", always=True)
def journal_seal(context: GateContext) -> Iterator[Broken]:
    """Keep the journal as this KOPT_HOME sealed it.

    What it checks: every line has a seal (HMAC) made with the key of this KOPT_HOME, which covers the run's id, the
    line's number, the line before it and its event. A journal that was begun before there were seals has none, and
    the report says `none`.

    Why: a chain of hashes can be made again by whoever edits the file; a seal only by whoever has the key. It proves
    nothing against a program that can read the key, and nothing to somebody who does not have it.

    Fix: restore the journal from the run's git repository, or set KOPT_HOME to the folder that the run was started
    with.
    """
    found, file = context.sealing, "journal.jsonl"
    if found.state == "broken":
        yield broken(file, found.detail, "Restore journal.jsonl from the run's git repository.", found.line)
    elif found.state == "foreign key":
        yield broken(file, found.detail, "Set KOPT_HOME to the folder that the run was started with.")


@rule("record", "proposal", always=True)
def record(context: GateContext) -> Iterator[Broken]:
    """Keep run.json as it was when the run started.

    What it checks: run.json has the hash that the first event of the journal recorded.

    Why: problem, tolerances, device, wikis, limits and discipline are fixed for the whole run.

    Fix: restore the file. Start another run for another problem; `kopt run extend` gives more iterations.
    """
    file, created, there = "run.json", context.state.created, context.hash("run.json")
    if created is None or there == created.record:
        found = context.read_as(file, RunRecord.model_validate_json)
        if there is not None and found != context.record:
            yield broken(file, "this process has read another record than run.json", "Run the command again.")
        return
    message = "it is missing" if there is None else "it was changed after the run started"
    fix = "Restore it: `git checkout -- run.json` in the run's folder. For another problem start another run."
    yield broken(file, message, fix)


@rule("changed-file", "proposal", always=True)
def changed_file(context: GateContext) -> Iterator[Broken]:
    """Leave every file that the journal recorded as it is.

    What it checks: earlier versions, attempts, receipts, profiles and copies of candidates have the hashes that the
    journal's events recorded.

    Why: they are history, and later versions rest on them.

    Fix: restore the file from the run's git repository, and hand in a better kernel as a new version.
    """
    # HINTS.md is the user's to change. While a proposal is checked, its own queries were already added to the version's
    # searches, but the event that records them comes later.
    ignored = {HINTS}
    if context.stage == "proposal":
        ignored.add(context.in_version("searches.jsonl"))
    for path, hash in sorted(context.state.files.items()):
        if path in ignored:
            continue
        there = context.hash(path)
        if there == hash:
            continue
        message = "it is missing" if there is None else "it is not as the journal recorded it"
        yield broken(path, message, f"Restore it: `git checkout -- {path}` in the run's folder.")


@rule("stray-file", "final")
def stray_file(context: GateContext) -> Iterator[Broken]:
    """Put nothing of your own where kopt keeps what it measured.

    What it checks: each file and link in the folders v0 … vN, trajectory, profiles, best, final, pictures and replaced
    is one that the journal recorded with its hash. What editors and file browsers leave there (`kernel.py~`,
    `.kernel.py.swp`, `.DS_Store`) is let be, and bytecode if this Python makes the same of the file beside it.
    Elsewhere in the run's folder you may keep files.

    Why: a file that nobody measured, beside those that were, is taken for one of them.

    Fix: move the file to another folder.
    """
    reported = context.state.reported is not None
    for path in context.listed(context.folder.root):
        if not _PLACES.match(path) or path in context.state.files or left_by_programs(path, context):
            continue
        if not reported and path.startswith("pictures/"):
            continue  # they are recorded with the report, which the gate comes before
        message = "the journal has no record of it"
        yield broken(path, message, "Move it out of this folder, for example to notes/.")


def _in_users_repository(context: GateContext) -> str:
    return "the run is in the user's repository, whose history is the user's" if context.record.in_place else ""


@rule("git-history", "final", lapses=_in_users_repository)
def git_history(context: GateContext) -> Iterator[Broken]:
    """Keep the commits of the run's git repository.

    What it checks: every commit that the journal names, and the last one of the run, which this KOPT_HOME remembers
    because no journal can name the commit that holds it, is in the history of the branch, git's objects are sound, and
    the last commit has every file of the versions, and what it has of the rest, as the journal recorded it, and the
    lines that the journal begins with. Packing, tags, other branches and commits of your own files change nothing.

    Why: damaged files are restored from there.

    Fix: bring the commits back (`git reflog`), or restore .git from a backup.
    """
    fix = "Bring the commits back (`git reflog` in the run's folder), or restore .git from a backup."
    named = [entry.event.commit for entry in context.state.entries if isinstance(entry.event, Committed)]
    named += [context.last_commit] if context.last_commit else []
    try:
        repository = Repository(context.folder.root, context.record.id, in_place=False, branch=context.record.branch)
        commits, blobs, damage = repository.commits(), repository.blobs(), repository.damage()
    except KoptError as error:
        yield broken(".git", error.message, fix)
        return
    if damage:
        yield broken(".git", f"git finds its objects damaged: {damage}", fix)
    for commit in named:
        if commit not in commits:
            yield broken(".git", f"the commit {commit[:12]} is not in the history", fix)
    there, now = repository.committed(JOURNAL), context.bytes_of(JOURNAL)
    last = max((entry.n for entry in context.state.entries if isinstance(entry.event, Committed)), default=0)
    recorded = context.state.files if there == now else replay(context.state.entries[:last]).files
    for path, hash in recorded.items():
        if (
            (_COMMITTED.match(path) or path in blobs)
            and context.hash(path) == hash
            and not _same(blobs.get(path, ""), context.bytes_of(path))
        ):
            yield broken(".git", f"the last commit does not have {path} as the journal recorded it", fix)
    if named and (there is None or now is None or not now.startswith(there)):
        yield broken(".git", "the last commit does not have the lines that journal.jsonl begins with", fix)


def _same(blob: str, data: bytes | None) -> bool:
    return data is not None and blob == blob_id(data, len(blob))


@rule("later-artifact", "proposal", always=True)
def later_artifact(context: GateContext) -> Iterator[Broken]:
    """Write nothing for a version that is not open yet.

    What it checks: no file in the run's folder belongs to a later version or attempt.

    Why: a version rests on evidence from the versions before it, so it is written after them.

    Fix: remove the file, and hand it in as a proposal when its version is open.
    """
    latest = len(context.state.versions) - 1
    attempts = {state.number: len(state.attempts) for state in context.state.versions}
    seen: set[str] = set()
    for path in context.listed(context.folder.root):
        found = _OF_A_VERSION.match(path)
        number = int(found["folder"] or found["file"]) if found else -1
        tried = re.match(r"^v\d+/attempts/a(\d{1,6})/", path)
        # The attempt that is checked as a proposal has no event yet.
        early = tried is not None and number <= latest and int(tried[1]) > attempts.get(number, 0) + 1
        shown = path.split("/", 1)[0] if number > latest and found and found["folder"] else path
        if (number > latest or early) and shown not in seen:
            seen.add(shown)
            message = f"it belongs to {'a later attempt' if early else f'version {number}'}, but v{latest} is open"
            yield broken(shown, message, "Remove it, and hand it in when its version is open.")


@rule("current-iteration", "proposal", always=True)
def current_iteration(context: GateContext) -> Iterator[Broken]:
    """Leave current_iteration.txt to kopt.

    What it checks: the file has one line, the number of the version that was opened last.

    Why: people and tools read it to see where the run is.

    Fix: write that number into it.
    """
    path, expected = "current_iteration.txt", f"{max(0, len(context.state.versions) - 1)}"
    text = context.text(path)
    if text is None or text.strip() != expected:
        message = f"it says {(text or 'nothing').strip()[:40]!r}, but version {expected} is open"
        yield broken(path, message, f"Write {expected} into it, and leave it to kopt.", line=1)


@rule("artifact", "version")
def artifact(context: GateContext) -> Iterator[Broken]:
    """Keep every artifact of the version.

    What it checks: kernel, proposal, receipt, diagnosis, machine code, searches, the raw profile if the run takes one,
    and all that is rendered from them exist, are not empty, and parse.

    Why: a version can be checked and repeated only with all of them.

    Fix: restore the file from the run's git repository, or let `kopt run resume` make it again.
    """
    names = ["receipt.json", "diagnosis.json", "machine.json"]
    names += ["proposal.json", "searches.jsonl"] if context.version else []
    state = context.opened
    if state is not None and state.profiled is not None and state.profiled.grade == "full":
        names.append("profile.csv")
    names += [name for name in context.rendered_version if name not in names]
    fix = "Restore the file from the run's git repository, or let `kopt run resume` make it again."
    missing = "it is missing, empty or not a file"
    if context.kernel_name(context.version) is None:
        yield broken(context.kernel_file, missing, fix)
    for name in names:
        path = context.in_version(name)
        data = context.bytes_of(path)
        if data is None or not data.strip():
            yield broken(path, missing, fix)
            continue
        why = _unreadable(name, data)
        if why:
            yield broken(path, why[1], fix, why[0])


def _unreadable(name: str, data: bytes) -> tuple[int, str] | None:
    """(line, why a file cannot be read); None if it can."""
    try:
        text = data.decode("utf-8")
        if name in _MODELS:
            _MODELS[name].model_validate_json(data)
        elif name == "searches.jsonl":
            for number, line in enumerate(text.splitlines(), start=1):
                try:
                    Search.model_validate_json(line)
                except ValidationError as error:
                    return number, f"it is not a search: {error.errors()[0]['msg']}"
        elif name == "profile.csv":
            read_table(data, name)
        elif name.endswith(".json"):
            json.loads(data)
    except UnicodeDecodeError as error:
        return 0, f"it is not UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        return error.lineno, f"it is not JSON: {error.msg}"
    except ValidationError as error:
        first = error.errors()[0]
        return 0, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except KoptError as error:
        return 0, error.message
    return None


@rule("proposal-recorded", "version")
def proposal_recorded(context: GateContext) -> Iterator[Broken]:
    """Keep the kernel and the proposal that were handed in for the accepted attempt.

    What it checks: the kernel file is equal to that of the attempt's champion, proposal.json is equal to that of the
    attempt, and the kernel is the text that the proposal has.

    Why: what is kept must be what was proposed.

    Fix: restore the file from the attempt's folder.
    """
    state, proposal = context.opened, context.proposal
    if state is None or not state.attempts or context.version == 0:
        return
    number, name = state.attempts[-1].number, context.kernel_name(context.version)
    attempt = context.folder.attempt(context.version, number)
    champion = context.folder.candidate(context.version, number, context.champion)
    for folder, file in ((attempt, "proposal.json"), *([(champion, name)] if name else [])):
        path, origin = context.in_version(file), context.folder.relative(folder / file)
        if context.hash(path) is not None and context.hash(path) != context.hash(origin):
            yield broken(path, f"it differs from {origin}", f"Restore it from {origin}.")
    if proposal is not None and name is not None and context.text(context.in_version(name)) != proposal.kernel:
        yield broken(context.in_version(name), "it is not the kernel in the proposal", "Restore both from git.")
