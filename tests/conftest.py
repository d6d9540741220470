"""Fixtures that several packages' tests share."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# One thread a process: tests run side by side, and threads of several processes that share cores wait for each other at
# every operation. OpenBLAS looks once, when numpy is imported; commands and workers inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
import torch
from filelock import FileLock

from evaluator.sandbox.fork_server import ForkServer, passed_environment
from kopt.services.engine import Engine
from kopt.services.settings import load_settings
from tests.command_server import BUNDLED_IN, CommandServer, start_environment
from wiki.library import bundled_wiki

ROOT = Path(__file__).resolve().parent.parent

# What a user has set for kopt, or for its language models, is not what is tested.
for _name in [name for name in os.environ if name.startswith(("KOPT_", "OPENAI_", "ANTHROPIC_"))]:
    del os.environ[_name]
# Records that ship with kopt grow with each release, and a test says what is in its log. The two files test_base_log.py
# (tests/kbs/experience, tests/kopt/services/experience) have them on.
os.environ["KOPT_BASE_LOG"] = "false"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--record FILE` writes a line after each test, and leaves out those that the file says have passed."""
    parser.addoption(
        "--record", type=Path, help="JSON lines: one a test, written when it ends; passed ones are skipped"
    )


def pytest_configure(config: pytest.Config) -> None:
    """One process writes the record, however many run the tests."""
    torch.set_num_threads(1)
    if config.option.record and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config.option.record))


