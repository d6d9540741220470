"""A run of three iterations with the proposer `command`, on the CPU, as a user types it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbs.common.markdown import without_quoted
from tests.conftest import Run
from tests.kopt.run_workspace import EXAMPLE, KERNEL, workspace

PYTHON = sys.executable


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def start(run: Callable[..., Run], home: Path, folder: Path, *words: str) -> Run:
    common = ("--device", "cpu", "--yes", "--json", "--proposer", "command", "--command", f"{PYTHON} proposer.py")
    return run(home, "run", "start", *common, *words, cwd=folder)


@pytest.fixture(scope="module")
def finished(
    run: Callable[..., Run], pristine_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path, dict[str, Any]]:
    """(KOPT_HOME, workspace, data of `kopt run start`) of a run that went from the plan to its report."""
    top = tmp_path_factory.mktemp("command")
    home = shutil.copytree(pristine_home, top / "home")
    folder = workspace(top / "work")
    shutil.copy(EXAMPLE, folder / "proposer.py")
    done = start(run, home, folder, "--accept-unmeasured")
    assert done.code == 0, done.out + done.err
    return home, folder, done.json["data"]


def test_three_iterations_from_the_plan_to_the_report(finished: tuple[Path, Path, dict[str, Any]]) -> None:
    _, folder, data = finished
    run = data["run"]
    assert run["phase"] == "finished"
    assert run["iterations"] == 3
    assert run["stopped"] == "cap"
    assert [(v["version"], v["outcome"], v["kept"]) for v in run["versions"]] == [(n, "passed", True) for n in range(4)]
    assert run["best"] == 3
    root = Path(run["folder"])
    assert root == folder / "runs" / "kernel-001"
    assert {"final_report.md", "benchmark.md", "summary.json"} <= set(run["reports"])
    warps = [(root / f"v{n}" / "kernel.py").read_text("utf-8").split("num_warps=")[1][0] for n in range(4)]
    assert len(set(warps)) == 4
    assert (root / "best" / "kernel.py").read_bytes() == (root / "v3" / "kernel.py").read_bytes()
    assert (folder / "kernel.py").read_text("utf-8") == KERNEL


def test_the_report_says_that_nothing_was_timed(finished: tuple[Path, Path, dict[str, Any]]) -> None:
    root = Path(finished[2]["run"]["folder"])
    report = (root / "final_report.md").read_text("utf-8")
    assert "accept-unmeasured" in report
    assert "faster" not in json.dumps(finished[2]["run"]["versions"])


def test_the_log_has_each_iteration_as_soon_as_the_run_ends(
    run: Callable[..., Run], finished: tuple[Path, Path, dict[str, Any]]
) -> None:
    home, folder, data = finished
    name, root = data["run"]["run"], Path(data["run"]["folder"])
    listed = run(home, "log", "list", "--json", cwd=folder).json["data"]["entries"]
    known = {one["experiment"]["iteration"]: one["experiment"] for one in listed}
    assert {one["run"] for one in known.values()} == {name}
    assert sorted(known) == [1, 2, 3]
    assert {(one["outcome"], one["provenance"], tuple(one["methods"])) for one in known.values()} == {
        ("unmeasured", "measured", ("launch_config",))
    }
    journal = [json.loads(line)["event"] for line in (root / "journal.jsonl").read_text("utf-8").splitlines()]
    written = {event["version"]: event["record"] for event in journal if event["kind"] == "recorded"}
    assert written == {number: one["id"] for number, one in known.items()}
    assert f"log/{written[2]}" in (root / "ITERATIONS.md").read_text("utf-8")
    again = run(home, "log", "import", str(root), "--json", cwd=folder)
    assert (again.code, again.json["data"]["added"]) == (0, []), "a folder that is imported adds nothing to them"
    asked = [json.loads(line) for line in (root / "v2" / "searches.jsonl").read_text("utf-8").splitlines()]
    assert [one["about"] for one in asked[:1]] == ["experience"]
    assert asked[0]["why"].startswith("of 1 similar records, none shows a method that helped")
    assert [hit["reference"] for hit in asked[0]["hits"]] == [f"log/{written[1]}"]


def test_git_has_a_commit_an_iteration_and_is_clean(finished: tuple[Path, Path, dict[str, Any]]) -> None:
    root = Path(finished[2]["run"]["folder"])
    subjects = git(root, "log", "--format=%s", "--reverse").splitlines()
    assert len(subjects) == 5
    assert [subject.partition("]")[0] for subject in subjects[1:4]] == ["[iter 1", "[iter 2", "[iter 3"]
    assert subjects[4].startswith("[final] restore v3")
    assert git(root, "status", "--porcelain") == ""
    assert "num_warps" in subjects[1]


def test_the_plan_is_told_on_stderr_and_in_the_envelope(finished: tuple[Path, Path, dict[str, Any]]) -> None:
    plan = finished[2]["plan"]
    assert {one["name"]: one["value"] for one in plan["settings"]}["device"] == "cpu"
    assert any(path.endswith("runs/kernel-001/") for path in plan["creates"])
    assert any("unmeasured" in note for note in plan["notes"])


def test_looking_at_a_finished_run(run: Callable[..., Run], finished: tuple[Path, Path, dict[str, Any]]) -> None:
    home, folder, data = finished
    root = Path(data["run"]["folder"])
    assert run(home, "run", "status", "--json", cwd=root / "v2").json["data"] == {**data["run"]}
    listed = run(home, "run", "list", "--json", cwd=folder).json["data"]["runs"]
    assert [(one["run"], one["phase"], one["best"]) for one in listed] == [(data["run"]["run"], "finished", 3)]
    assert run(home, "run", "list", "--all", cwd=home).out.startswith(data["run"]["run"])
    shown = run(home, "run", "show", "v2", "--json", cwd=folder).json["data"]
    assert shown["version"]["outcome"] == "passed"
    assert "v2/receipt.json" in shown["files"]
    assert any("evaluated v2" in line for line in shown["journal"])
    assert run(home, "run", "report", cwd=folder).out == (root / "final_report.md").read_text("utf-8")
    nothing = run(home, "run", "next", "--json", cwd=folder)
    assert (nothing.code, nothing.json["data"]["request"]) == (3, None)
    again = run(home, "run", "resume", "--json", cwd=folder)
    assert (again.code, again.json["data"]["phase"]) == (3, "finished")


def test_the_gate_passes_every_version_and_the_end(
    run: Callable[..., Run], finished: tuple[Path, Path, dict[str, Any]]
) -> None:
    home, folder, _ = finished
    for words in (("v0",), ("v1",), ("v3",), ("--final",)):
        done = run(home, "run", "gate", *words, "--json", cwd=folder)
        assert done.code == 0, done.out
        assert done.json["data"]["report"]["checked"]
    explained = run(home, "run", "gate", "v1", "--explain", cwd=folder)
    assert "unsourced-spec" in explained.out


def test_the_gate_rejects_a_file_that_was_edited(
    run: Callable[..., Run], finished: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    home, _, data = finished
    copy = shutil.copytree(data["run"]["folder"], tmp_path / "copy")
    with (copy / "v2" / "kernel.py").open("a", encoding="utf-8") as stream:
        stream.write("# 9.9 TB/s of HBM bandwidth on H100 SXM\n")
    done = run(home, "run", "gate", "v2", "--run", str(copy), cwd=tmp_path)
    assert done.code == 4
    assert "v2/kernel.py" in done.out


def test_apply_shows_the_difference_and_writes_the_best(
    run: Callable[..., Run], finished: tuple[Path, Path, dict[str, Any]], tmp_path: Path
) -> None:
    home, folder, data = finished
    target = tmp_path / "kernel.py"
    target.write_text(KERNEL, "utf-8")
    shown = run(home, "run", "apply", "--to", str(target), "--dry-run", cwd=folder)
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert [lines[0], lines[1]] == [f"--- {target}", "+++ v3/kernel.py"]
    assert any(line.startswith("+") and "num_warps" in line for line in lines), "as a difference is read, line by line"
    unasked = run(home, "run", "apply", "--to", str(target), "--json", cwd=folder)
    assert (unasked.code, unasked.json["errors"][0]["code"]) == (2, "not_accepted")
    assert target.read_text("utf-8") == KERNEL
    done = run(home, "run", "apply", "--to", str(target), "--yes", "--json", cwd=folder)
    assert done.code == 0
    assert done.json["data"]["applied"]
    assert target.read_bytes() == (Path(data["run"]["folder"]) / "v3" / "kernel.py").read_bytes()
    assert run(home, "run", "apply", "--to", str(target), "--yes", cwd=folder).code == 3


INVENTED = "H100 SXM has an HBM bandwidth of 4.2 TB/s"


def test_what_a_kernel_says_while_it_fails_is_data(run: Callable[..., Run], home: Path, tmp_path: Path) -> None:
    """Its words stand in the pages as a quotation; they are no claim of the run's, and do not keep it from ending."""
    folder = workspace(tmp_path / "work")
    spelled = '"' + INVENTED.replace("4.2", '" + str(42 / 10) + "')  # a spec in a string is refused
    text = EXAMPLE.read_text("utf-8").replace(
        "changed = kernel[: found.start(1)] + str(new) + kernel[found.end(1) :]",
        "changed = kernel[: found.start(1)] + str(new) + kernel[found.end(1) :]\n"
        "    if request['version'] == 1:\n"
        f"        changed = changed.replace('x = x.contiguous()', 'raise RuntimeError({spelled}, about `it`\")')\n"
        "        globals()['METHOD'] = 'kernel_fusion'\n"
        "    else:\n"
        "        globals()['METHOD'] = 'launch_config'",
    )
    (folder / "proposer.py").write_text(text, "utf-8")
    done = start(run, home, folder, "--accept-unmeasured", "--iterations", "2")
    assert done.code == 0, done.out + done.err
    state = done.json["data"]["run"]
    assert (state["phase"], state["best"], [one["outcome"] for one in state["versions"]]) == (
        "finished", 2, ["passed", "failed", "passed"],
    )  # fmt: skip
    root = Path(state["folder"])
    for name in ("final_report.md", "ITERATIONS.md"):
        told = (root / name).read_text("utf-8")
        assert f"crashed: `` on given inputs: RuntimeError: {INVENTED}, about `it`" in told
        assert "4.2 TB/s" not in without_quoted(told)


