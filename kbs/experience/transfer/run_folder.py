"""Reads a run's folder as experiments: one for each version in which something was tried."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from kbs.common.errors import UsageError
from kbs.common.ulid import ulid_at
from kbs.common.visible_text import visible
from kbs.experience.experiment import (
    CPU,
    MAX_DIMS,
    MAX_NAME,
    MAX_SIZE,
    MAX_WORDS,
    Attribution,
    Experiment,
    Outcome,
    Provenance,
    Speedup,
    dtype_name,
    op_name,
    outcome_of,
)
from kbs.experience.files import first_problem
from kbs.experience.ranking.similarity import Situation
from kbs.experience.transfer.figures import figures
from kbs.experience.transfer.operators import operation_of
from kbs.questions.python_constants import sizes_named_in

RECORD, MEMORY, TOP, RECEIPT = "run.json", "memory.json", "ncu_top.json", "receipt.json"
ROOFLINE = "roofline.json"
MAX_BYTES = 64 * 1024 * 1024
"""No larger file of a run is read."""
Verify = Callable[[bytes], str]
"""What is wrong with the bytes of a receipt; empty if they are one, and intact."""
_READ = re.compile(r"read [^,]{1,80}, (?P<dtype>\w{1,20}): ")
_OPERATOR = re.compile(r"(?P<name>[a-z]\w{0,60})(?: \([a-z ]{1,20}\))?, [^:]{1,60}: .*?(?P<amount>[\d,]{1,40}) FLOP")
_DEEPEST = 8
"""Levels of the declaration of inputs that are looked through."""
_CHANCE = 60
"""Bits of an id that are drawn; those before them say the version, so that ids of one moment keep its order."""
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, IndexError)


class _UnreadError(ValueError):
    """Why the record of a version that was tried cannot be made."""


def read_run(folder: Path, verify: Verify) -> tuple[list[Experiment], list[str], list[str]]:
    """(experiments, versions that cannot be kept, what else there is to know). Version 0 is what a run starts from, and
    no experiment.

    Records are `measured` if the version's receipt is there and `verify` finds nothing wrong with it. The same
    folder gives the same ids each time. Raises `UsageError` (`no_run`) for what is not a run's folder.
    """
    record = _json(folder / RECORD)
    if not isinstance(record, dict) or record.get("kind") != "kopt-run" or not isinstance(record.get("id"), str):
        raise UsageError(
            f"{folder} is not a folder of a run: it has no {RECORD} that kopt wrote",
            code="no_run",
            hint="Give the folder that holds run.json.",
        )
    found: list[Experiment] = []
    left_out: list[str] = []
    notes: list[str] = []
    for version in _versions(folder):
        try:
            one, said = _version(folder, record, version, verify)
        except _UnreadError as error:
            left_out.append(f"v{version}: left out: {error}")
            continue
        notes += [f"v{version}: {line}" for line in said]
        found += [one] if one else []
    return found, left_out, notes


def read_version(
    folder: Path, record: Mapping[str, Any], version: int, verify: Verify
) -> tuple[Experiment | None, list[str]]:
    """(the experiment of a version that is closed, what could not be read or why there is none).

    `record`: what run.json holds. The same files give the same experiment, its id too.
    """
    try:
        return _version(folder, record, version, verify)
    except _UnreadError as error:
        return None, [str(error)]


def _version(
    folder: Path, record: Mapping[str, Any], version: int, verify: Verify
) -> tuple[Experiment | None, list[str]]:
    """As `read_version`. Raises `_UnreadError` where something was tried and cannot be read."""
    place = folder / f"v{version}" / MEMORY
    if not os.path.lexists(place):
        return None, [f"its {MEMORY} is missing: it was not closed"]
    memory = _json(place)
    if memory is None:
        raise _UnreadError(f"its {MEMORY} is no JSON")
    try:
        return _experiment(folder, record, version, memory, verify)
    except ValidationError as error:
        raise _UnreadError(first_problem(error)) from error
    except _UNREADABLE as error:
        raise _UnreadError(f"{MEMORY} or {RECORD} has another form: {visible(str(error))[:200]}") from error


def asked_about(folder: Path, record: Mapping[str, Any], parent: int) -> Situation:
    """What the log is asked before a version is changed: its circumstances, in the words of the records."""
    receipt = _json(folder / f"v{parent}" / RECEIPT)
    memory = _json(folder / f"v{parent}" / MEMORY)
    known = _circumstances(folder, record, receipt if isinstance(receipt, dict) else {})
    bottleneck = memory.get("bottleneck") if isinstance(memory, dict) else ""
    asked = Situation.of(
        backend=known["backend"],
        gpu=known["gpu"],
        bottleneck=bottleneck or "",
        dims=known["dims"],
        dtype=known["dtype"],
    )
    return replace(asked, op=known["op"] or known["kernel"].lower())


def _circumstances(folder: Path, record: Mapping[str, Any], receipt: Mapping[str, Any]) -> dict[str, Any]:
    """What is measured where: fields of an experiment. `receipt` may be empty."""
    problem, machine = record["problem"], receipt.get("environment") or {}
    kernel = PurePosixPath(record["kernel"]["origin"]).name
    return {
        "kernel": kernel,
        "op": _operation(folder, record),
        "backend": (receipt.get("candidate") or {}).get("backend") or problem["backend"] or "",
        "gpu": record["gpu"] or record["device_name"],
        "capability": machine.get("compute_capability") or "",
        "dims": _dims(folder, record),
        "dtype": _dtype(folder, record),
    }


def _operation(folder: Path, record: Mapping[str, Any]) -> str:
    """The operation that the reference's operators compute, as step 0 counted them; empty if that is none of the
    vocabulary. Where nothing was counted, what kernel and reference are called says it."""
    counted = _operators(_json(folder / ROOFLINE))
    if counted:
        return operation_of(counted)
    names = (record[which]["origin"] for which in ("kernel", "reference"))
    return next(filter(None, (op_name(PurePosixPath(name).stem) for name in names)), "")


def _operators(roofline: Any) -> dict[str, int]:
    """Operator → its operations. Runs of before say it in the lines of step 0 alone."""
    if not isinstance(roofline, Mapping):
        return {}
    counted = roofline.get("operators")
    if isinstance(counted, Mapping):
        return {name: n for name, n in counted.items() if isinstance(n, int) and not isinstance(n, bool)}
    found: dict[str, int] = {}
    lines = roofline.get("lines")
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, str) and (row := _OPERATOR.fullmatch(line)):
            found[row["name"]] = found.get(row["name"], 0) + int(row["amount"].replace(",", ""))
    return found


def _dims(folder: Path, record: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of the first workload: those that the reference makes its inputs with, and those that were asked for
    in their place."""
    problem = record["problem"]
    asked = {**problem["dims"], **next(iter(problem["workloads"]), {})}
    name = record["reference"].get("name")
    text = _bytes(folder / name) if isinstance(name, str) and PurePosixPath(name).name == name else None
    makers = ("get_init_inputs",) if record.get("inputs") else ("get_inputs", "get_init_inputs")
    own = [(name, size) for name, size in sizes_named_in(text or b"", *makers) if name not in asked]
    fitting = [(name, size) for name, size in own if 0 < size < MAX_SIZE and len(name) <= MAX_NAME]
    greatest = sorted(fitting, key=lambda item: (-item[1], item[0]))[: max(0, MAX_DIMS - len(asked))]
    return {**dict(greatest), **asked}


