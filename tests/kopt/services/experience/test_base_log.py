"""The records that ship with kopt: what the repository proves, nothing private, and an answer on a fresh machine."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kbs.experience.files import base_log, base_records
from kbs.experience.filters import Filter
from kopt.services.engine import Engine
from kopt.services.experience.exports import export_log
from kopt.services.experience.log import open_log, recommended
from kopt.services.knowledge import answers
from kopt.services.knowledge.answer_text import answer_text
from kopt.services.knowledge.citations import check
from kopt.services.settings import load_settings
from scripts import base_log as script
from tests.conftest import Run
from tests.kbs.experience.records import measured


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine on which kopt was just installed."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KOPT_BASE_LOG", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_is_what_runs_and_receipts_of_the_repository_give() -> None:
    """Every record is made again from its run's folder, whose receipts are whole and say the same."""
    assert base_log().read_text("utf-8") == script.text_of(script.records()), "python -m scripts.base_log"


def test_a_run_in_an_archive_gives_the_same(tmp_path: Path) -> None:
    source = script.ROOT / "benchmarks/results/loop/h200/command"
    whole = tmp_path / "one.tgz"
    with tarfile.open(whole, "w:gz") as archive:
        archive.add(source, arcname="23_Softmax")
    found = list(script.of_archive(whole, "one.tgz"))
    shipped = {one.id: one for one in base_records()}
    assert len(found) == 3
    for one in found:
        assert one.source == f"one.tgz:23_Softmax/v{one.iteration}/receipt.json"
        assert one.model_copy(update={"source": shipped[one.id].source}) == shipped[one.id]
    damaged = tmp_path / "damaged"
    with tarfile.open(whole) as archive:
        archive.extractall(damaged, filter="data")
    for receipt in damaged.rglob("receipt.json"):
        receipt.write_bytes(receipt.read_bytes().replace(b'"verdict": "accepted"', b'"verdict": "incorrect"'))
    assert list(script.of_run(damaged / "23_Softmax", "x")) == [], "a receipt that was changed proves nothing"


@pytest.mark.parametrize(
    "text",
    ["see /home/ada/kernels/v1.py", "as in ~/runs", "C:\\Users\\ada", "mail ada@example.org", "ran on 10.0.0.17",
     str(Path("~root/x").expanduser())],
)  # fmt: skip
def test_what_names_a_machine_or_a_person_does_not_ship(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(script.RefusedError, match="names"):
        script.check_private(measured("a", lesson=text))
    script.check_private(measured("a", lesson="1.53x [1.52x, 1.53x] of v0's speed; tl.load(x + i) / scale"))
    monkeypatch.setattr("socket.gethostname", lambda: "lovelace")
    with pytest.raises(script.RefusedError, match="lovelace"):
        script.check_private(measured("a", kernel="softmax-lovelace.py"))


def test_on_a_fresh_machine_they_are_recommended_and_not_exported(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, advice = recommended("softmax", "triton", "h200", "memory", {}, "", 5)
    assert advice.recommended
    assert set(advice.shipped) == advice.named, "nothing is the user's own"
    assert not (fresh / "home" / "experience").exists()
    assert export_log(open_log(), Filter(), "json", None, load_settings())[1] == 0
    assert export_log(open_log(), Filter(shipped=True), "json", None, load_settings())[1] == len(base_records())
    monkeypatch.setenv("KOPT_BASE_LOG", "false")
    assert not recommended("softmax", "triton", "h200", "memory", {}, "", 5)[1].recommended


def test_an_export_says_that_those_that_ship_are_left_out(run: Callable[..., Run], tmp_path: Path) -> None:
    def told(*words: str) -> tuple[int, list[str]]:
        output = ["--output", str(tmp_path / "log.json"), "--json"]
        said = run(
            tmp_path / "home", "log", "export", *words, *output, env={"KOPT_BASE_LOG": "true"}, cwd=tmp_path
        ).json
        return said["data"]["experiments"], said["warnings"]

    count = len(base_records())
    assert told() == (0, [f"{count} experiments that ship with kopt are left out; --shipped writes them"])
    assert told("--own") == told("--op", "gemm", "--kernel", "none") == (0, [])
    assert told("--shipped") == (count, [])


def test_a_fresh_machine_says_what_helped_and_its_citations_hold(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPT_HOME", str(home))
    monkeypatch.setenv("KOPT_BASE_LOG", "true")
    engine = Engine(load_settings(workspace=home))
    answer = answers.ask(engine, answers.Asked("what helped softmax on H200")).answer
    assert not answer.abstained
    said = answer_text(answer, long=True)
    assert "ilp_unroll_register_tile: 3 experiments: 3 success" in said
    assert "shipped with kopt" in said
    checked = check(engine, said)
    assert any(one.line for one in checked)
    assert {str(one.status) for one in checked} == {"ok"}
    monkeypatch.setenv("KOPT_BASE_LOG", "false")
    off = Engine(load_settings(workspace=home))
    assert answers.ask(off, answers.Asked("what helped softmax on H200")).answer.reason == "no_experience"