USERS = """# an A100 has 108 SMs and 1555 GB/s of HBM bandwidth, and an L2 of ~40 MB, I think
# a row takes 3.75 us; 2 * 3 = 7
# H100 SXM TDP: 800 W <- gpu-wiki/hardware/h100-sxm.md:L20
"""
"""Comments of a user: no source, a hedge, a time from somewhere, wrong arithmetic, a wrong citation."""


def test_what_the_user_s_own_comments_say_is_no_claim_of_the_run(
    run: Callable[..., Run], home: Path, tmp_path: Path
) -> None:
    folder = workspace(tmp_path / "work", kernel=USERS + KERNEL)
    shutil.copy(EXAMPLE, folder / "proposer.py")
    done = start(run, home, folder, "--accept-unmeasured", "--iterations", "1")
    assert done.code == 0, done.out + done.err
    state = done.json["data"]["run"]
    assert (state["phase"], state["best"]) == ("finished", 1)
    assert USERS in (Path(state["folder"]) / "v1" / "kernel.py").read_text("utf-8")
    assert run(home, "run", "gate", "v0", cwd=folder).code == 0

    # a proposer that says it in other words needs a source
    text = EXAMPLE.read_text("utf-8").replace(
        "json.dump(proposal(request, changed, old, new, passage), sys.stdout)",
        "found = proposal(request, changed.replace('an A100 has', 'the A100 has'), old, new, passage)\n"
        "    json.dump(found, sys.stdout)",
    )
    (folder / "proposer.py").write_text(text, "utf-8")
    done = start(run, home, folder, "--accept-unmeasured", "--iterations", "1")
    version = done.json["data"]["run"]["versions"][1]
    assert (version["outcome"], version["refused"]) == ("failed", 3)


