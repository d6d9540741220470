"""Every cheat passes the naive evaluator, and none passes this one."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.adversarial.compiler import compile_for_hopper
from tests.adversarial.corpus import CHEATS, HERE, Cheat, Device, caught, load, reported, row_name, table
from tests.adversarial.naive_runs import NaiveServer, naive_accepts
from tests.adversarial.support import bench

CORPUS = load()
ROOT = HERE.parent.parent
PLANTED = "planted_by_a_cheat*"


def _rows(attacks: bool) -> list[Any]:
    return [
        pytest.param(cheat, device, id=row_name(cheat, device), marks=[pytest.mark.gpu] if device == "gpu" else [])
        for cheat in CORPUS.cheat
        for device in cheat.devices
        if (attacks or not cheat.attack) and not cheat.timed
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NaiveServer]:
    """A naive evaluator that forks for each evaluation on the CPU."""
    with NaiveServer(tmp_path_factory.mktemp("naive")) as running:
        yield running


def _naive(cheat_path: Path, cheat: Cheat, device: Device, folder: Path, server: NaiveServer | None) -> bool:
    return naive_accepts(
        cheat_path,
        HERE / "problems" / cheat.reference,
        folder,
        form=cheat.form,
        inputs=HERE / "problems" / cheat.inputs if cheat.inputs else None,
        words=cheat.naive,
        device="cpu" if device == "cpu" else "cuda",
        server=server if device == "cpu" and not cheat.fresh else None,
    )


@pytest.mark.processes
@pytest.mark.parametrize(("cheat", "device"), _rows(attacks=False))
def test_naive_accepts(cheat: Cheat, device: Device, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The cheat works: a naive evaluator takes it for a correct kernel."""
    server = request.getfixturevalue("server") if device == "cpu" and not cheat.fresh else None
    folders = [tmp_path / f"work{n}" for n in range(5 if cheat.luck else 1)]
    assert any(_naive(cheat.path, cheat, device, folder, server) for folder in folders), said(folders[0])


def said(folder: Path) -> str:
    """What a naive evaluation printed."""
    return "\n".join(path.read_text("utf-8", "replace")[-3000:] for path in sorted(folder.glob("*.txt")))


HONEST = """
import torch


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return {result}
"""


@pytest.mark.parametrize(
    ("result", "accepted"),
    [
        ("a @ b", True),
        ("a @ b + 1.0", False),
        ("torch.zeros_like(a @ b)", False),
        ("missing", False),
        ("(a @ b)[:, :1]", False),
    ],
)
def test_naive_evaluator_is_none_that_accepts_everything(
    result: str, accepted: bool, tmp_path: Path, server: NaiveServer
) -> None:
    """A right kernel passes and plainly wrong ones fail, so that a cheat that passes has done something."""
    candidate = tmp_path / "candidate.py"
    candidate.write_text(HONEST.format(result=result), "utf-8")
    reference = HERE / "problems" / "matmul_kb.py"
    assert naive_accepts(candidate, reference, tmp_path / "work", server=server) is accepted, said(tmp_path / "work")


@pytest.fixture(scope="module")
def examine(run: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[Cheat, Device], Any]:
    """What the evaluator finds: through the command line for cheats that tamper or attack, whose target a whole process
    is, and by one shared fork server for the others."""
    home = tmp_path_factory.mktemp("home")

    def examine(cheat: Cheat, device: Device) -> dict[str, Any]:
        command = cheat.command(device)
        if not cheat.attack and cheat.family != "tampering":
            words = [word for word in command[4:] if word != "--json"]
            return bench(cheat.path, HERE / "problems" / cheat.reference, *words)
        done = run(home, *command)
        assert done.code == (0 if done.json["status"] == "ok" else 4), done.out + done.err
        return dict(done.json["data"])

    return examine


@pytest.mark.parametrize(("cheat", "device"), _rows(attacks=True))
def test_caught(
    cheat: Cheat,
    device: Device,
    examine: Callable[[Cheat, Device], Any],
    record_property: Callable[[str, object], None],
) -> None:
    """The evaluator rejects it, for a reason that its table names, and nothing is left where it does not belong."""
    data = examine(cheat, device)
    record_property("reported", sorted(reported(data)))
    assert data["verdict"] != "accepted"
    assert caught(cheat, data), (sorted(reported(data)), data)
    assert planted() == []


def planted() -> list[str]:
    """Files that a cheat left outside its own folder; they are taken away."""
    folders = {Path.home(), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path(tempfile.gettempdir())}
    folders |= {Path(entry) for entry in sys.path if entry}
    found = {path for folder in folders for path in folder.glob(PLANTED)}
    found |= {path for package in (ROOT / "evaluator", torch_folder()) for path in package.rglob(PLANTED)}
    for path in found:
        path.unlink()
    return sorted(map(str, found))


def torch_folder() -> Path:
    """Where torch is installed; it is not imported here."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@pytest.mark.processes
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.parametrize("file", sorted(path.name for path in CHEATS.glob("*.cu")))
def test_cuda_cheats_compile(file: str, tmp_path: Path) -> None:
    """A cheat that does not compile would be rejected for the wrong reason."""
    done = compile_for_hopper(CHEATS / file, tmp_path)
    assert done.returncode == 0, done.stderr


def test_corpus_is_whole() -> None:
    """Each file is in the table once, each mechanism is another, and every name that a row uses exists."""
    files = [cheat.file for cheat in CORPUS.cheat]
    assert sorted(files) == sorted(path.name for path in CHEATS.iterdir() if path.suffix in (".py", ".cu"))
    assert len({cheat.id for cheat in CORPUS.cheat}) == len(files)
    assert len({cheat.mechanism for cheat in CORPUS.cheat}) == len(files)
    assert all((HERE / "problems" / cheat.reference).is_file() and cheat.expected for cheat in CORPUS.cheat)
    assert {name for cheat in CORPUS.cheat for name in cheat.seen} == set(CORPUS.source)
    assert sum("cpu" in cheat.devices for cheat in CORPUS.cheat) >= 32


def test_table_shows_what_was_recorded() -> None:
    """A recorded result stands in the row; without one the row says what is expected."""
    written = table(CORPUS, {"memo_id": ["incorrect"]})
    lines = {line.split("`")[1]: line for line in written.splitlines()[2:]}
    assert list(lines) == [cheat.id for cheat in CORPUS.cheat]
    assert "CPU: `incorrect` |" in lines["memo_id"]
    assert "(expected)" not in lines["memo_id"]
    assert "GPU: library_call (expected)" in lines["library_op"]
    assert all(line.count(" | ") == 3 for line in lines.values())
