"""Reads a record of somebody else's log: an object whose fields have the names that people give them.

A change must be named, and what came of it, or else a kernel. A field that cannot be read is left empty and told; what
the file leaves open stays open. Nothing in such a record is measured as far as is known: all of them are `reported`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from kbs.common.ulid import PATTERN, ulid_at
from kbs.common.visible_text import visible
from kbs.experience.experiment import MAX_PARAMETERS, MAX_WORDS, UNMAPPED, Experiment, Outcome, Provenance, op_name
from kbs.experience.files import first_problem
from kbs.experience.method_names import MethodNames, Named
from kbs.experience.transfer import about
from kbs.experience.transfer.documents import Piece
from kbs.experience.transfer.earlier_rows import EarlierRows, sizes
from kbs.experience.transfer.fields import CAME, Field, flat, is_nothing, plain_name, words_of
from kbs.experience.transfer.figures import figures
from kbs.experience.transfer.results import result_of
from kbs.experience.transfer.values import UnreadError, bottleneck, dims, listed, moment, settings, whole, words

FIELDS = ("id", "date", "iteration", "kernel", "backend", "chip", "dims", "bottleneck_before", "dominant_stall",
          "metrics_before", "metrics_after", "optimization", "hypothesis", "outcome", "speedup", "notes")  # fmt: skip
"""The fields of the public form, in whose terms an object gets its id."""
UNNAMED = "unnamed"
"""The kernel of a record that names none, in a file that names none."""


class Reader:
    """Reads the records of one file, in their order: what stands alone is compared with what was kept last.

    `source`: the file's name; `undated`: the time of a record that states none.
    """

    def __init__(self, source: str, names: MethodNames, undated: datetime, subject: str = "") -> None:
        self.source, self.names, self.undated, self.subject = source, names, undated, subject
        self._gpu = self._code = ""
        self._rows = EarlierRows()
        self._versions: set[str] = set()
        """Tables whose kernels are versions of one, since the first is a baseline."""

    def read(self, piece: Piece) -> tuple[Experiment, list[str], list[str]]:
        """(the record, what of it could not be read, its keys that are no fields). Raises `UnreadError` for what cannot
        be a record. The same object gives the same id each time, so that a file can be imported again."""
        if not isinstance(piece.found, Mapping):
            raise UnreadError("it is no object with fields")
        own = self._as_versions(list(flat(piece.found)), piece)
        notes: list[str] = []
        said = about.Said([*own, *flat(piece.around)], notes)
        named, op, gpu = about.where(said, piece)
        self._code = about.in_code(own) or self._code
        kernel = named or self._code or about.in_lists(own) or self.subject
        op, gpu = op or about.op_of(kernel) or about.op_of_label(own), gpu or about.gpu_in_lists(own) or self._gpu
        change, hypothesis, lesson = (said.read(name, words, "") for name in ("optimization", "hypothesis", "notes"))
        label = about.label(own)
        nothing: list[str] = []
        methods = said.read("methods", listed, nothing)
        baseline = about.is_baseline(own, methods, piece)
        free = "; ".join(filter(None, (change, label, lesson, *about.texts(own, "observed"))))
        circumstances = json.dumps([said.all("dims")[:1], said.all("dtype")[:1], sizes(own)], default=str)
        series = (kernel, gpu, piece.table, circumstances)
        before, timed = self._rows.before(series, own, label or change, piece.title)
        result = result_of(own, free, piece.title, baseline, before, timed, change)
        notes += result.notes
        tuned = settings(own, notes)
        judged = any(one.role == "outcome" or plain_name(one.key) == "before" for one in own)
        measured = sum(bool(re.match(r"\W*\d", str(one))) for one in piece.found.values()) > 1
        if judged and measured and piece.table and not (change or label):  # the heading says what was tried
            change = f"{piece.title.split(' / ')[-1]}: {next(iter(piece.found.values()))}"[:MAX_WORDS]
        tried = bool(change or label or hypothesis or lesson or methods or tuned)
        if why := _lacks(piece, {one.role for one in own}, result.outcome, tried, bool(named)):
            self._introduce(own)
            raise UnreadError("; ".join([why, *notes]))
        known = self._methods(change, "" if tuned or kernel in label else label, methods, hypothesis, lesson)
        none = baseline or (tuned and not (change or methods or hypothesis))
        time = said.read("date", moment, None)
        theirs = said.read("id", words, "")
        changed = change or label or "; ".join(methods) or hypothesis or lesson
        target = about.TARGET.fullmatch(gpu)
        try:
            record = Experiment(
                id=_id({**piece.around, **piece.found}, time),
                time=(time or self.undated).strftime("%Y-%m-%dT%H:%M:%SZ"),
                iteration=said.read("iteration", whole, None),
                kernel=kernel[:200] or UNNAMED,
                op=op,
                backend=said.read("backend", words, ""),
                gpu=gpu,
                capability=f"{target[1]}.{target[2]}" if target else "",
                dims=said.read("dims", dims, {}),
                dtype=said.read("dtype", words, ""),
                bottleneck_before=said.read("bottleneck_before", bottleneck, ""),
                bottleneck_after=said.read("bottleneck_after", bottleneck, ""),
                dominant_stall=said.read("dominant_stall", words, ""),
                metrics_before=figures(said.one("metrics_before"), "metrics_before", notes),
                metrics_after=figures(said.one("metrics_after"), "metrics_after", notes),
                methods=() if none else known.methods or (UNMAPPED,),
                parameters=dict(list({**tuned, **dict(known.parameters)}.items())[:MAX_PARAMETERS]),
                optimization=changed or ", ".join(f"{name}={value}" for name, value in tuned.items()) or "not stated",
                hypothesis=hypothesis,
                observed=_observed(own, timed if result.outcome is Outcome.UNMEASURED else None),
                outcome=result.outcome,
                speedup=result.speedup,
                lesson=lesson,
                source=(f"{self.source}: {theirs}" if theirs else self.source)[:200],
                provenance=Provenance.REPORTED,
            )
        except ValidationError as error:
            raise UnreadError(first_problem(error)) from error
        self._rows.add(series, own, label or change, baseline, result)
        read = {one.path for one in own if one.role}
        return record, notes, [one.path for one in own if one.path not in read]

    def _as_versions(self, own: list[Field], piece: Piece) -> list[Field]:
        """Kernels of a table that begins with a baseline are versions of one kernel, and so what is tried."""
        first = next((one for one in own if one.role == "kernel"), None)
        if first and str(first.value).strip().lower() in words_of("rows")["baseline"]:
            self._versions.add(piece.table)
        if piece.table not in self._versions or "optimization" in {one.role for one in own}:
            return own
        return [replace(one, role="label") if one.role == "kernel" else one for one in own]

    def _introduce(self, own: list[Field]) -> None:
        """What is no attempt may say what the file is about."""
        for text in about.texts(own, "label", "optimization", "notes"):
            self.subject = self.subject or op_name(text)
            self._gpu = self._gpu or about.product(text)

    def _methods(self, change: str, label: str, methods: list[str], hypothesis: str, lesson: str) -> Named:
        if methods:
            return self.names.of_record("; ".join(methods), "", "")
        known = self.names.of_record(change or label, hypothesis, lesson)
        return known if known.methods or not (change and label) else self.names.of_record(label, "", "")


def _lacks(piece: Piece, stated: set[str], outcome: Outcome, tried: bool, named: bool) -> str:
    """What something lacks that a record has: a change with what came of it, or a kernel with one of the two."""
    came = outcome is not Outcome.UNMEASURED
    if not (tried or came or stated & {"correct", "failing"}):
        return "it says neither what was tried nor what came of it"
    if not (tried or stated & {"kernel", "id"} or "key" in piece.around):
        return "it names no change and no kernel of its own: a comparison, and no attempt"
    if named or came or stated.intersection(CAME) or {"iteration", "optimization", "notes"} <= stated:
        return ""
    keys = ", ".join(visible(str(name)[:30]) for name in list(piece.found)[:12])
    return f"it names no kernel and says of no change what came of it; its keys are {keys or 'none'}"


def read_public(found: Any, source: str, names: MethodNames, undated: datetime) -> tuple[Experiment, list[str]]:
    """(the record of one object, what of it could not be read). Raises `UnreadError`; see `Reader`."""
    return Reader(source, names, undated).read(Piece("", found))[:2]


def _observed(own: list[Field], timed: Field | None) -> str:
    """What went wrong and why, and what was said of the result beyond one word, in its words; its time or rate where it
    was compared with none."""
    said: list[str] = [f"{timed.key}: {timed.value}"[:200]] if timed else []
    for one in own:
        for text in one.value if isinstance(one.value, list) else [one.value]:
            if not isinstance(text, str) or text in said or not text.strip():
                continue
            if one.role in ("observed", "error") or (
                one.role in ("outcome", "correct") and len(re.split(r"[\s_]+", text.strip())) > 1
            ):
                said.append(text)
    return "; ".join(said).encode("utf-8", "replace").decode()[:MAX_WORDS]


def _id(found: Mapping[str, Any], moment: datetime | None) -> str:
    """Records that differ in any field that says something have different ids."""
    given = found.get("id")
    if isinstance(given, str) and re.fullmatch(PATTERN, given):
        return given
    further = {name: value for name, value in found.items() if name not in FIELDS and not is_nothing(value)}
    text = json.dumps({name: found.get(name) for name in FIELDS} | further, sort_keys=True, default=str)
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:10], "big")
    return ulid_at(max(0, int(moment.timestamp() * 1000)) if moment else 0, number)
