"""A run of three iterations with the proposer `agent`, through `kopt run next` and `kopt run submit`, on the CPU."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loop.proposals.request import NextRequest
from tests.conftest import Run
from tests.kopt.run_workspace import KERNEL, REFERENCE, WRONG, answer, hand_in, wanted, workspace


class Agent:
    """Somebody who works in a workspace."""

    def __init__(self, run: Callable[..., Run], home: Path, folder: Path) -> None:
        self.run, self.home, self.folder = run, home, folder

    def __call__(self, *words: str, **more: Any) -> Run:
        """A command, as it is typed."""
        return self.run(self.home, *words, **{"cwd": self.folder, **more})

    def request(self) -> dict[str, Any]:
        """What is wanted."""
        return wanted(self, self.folder)

    def submit(self, proposal: object) -> Run:
        """Hand something in."""
        return hand_in(self, self.folder, proposal)


@pytest.fixture
def agent(run: Callable[..., Run], home: Path, tmp_path: Path) -> Agent:
    """In a workspace of one kernel."""
    return Agent(run, home, workspace(tmp_path / "work"))


def begin(agent: Agent, *words: str) -> dict[str, Any]:
    """`kopt run start`, as far as it goes by itself."""
    done = agent("run", "start", "--proposer", "agent", "--device", "cpu", "--yes", "--json", *words)
    assert done.code == 0, done.out + done.err
    run = done.json["data"]["run"]
    assert isinstance(run, dict)
    return run


def test_three_iterations_from_the_plan_to_the_report(agent: Agent) -> None:
    plan = agent("run", "plan", "--proposer", "agent", "--device", "cpu", "--json")
    assert plan.code == 0
    assert not (agent.folder / "runs").exists()
    begun = begin(agent, "--accept-unmeasured", "--forbid", "cuda_graphs")
    assert (begun["phase"], begun["iterations"]) == ("propose", 0)
    assert begun["waiting_for"] == f"kopt run next --run {begun['folder']}"
    assert begun["enforced"] == ["forbid: cuda_graphs"]
    root = Path(begun["folder"])

    # what is asked for is whole, and fits the published schema
    request = agent.request()
    assert NextRequest.model_validate(request).parent.text == (agent.folder / "kernel.py").read_text("utf-8")
    assert request["measured"]["verdict"] == "accepted"
    assert request["searches"]
    assert {"experience", "kernel", "bottleneck"} <= {search["about"] for search in request["searches"]}
    forbidden = next(method for method in request["methods"] if method["id"] == "cuda_graphs")
    assert not forbidden["applies"]
    assert "HINTS.md" in forbidden["why"]
    assert request["left"] == {"iterations": 3, "attempts": 3, "refusals": None, "seconds": None}

    # nonsense, a method that nobody knows, and a forbidden one run nothing
    for proposal, rule in (
        ("I would use more warps.", "schema"),
        (answer(request, methods=["more_warps"]), "unknown-method"),
        (answer(request, methods=["cuda_graphs"]), "forbidden-method"),
        (answer(request, version=7), "schema"),
    ):
        refused = agent.submit(proposal)
        assert refused.code == 4
        assert refused.json["data"]["outcome"] == "refused"
        assert rule in {one["rule"] for one in refused.json["data"]["broken"]}, refused.out
        assert all(one["message"] for one in refused.json["data"]["broken"])
    request = agent.request()
    assert request["attempt"] == 1
    assert [one["submission"] for one in request["refused"]] == [1, 2, 3, 4]
    assert request["refused"][1]["broken"][0]["mend"]

    # a wrong kernel is an attempt; the next one is told of it
    spoilt = WRONG.replace("num_warps=1", "num_warps=8")
    wrong = agent.submit(answer(request, kernel=spoilt, methods=["kernel_fusion"]))
    assert (wrong.code, wrong.json["data"]["outcome"]) == (4, "attempt_failed")
    assert "incorrect" in wrong.json["data"]["why"]
    request = agent.request()
    assert request["attempt"] == 2
    assert request["attempts"][0]["verdict"] == "incorrect"
    assert request["attempts"][0]["single_change"].startswith("num_warps from 1 to 8")

    # unfinished runs can be looked at
    report = agent("run", "report", "--json")
    assert report.code == 0
    assert not report.json["data"]["finished"]
    assert not (root / "final_report.md").exists()
    assert agent("run", "gate", "v0").code == 0
    assert agent("run", "gate", "--final", "--json").json["errors"][0]["code"] == "not_ended"
    assert agent("run", "show", "v9", "--json").json["errors"][0]["code"] == "version_unknown"

    for number in (1, 2, 3):
        done = agent.submit(answer(agent.request()))
        assert done.code == 0, done.out + done.err
        assert (done.json["data"]["version"], done.json["data"]["outcome"]) == (number, "passed")
    assert done.json["data"]["run"]["phase"] == "finished"
    assert agent("run", "next").code == 3
    assert "final_report.md" in done.json["data"]["run"]["reports"]
    assert [v["attempts"][-1]["verdict"] for v in done.json["data"]["run"]["versions"]] == ["accepted"] * 4


def test_masking_extending_and_ending(agent: Agent) -> None:
    begin(agent, "--iterations", "1", "--accept-unmeasured")
    done = agent.submit(answer(agent.request()))
    assert done.json["data"]["run"]["phase"] == "finished"
    assert agent("run", "final").code == 3
    extended = agent("run", "extend", "2", "--json")
    assert extended.json["data"]["cap"] == 3
    assert agent("run", "resume").code == 0
    assert [past["version"] for past in agent.request()["history"]] == [0, 1]
    masked = agent("run", "mask", "v1", "--why", "a dead end", "--json")
    assert [v["masked"] for v in masked.json["data"]["versions"]] == [False, True, False]
    assert [past["version"] for past in agent.request()["history"]] == [0]
    agent("run", "mask", "1", "--undo")
    assert [past["version"] for past in agent.request()["history"]] == [0, 1]
    assert agent("run", "resume").code == 3
    stopped = agent("run", "stop", "--why", "nothing is left to try", "--json")
    assert stopped.json["data"]["stop_evidence"] == "nothing is left to try"
    ended = agent("run", "final", "--json")
    assert (ended.code, ended.json["data"]["phase"]) == (0, "finished")
    assert "nothing is left to try" in agent("run", "report").out
    assert agent.submit(answer({**agent_request(agent), "version": 2})).json["errors"][0]["code"] == "not_awaited"


def agent_request(agent: Agent) -> dict[str, Any]:
    """A request as it would be, made of what a finished run has."""
    root = agent.folder / "runs" / "kernel-001"
    searches = [json.loads(line) for line in (root / "v1" / "searches.jsonl").read_text("utf-8").splitlines()]
    return {
        "version": 2,
        "parent": {"version": 1, "text": (root / "v1" / "kernel.py").read_text("utf-8"), "language": "python"},
        "history": [],
        "attempts": [],
        "refused": [],
        "methods": [],
        "measured": None,
        "diagnosis": None,
        "searches": searches,
    }


def test_a_kernel_that_is_only_reformatted_is_refused(agent: Agent) -> None:
    begin(agent)
    request = agent.request()
    same = request["parent"]["text"].replace("    row =", "    # the row of this program\n    row =")
    refused = agent.submit(answer(request, kernel=same))
    assert refused.code == 4
    assert "kernel-unchanged" in {one["rule"] for one in refused.json["data"]["broken"]}


def test_without_accept_unmeasured_nothing_is_kept(agent: Agent) -> None:
    begin(agent, "--iterations", "1")
    done = agent.submit(answer(agent.request()))
    assert (done.code, done.json["data"]["outcome"], done.json["data"]["kept"]) == (0, "passed", False)
    assert done.json["data"]["run"]["best"] == 0
    root = Path(done.json["data"]["run"]["folder"])
    assert (root / "best" / "kernel.py").read_bytes() == (agent.folder / "kernel.py").read_bytes()


def test_hints_are_acknowledged_and_read_again(agent: Agent) -> None:
    (agent.folder / "HINTS.md").write_text("forbid: split_k\nmake it pretty\n", "utf-8")
    plan = agent("run", "plan", "--proposer", "agent", "--device", "cpu", "--json").json["data"]
    assert any("HINTS.md:L1" in line and "forbid: split_k" in line for line in plan["hints"])
    assert any("HINTS.md:L2" in line and "not enforced" in line for line in plan["hints"])
    begun = begin(agent)
    assert begun["passed_on"] == ["make it pretty"]
    with (Path(begun["folder"]) / "HINTS.md").open("a", encoding="utf-8") as stream:
        stream.write("\nforbid: launch_config\n")
    refused = agent.submit(answer(agent.request()))
    assert refused.code == 4
    assert "forbidden-method" in {one["rule"] for one in refused.json["data"]["broken"]}


def test_a_preferred_method_is_offered_first_and_no_other_is_refused(agent: Agent) -> None:
    (agent.folder / "HINTS.md").write_text("prefer: split_k\n", "utf-8")
    begun = begin(agent)
    assert (begun["enforced"], begun["preferred"]) == ([], ["split_k"])
    request = agent.request()
    assert (request["directives"]["enforced"], request["directives"]["preferred"]) == ([], ["split_k"])
    assert request["methods"][0]["id"] == "split_k"
    lines = [line.strip() for line in agent("run", "next").out.splitlines()]
    assert "split_k: HINTS.md prefers it" in lines
    offered = [
        line.partition(": ")[2] for line in lines if line.partition(":")[0] in ("memory", "compute", "latency", "any")
    ]
    named = [part.split()[-1] for line in offered for part in line.split(", ")]
    assert sorted(named) == sorted(method["id"] for method in request["methods"] if method["applies"])
    assert agent.submit(answer(request)).code == 0


@pytest.mark.parametrize("text", ["", "# Hints\n\n<!-- none yet -->\n"])
def test_an_empty_hints_file_is_said_to_be_empty(agent: Agent, text: str) -> None:
    (agent.folder / "HINTS.md").write_text(text, "utf-8")
    plan = agent("run", "plan", "--proposer", "agent", "--device", "cpu").out
    assert "hints\n  HINTS.md is empty\n" in plan
    begun = begin(agent)
    hints = Path(begun["folder"]) / "HINTS.md"
    hints.write_text("forbid: split_k\nprefer: warp_shuffle\nbe kind\n", "utf-8")
    said = agent("run", "stop", "--json").json["warnings"]
    expected = "1 enforced by the gate from now on, 1 on which methods are offered first, 1 passed on to the proposer"
    assert said == [f"HINTS.md was read; directives and lines: {expected}"]
    hints.write_text("", "utf-8")
    said = agent("run", "extend", "1", "--json").json["warnings"]
    assert said == ["HINTS.md is empty: it has no directive, and nothing for the proposer"]


def test_nothing_is_said_of_hints_that_are_not_there(agent: Agent) -> None:
    done = agent("run", "start", "--proposer", "agent", "--device", "cpu", "--yes", "--json")
    assert done.code == 0
    assert "HINTS" not in "".join(done.json["warnings"])


def test_two_runs_need_a_name(agent: Agent) -> None:
    first = begin(agent)
    shutil.copytree(first["folder"], agent.folder / "runs" / "kernel-002")
    unnamed = agent("run", "status", "--json")
    assert (unnamed.code, unnamed.json["errors"][0]["code"]) == (2, "run_not_named")
    assert "kernel-001, kernel-002" in unnamed.json["errors"][0]["message"]
    assert agent("run", "status", "--run", "kernel-002").code == 0
    assert agent("run", "status", "--run", first["run"], cwd=agent.home).code == 0
    assert agent("run", "status", cwd=Path(first["folder"]) / "v0").code == 0
    assert agent("run", "status", "--run", "kernel", "--json").json["errors"][0]["code"] == "run_ambiguous"


def test_a_run_finds_and_selects_notes_and_no_number_of_theirs(agent: Agent, tmp_path: Path) -> None:
    notes = tmp_path / "papers/team notes/relu.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text(
        "How to make a scaled relu Triton kernel faster: one warp for each short row hides\nthe latency.\n"
    )
    assert agent("ingest", "--as", "notes", "papers", str(tmp_path / "papers")).code == 0
    root = Path(begin(agent, "--iterations", "1", "--accept-unmeasured")["folder"])
    request = agent.request()
    found = [hit for search in request["searches"] for hit in search["hits"] if hit["reference"].startswith("note/")]
    assert found[0]["reference"].startswith("note/papers/team%20notes/relu.txt:L1-L2@")
    claim = answer(request)
    claim["evidence"]["selected"] = [{"reference": found[0]["reference"], "quote": "TDP: 700 W", "why": "It says so."}]
    refused = agent.submit(claim)
    assert refused.code == 4
    assert "evidence-reference" in refused.out
    quoted = answer(request)
    said = {"reference": found[0]["reference"], "quote": "one warp for each short row hides the latency", "why": "So."}
    quoted["evidence"]["selected"] = [said]
    done = agent.submit(quoted)
    assert done.code == 0, done.out + done.err
    kept = {one["reference"]: one["lines"] for one in json.loads((root / "citations.json").read_bytes())}
    assert kept["note/papers/team%20notes/relu.txt:L1-L2"] == notes.read_text().splitlines()
    assert agent("run", "gate", "--run", str(root)).code == 0


def test_knowledge_of_one_run_is_searched_quoted_and_pinned(agent: Agent, tmp_path: Path) -> None:
    notes = agent.folder / "papers"
    notes.mkdir()
    said = "How to make a scaled relu Triton kernel faster: one warp for each short row hides the latency, at 700 W.\n"
    (notes / "relu.md").write_text(said, "utf-8")
    (notes / "odd.txt").write_bytes(b"a\0b")
    (notes / "kernel.py").write_text(KERNEL, "utf-8")
    (agent.folder / "old.csv").write_text("a,b\n", "utf-8")
    words = ("--knowledge", "papers", "--iterations", "1", "--accept-unmeasured")
    plan = agent("run", "start", "--proposer", "agent", "--device", "cpu", *words, "--dry-run", "--json")
    assert plan.code == 0, plan.out + plan.err
    shown = plan.json["data"]["plan"]
    assert {one["name"]: one["value"] for one in shown["settings"]}["knowledge"] == f"note/papers, {notes}"
    assert any("note/papers/odd.txt is left out" in note for note in shown["notes"])
    assert shown["not_used"] == ["old.csv: a table"]
    root = Path(begin(agent, *words)["folder"])
    request = agent.request()
    found = [hit for search in request["searches"] for hit in search["hits"] if hit["reference"].startswith("note/")]
    assert found[0]["reference"].startswith("note/papers/relu.md:L1@")
    assert "note/" not in agent("search", "one warp for each short row hides the latency").out, (
        "no other command sees it"
    )

    def selects(reference: str, quote: str, **hypothesis: str) -> Run:
        made = answer(request)
        made["evidence"]["selected"] = [{"reference": reference, "quote": quote, "why": "So."}]
        made["hypothesis"].update(hypothesis)
        return agent.submit(made)

    (notes / "new.md").write_text("How to make a scaled relu kernel faster: anything goes here.\n", "utf-8")
    written_later = selects("note/papers/new.md:L1", "anything goes here")
    assert (written_later.code, "unpinned-citation" in written_later.out) == (4, True)
    spec = selects(found[0]["reference"], "", rationale="H100 SXM TDP: 700 W <- note/papers/relu.md:L1")
    assert (spec.code, "notes are no source of hardware values" in spec.out) == (4, True)
    done = selects(found[0]["reference"], "one warp for each short row hides the latency")
    assert done.code == 0, done.out + done.err
    assert agent("run", "gate", "--run", str(root)).code == 0
    kept = {one["reference"]: one["lines"] for one in json.loads((root / "citations.json").read_bytes())}
    assert kept["note/papers/relu.md:L1"] == [said.rstrip("\n")]
    assert "note/papers/relu.md" in (root / "final_report.md").read_text("utf-8")


@pytest.mark.parametrize(("folder", "code"), [("nowhere", "knowledge_unreadable"), ("empty", "knowledge_unreadable")])
def test_knowledge_that_is_none(agent: Agent, folder: str, code: str) -> None:
    (agent.folder / "empty").mkdir()
    done = agent("run", "plan", "--proposer", "agent", "--device", "cpu", "--knowledge", folder, "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (5, code)


def test_two_folders_of_notes_of_one_name(agent: Agent, tmp_path: Path) -> None:
    for place in (agent.folder / "papers", tmp_path / "papers"):
        place.mkdir()
        (place / "a.md").write_text("words", "utf-8")
    both = ("--knowledge", "papers", "--knowledge", str(tmp_path / "papers"))
    done = agent("run", "plan", "--proposer", "agent", "--device", "cpu", *both, "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (5, "knowledge_name")


def test_kernels_get_the_variables_and_the_interpreter_of_the_run(agent: Agent, tmp_path: Path) -> None:
    own = REFERENCE.replace("* 2.0", '* float(os.environ["SCALE"])')
    workspace(agent.folder, reference=f"import os\n{own}")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', "utf-8")
    python.chmod(0o755)
    build = ("--env", "SCALE", "--python", str(python), "-I", "headers", "--nvcc-flags", "-lineinfo -g")
    words = ("run", "start", "--proposer", "agent", "--device", "cpu", "--accept-unmeasured", "--yes", "--json")
    done = agent(*words, *build, env={"SCALE": "2.0"})
    assert done.code == 0, done.out + done.err
    root = Path(done.json["data"]["run"]["folder"])
    recorded = json.loads((root / "run.json").read_bytes())["build"]
    assert recorded == {
        "include": [str(agent.folder / "headers")],
        "nvcc_flags": ["-lineinfo", "-g"],
        "cuda_home": "",
        "python": str(python),
        "variables": ["SCALE"],
    }
    assert "| env | SCALE |" in (root / "plan.md").read_text("utf-8")
    proposed = json.dumps(answer(agent.request()))
    again = agent("run", "submit", "-", "--json", stdin=proposed, env={"SCALE": "2.0"})
    assert (again.code, again.json["data"]["outcome"]) == (0, "passed")
