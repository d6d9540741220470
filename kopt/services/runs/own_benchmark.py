"""The user's own benchmark in a run: run as it is, in a copy of the workspace that has a version's kernel."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from evaluator.external.figures import read_patterns
from evaluator.external.record import TIME_LIMIT, ExternalReceipt, run_external
from evaluator.source.source_file import SourceFile
from evaluator.store.seal import ensure_key, seal
from evaluator.store.store import save_receipt
from kbs.common.files import write_whole
from kopt.version import VERSION
from loop.journal.folder import JOURNAL, RECORD
from loop.journal.record import BenchmarkWords, RunRecord
from loop.planning.plan import RUNS
from loop.workspace.inventory import DEEP

COPIED = 4_000_000
"""Larger files are not copied, but linked to."""
_LEFT_OUT = {".git", RUNS, "__pycache__"}


def run_benchmark(
    asked: BenchmarkWords, record: RunRecord, text: str, kernel_name: str, home: Path
) -> ExternalReceipt | None:
    """The sealed record, kept in KOPT_HOME too; None if the kernel is in another language than the user's file.

    Raises `ConfigurationError` if the command cannot be started.
    """
    origin = Path(record.kernel.origin)
    if Path(kernel_name).suffix != Path(record.kernel.name).suffix:
        return None
    with tempfile.TemporaryDirectory(prefix="kopt-benchmark-") as made:
        folder = Path(made) / Path(record.workspace).name
        _copy(Path(record.workspace), folder, 0)
        (folder / origin).unlink(missing_ok=True)  # it may be a link to the user's file
        write_whole(folder / origin, text.encode("utf-8", "surrogatepass"))
        ran = run_external(
            SourceFile(name=origin.name, text=text),
            "--bench-command",
            asked.command,
            plan="verdict",
            seconds=TIME_LIMIT,
            patterns=read_patterns([f"{name}={pattern}" for name, pattern in asked.patterns.items()]),
            kopt=VERSION,
            folder=folder,
        )
    sealed = seal(ran, ensure_key(home))
    save_receipt(home, sealed)
    return sealed


def _copy(source: Path, target: Path, depth: int) -> None:
    """Copy sources and small files; link to large files, hidden and deep folders, and what is linked to already."""
    target.mkdir()
    entries = sorted(os.scandir(source), key=lambda entry: entry.name)
    if depth and {RECORD, JOURNAL} <= {entry.name for entry in entries}:
        return  # a run
    for entry in entries:
        if entry.name in _LEFT_OUT:
            continue
        made = target / entry.name
        folder = entry.is_dir(follow_symlinks=False)
        if folder and depth < DEEP and not entry.name.startswith("."):
            _copy(Path(entry.path), made, depth + 1)
        elif folder or entry.is_symlink() or entry.stat().st_size > COPIED:
            made.symlink_to(Path(entry.path).resolve() if entry.is_symlink() else entry.path)
        elif entry.is_file():
            shutil.copy2(entry.path, made)