@pytest.mark.parametrize("place", ["comment", "rationale", "fact"])
def test_an_invented_spec_reaches_no_accepted_version(
    run: Callable[..., Run], home: Path, tmp_path: Path, place: str
) -> None:
    folder = workspace(tmp_path / "work")
    text = EXAMPLE.read_text("utf-8").replace(
        "json.dump(proposal(request, changed, old, new, passage), sys.stdout)",
        "json.dump(invent(proposal(request, changed, old, new, passage)), sys.stdout)",
    )
    invent = {
        "comment": f"found['kernel'] += '\\n# {INVENTED}\\n'",
        "rationale": f"found['hypothesis']['rationale'] = '{INVENTED}, so loads should be wide.'",
        "fact": f"found['evidence']['ncu_facts'] = ['{INVENTED}.']",
    }[place]
    text = text.replace("def give_up", f"def invent(found):\n    {invent}\n    return found\n\n\ndef give_up", 1)
    (folder / "proposer.py").write_text(text, "utf-8")
    done = start(run, home, folder, "--accept-unmeasured", "--iterations", "1")
    assert done.code == 0, done.out + done.err
    version = done.json["data"]["run"]["versions"][1]
    assert (version["outcome"], version["refused"], version["attempts"]) == ("failed", 3, [])
    root = Path(done.json["data"]["run"]["folder"])
    reasons = json.loads((root / "v1" / "refused" / "s1" / "reasons.json").read_text("utf-8"))
    assert "unsourced-spec" in {one["rule"] for one in reasons}
    assert all(one["mend"] for one in reasons)
    holding = [
        path
        for path in root.rglob("*")
        if path.is_file() and ".git/" not in str(path) and b"4.2 TB/s" in path.read_bytes()
    ]
    assert holding
    assert all("refused" in path.parts or path.name == "journal.jsonl" for path in holding), holding
