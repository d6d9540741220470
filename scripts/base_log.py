"""Writes the base log, the records that ship with kopt: `kbs/data/base_log.jsonl`.

    python -m scripts.base_log            # from all proven runs that stand in the repository
    python -m scripts.base_log --check    # say whether the file is what they give; change nothing

Where it looks: `benchmarks/results/loop` and `docs/cases`. A run is a folder with `run.json` and what stands below it,
or such a folder in a `.tgz`, as `benchmarks/loop/search_h200.py` keeps it; a case is a folder with `steps.json` and
`run/vN/receipt.json`. So new results are added by putting them there and running this again.

A record ships only where it was measured on a GPU: its receipt is whole, says what the record says, and its place in
the repository is the record's `source`. Texts that name a home folder, a machine, an address or this user are refused.
"""

from __future__ import annotations

import argparse
import getpass
import json
import re
import socket
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from evaluator.receipt.receipt import parse
from evaluator.store.seal import measurement_problem
from kbs.common.ulid import ulid_at
from kbs.experience.experiment import CPU, Experiment, Provenance
from kbs.experience.files import base_log
from kbs.experience.transfer.run_folder import read_run
from kbs.questions.python_constants import sizes_named_in
from kopt.services.experience.log import experiment_of

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("benchmarks/results/loop", "docs/cases")
PRIVATE = re.compile(
    r"(?:^|[\s\"'=(])(?:/(?:home|root|Users|work|tmp|mnt|srv|opt|data|scratch|workspace)/|~/|[A-Za-z]:\\)"
    r"|[\w.+-]+@[\w-]+\.\w+|\b\d{1,3}(?:\.\d{1,3}){3}\b|\bkopt-home\b"
)
"""A path of somebody's machine, a mail address, an address of a network."""


class RefusedError(Exception):
    """A record that must not ship, and why."""


def records(root: Path = ROOT) -> list[Experiment]:
    """The records of all runs and cases, the oldest first; each once. Raises `RefusedError`."""
    found: dict[str, Experiment] = {}
    for place in PLACES:
        for path in sorted((root / place).rglob("run.json")):
            found |= {one.id: one for one in of_run(path.parent, str(path.parent.relative_to(root)))}
        for path in sorted((root / place).rglob("*.tgz")):
            found |= {one.id: one for one in of_archive(path, str(path.relative_to(root)))}
        for path in sorted((root / place).rglob("steps.json")):
            found |= {one.id: one for one in of_case(path.parent, str(path.parent.relative_to(root)))}
    for one in found.values():
        check_private(one)
    return [found[id] for id in sorted(found)]


def of_run(folder: Path, source: str) -> Iterator[Experiment]:
    """Those of a run's folder that were measured on a GPU. `source`: its place in the repository."""
    for one in read_run(folder, lambda data: measurement_problem(data, None))[0]:
        if one.provenance is Provenance.MEASURED and one.gpu != CPU:
            yield one.model_copy(update={"source": _receipt(folder, one.receipt, source)})


def of_archive(path: Path, source: str) -> Iterator[Experiment]:
    """Those of run folders in an archive."""
    with tempfile.TemporaryDirectory(prefix="kopt-") as name, tarfile.open(path) as archive:
        archive.extractall(name, filter="data")
        for inside in sorted(Path(name).rglob("run.json")):
            yield from of_run(inside.parent, f"{source}:{inside.parent.relative_to(name)}")


def of_case(folder: Path, source: str) -> Iterator[Experiment]:
    """Those of a case: its steps in words, and the receipts of the versions that were measured."""
    steps = json.loads((folder / "steps.json").read_text("utf-8"))
    for number, step in enumerate(steps, start=1):
        path = folder / "run" / f"v{number}" / "receipt.json"
        if not path.exists():
            return
        data = path.read_bytes()
        wrong = measurement_problem(data, None)
        if wrong:
            raise RefusedError(f"{path}: {wrong}")
        receipt = parse(data)
        words = {
            "op": folder.name,
            "methods": (step["method"],),
            "optimization": step["change"],
            "hypothesis": step["why"],
            "source": f"{source}/run/v{number}/receipt.json",
        }
        one, _ = experiment_of(receipt, words)
        moment = datetime.strptime(receipt.created, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        id = ulid_at(int(moment.timestamp() * 1000), int(receipt.id[:20], 16))
        dims = one.dims or sizes_named_in((folder / "ref.py").read_text("utf-8"))
        yield one.model_copy(update={"id": id, "dims": dict(dims)})


def _receipt(folder: Path, hash: str, source: str) -> str:
    """Where the receipt of a record stands."""
    for path in sorted(folder.rglob("receipt.json"), key=lambda one: (len(one.parts), one)):
        if parse(path.read_bytes()).id == hash:
            return f"{source}/{path.relative_to(folder)}"
    raise RefusedError(f"{source}: the receipt {hash} is not there")


def check_private(one: Experiment) -> None:
    """Raise `RefusedError` where a text of a record names a machine, a user or a place of one."""
    own = {name for name in (getpass.getuser(), socket.gethostname()) if len(name) > 3}
    for text in _texts(one.model_dump(mode="json")):
        found = PRIVATE.search(text)
        named = next((name for name in own if re.search(rf"\b{re.escape(name)}\b", text)), "")
        if found or named:
            raise RefusedError(
                f"{one.reference} of {one.source} names {named or (found and found[0].strip())}: {text[:120]}"
            )


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def text_of(found: list[Experiment]) -> str:
    """The file: a record on each line."""
    return "".join(f"{one.model_dump_json()}\n" for one in found)


def main() -> int:
    """Write the file, or check it."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--check", action="store_true", help="change nothing; exit code 1 where the file differs")
    options = words.parse_args()
    try:
        found = records()
    except RefusedError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 1
    text, path = text_of(found), base_log()
    if options.check:
        same = path.exists() and path.read_text("utf-8") == text
        print("the base log is up to date" if same else "the base log differs: python -m scripts.base_log")
        return 0 if same else 1
    path.write_text(text, "utf-8")
    runs = {one.run or one.source for one in found}
    print(f"{len(found)} records of {len(runs)} runs in {path.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
