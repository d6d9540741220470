"""The checks of `kopt doctor`. Each looks at one thing, changes nothing, and says how to fix what is broken."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from evaluator.sandbox.isolation_report import try_isolation
from evaluator.sass.tools import find_tool
from kbs.common.errors import KoptError
from kbs.common.json_model import JsonDataclass
from kbs.common.programs import output_of
from kbs.index.encoder import DEFAULT_MODEL, verify_default_model
from kopt.services.engine import Engine
from kopt.services.settings import LoadedSettings

Status = Literal["ok", "warning", "error", "absent"]
_TIMEOUT = 20


@dataclass(frozen=True)
class Check(JsonDataclass):
    """One thing that was looked at."""

    name: str
    status: Status
    detail: str
    hint: str = ""
    """How to fix it; empty where there is nothing to fix."""


def examine(settings: LoadedSettings) -> list[Check]:
    """All checks, in the order in which a person would fix things."""
    eng = Engine(settings)
    checks: list[Check] = []
    for look in (_python, _packages, _model, _wikis, _index, _chroma, _log, _gpu, _tools, _isolation):
        try:
            checks += look(eng)
        except KoptError as error:
            checks.append(Check(look.__name__.strip("_"), "error", error.message, error.hint))
        except sqlite3.DatabaseError as error:
            checks.append(_damaged(str(error)))
    return checks


def _damaged(why: str) -> Check:
    return Check("index", "error", f"damaged: {why}", "Run `kopt ingest --rebuild`; nothing is lost.")


def _python(_: Engine) -> Iterator[Check]:
    query = "SELECT count(*) FROM pragma_compile_options WHERE compile_options = 'ENABLE_FTS5'"
    (fts,) = sqlite3.connect(":memory:").execute(query).fetchone()
    detail = f"{platform.python_version()} on {platform.system()}, SQLite {sqlite3.sqlite_version}"
    hint = "" if fts else "This SQLite does not report that it has FTS5."
    yield Check("python", "ok" if fts else "warning", detail, hint)


def _packages(_: Engine) -> Iterator[Check]:
    for package in ("chromadb", "sentence-transformers", "torch", "triton"):
        try:
            yield Check(package, "ok", version(package))
        except PackageNotFoundError:
            needed = package != "triton" or platform.system() == "Linux"
            yield Check(package, "warning" if needed else "absent", "not installed", f"pip install {package}")


def _model(eng: Engine) -> Iterator[Check]:
    model = eng.settings.values.embedding_model
    if model != DEFAULT_MODEL:
        yield Check("model", "ok", f"{model}, through sentence-transformers")
        return
    verify_default_model()
    yield Check("model", "ok", f"{DEFAULT_MODEL}, weights as published")


def _wikis(eng: Engine) -> Iterator[Check]:
    for wiki in eng.wikis:
        yield Check("wiki", "ok", f"{wiki.name}: {len(wiki.files())} pages in {wiki.root}")
    for warning in eng.warnings:
        yield Check("wiki", "warning", warning)


def _index(eng: Engine) -> Iterator[Check]:
    try:
        with eng.index.open() as store:
            wrong = store.check()
            counts = store.counts()
            fresh = eng.index.is_fresh(store, eng.wikis, None)
            broken = store.broken()
    except FileNotFoundError:
        hint = "The first `kopt ask` builds it, or run `kopt ingest`."
        yield Check("index", "absent", f"not built yet in {eng.index.folder}", hint)
        return
    if wrong:
        yield _damaged(wrong)
        return
    detail = f"{counts['pages']} pages, {counts['passages']} passages, {counts['specs']} specs"
    if fresh:
        yield Check("index", "ok", detail)
    else:
        hint = "The next question updates it, or run `kopt ingest`."
        yield Check("index", "warning", f"{detail}; the wikis have changed since", hint)
    for wiki, path, problems in broken:
        detail = f"{wiki}/{path}:{problems[0]['line']} is left out: {problems[0]['message']}"
        yield Check("page", "warning", detail, "Fix the page; `kopt wiki lint` lists all problems.")


def _chroma(eng: Engine) -> Iterator[Check]:
    try:
        with eng.index.open() as store:
            model, collection = store.meta("vector_model"), store.meta("collection")
            pending = set(store.pending())
            wanted = {id for id, _ in store.vectors(model)} - pending
            vectors, known = eng.index.vectors(store), eng.index.known(store)
    except FileNotFoundError:
        return
    if not model:
        yield Check("vectors", "warning", "none were computed yet", "Run `kopt ingest`.")
        return
    vectors.check(known)
    indexed = vectors.ids() if collection else set()
    missing, surplus = len(wanted - indexed), len(indexed - wanted - pending)
    where = eng.settings.values.chroma_url or "on disk"
    if missing or surplus:
        hint = "Run `kopt ingest --rebuild`; until then vectors are compared one by one."
        yield Check("vectors", "error", f"Chroma {where}: {missing} vectors missing, {surplus} too many", hint)
    elif pending:
        hint = "The next question updates them, or run `kopt ingest`."
        yield Check("vectors", "warning", f"{len(pending)} texts have changed since Chroma was updated", hint)
    else:
        yield Check("vectors", "ok", f"Chroma {where}: {len(indexed)} vectors, the same ids as SQLite")


def _log(eng: Engine) -> Iterator[Check]:
    from kbs.experience.filters import Filter
    from kopt.services.experience.log import open_log, shipped_of

    every = Filter(masked=None)
    with open_log(eng.settings).index() as index:
        count, shipped = index.count(every), shipped_of(index, every)
    base = f"{shipped} ship with kopt" if eng.settings.base_log else "those that ship with kopt are left out (base_log)"
    yield Check("log", "ok", f"{count} experiments, {base}; your own are in {eng.settings.log_folder}")


def _gpu(_: Engine) -> Iterator[Check]:
    if shutil.which("nvidia-smi") is None:
        yield Check("gpu", "absent", "no nvidia-smi", "Questions, specs and the wiki work without a GPU.")
        return
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    output = output_of(query, _TIMEOUT)
    if output is None:
        yield Check("gpu", "warning", "nvidia-smi does not answer", "Check the driver.")
        return
    for line in output.splitlines():
        yield Check("gpu", "ok", line.strip())


def _tools(_: Engine) -> Iterator[Check]:
    for tool in ("git", "nvcc", "ncu", "compute-sanitizer", "cuobjdump"):
        path = find_tool(tool, os.environ)
        if path is None:
            yield Check(tool, "absent", "not found", f"Put {tool} on the PATH where you need it.")
            continue
        lines = (output_of([str(path), "--version"], _TIMEOUT) or "").strip().splitlines()
        yield Check(tool, "ok" if lines else "warning", f"{lines[-1] if lines else 'does not answer'} ({path})")
    parameters = Path("/proc/driver/nvidia/params")
    if not parameters.exists():
        return
    if "RmProfilingAdminOnly: 1" in parameters.read_text("utf-8", "replace"):
        hint = "Run ncu as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0."
        yield Check("ncu counters", "warning", "for administrators only", hint)
    else:
        yield Check("ncu counters", "ok", "open to all users")


def _isolation(_: Engine) -> Iterator[Check]:
    """The layers between a candidate kernel and this machine, tried out by a probe."""
    found = try_isolation()
    if found.failed:
        yield Check("isolation", "error", f"the probe did not run: {found.failed}", "Run `kopt doctor --debug`.")
    for layer in found.layers:
        detail = layer.name + (f": {layer.detail}" if layer.detail else "")
        if layer.applied:
            yield Check("isolation", "ok", detail)
        else:
            yield Check("isolation", "warning", detail, "Candidate kernels run without this layer; receipts say so.")
    for escape in found.escapes:
        hint = "Run kernels that you did not write on another machine, or in a container."
        yield Check("isolation", "warning", f"a candidate kernel can {escape}", hint)
