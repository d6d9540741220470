"""The checks of `kopt doctor`. Each looks at one thing, changes nothing, and says how to mend what is broken."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
from collections.abc import Callable, Iterator
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
    hint: str
    """How to mend it; empty where there is nothing to mend."""


def examine(settings: LoadedSettings) -> list[Check]:
    """All checks, in the order in which a person would mend things."""
    eng = Engine(settings)
    checks: list[Check] = []
    for look in (_python, _packages, _model, _wikis, _index, _chroma, _gpu, _tools, _jail):
        try:
            checks += look(eng)
        except KoptError as error:
            checks.append(_check(look.__name__.strip("_"), "error", error.message, error.hint))
        except sqlite3.DatabaseError as error:
            checks.append(_damaged(str(error)))
    return checks


def _check(name: str, status: Status, detail: str, hint: str = "") -> Check:
    return Check(name, status, detail, hint)


def _damaged(why: str) -> Check:
    return _check("index", "error", f"damaged: {why}", "Run `kopt ingest --rebuild`; nothing is lost.")


def _python(_: Engine) -> Iterator[Check]:
    fts = (
        sqlite3.connect(":memory:")
        .execute("SELECT count(*) FROM pragma_compile_options WHERE compile_options = 'ENABLE_FTS5'")
        .fetchone()[0]
    )
    detail = f"{platform.python_version()} on {platform.system()}, SQLite {sqlite3.sqlite_version}"
    yield _check(
        "python", "ok" if fts else "warning", detail, "" if fts else "This SQLite does not say that it has FTS5."
    )


def _packages(_: Engine) -> Iterator[Check]:
    for package in ("chromadb", "sentence-transformers", "torch", "triton"):
        try:
            yield _check(package, "ok", version(package))
        except PackageNotFoundError:
            needed = package != "triton" or platform.system() == "Linux"
            yield _check(package, "warning" if needed else "absent", "not installed", f"pip install {package}")


def _model(eng: Engine) -> Iterator[Check]:
    model = eng.settings.values.embedding_model
    if model != DEFAULT_MODEL:
        yield _check("model", "ok", f"{model}, through sentence-transformers")
        return
    verify_default_model()
    yield _check("model", "ok", f"{DEFAULT_MODEL}, weights as published")


def _wikis(eng: Engine) -> Iterator[Check]:
    for wiki in eng.wikis:
        yield _check("wiki", "ok", f"{wiki.name}: {len(wiki.files())} pages in {wiki.root}")
    for warning in eng.warnings:
        yield _check("wiki", "warning", warning)


def _index(eng: Engine) -> Iterator[Check]:
    try:
        with eng.index.open() as store:
            wrong = store.check()
            counts = store.counts()
            fresh = eng.index.is_fresh(store, eng.wikis, None)
            broken = store.broken()
    except FileNotFoundError:
        yield _check(
            "index",
            "absent",
            f"not built yet in {eng.index.folder}",
            "The first `kopt ask` builds it, or run `kopt ingest`.",
        )
        return
    if wrong:
        yield _damaged(wrong)
        return
    detail = f"{counts['pages']} pages, {counts['passages']} passages, {counts['specs']} specs"
    if not fresh:
        yield _check(
            "index",
            "warning",
            f"{detail}; the wikis have changed since",
            "The next question brings it up to date, or run `kopt ingest`.",
        )
    else:
        yield _check("index", "ok", detail)
    for wiki, path, problems in broken:
        first = problems[0]
        yield _check(
            "page",
            "warning",
            f"{wiki}/{path}:{first['line']} is left out: {first['message']}",
            "Mend the page; `kopt wiki lint` lists all problems.",
        )


def _chroma(eng: Engine) -> Iterator[Check]:
    try:
        with eng.index.open() as store:
            model = store.meta("vector_model")
            have = set(store.passage_ids())
            vectors = {id for id, _ in store.vectors(model)}
            current = eng.index.vectors_current(store)
    except FileNotFoundError:
        return
    if not model:
        yield _check("vectors", "warning", "none were made yet", "Run `kopt ingest`.")
        return
    indexed = eng.index.vectors(model).ids()
    missing, surplus = len(have - indexed), len(indexed - vectors)
    where = eng.settings.values.chroma_url or "on disk"
    if not current:
        yield _check(
            "vectors",
            "warning",
            "pages have changed since the vectors were indexed",
            "The next question brings them up to date, or run `kopt ingest`.",
        )
    elif missing or surplus:
        detail = f"Chroma {where}: {missing} passages missing, {surplus} too many"
        yield _check(
            "vectors", "error", detail, "Run `kopt ingest --rebuild`; until then vectors are compared one by one."
        )
    else:
        yield _check("vectors", "ok", f"Chroma {where}: {len(indexed)} vectors, the same ids as SQLite")


def _gpu(_: Engine) -> Iterator[Check]:
    if shutil.which("nvidia-smi") is None:
        yield _check("gpu", "absent", "no nvidia-smi", "Questions, specs and the wiki work without a GPU.")
        return
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    output = output_of(query, _TIMEOUT)
    if output is None:
        yield _check("gpu", "warning", "nvidia-smi does not answer", "Check the driver.")
        return
    for line in output.splitlines():
        yield _check("gpu", "ok", line.strip())


def _tools(_: Engine) -> Iterator[Check]:
    read: dict[str, Callable[[str], str]] = {
        "git": lambda out: out.strip(),
        "nvcc": lambda out: out.strip().splitlines()[-1],
        "ncu": lambda out: out.strip().splitlines()[-1],
        "compute-sanitizer": lambda out: out.strip().splitlines()[-1],
        "cuobjdump": lambda out: out.strip().splitlines()[-1],
    }
    for tool, last in read.items():
        path = find_tool(tool, os.environ)
        if path is None:
            yield _check(tool, "absent", "not found", f"Put {tool} on the PATH where you need it.")
            continue
        output = output_of([str(path), "--version"], _TIMEOUT)
        yield _check(tool, "ok" if output else "warning", f"{last(output) if output else 'does not answer'} ({path})")
    parameters = Path("/proc/driver/nvidia/params")
    if parameters.exists():
        restricted = "RmProfilingAdminOnly: 1" in parameters.read_text("utf-8", "replace")
        hint = "Run ncu as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0." if restricted else ""
        yield _check(
            "ncu counters",
            "warning" if restricted else "ok",
            "for administrators only" if restricted else "open to all users",
            hint,
        )


def _jail(_: Engine) -> Iterator[Check]:
    """The layers between a candidate kernel and this machine, tried out by a probe."""
    found = try_isolation()
    if found.failed:
        yield _check("isolation", "error", f"the probe did not run: {found.failed}", "Run `kopt doctor --debug`.")
    for layer in found.layers:
        status: Status = "ok" if layer.applied else "warning"
        hint = "" if layer.applied else "Candidate kernels run without this layer; receipts say so."
        yield _check("isolation", status, layer.name + (f": {layer.detail}" if layer.detail else ""), hint)
    for escape in found.escapes:
        hint = "Run kernels that you did not write on another machine, or in a container."
        yield _check("isolation", "warning", f"a candidate kernel can {escape}", hint)
