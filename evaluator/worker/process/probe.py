"""What the sandbox really holds on this machine: a child in it tries to break out, and tells what it could do."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any

from evaluator.worker.process import isolation
from evaluator.worker.process.isolation import Limits, Sandbox


def probe(folder: str, secret: str, port: int) -> None:
    """Run as a program: prints one JSON object with the layers and what each attempt came to."""
    reading, writing = os.pipe()
    parent = os.getpid()
    middle = os.fork()
    if middle == 0:
        _middle(folder, secret, port, parent, writing)
    os.close(writing)
    with open(reading, "rb") as stream:
        said = stream.read()
    os.waitpid(middle, 0)
    sys.stdout.write(said.decode("utf-8", "replace"))


def _middle(folder: str, secret: str, port: int, parent: int, writing: int) -> None:
    try:
        uid = Path(folder).stat().st_uid
        sandbox = Sandbox(folder, (), uid if os.geteuid() == 0 else 0, Limits(8 << 30, 32, 1 << 30, True))
        isolation.separate(sandbox)
        inner = os.fork()
        if inner == 0:
            isolation.private_proc(sandbox)
            isolation.confine(sandbox)
            answer = {"layers": [vars(layer) for layer in sandbox.layers], "escapes": _escapes(secret, port, parent)}
            os.write(writing, json.dumps(answer).encode())
        else:
            os.waitpid(inner, 0)
    except BaseException:  # the fork must not run the parent's code
        traceback.print_exc()
    finally:
        os._exit(0)


def _escapes(secret: str, port: int, parent: int) -> list[str]:
    """What could be done that the sandbox should forbid."""
    attempts: dict[str, Any] = {
        "read a file outside its folder": lambda: Path(secret).read_bytes(),
        "write a file outside its folder": lambda: Path(secret + ".written").write_bytes(b"x"),
        "connect over TCP": lambda: socket.create_connection(("127.0.0.1", port), 1).close(),
        "signal the process that started it": lambda: os.kill(parent, signal.SIGCONT),
        "see other processes": lambda: Path(f"/proc/{parent}/cmdline").read_bytes() if parent > 2 else 1 / 0,
    }
    done = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, ArithmeticError):
            continue
        done.append(name)
    return done
