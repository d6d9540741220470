"""The steps of the GitHub Actions, run as a runner runs them; what a pull request brings cannot command it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import ROOT, page_text

ACTIONS = ROOT / ".github" / "actions"
FILES = ROOT / "tests" / "golden" / "contract" / "files"
KOPT = Path(sys.executable).with_name("kopt")
STOP = re.compile(r"::stop-commands::(\w{32})")


def action(name: str) -> dict[str, Any]:
    found = yaml.safe_load((ACTIONS / name / "action.yml").read_text("utf-8"))
    assert isinstance(found, dict)
    return found


@dataclass
class Done:
    """What a step came to."""

    code: int
    printed: list[str]
    obeyed: list[str]
    """Workflow commands that the runner would obey."""
    outputs: dict[str, str]


def run_step(name: str, step: dict[str, Any], inputs: dict[str, str], workspace: Path, home: Path) -> Done:
    """Run a step's script with its variables, as a runner does: expressions stand in `env` alone."""
    given = {key: str(one.get("default", "")) for key, one in action(name)["inputs"].items()}
    given.update(inputs)
    variables = {}
    for key, value in step["env"].items():
        match = re.fullmatch(r"\$\{\{ (inputs\.([\w-]+)|github\.action_path) \}\}", value)
        assert match, value
        variables[key] = given[match[2]] if match[2] else str(ACTIONS / name)
    temporary = workspace.parent / "runner"
    temporary.mkdir(exist_ok=True)
    output = temporary / "output"
    output.write_text("", "utf-8")
    environment = {
        **{key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ},
        **variables,
        **{"RUNNER_TEMP": str(temporary), "GITHUB_OUTPUT": str(output), "GITHUB_WORKSPACE": str(workspace)},
        **{"GITHUB_ACTIONS": "true", "KOPT_HOME": str(home), "OMP_NUM_THREADS": "1"},
    }
    script = temporary / "step.sh"
    script.write_text(step["run"], "utf-8")
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
        cwd=workspace,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines, obeyed, stopped = (done.stdout + done.stderr).splitlines(), [], ""
    for line in lines:
        if stopped:
            stopped = "" if line.strip() == f"::{stopped}::" else stopped
        elif found := STOP.fullmatch(line.strip()):
            stopped = found[1]
        elif line.lstrip().startswith("::"):
            obeyed.append(line.strip())
    assert not stopped, "commands are obeyed again at the end"
    rows = [line.partition("=") for line in output.read_text("utf-8").splitlines()]
    return Done(done.returncode, lines, obeyed, {key: value for key, _, value in rows})


def script_of(name: str, title: str) -> dict[str, Any]:
    [step] = [one for one in action(name)["runs"]["steps"] if one.get("name") == title]
    return dict(step)


@pytest.mark.parametrize("name", ["wiki-lint", "bench"])
def test_no_expression_stands_in_a_script(name: str) -> None:
    found = action(name)
    assert found["runs"]["using"] == "composite"
    assert set(found) <= {"name", "description", "inputs", "outputs", "runs"}
    for step in found["runs"]["steps"]:
        assert ("run" in step) != ("uses" in step)
        if "run" in step:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"], "an expression is pasted into the script before bash reads it"
            assert not re.search(r"\beval\b", step["run"])
        else:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
    for one in found["inputs"].values():
        assert one["description"]
        assert one.get("required") is True or isinstance(one.get("default"), str)


def is_annotation(line: str) -> bool:
    """Whether a command marks a line of a page, and nothing else."""
    return bool(re.fullmatch(r"::(?:error|warning) file=[^,:]+(?:,line=\d+)?,title=[a-z-]+::.*", line))


def wiki(folder: Path, title: str, body: str) -> Path:
    (folder / "technique").mkdir(parents=True)
    (folder / "technique" / "one.md").write_text(page_text("technique/one", body, title=title), "utf-8")
    return folder


