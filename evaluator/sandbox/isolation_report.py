"""Which layers of isolation work on this machine, found by trying."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from evaluator.sandbox.fork_server import give_away, package_folder
from evaluator.worker.process.bootstrap import PROBE
from evaluator.worker.process.isolation import Layer


@dataclass(frozen=True)
class IsolationReport:
    """What a probe in the sandbox found."""

    layers: list[Layer]
    escapes: list[str]
    """What it could do and should not have been able to."""
    failed: str = ""
    """Why nothing was found out."""


def try_isolation() -> IsolationReport:
    """Start a probe that applies every layer and then tries to break out; takes a tenth of a second."""
    with tempfile.TemporaryDirectory(prefix="kopt-") as outer, socket.create_server(("127.0.0.1", 0)) as listener:
        Path(outer).chmod(0o711)
        folder, secret = Path(outer) / "inside", Path(outer) / "secret"
        folder.mkdir(mode=0o700)
        secret.write_text("x", "utf-8")
        secret.chmod(0o644)
        give_away(folder)
        words = [package_folder(), str(folder), str(secret), str(listener.getsockname()[1])]
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", PROBE, *words], capture_output=True, text=True, timeout=30, check=False
            )
            answer = json.loads(done.stdout)
            return IsolationReport([Layer(**layer) for layer in answer["layers"]], list(answer["escapes"]))
        except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
            return IsolationReport([], [], f"{type(error).__name__}: {error}")
