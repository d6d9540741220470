"""Pages of runs: which there are, how one stands, a version, two versions side by side, the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from evaluator.receipt.timing_text import duration, significant
from kbs.common.errors import KoptError, UsageError
from kopt.services.runs.service import gate_look, report_of
from kopt.services.viewing.runs import RunLook, VersionLook
from kopt.web.desk import Desk
from kopt.web.drawing.code import Diff, compared
from kopt.web.drawing.markdown import markdown
from kopt.web.drawing.run import roofline, timeline

EVENTS = 400
"""Events of a run that are shown, the newest first."""


async def overview(desk: Desk, request: Request) -> Response:
    """`/runs`"""

    def work() -> Mapping[str, Any]:
        known = desk.known_runs()
        return {"runs": known.items(), "mark": _mark(desk, ""), "root": str(desk.root)}

    return await desk.page(request, "runs.html", work)


async def mark(desk: Desk, request: Request) -> Response:
    """`/runs/{key}/mark`, `/runs/mark`: a text that is another once an event was added. Pages ask for it again and
    again, and are loaded anew where it has changed."""
    key = request.path_params.get("key", "")
    return JSONResponse({"mark": await desk.run("files", lambda: _mark(desk, key))})


def _mark(desk: Desk, key: str) -> str:
    known = desk.known_runs()
    return known.get(key).mark if key else " ".join(f"{run.key}:{run.mark}" for run in known.all.values())


def _look(desk: Desk, request: Request) -> RunLook:
    return RunLook.of(desk.known_runs().get(request.path_params["key"]))


async def run(desk: Desk, request: Request) -> Response:
    """`/runs/{key}`"""

    def work() -> Mapping[str, Any]:
        mark = desk.known_runs().get(request.path_params["key"]).mark  # before it is read: a later event reloads it
        look = _look(desk, request)
        view = look.view
        events = list(look.events())
        return {
            **_common(look),
            "mark": mark,
            "events": events[:EVENTS],
            "more_events": max(0, len(events) - EVENTS),
            "timeline": timeline(look.drawing),
            "roofline": roofline(look.drawing),
            "targets": look.targets,
            "versions": [look.version(one.number) for one in view.state.versions],
        }

    return await desk.page(request, "run.html", work)


def _common(look: RunLook) -> dict[str, Any]:
    return {"known": look.known, "view": look.view, "state": look.view.state, "record": look.view.record,
            "stands": look.stands}  # fmt: skip


async def version(desk: Desk, request: Request) -> Response:
    """`/runs/{key}/v3`; with `?gate=1` the gate looks at it again."""

    def work() -> Mapping[str, Any]:
        look = _look(desk, request)
        found = look.version(request.path_params["number"])
        parent = found.parent
        gate, why = None, ""
        if request.query_params.get("gate"):
            try:
                engine = desk.engine()
                gate = gate_look(engine, look.view, found.number, final=False)
            except KoptError as error:
                why = f"{error.message} {error.hint}"
        return {
            **_common(look),
            "version": found,
            "parent": parent,
            "diff": _diff(parent, found) if parent is not None else None,
            "gate": gate,
            "gate_why": why,
        }

    return await desk.page(request, "version.html", work, "knowledge" if request.query_params.get("gate") else "files")


def _diff(old: VersionLook, new: VersionLook) -> Diff | None:
    before, after = old.kernel, new.kernel
    return None if before is None or after is None else compared(before[1], after[1], after[0])


async def compare(desk: Desk, request: Request) -> Response:
    """`/runs/{key}/compare?a=0&b=3`: by default version 0 and the best one, or the last where it is that."""
    given = request.query_params

    def work() -> Mapping[str, Any]:
        look = _look(desk, request)
        count = len(look.view.state.versions)
        first, second = (look.version(_version(given.get(name), default, count)) for name, default in
                         (("a", 0), ("b", look.view.state.best or max(0, count - 1))))  # fmt: skip
        return {
            **_common(look),
            "a": first,
            "b": second,
            "rows": list(_figures(first, second)),
            "diff": _diff(first, second),
            "count": count,
        }

    return await desk.page(request, "compare.html", work)


def _version(given: str | None, default: int, count: int) -> int:
    text = (given or str(default)).removeprefix("v")
    if not (text.isascii() and text.isdigit() and len(text) < 7):
        raise UsageError("that is no version", code="version_unknown", hint=f"Versions are v0 to v{count - 1}.")
    return int(text)


METRICS = (
    *("duration", "dram_throughput", "dram_bytes_read", "dram_bytes_written", "l2_hit_rate", "l1_hit_rate"),
    *("sm_throughput", "achieved_occupancy", "theoretical_occupancy", "registers", "dynamic_shared_memory"),
    *("issue_active", "bank_conflicts", "stall_long_scoreboard"),
)
"""Metrics of profiles that two versions are compared by, where both have them."""


def _figures(a: VersionLook, b: VersionLook) -> Iterator[tuple[str, str, str]]:
    """(what, of the one, of the other)"""
    for name, of in _FIGURES.items():
        yield name, of(a), of(b)
    for metric in METRICS:
        found = _short(a.files.metric(metric)), _short(b.files.metric(metric))
        if any(found):
            yield metric.replace("_", " "), *found


def _short(shown: str) -> str:
    """A figure of a profile with four digits."""
    number, _, unit = shown.partition(" ")
    try:
        return f"{significant(float(number.replace(',', '')))} {unit}".rstrip()
    except ValueError:  # empty, or a word
        return shown


def _ratio(one: VersionLook) -> str:
    result = one.state.last_result
    if result is None or result.ratio is None:
        return ""
    median, low, high = result.ratio
    return f"{median:.3f}x [{low:.3f}x, {high:.3f}x]"


def _verdict(one: VersionLook) -> str:
    return one.state.last_result.verdict.value if one.state.last_result else ""


def _time(one: VersionLook) -> str:
    return "" if one.files.median_us is None else duration(one.files.median_us)


def _symptoms(one: VersionLook) -> str:
    found = one.files.diagnosis
    return ", ".join(symptom.name for symptom in found.symptoms) if found else ""


_FIGURES: dict[str, Callable[[VersionLook], str]] = {
    "methods": lambda one: ", ".join(one.state.methods),
    "verdict": _verdict,
    "median time": _time,
    "against its parent": _ratio,
    "bottleneck": lambda one: one.state.profiled.bottleneck if one.state.profiled else "",
    "symptoms": _symptoms,
    "kept": lambda one: "yes" if one.state.kept else "no",
}


async def report(desk: Desk, request: Request) -> Response:
    """`/runs/{key}/report`: the final report, or as it would be now."""

    def work() -> Mapping[str, Any]:
        look = _look(desk, request)
        text, finished = report_of(look.view)
        return {**_common(look), "body": markdown(text), "finished": finished}

    return await desk.page(request, "report.html", work)
