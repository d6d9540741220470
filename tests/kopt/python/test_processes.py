"""Results and errors go from one process to another, and a process that is forked after a question asks too."""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

import kopt
from kbs.common.errors import KoptError
from kbs.common.files import own_folder
from kbs.index.chroma import OPEN
from kopt.python.session import public

SECONDS = 60.0


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    kopt.close()


def children(kind: type[KoptError]) -> Iterator[type[KoptError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from children(one)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_are_pickled_whole(protocol: int) -> None:
    kinds = list(children(KoptError))
    assert len(kinds) > 5
    for kind in kinds:
        error = kind("what happened", code="a_code", hint="what to do")
        error.warnings.append("a wiki was left out")
        error.add_note("what to do")
        back = pickle.loads(pickle.dumps(error, protocol))
        assert (type(back), str(back), back.args) == (kind, "what happened", error.args)
        assert (vars(back), back.exit_code) == (vars(error), error.exit_code)


def test_a_traceback_says_what_to_do_next() -> None:
    with pytest.raises(kopt.UsageError) as found:
        kopt.search("softmax", knd="technique")
    assert "Filters are kind, tag" in "".join(traceback.format_exception(found.value))

    @public
    def raises_again() -> None:
        raise found.value

    with pytest.raises(kopt.UsageError):
        raises_again()
    assert found.value.__notes__ == [found.value.hint]


def test_a_folder_is_deleted_by_the_process_that_made_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[object] = []
    monkeypatch.setattr("atexit.register", ends.append)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder, own = own_folder("mine-"), os.getpid()
    (folder / "file").touch()
    [end] = ends
    assert callable(end)
    with monkeypatch.context() as forked:
        forked.setattr("os.getpid", lambda: own + 1)
        end()
    assert folder.exists()
    end()
    assert not folder.exists()


def test_a_program_that_logs_all_hears_nothing_of_pages(caplog: pytest.LogCaptureFixture, home: Path) -> None:
    with caplog.at_level(logging.DEBUG):
        assert kopt.search("bank conflict", k=1, home=home).passages
        assert kopt.spec("h100-sxm", "hbm_bandwidth", home=home).specs
    assert not [one.name for one in caplog.records if one.name.startswith(("markdown_it", "chromadb"))]


def _status(question: str, home: Path) -> str:
    return kopt.ask(question, home=home).status


@pytest.mark.slow
@pytest.mark.processes
def test_a_forked_process_asks(home: Path) -> None:
    question = "what is a bank conflict"
    assert _status(question, home) == "ok"
    assert OPEN
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_status, (question, home)).get(SECONDS) == "ok"
        with pytest.raises(kopt.UsageError, match="unknown metric") as found:
            pool.apply_async(kopt.spec, ("h100-sxm", "nometric"), {"home": home}).get(SECONDS)
        assert found.value.code == "metric_unknown"
        assert found.value.hint
    assert _status(question, home) == "ok"


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.parametrize("asks", [False, True])
def test_a_forked_process_ends_as_python_ends(home: Path, asks: bool) -> None:
    lines = (
        "import kopt, os, sys",
        "kopt.ask('what is a bank conflict', home=sys.argv[1])",
        "child = os.fork()",
        "if child == 0:",
        f"    sys.exit(0 if not {asks} or kopt.ask('what is a warp', home=sys.argv[1]).answer else 1)",
        "ended = os.waitpid(child, 0)[1]",
        "sys.exit(ended or not kopt.ask('what is a bank conflict', home=sys.argv[1]).answer)",
    )
    started = os.posix_spawn(
        sys.executable, [sys.executable, "-c", "\n".join(lines), str(home)], os.environ, setpgroup=0
    )
    until = time.monotonic() + SECONDS
    while (ended := os.waitpid(started, os.WNOHANG))[0] == 0 and time.monotonic() < until:
        time.sleep(0.05)
    if ended[0] == 0:
        os.killpg(started, 9)
        os.waitpid(started, 0)
    assert ended == (started, 0)
