"""Whether a run's records are as this KOPT_HOME wrote them: journal, run.json, receipts, files, experience log."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluator.store.seal import load_key, measurement_problem, verify
from kbs.common import canonical_json as canonical
from kbs.common.errors import KoptError
from kbs.common.files import read_if_there
from kbs.common.json_model import JsonDataclass
from kbs.experience.experiment import Experiment
from kbs.experience.log import ExperienceLog
from kbs.experience.transfer.run_folder import read_version
from loop.journal import journal
from loop.journal.folder import HINTS, RunFolder
from loop.journal.record import read_record
from loop.journal.seals import Sealer, SealState
from loop.journal.state import RunState, replay

WORTH = (
    "A seal shows every edit by whoever lacks the key. Whoever can read the key in KOPT_HOME, as any program of yours"
    " can, is able to forge it; to somebody else it proves nothing: `kopt bench replay` measures a receipt again."
)
_SHOWN = 3
"""Places that are named of many."""


@dataclass(frozen=True)
class Part(JsonDataclass):
    """A kind of record."""

    what: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Verification(JsonDataclass):
    """What a run's records are worth."""

    run: str
    """Empty where run.json cannot be read."""
    folder: str
    seal: SealState
    """Of the journal."""
    ok: bool
    """Whether the journal is sealed with this KOPT_HOME's key, and all else is as it was recorded."""
    parts: tuple[Part, ...]
    worth: str = WORTH
    """What a seal proves, and what not."""


def verify_run(folder: RunFolder, home: Path, log: ExperienceLog) -> Verification:
    """Check a run's records. Writes nothing; no damage of them is an error."""
    name, parts = "", list[Part]()
    seal: SealState = "broken"
    try:
        record = read_record(folder)
        name = record.id
        found = journal.read(journal.load(folder.journal))
        sealing = Sealer.of(home, name).check(found.lines)
        state, seal = replay(found.entries), sealing.state
        lines = f"{len(found.entries)} lines, seal: {seal}. {sealing.detail}"
        parts.append(Part(what="journal.jsonl", ok=seal == "own key", detail=lines))
        parts += [_record(folder, state), _receipts(folder, state, home), _files(folder, state)]
        parts.append(_log(folder, state, home, log))
    except KoptError as error:
        parts.append(Part(what="journal.jsonl" if name else "run.json", ok=False, detail=error.message))
    ok = all(part.ok for part in parts)
    return Verification(run=name, folder=str(folder.root), seal=seal, ok=ok, parts=tuple(parts))


def _record(folder: RunFolder, state: RunState) -> Part:
    hash = hashlib.sha256(folder.record.read_bytes()).hexdigest()
    ok = state.created is not None and hash == state.created.record
    return Part(what="run.json", ok=ok, detail="as the run began" if ok else "it was changed after the run began")


def _receipts(folder: RunFolder, state: RunState, home: Path) -> Part:
    key, seals, wrong = load_key(home), Counter[str](), list[str]()
    for path in state.files:
        if path.rsplit("/", 1)[-1] == "receipt.json":
            found = verify(read_if_there(folder.root / path) or b"", key)
            seals[found.seal] += 1
            wrong += [] if found.ok else [f"{path}: {found.detail}"]
    counted = ", ".join(f"{count} {seal}" for seal, count in sorted(seals.items()))
    return Part(what="receipts", ok=not wrong, detail=_said(counted or "none yet", wrong))


def _files(folder: RunFolder, state: RunState) -> Part:
    recorded = {path: hash for path, hash in state.files.items() if path != HINTS}
    wrong = [path for path, hash in sorted(recorded.items()) if _hash(folder.root / path) != hash]
    return Part(
        what="files", ok=not wrong, detail=_said(f"{len(recorded)} recorded", [f"{path} differs" for path in wrong])
    )


def _hash(path: Path) -> str:
    data = None if path.is_symlink() else read_if_there(path)
    return "" if data is None else hashlib.sha256(data).hexdigest()


def _log(folder: RunFolder, state: RunState, home: Path, log: ExperienceLog) -> Part:
    """Of the records that this log has. Another KOPT_HOME's log may have none."""
    held = list(_held(folder, state, home, log))
    wrong = [f"log/{id} differs from v{version}" for version, id, same in held if not same]
    return Part(what="experience log", ok=not wrong, detail=_said(f"records of this run: {len(held)}", wrong))


def _held(folder: RunFolder, state: RunState, home: Path, log: ExperienceLog) -> Iterator[tuple[int, str, bool]]:
    """(version, id of its record, whether both say the same)"""
    document, key = canonical.loads(folder.record.read_bytes()), load_key(home)
    for version in state.versions:
        id = version.recorded.record if version.recorded else ""
        entry = log.get(id) if id else None
        if entry is not None:
            one, _ = read_version(folder.root, document, version.number, lambda data: measurement_problem(data, key))
            yield version.number, id, one is not None and _told(one) == _told(entry.experiment)


def _told(one: Experiment) -> tuple[object, ...]:
    """What a record says of the outcome; names may be brought to a newer vocabulary."""
    return one.run, one.iteration, one.methods, one.outcome, one.speedup, one.receipt, one.provenance


def _said(counted: str, wrong: list[str]) -> str:
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    return "; ".join([counted, *wrong[:_SHOWN]]) + more
