"""Forks the evaluator's fork servers from processes that have imported torch, for commands that tests run.

A fork server does what `evaluator.sandbox.fork_server` starts an interpreter for; what it saves is the second or two
in which torch
is imported. It gets its environment after the fork, so that there is a process for each set of variables that count
while something is imported.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, NoReturn

from tests import forking

READ_AT_START = ("PYTHON", "LD_", "LC_", "LANG", "HF_", "TRANSFORMERS_", "OMP_", "MKL_", "TORCH", "TRITON")
"""How variables begin that an interpreter, a loader or a package reads once."""
_READ_BY_TORCH = (*READ_AT_START, "CUDA_")
_IMPORTED = ("torch", "torch.overrides", "torch.utils._python_dispatch", "triton", "triton.language", "numpy")
"""What a fork server imports first."""
_CONTROL = 3
"""The descriptor on which a fork server hears of workers."""


def stand_in(route: socket.socket) -> None:
    """From now on `evaluator.sandbox.fork_server` asks at `route` for its fork servers, in this process."""
    from evaluator.sandbox import fork_server as sandbox
    from evaluator.worker.process.bootstrap import SERVER

    def start(
        words: Sequence[str],
        *,
        pass_fds: Sequence[int],
        stdout: BinaryIO,
        env: Mapping[str, str],
        cwd: Path,
        **more: Any,
    ) -> forking.Fork | subprocess.Popen[bytes]:
        if list(words[:4]) != [sys.executable, "-P", "-c", SERVER]:
            return subprocess.Popen(words, pass_fds=pass_fds, stdout=stdout, env=env, cwd=cwd, **more)
        package, _, device, *preload = words[4:]
        read = sorted(f"{name}={value}" for name, value in env.items() if name.startswith(_READ_BY_TORCH))
        kind = {"package": package, "device": device, "preload": preload, "read": read}
        request = {"kind": kind, "environment": dict(env), "folder": str(cwd)}
        with open(os.devnull, "rb") as nothing:
            return forking.Fork(route, request, [nothing, stdout, stdout, *pass_fds])

    sandbox.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": start})  # type: ignore[assignment]  # a module's stand-in


class Importers:
    """The processes that have imported torch, by what they have imported it with."""

    def __init__(self) -> None:
        self._running: dict[str, socket.socket] = {}

    def forward(self, route: socket.socket) -> None:
        """Hand a request at `route` on; its process is started if there is none yet."""
        _, opened, _, _ = socket.recv_fds(route, 10, 10)
        request = json.loads(os.pread(opened[1], os.fstat(opened[1]).st_size, 0))
        kind = json.dumps(request["kind"])
        if kind not in self._running:
            self._running[kind] = _start(kind, request["environment"])
        socket.send_fds(self._running[kind], [b"run"], opened)
        for one in opened:
            os.close(one)


def _start(kind: str, environment: Mapping[str, str]) -> socket.socket:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        forking.start(import_and_fork, str(theirs.fileno()), kind, pass_fds=[theirs.fileno()], env=environment)
    return ours


def import_and_fork(descriptor: str, kind_json: str) -> None:
    """Import, then fork for each request."""
    kind = json.loads(kind_json)
    _find_evaluator(Path(kind["package"]))
    from evaluator.worker.process import server

    for name in (*_IMPORTED, *kind["preload"]):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)

    def become(request: Mapping[str, Any]) -> NoReturn:
        os.setsid()
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        server.serve(_CONTROL, kind["device"], kind["preload"])
        os._exit(0)

    gc.collect()
    gc.freeze()
    forking.serve(socket.socket(fileno=int(descriptor)), become)


def _find_evaluator(package: Path) -> None:
    """Make this package importable and nothing else of kopt, as `evaluator.worker.process.server` wants it."""
    spec = importlib.util.spec_from_file_location(
        "evaluator", package / "__init__.py", submodule_search_locations=[str(package)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["evaluator"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