def _dtype(folder: Path, record: Mapping[str, Any]) -> str:
    """The element type that all inputs share, as they were declared, or else as the work of a call was counted; empty
    where they differ or nobody said."""
    inputs = record.get("inputs")
    name = inputs.get("name") if isinstance(inputs, dict) else None
    declared = _json(folder / name) if isinstance(name, str) and PurePosixPath(name).name == name else None
    found = _floats(_dtypes(declared)) or _floats(_counted(_json(folder / ROOFLINE)))
    return found.pop() if len(found) == 1 else ""


def _floats(names: Iterable[str]) -> set[str]:
    return {dtype_name(name) for name in names if not name.startswith(("int", "uint", "bool"))}


def _counted(roofline: Any) -> Iterator[str]:
    """Element types of what a call reads, by the lines of step 0."""
    lines = roofline.get("lines") if isinstance(roofline, Mapping) else None
    for line in lines if isinstance(lines, list) else ():
        if isinstance(line, str) and (read := _READ.match(line)):
            yield read["dtype"]


def _dtypes(declared: Any, levels: int = _DEEPEST) -> Iterator[str]:
    if not levels:
        return
    if isinstance(declared, Mapping):
        name = declared.get("dtype")
        if isinstance(name, str):
            yield name
        for part in declared.values():
            yield from _dtypes(part, levels - 1)
    elif isinstance(declared, list):
        for part in declared:
            yield from _dtypes(part, levels - 1)


