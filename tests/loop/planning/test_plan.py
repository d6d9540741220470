"""The resolved plan: who says what, what would be created, and that nothing is."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from loop.journal.record import PinnedWiki
from loop.pages.run import plan as plan_page
from loop.planning.plan import ResolvedPlan, read_hints, resolve, run_id, slug
from loop.planning.wanted import RunEnvironment, Wanted
from loop.workspace.inventory import take
from tests.loop.workspace.test_inventory import MODEL, TRITON, write

METHODS = ("split_k", "rewrite")


def here(**changes: object) -> RunEnvironment:
    fields: dict[str, object] = {
        "device": "cpu",
        "device_name": "",
        "gpu": "",
        "gpu_from": "no --gpu, and no GPU is present",
        "grade": "none",
        "grade_why": "there is no GPU",
        "wikis": {"gpu-wiki": PinnedWiki(root="/wiki", revision="1" * 64, pages={})},
        "knowledge": (),
        "methods": METHODS,
        "problem_hash": "2" * 64,
        "outputs": (),
        "kopt": "0.1.0",
    }
    return RunEnvironment(**{**fields, **changes})  # type: ignore[arg-type]  # fields by name


def resolved(workspace: Path, surroundings: RunEnvironment | None = None, **words: object) -> ResolvedPlan:
    wanted = Wanted.model_validate({"proposer": "agent", **words})
    inventory = take(workspace)
    return resolve(inventory, wanted, surroundings or here(), read_hints(inventory, wanted, METHODS), Path("/home/k"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return write(tmp_path, Soft_Max_dot_py=TRITON, r_dot_py=MODEL)


def tree(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def test_nothing_is_created(workspace: Path) -> None:
    before = tree(workspace)
    plan = resolved(workspace)
    assert tree(workspace) == before
    assert plan.folder == workspace / "runs" / "soft-max-001"
    assert str(plan.folder / "run.json") in plan.creates
    assert "/home/k/runs/<run id>.seed" in plan.creates


def test_defaults(workspace: Path) -> None:
    plan = resolved(workspace)
    assert (plan.iterations, plan.attempts, plan.seconds) == (3, 3, None)
    shown = "\n".join(plan.lines())
    assert "iterations  3  (default)" in shown
    assert "GPU         UNKNOWN  (no --gpu, and no GPU is present)" in shown
    assert "no version will be kept" in shown


def test_the_next_number_that_is_free(workspace: Path) -> None:
    (workspace / "runs" / "soft-max-001").mkdir(parents=True)
    (workspace / "runs" / "soft-max-003").mkdir()
    assert resolved(workspace).folder.name == "soft-max-002"


def test_flags_and_hints_say_who_said_it(workspace: Path) -> None:
    (workspace / "HINTS.md").write_text("at most 5 iterations\nbe brief\n")
    plan = resolved(workspace, attempts=2, forbid=("split-k",))
    shown = "\n".join(plan.lines())
    assert "iterations  5  (HINTS.md:L1)" in shown
    assert "attempts    2 a version  (--attempts)" in shown
    assert "forbid: split_k (--forbid: “--forbid split-k”)" in shown
    assert "“be brief”: passed on" in shown
    assert plan.hints_text.startswith("at most 5 iterations\nbe brief\n\n")
    assert "- forbid: split_k" in plan.hints_text
    assert (workspace / "HINTS.md").read_text() == "at most 5 iterations\nbe brief\n"


def test_notes_of_the_run_are_named_and_pinned(workspace: Path, tmp_path: Path) -> None:
    notes = PinnedWiki(root=str(tmp_path / "papers"), revision="3" * 64, pages={"a.md": "4" * 64})
    around = here(wikis={**here().wikis, "note/papers": notes}, knowledge=("note/papers",))
    plan = resolved(workspace, around, knowledge=(tmp_path / "papers",))
    [said] = [one for one in plan.settings if one.name == "knowledge"]
    assert said.value == f"note/papers, {tmp_path / 'papers'}"
    assert "1 pages; quoted, no source of a number" in said.source
    record = plan.record("soft-max-20261121-140500-qkzt", "5" * 64)
    assert (record.knowledge, record.wikis["note/papers"]) == (("note/papers",), notes)
    assert b"| notes of this run | note/papers: quoted, and no source of a number |" in plan_page(record)


def test_notes_that_would_hold_the_run_are_refused(workspace: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolved(workspace, knowledge=(workspace,))
    assert caught.value.code == "knowledge_holds_run"
    resolved(workspace, knowledge=(workspace,), out=str(workspace.parent / "elsewhere"))


def test_the_record_holds_what_was_resolved(workspace: Path) -> None:
    plan = resolved(workspace, here(gpu="h200-sxm", outputs=("y",)), iterations=4, seconds=90.0, target="2.0x")
    record = plan.record(run_id(plan.name, "2026-11-21T14:05:00Z", "abcd"), "3" * 64, "2026-11-21T14:05:00Z")
    assert record.id == "soft-max-20261121-140500-abcd"
    assert (record.kernel.name, record.kernel.origin) == ("kernel.py", "Soft_Max.py")
    assert record.reference.name == "ref.py"
    assert (record.iterations, record.seconds, record.target) == (4, 90.0, "2.0x")
    assert record.problem.outputs == ("y",)
    assert plan.files().keys() == {"kernel.py", "ref.py"}
    assert plan.files()["ref.py"] == MODEL.encode()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ({"target": "fast"}, "target_invalid"),
        ({"target": "0.5x"}, "target_invalid"),
        ({"proposer": "command"}, "command_missing"),
        ({"forbid": ("nonsense",)}, "method_unknown"),
        ({"forbid": ("split_k",), "prefer": ("split_k",)}, "hints_contradict"),
        ({"shared_memory": "48 parsecs"}, "hints_value"),
    ],
)
def test_words_that_make_no_sense(workspace: Path, words: dict[str, object], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolved(workspace, **words)
    assert caught.value.code == code


def test_a_folder_that_is_there_is_refused(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        resolved(workspace, out=str(workspace))
    assert caught.value.code == "out_exists"
    assert resolved(workspace, out=str(tmp_path / "new")).folder == tmp_path / "new"


def test_raw_numbers_beside_a_json_are_refused(tmp_path: Path) -> None:
    from tests.loop.workspace.test_inventory import FUNCTION, PLAIN

    write(tmp_path, a_dot_py=FUNCTION, b_dot_py=PLAIN, d_dot_json='{"file": "d.bin", "tensors": []}')
    with pytest.raises(UsageError) as caught:
        resolved(tmp_path)
    assert caught.value.code == "inputs_beside"


@pytest.mark.parametrize(("name", "wanted"), [("Soft Max!", "soft-max"), ("___", "kernel"), ("a" * 60, "a" * 40)])
def test_slug(name: str, wanted: str) -> None:
    assert slug(name) == wanted
