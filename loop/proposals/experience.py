"""The experience log in a run: asked before a version is changed, written after each iteration."""

from __future__ import annotations

from collections.abc import Iterable

from evaluator.store.seal import measurement_problem
from kbs.common import canonical_json as canonical
from kbs.common.errors import KoptError
from kbs.common.visible_text import visible
from kbs.experience.experiment import Experiment
from kbs.experience.log import ExperienceLog
from kbs.experience.ranking.recommend import Similar
from kbs.experience.ranking.similarity import Situation
from kbs.experience.transfer.run_folder import asked_about, read_version
from loop.journal.events import Recorded
from loop.journal.folder import RunFolder
from loop.journal.state import RunState
from loop.tools import FoundPassage, PastMethod, Search

METHODS = 5
"""Recommended methods, at most; also the records that a search for words returns."""

MOST_TITLE = 120
"""Characters of a change described in words, in the title of a record."""


def record(log: ExperienceLog, folder: RunFolder, version: int, key: bytes | None) -> Recorded:
    """Append what a closed version came to, if that is not there yet. `key` seals receipts
    (`evaluator.store.seal.load_key`).

    Raises `KoptError` where the log cannot be written; the run stands, and records it when it goes on.
    """
    document = canonical.loads(folder.record.read_bytes())
    one, said = read_version(folder.root, document, version, lambda data: measurement_problem(data, key))
    if one is None:
        return Recorded(version=version, record="", outcome="", why="; ".join(said))
    try:
        added = log.append([one])
    except KoptError as error:
        raise KoptError(
            f"v{version} is not in the experience log yet: {error.message}",
            code=error.code,
            hint=f"{error.hint} Then `kopt run resume`: what was measured stands, and is recorded first.",
        ) from error
    stands = added.added[0] if added.added else added.there[0][1].experiment
    return Recorded(version=version, record=stands.id, outcome=stands.outcome, why="; ".join(said))


def look_up(log: ExperienceLog, folder: RunFolder, state: RunState, parent: int) -> Search:
    """What helped and what failed on kernels like `parent`, the best method first.

    Records of versions that are masked in the run do not count.
    """
    asked = asked_about(folder.root, canonical.loads(folder.record.read_bytes()), parent)
    advice = log.advise(asked, METHODS, _hidden(log, state))
    hits: list[FoundPassage] = []
    for good in advice.recommended:
        counts = f"{good.successes} of {good.successes + good.others} similar attempts"
        title = f"recommended: {_line(good.method)[:MOST_TITLE]}, which helped in {counts}"
        hits += _hit(log, good.records, title, PastMethod(method=good.method, advice="recommended"))
    for bad in advice.failures:
        counts = f"{bad.failures} of {bad.failures + bad.successes} similar attempts"
        title = f"known failure: {_line(bad.method)[:MOST_TITLE]}, which failed in {counts}"
        hits += _hit(log, bad.records, title, PastMethod(method=bad.method, advice="known failure"))
    for near in advice.nearest:
        hits += _hit(log, (near,), f"tried on such a kernel: {near.outcome}", None)
    return Search(about="experience", text=_question(asked), hits=tuple(hits), degraded="", why=advice.why)


def operation(folder: RunFolder, parent: int) -> str:
    """What the kernel computes, as the log names it: by the operators that step 0 counted, else the kernel's name."""
    return asked_about(folder.root, canonical.loads(folder.record.read_bytes()), parent).op


def look_for(log: ExperienceLog, state: RunState, text: str) -> Search:
    """Records that match the words of a proposer's query."""
    hidden = _hidden(log, state)
    found = [entry for entry in log.search(text, METHODS) if hidden.isdisjoint((entry.experiment.id, *entry.ids))]
    hits = tuple(
        FoundPassage(
            reference=entry.experiment.reference,
            title=f"{', '.join(entry.experiment.methods) or 'no method'}: {entry.experiment.outcome}",
            text=words(entry.experiment),
            score=0.0,
        )
        for entry in found
    )
    why = "" if hits else "no record has these words"
    return Search(about="experience", text=text, hits=hits, degraded="", why=why)


def words(one: Experiment) -> str:
    """A record as text with one fact per line, as proposers see and quote it."""
    sizes = ", ".join(f"{name}={size}" for name, size in one.dims.items())
    where = ", ".join(filter(None, (one.op or one.kernel, one.backend, one.gpu, sizes, one.dtype)))
    lines = [f"where: {where}", f"change: {one.optimization}", f"methods: {', '.join(one.methods)}"]
    lines.append(f"outcome: {one.outcome}, {one.provenance}{_speedup(one)}")
    if one.bottleneck_before or one.bottleneck_after:
        before, after = one.bottleneck_before or "unknown", one.bottleneck_after or "unknown"
        lines.append(f"bottleneck: {before} before, {after} after")
    lines += [f"{name}: {said}" for name, said in (("observed", one.observed), ("lesson", one.lesson)) if said]
    return "\n".join(map(_line, lines))  # no text of a record begins a line that looks like a fact of its own


def _line(text: str) -> str:
    return visible(" ".join(text.split()))


def _speedup(one: Experiment) -> str:
    found = one.speedup
    if found is None:
        return ""
    interval = "" if found.low is None else f" [{found.low:.3g}, {found.high:.3g}]"
    return f", {found.median:.3g}{interval} times as fast"


def _question(asked: Situation) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in asked.dims.items())
    said = (asked.op, asked.backend, asked.gpu, asked.bottleneck, sizes, asked.dtype)
    return f"what helped and what failed: {', '.join(filter(None, said))}"


def _hit(log: ExperienceLog, records: Iterable[Similar], title: str, past: PastMethod | None) -> list[FoundPassage]:
    """The most similar record that still exists."""
    for one in records:
        entry = log.get(one.reference.removeprefix("log/"))
        if entry is not None:
            shown, score = entry.experiment, round(one.similarity, 4)
            return [
                FoundPassage(reference=shown.reference, title=title, text=words(shown), score=score, past=past)
            ]  # fmt: skip
    return []


def _hidden(log: ExperienceLog, state: RunState) -> set[str]:
    """Ids of this run's records whose versions are masked in it."""
    masked = [version.recorded.record for version in state.versions if version.masked and version.recorded]
    entries = [entry for id in masked if id and (entry := log.get(id))]
    return {id for entry in entries for id in entry.ids} | set(filter(None, masked))