def _versions(folder: Path) -> list[int]:
    names = [path.name for path in folder.iterdir() if re.fullmatch(r"v[1-9][0-9]{0,5}", path.name) and path.is_dir()]
    return sorted(int(name[1:]) for name in names)


def _experiment(
    folder: Path, record: Mapping[str, Any], version: int, memory: Mapping[str, Any], verify: Verify
) -> tuple[Experiment | None, list[str]]:
    place, tried = folder / f"v{version}", memory["attempts"]
    words = memory["single_change"] or ", ".join(memory["methods"]) or _refused_change(place, memory["refused"])
    if not words or not (tried or memory["refused"]):
        return None, [f"nothing was tried: {visible(memory['why'])[:200]}"]
    receipt, said = _receipt(place, tried, verify)
    notes = [said] if said else []
    outcome, ratio = _outcome(memory, receipt, notes)
    parent = _json(folder / f"v{memory['parent']}" / TOP)
    before, after = _metrics(parent, notes), _metrics(_json(folder / f"v{version}" / TOP), notes)
    moment = datetime.strptime(receipt.get("created") or record["created"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    chance = int.from_bytes(hashlib.sha256(f"{record['id']}\0{version}".encode()).digest()[:10], "big")
    number = version << _CHANCE | chance >> 80 - _CHANCE
    stall = (parent or {}).get("dominant_stall") or {}
    return Experiment(
        id=ulid_at(int(moment.timestamp() * 1000), number),
        time=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        run=record["id"],
        iteration=version,
        **_circumstances(folder, record, receipt) | ({"gpu": CPU} if _on_cpu(record, receipt) else {}),
        bottleneck_before=memory["bottleneck_before"],
        bottleneck_after=memory["bottleneck"],
        dominant_stall=stall.get("metric", "") if isinstance(stall, dict) else "",
        metrics_before=before,
        metrics_after=after,
        methods=memory["methods"] or tuple(tried[-1]["methods"] if tried else ()),
        optimization=words,
        hypothesis=_hypothesis(place, tried),
        expected=memory["expected"],
        observed="; ".join([*_moved(memory["expected"], before, after), memory["why"]])[:MAX_WORDS],
        outcome=outcome,
        speedup=ratio,
        attribution=_attribution(memory, ratio) if outcome is not Outcome.REJECTED else (),
        receipt=receipt.get("id", ""),
        evidence=memory["evidence"],
        lesson=_lesson(words, outcome, memory),
        provenance=Provenance.MEASURED if receipt else Provenance.REPORTED,
        source="" if receipt else f"run {record['id']}"[:200],
    ), notes


def _outcome(memory: Mapping[str, Any], receipt: Mapping[str, Any], notes: list[str]) -> tuple[Outcome, Speedup | None]:
    """The outcome of the last attempt, and its ratio to the parent's time: by its receipt, where there is one."""
    if not memory["attempts"] or memory["gate"]:
        return Outcome.REJECTED, None
    last = memory["attempts"][-1]
    said = (last["verdict"], last["improvement"], memory["ratio"] if last["verdict"] == "accepted" else None)
    found = _measured(receipt) if receipt else said
    if found != said:
        notes.append(f"{MEMORY} says {_came_to(said)}, and the receipt {_came_to(found)}, which holds")
    verdict, improvement, ratio = found
    outcome = outcome_of(verdict, improvement)
    if outcome in (Outcome.SUCCESS, Outcome.REGRESSION) and ratio is None:
        outcome = Outcome.UNMEASURED  # it was compared with something else, and not with its parent
    if outcome is Outcome.SUCCESS and ratio is not None and ratio[1] <= 1:
        outcome = Outcome.NEUTRAL
    return outcome, Speedup(median=ratio[0], low=ratio[1], high=ratio[2]) if ratio else None


def _attribution(memory: Mapping[str, Any], whole: Speedup | None) -> tuple[Attribution, ...]:
    """What came of each method; the ratio of the `whole` version is that of its only one."""
    told = memory.get("outcomes", ())
    if len(told) == 1:
        return (Attribution(method=told[0]["method"], found=told[0]["found"], speedup=whole),)
    found = []
    for one in told:
        ratio = one["ratio"]
        speedup = Speedup(median=ratio[0], low=ratio[1], high=ratio[2]) if ratio else None
        found.append(Attribution(method=one["method"], found=one["found"], speedup=speedup))
    return tuple(found)


def _on_cpu(record: Mapping[str, Any], receipt: Mapping[str, Any]) -> bool:
    return ((receipt.get("environment") or {}).get("device") or record.get("device")) == "cpu"


def _measured(receipt: Mapping[str, Any]) -> tuple[str, str, list[float] | None]:
    """(verdict, improvement, ratio to the parent's time: median, lower and upper bound) of an intact receipt.

    A run compares with the parent first; a ratio to another baseline is none to the parent.
    """
    timing, planned = receipt.get("timing") or {}, receipt["plan"].get("timing") or {}
    ratio, baselines = timing.get("ratio") or {}, planned.get("baselines") or []
    compared = receipt["verdict"] == "accepted" and baselines and baselines[0]["name"] == timing.get("against")
    ends = [ratio[name] for name in ("median", "ci_low", "ci_high")] if compared and ratio else None
    return receipt["verdict"], receipt["improvement"], ends


def _came_to(found: tuple[str, str, Any]) -> str:
    return visible(f"{found[0]}, {found[1]}, {found[2] or 'no ratio'}")[:120]


def _receipt(folder: Path, tried: Any, verify: Verify) -> tuple[dict[str, Any], str]:
    """(the receipt of the last attempt, empty if it is of no use; why it is of none)"""
    if not tried:
        return {}, ""
    wanted = tried[-1]["receipt"]
    for path in (folder / RECEIPT, folder / "attempts" / f"a{tried[-1]['attempt']}" / RECEIPT):
        document = _json(path)
        if isinstance(document, dict) and document.get("id") == wanted:
            wrong = verify(_bytes(path) or b"")
            return ({}, f"its receipt is not counted: {visible(wrong)[:200]}") if wrong else (document, "")
    return {}, f"the receipt {visible(str(wanted))[:16]} is not there"


def _hypothesis(place: Path, tried: Any) -> str:
    """Why the last attempt should have helped; the version has a proposal of its own only where it was accepted."""
    last = place / "attempts" / f"a{tried[-1]['attempt']}" if tried else place
    return _said(place / "proposal.json", "rationale") or _said(last / "proposal.json", "rationale")


def _refused_change(place: Path, refused: Any) -> str:
    """What the last refused proposal would have changed; empty if none was refused, or it cannot be read."""
    return _said(place / "refused" / f"s{len(refused)}" / "proposal.json", "single_change") if refused else ""


def _said(path: Path, name: str) -> str:
    proposal = _json(path)
    if not isinstance(proposal, dict) or not isinstance(proposal.get("hypothesis"), dict):
        return ""
    said = proposal["hypothesis"].get(name)
    return said if isinstance(said, str) else ""


def _lesson(words: str, outcome: Outcome, memory: Mapping[str, Any]) -> str:
    """One sentence: the change, where it was made, and what it brought."""
    what = ", ".join(memory["methods"]) or words
    before = memory["bottleneck_before"]
    where = f" on a {before} kernel" if before not in ("", "unknown") else ""
    reasons = (one.get("reason") for one in memory["attempts"][-1:] if one["verdict"] != "accepted")
    why = next((reason for reason in reasons if reason), memory["why"])
    return f"{what}{where}: {outcome}; {why}"[:MAX_WORDS]


def _metrics(top: Any, notes: list[str]) -> dict[str, str]:
    if not isinstance(top, dict) or not isinstance(top.get("metrics"), list):
        return {}
    return figures({one["metric"]: one["value"] for one in top["metrics"]}, TOP, notes)


def _moved(expected: Any, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    names = [one["metric"] for one in expected]
    return [f"{name} {before[name]} → {after[name]}" for name in names if name in before and name in after]


def _json(path: Path) -> Any:
    """What a file holds; None if it is missing, too large, or no JSON."""
    try:
        data = _bytes(path)
        return None if data is None else json.loads(data)
    except (ValueError, RecursionError):
        return None


def _bytes(path: Path) -> bytes | None:
    """What a regular file holds; None for what is none, such as a pipe that nobody writes to, or is too large."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            data = stream.read(MAX_BYTES + 1) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else None
    except (OSError, ValueError):  # ValueError: a name that no file has
        return None
    return None if data is None or len(data) > MAX_BYTES else data
