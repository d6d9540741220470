"""What the handlers of all pages share: the engine, threads to work in, templates."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
from anyio import to_thread
from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from evaluator.receipt.timing_text import duration, times
from kbs.common.errors import ExitCode, KoptError
from kbs.common.visible_text import visible, visible_lines
from kbs.evidence.checking import plain_text
from kbs.index.sqlite_file import DamagedIndexError
from kopt import __version__
from kopt.services.engine import Engine
from kopt.services.settings import LoadedSettings, load_settings
from kopt.services.viewing.runs import KnownRuns
from kopt.web.drawing.code import coloured
from kopt.web.linking import address_of, in_fields, linked

T = TypeVar("T")
Lane = Literal["knowledge", "files"]
"""`knowledge` waits for an index that is being built; pages of `files` are shown meanwhile."""
_LIMITS: dict[Lane, int] = {"knowledge": 4, "files": 4}
NAVIGATION = (
    ("ask", "/", "Ask"),
    ("wiki", "/wiki", "Wiki"),
    ("log", "/log", "Log"),
    ("runs", "/runs", "Runs"),
    ("bench", "/bench", "Bench"),
    ("doctor", "/doctor", "Doctor"),
)
_STATUS = {ExitCode.USAGE: 400, ExitCode.CONFIGURATION: 500}
_HINTS = {"log_unknown": "The list has every experiment."}
"""What to do next on a page, where the error itself names commands."""
NOT_FOUND = ("not_found", "run_unknown", "version_unknown", "log_unknown", "file_not_found")
"""Codes of errors that say that there is no such page."""


@dataclass
class Desk:
    """One for a server."""

    root: Path
    """The folder that it was started in: its `kopt.toml` and the runs below it."""
    runs: tuple[Path, ...] = ()
    """Further folders of runs, and folders that hold runs."""
    building: str = ""
    """How far the first index of this KOPT_HOME is; empty once it is there."""
    _limits: dict[Lane, anyio.CapacityLimiter] = field(default_factory=dict)

    def settings(self, **flags: Any) -> LoadedSettings:
        """The settings in force now."""
        return load_settings(flags, self.root)

    def engine(self, **flags: Any) -> Engine:
        """An engine with the settings in force now; what is warm is shared by all engines of the process."""
        return Engine(self.settings(**flags))

    def known_runs(self) -> KnownRuns:
        """The runs that may be looked at."""
        return KnownRuns.of(self.settings().home, self.root, self.runs)

    def warm(self) -> None:
        """Bring the index up to date and load the model. Until a first index is there, pages that need it say how far
        that is. Raises `KoptError`."""
        from kopt.services.knowledge.answers import search

        engine = Engine(self.settings(), progress=self._tell)
        self.building = "" if _has_pages(engine) else "reading the wikis"
        try:
            search(engine, "warm", {})
        finally:
            self.building = ""

    def _tell(self, step: str, done: int, total: int) -> None:
        if self.building:
            self.building = f"{step}: {done:,} of {total:,}" if total else step

    async def run(self, lane: Lane, work: Callable[[], T]) -> T:
        """What `work` returns, from a thread."""
        if lane not in self._limits:
            self._limits[lane] = anyio.CapacityLimiter(_LIMITS[lane])
        return await to_thread.run_sync(work, limiter=self._limits[lane])

    async def page(
        self, request: Request, template: str, work: Callable[[], Mapping[str, Any]], lane: Lane = "files"
    ) -> HTMLResponse:
        """A page of what `work` returns, which is called in a thread; `status` in it is that of the answer. Errors of
        kopt are pages too."""
        started = time.perf_counter()
        if lane == "knowledge" and self.building:
            waiting = self.render(request, "building.html", {"step": self.building})
            return HTMLResponse(waiting, 503, {"Retry-After": "2"})

        def made() -> HTMLResponse:
            found = work()
            seconds = time.perf_counter() - started
            text = self.render(request, template, {"seconds": seconds, **found})
            return HTMLResponse(text, found.get("status", 200))

        return await self.run(lane, made)

    def render(self, request: Request, template: str, values: Mapping[str, Any]) -> str:
        """A template with what all of them need."""
        return self._templates.get_template(template).render(
            {"navigation": NAVIGATION, "here": request.url.path, "kopt_version": __version__, **values}
        )

    def error(self, request: Request, error: KoptError) -> HTMLResponse:
        """The page of an error of kopt: what happened, and what to do next."""
        status = 404 if error.code in NOT_FOUND else _STATUS.get(error.exit_code, 500)
        return self.refusal(request, status, error.message, _HINTS.get(error.code, error.hint))

    def refusal(self, request: Request, status: int, message: str, hint: str) -> HTMLResponse:
        """A page that says why there is no other."""
        values = {"status": status, "message": message, "hint": hint, "let_in": status not in (401, 403, 421)}
        return HTMLResponse(self.render(request, "error.html", values), status)

    @cached_property
    def _templates(self) -> Environment:
        """Every value that a template shows is escaped; what is markup is of the type `Markup`."""
        made = Environment(
            loader=PackageLoader("kopt.web"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        made.filters |= {
            "linked": linked,
            "fields": in_fields,
            "brief": _brief,
            "address": address_of,
            "code": coloured,
            "duration": duration,
            "times": times,
            "visible": visible,
            "visible_lines": visible_lines,
            "quoted": _quoted,
            "plain": _plain,
            "counted": lambda count, one: f"{count} {one}{'' if count == 1 else 's'}",
            "when": lambda text: text.replace("T", " ").removesuffix("Z"),
        }
        return made


def _has_pages(engine: Engine) -> bool:
    try:
        with engine.index.open() as store:
            return bool(store.passage_count())
    except (FileNotFoundError, DamagedIndexError):
        return False


def _quoted(text: str) -> str:
    """Cited lines as they are shown beside a citation: the cells of a row are parted by dots."""
    return visible(" ".join(_cells(line) if line.lstrip().startswith("|") else line for line in text.split("\n")))


def _plain(text: str) -> str:
    """Lines of a page as a reader reads them, on one line: no marks of Markdown."""
    return _quoted("\n".join(map(plain_text, text.split("\n"))))


def _brief(number: str) -> str:
    """A figure of a record with its digits in groups, and without zeros that say nothing."""
    try:
        found = Decimal(number)
    except InvalidOperation:
        return number
    if not found.is_finite() or not -7 < found.adjusted() < 18:
        return number
    text = f"{found:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _cells(row: str) -> str:
    return " · ".join(filter(None, map(str.strip, row.split("|"))))