@pytest.mark.processes
@pytest.mark.slow
def test_lint_annotates_and_fails(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    evil = "%0A::set-output name=x::y ::error::no {0} [a](javascript:x)"
    wiki(workspace / "mine", "One", f"It takes 3 TB/s. [{evil}](nowhere.md)\n\n## TODO: {evil}")
    (workspace / "mine" / "technique" / "a,b:c\n::error::d.md").write_text("---\nid: x\n---\n", "utf-8")
    (workspace / "kopt.toml").write_text('wikis = ["x\\n::error::from the settings"]\n', "utf-8")
    step = script_of("wiki-lint", "Check the wiki")
    inputs = {"wiki": "mine", "sarif": "out.sarif", "kopt": str(KOPT)}
    done = run_step("wiki-lint", step, inputs, workspace, tmp_path / "home")
    assert done.code == 4
    assert done.obeyed
    assert all(map(is_annotation, done.obeyed)), done.obeyed
    assert any("a%2Cb%3Ac%0A%3A%3Aerror%3A%3Ad.md" in line for line in done.obeyed)
    log = json.loads((workspace / "out.sarif").read_text("utf-8"))
    assert len(log["runs"][0]["results"]) == len(done.obeyed)


@pytest.mark.processes
@pytest.mark.slow
def test_a_sarif_file_gets_its_folder_or_an_annotation(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    wiki(workspace / "mine", "One", "It takes 3 TB/s.")
    step = script_of("wiki-lint", "Check the wiki")
    inputs = {"wiki": "mine", "sarif": "out/of the way/kopt.sarif", "kopt": str(KOPT)}
    done = run_step("wiki-lint", step, inputs, workspace, tmp_path / "home")
    assert done.code == 4
    assert all(map(is_annotation, done.obeyed)), done.obeyed
    assert json.loads((workspace / inputs["sarif"]).read_text("utf-8"))["runs"]
    (workspace / "theirs.sarif").write_text("{}", "utf-8")
    kept = run_step("wiki-lint", step, {**inputs, "sarif": "theirs.sarif"}, workspace, tmp_path / "home")
    assert kept.code == 1
    assert kept.obeyed[0] == "::error title=kopt wiki lint::The SARIF file was not written. The log says why."
    assert kept.obeyed[1:] == done.obeyed
    assert (workspace / "theirs.sarif").read_text("utf-8") == "{}"


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("named", ["nowhere", ""])
def test_a_wiki_that_cannot_be_checked_is_an_annotation(tmp_path: Path, named: str) -> None:
    wiki(tmp_path / "work" / "mine", "One", "It takes 3 TB/s.")
    step = script_of("wiki-lint", "Check the wiki")
    inputs = {"wiki": named, "sarif": "out.sarif", "kopt": str(KOPT)}
    done = run_step("wiki-lint", step, inputs, tmp_path / "work", tmp_path / "home")
    assert done.code == 2
    assert done.obeyed == ["::error title=kopt wiki lint::The wiki was not checked. The log says why."]
    assert not (tmp_path / "work" / "out.sarif").exists()


@pytest.mark.processes
@pytest.mark.slow
def test_the_name_of_a_folder_runs_nothing(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    name = '$(touch pwned) "; touch pwned; `touch pwned` --help'
    wiki(workspace / name, "One", "It helps.[^src]\n\n[^src]: src")
    step = script_of("wiki-lint", "Check the wiki")
    not_checked = "::error title=kopt wiki lint::The wiki was not checked. The log says why."
    for given, codes, own in ((name, (0, 4), []), (f"x\n::error::y {name}", (2,), [not_checked])):
        done = run_step("wiki-lint", step, {"wiki": given, "kopt": str(KOPT)}, workspace, tmp_path / "home")
        assert done.code in codes
        assert own == [line for line in done.obeyed if not is_annotation(line)]
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.processes
@pytest.mark.slow
def test_bench_fails_on_a_rejected_kernel_and_keeps_its_receipt(tmp_path: Path) -> None:
    workspace = tmp_path / "work"
    workspace.mkdir()
    for name in ("kernel.py", "ref.py", "wrong.py"):
        (workspace / name).write_bytes((FILES / name).read_bytes())
    shout = 'import sys\nprint("\\n::error::pwned\\n::add-path::/tmp")\nsys.stderr.write("::error::pwned\\n")\n'
    (workspace / "wrong.py").write_text(shout + (workspace / "wrong.py").read_text("utf-8"), "utf-8")
    (workspace / "json.py").write_text("open('pwned', 'w')\n", "utf-8")
    step = script_of("bench", "Check the kernel")
    common = {"ref": "ref.py", "device": "cpu", "plan": "signal", "kopt": str(KOPT)}
    right = run_step("bench", step, {**common, "kernel": "kernel.py"}, workspace, tmp_path / "home")
    assert (right.code, right.obeyed, right.outputs["verdict"]) == (0, [], "accepted")
    assert json.loads(Path(right.outputs["receipt"]).read_text("utf-8"))["verdict"] == "accepted"
    wrong = run_step("bench", step, {**common, "kernel": "wrong.py"}, workspace, tmp_path / "home")
    assert (wrong.code, wrong.outputs["verdict"]) == (4, "incorrect")
    assert wrong.obeyed == ["::error title=kopt bench::The verdict is incorrect. The receipt says why."]
    gone = run_step("bench", step, {**common, "kernel": "--help\n$(touch pwned)"}, workspace, tmp_path / "home")
    assert (gone.code, gone.outputs) == (2, {})
    assert gone.obeyed == ["::error title=kopt bench::The kernel was not evaluated. The log says why."]
    assert not list(tmp_path.rglob("pwned"))
    [upload] = [one for one in action("bench")["runs"]["steps"] if "uses" in one]
    assert upload["if"].startswith("always()")
