"""One evaluation after the other, in this process, with one fork server a device that all of them share."""

from __future__ import annotations

import argparse
import atexit
import functools
import tomllib
from pathlib import Path
from typing import Any

from evaluator.evaluate import evaluate
from evaluator.sandbox.fork_server import ForkServer, passed_environment
from kopt import __version__
from kopt.services.bench.request import make_request

HERE = Path(__file__).resolve().parent
KERNELBENCH = HERE.parent / "third_party" / "kernelbench"

_words = argparse.ArgumentParser()
_words.add_argument("--dims")
_words.add_argument("--inputs", type=Path)
_words.add_argument("--device", default="cpu")
_words.add_argument("--plan", default="verdict")
_words.add_argument("--baselines", default=argparse.SUPPRESS)
_words.add_argument("--allow-library", action="store_true")
_words.add_argument("--workloads", type=Path)
_words.add_argument("--vary", default="")
_words.add_argument("--sanitize", dest="sanitizers")
_words.add_argument("--tolerance")
_words.add_argument("--timeout", dest="call_seconds", type=float, default=60.0)
_words.add_argument("--seed", default=argparse.SUPPRESS)
_words.add_argument("--memory", type=float)


@functools.cache
def _server(kind: str) -> ForkServer:
    server = ForkServer(kind, environment=passed_environment(["OMP_NUM_THREADS"] if kind == "cpu" else ()))
    atexit.register(server.close)
    return server


def bench(candidate: Path, reference: Path, *words: str) -> dict[str, Any]:
    """What `kopt bench CANDIDATE --ref REFERENCE WORDS` finds, as the receipt says it; no receipt is written."""
    asked = vars(_words.parse_args(words))
    server = _server("cpu" if asked["device"] == "cpu" else "cuda")
    request = make_request(
        **{
            **asked,
            "candidate": candidate,
            "ref": reference,
            "vary": tuple(filter(None, asked["vary"].split(","))),
            "nvcc_flags": "",
            "python": server.python,
            "environment": server.environment,
        }
    )
    return evaluate(request, kopt=__version__, server=server).model_dump(mode="json")


def rejecting(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The hazards that are held against the candidate."""
    return [hazard for hazard in found["hazards"] if hazard["severity"] == "reject"]


def said(found: dict[str, Any]) -> str:
    """Why the verdict is what it is, and where results were furthest from the oracle's."""
    tried = [trial for trial in found["correctness"] if not trial["passed"]]
    return f"{found['verdict']}: {found['reason']}\n{rejecting(found)}\n{tried[:3]}"


def read_toml(path: Path) -> dict[str, Any]:
    """A table of cases."""
    with path.open("rb") as file:
        return tomllib.load(file)