class Recorder:
    """Writes what came of each test, so that a run that is cut short goes on where it was."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """One line for each test that ran, or that failed or was skipped before it could."""
        if report.when != "call" and (report.when != "setup" or report.passed):
            return
        line = {"test": report.nodeid, "outcome": report.outcome, "seconds": round(report.duration, 2)}
        said = {} if report.passed else {"said": str(report.longrepr)[-3000:]}
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({**line, **dict(report.user_properties), **said}) + "\n")


PROCESS_FIXTURES = frozenset({"run", "run_few", "server", "pristine_home"})
"""Fixtures that start processes; a test that uses one, directly or through another fixture, is marked `processes`."""


class ProcessGuard:
    """Keeps the fast tests fast: without the mark `processes` or `gpu` they start no process and reach no server."""

    EVENTS = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "socket.connect"})

    def __init__(self) -> None:
        self.active = False

    def __call__(self, event: str, _: tuple[object, ...]) -> None:
        """Refuse the event while a test runs that is not marked. No test catches what `pytest.fail` raises."""
        if self.active and event in self.EVENTS:
            pytest.fail(f"{event} in a test that is not marked: put `@pytest.mark.processes` on it")


GUARD = ProcessGuard()
sys.addaudithook(GUARD)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """From a test's first fixture on, the guard knows whether the test may start processes."""
    GUARD.active = not any(item.get_closest_marker(name) for name in ("processes", "gpu"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown() -> None:
    """Fixtures that tests share may end with any test, so the guard lets them."""
    GUARD.active = False


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tests whose fixtures start processes; skip those that need a GPU, by name, and those recorded as passed."""
    for item in items:
        if PROCESS_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker("processes")
    record: Path | None = config.option.record
    if record and record.exists():
        lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
        passed = {line["test"] for line in lines if line["outcome"] == "passed"}
        items[:] = [item for item in items if item.nodeid not in passed]
    if Path("/dev/nvidiactl").exists():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


@dataclass(frozen=True)
class Run:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The envelope."""
        envelope = json.loads(self.out)
        assert isinstance(envelope, dict)
        return envelope


@pytest.fixture(scope="session")
def server() -> Iterator[ForkServer]:
    """A fork server for CPU workers that all tests of a process share: starting one takes longer than a test."""
    with ForkServer("cpu", environment=passed_environment(["OMP_NUM_THREADS"])) as started:
        yield started


@pytest.fixture(scope="session")
def pristine_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A KOPT_HOME in which the bundled wiki is indexed, and nothing else ever happened: to be copied, never used.

    The first of the processes that run tests builds it for all.
    """
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "built"
    with FileLock(f"{shared}.lock"):
        if not (shared / "done").exists():
            shutil.rmtree(shared, ignore_errors=True)
            (shared / "home").mkdir(parents=True)
            done = run_kopt(shared / "home", "ingest")
            assert done.code == 0, done.out + done.err
            (shared / "done").touch()
    return shared / "home"


@pytest.fixture(scope="session")
def built_home(pristine_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy for all commands of a process that read: what they leave (gaps, receipts) is there for the next.

    A test that writes, or that needs a home without a past, takes `home`.
    """
    return shutil.copytree(pristine_home, tmp_path_factory.mktemp("home") / "built")


@pytest.fixture(scope="session")
def few_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of commands for which some pages are all of the bundled wiki: to index them takes a second."""
    root = tmp_path_factory.mktemp("few")
    for path in FEW_PAGES:
        (root / "pages" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(bundled_wiki().root / path, root / "pages" / path)
    return {BUNDLED_IN: str(root)}


@pytest.fixture(scope="session")
def run_few(few_pages: dict[str, str]) -> Callable[..., Run]:
    """Runs the command where the bundled wiki has few pages."""
    return functools.partial(run_kopt, env=few_pages)


@pytest.fixture
def home_of_few(run_few: Callable[..., Run], tmp_path: Path) -> Path:
    """A KOPT_HOME in which those pages are indexed, which a test may damage."""
    home = tmp_path / "home"
    home.mkdir()
    assert run_few(home, "ingest").code == 0
    return home


@pytest.fixture
def home(pristine_home: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the built index that a test may write, damage and lose."""
    copy = shutil.copytree(pristine_home, tmp_path / "home")
    yield copy
    shutil.rmtree(copy / "index", ignore_errors=True)  # 100 MB each, of two hundred tests: they filled a disk


@pytest.fixture(scope="session")
def run() -> Callable[..., Run]:
    """Runs the command on any KOPT_HOME."""
    return run_kopt


@pytest.fixture(scope="session")
def page() -> Callable[..., str]:
    """Makes the text of a page that kopt can read."""
    return page_text


FEW_PAGES = ("hardware/h100-sxm.md", "profiling/bank-conflicts.md", "kernel/softmax.md", "technique/l2-swizzle.md")


def page_text(id: str, body: str, *, kind: str = "", title: str = "", more: str = "") -> str:
    """A page with a source `src`; `more` are further lines of its front matter."""
    lines = [
        "---",
        f"id: {id}",
        f"kind: {kind or id.split('/')[0]}",
        f"title: {title or id.split('/')[-1]}",
        *filter(None, [more]),
        "confidence: verified",
        "reviewed: 2026-11-21",
        "sources:",
        '  - {id: src, title: "A source", url: "https://example.org/a", kind: vendor-doc, accessed: 2026-11-21}',
        "---",
    ]
    return "\n".join([*lines, "", body]) + "\n"


@pytest.fixture(scope="session")
def kopt(built_home: Path) -> Callable[..., Run]:
    """Runs the command as a user types it, on the built index."""
    return lambda *words, **more: run_kopt(built_home, *words, **more)


def run_kopt(
    home: Path,
    *words: str,
    stdin: str = "",
    cwd: Path | None = None,
    env: dict[str, str] | None = None,
    fresh: bool = False,
) -> Run:
    """Run `kopt` with its own KOPT_HOME; `fresh` starts an interpreter for it, and so do variables that one reads."""
    environment = {**start_environment(), "KOPT_HOME": str(home), "COLUMNS": "200", **(env or {})}
    server = command_server()
    if not fresh and server.can_give(environment):
        return Run(*server.run(words, stdin, cwd or home, environment, 300))
    done = subprocess.run(
        [sys.executable, "-m", "kopt", *words],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd or home,
        env=environment,
        timeout=300,
        check=False,
    )
    return Run(done.returncode, done.stdout, done.stderr)


@functools.cache
def command_server() -> CommandServer:
    """The process that has imported kopt, one for all tests of a process."""
    started = CommandServer()
    atexit.register(started.close)
    return started


@pytest.fixture
def engine(built_home: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine on the built index, in this process."""
    monkeypatch.setenv("KOPT_HOME", str(built_home))
    return Engine(load_settings(workspace=built_home))
