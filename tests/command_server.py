"""Runs `kopt` in processes that need not import it first: one process has imported it, and forks for each command.

A command does what `python -m kopt` does, in a process of its own with its own folder, environment and streams; what it
saves is the seconds of its imports. Variables that count while an interpreter starts or a package is imported cannot be
given so: see `CommandServer.can_give`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import pkgutil
import runpy
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NoReturn

from tests import forking, worker_server

_PACKAGES = ("kbs", "ingest", "wiki", "evaluator", "loop", "kopt")
_LATER = ("evaluator.worker", "kopt.mcp", "kopt.web")
"""What is not imported for all commands: what workers run, and what few commands need and takes long."""
_FOREIGN = ("chromadb", "tokenizers", "safetensors", "markdown_it", "typer._adapters", "typer._click.decorators")
"""Packages that commands import late."""
STARTED_WITH = {name: value for name, value in os.environ.items() if name.startswith(worker_server.READ_AT_START)}
"""Variables that count while something starts, as they were before a test or a package set one."""
BUNDLED_IN = "TESTS_BUNDLED_IN"
"""The variable that names a folder whose `pages` are a command's bundled wiki."""
_ROUTE = 3
"""The descriptor on which a command asks for fork servers of the evaluator."""


def start_environment() -> dict[str, str]:
    """The environment of the tests, with the variables that count while something starts as they were in the beginning.

    kopt sets some of these where it is imported, and a test of that must not make all later commands slow.
    """
    own = {name: value for name, value in os.environ.items() if not name.startswith(worker_server.READ_AT_START)}
    return {**own, **STARTED_WITH}


class Command(forking.Fork):
    """One command under way; a context manager, which ends it."""

    def __init__(self, server: CommandServer, words: Sequence[str], stdin: str, folder: Path, env: Mapping[str, str]):
        request = {"words": list(words), "folder": str(folder), "environment": dict(env)}
        stream = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        with stream:
            stream.write(stdin.encode("utf-8"))
            stream.seek(0)
            super().__init__(server.control, request, [stream, self._out, self._err, server.route])

    def __enter__(self) -> Command:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.close()

    def close(self) -> None:
        """Hear no more of it, and forget what it printed."""
        super().close()
        self._out.close()
        self._err.close()

    def printed(self) -> tuple[str, str]:
        """(stdout, stderr) so far."""
        return _read(self._out), _read(self._err)


class CommandServer:
    """The process that forks for each command. Several threads may use it."""

    def __init__(self) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """Where commands are asked for."""
        self.route, routed = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        """Where commands ask for fork servers of the evaluator."""
        with theirs, routed:
            passed = [theirs.fileno(), routed.fileno()]
            self._process = forking.start(
                serve, *map(str, passed), pass_fds=passed, start_new_session=True, env=start_environment()
            )

    def close(self) -> None:
        """End the server; commands under way go on."""
        self.control.close()
        self.route.close()
        self._process.wait(forking.START_SECONDS)

    def can_give(self, environment: Mapping[str, str]) -> bool:
        """Whether a command with this environment does in a fork what it does in an interpreter of its own."""
        read = {name: value for name, value in environment.items() if name.startswith(worker_server.READ_AT_START)}
        return read == STARTED_WITH

    def run(
        self, words: Sequence[str], stdin: str, folder: Path, env: Mapping[str, str], seconds: float
    ) -> tuple[int, str, str]:
        """(exit code, stdout, stderr) of one command. Raises `subprocess.TimeoutExpired`."""
        with Command(self, words, stdin, folder, env) as command:
            code = command.wait(seconds)
            return code, *command.printed()


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


# --- in the server --------------------------------------------------------------------------------------------------


def serve(*descriptors: str) -> None:
    """Answer requests until the tests hang up: for commands at the first descriptor, for fork servers at the second."""
    control, route = (socket.socket(fileno=int(one)) for one in descriptors)
    for name in (*_modules(), *_FOREIGN):
        with contextlib.suppress(ModuleNotFoundError):  # a machine without Chroma runs the commands without it
            importlib.import_module(name)
    assert threading.active_count() == 1, "a fork would lose threads"
    _warm()
    importers = worker_server.Importers()
    forking.serve(control, _become, {route: lambda: importers.forward(route)})


def _modules() -> Iterator[str]:
    """Every module of kopt that a command may import."""
    for package in map(importlib.import_module, _PACKAGES):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=_fail):
            if not found.name.startswith(_LATER) and not found.name.endswith("__main__"):
                yield found.name


def _fail(name: str) -> NoReturn:
    raise ImportError(f"{name} cannot be imported")


def _warm() -> None:
    """What each command would do anew, to the same end; and what no fork need look through for garbage."""
    import typer.main

    from kbs.evidence.vocabulary import vocabulary
    from kbs.index.encoder import DefaultEncoder, ModelError, default_model_file
    from kopt.cli.main import app
    from wiki.library import BUNDLED, Wikis, bundled_wiki

    os.fsync = lambda _: None  # no test cuts the power: what a killed command has written is there
    vocabulary()
    bundled = Wikis([bundled_wiki()])
    for path in bundled.pages_of(BUNDLED) or ():
        bundled.page(BUNDLED, path)
    with contextlib.suppress(ModelError):
        DefaultEncoder(default_model_file().stamp).encode(["its weights are kept"])
    built = typer.main.get_command(app)
    typer.main.get_command = lambda _: built
    gc.collect()
    gc.freeze()


def _bundle(folder: Path) -> None:
    from wiki import library

    library.resources = SimpleNamespace(files=lambda _: folder)  # type: ignore[assignment]  # a module's stand-in


def _become(request: Mapping[str, Any]) -> NoReturn:
    """In the fork: run the command as `python -m kopt` runs it, and end as an interpreter does."""
    code: object = 1
    try:
        os.set_inheritable(_ROUTE, False)
        worker_server.stand_in(socket.socket(fileno=_ROUTE))
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        if BUNDLED_IN in os.environ:
            _bundle(Path(os.environ.pop(BUNDLED_IN)))
        sys.path.insert(0, request["folder"])
        sys.argv[1:] = request["words"]
        runpy.run_module("kopt", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException:  # an interpreter prints it and ends with 1
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            threading._shutdown()  # type: ignore[attr-defined]  # as an interpreter does when it ends
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
