"""`kopt run submit --kernel`: a proposal from few words, shown, refused and submitted, in a run on the CPU."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Run
from tests.kopt.run_workspace import KERNEL, wanted, workspace

WARPS = KERNEL.replace("num_warps=1", "num_warps=2")
METHOD_PAGE = "gpu-wiki/method/launch_config.md:L28-L36"
WHY = "More warps keep more loads in flight."


class Person:
    """Somebody who types commands in a workspace with a run."""

    def __init__(self, run: Callable[..., Run], home: Path, folder: Path) -> None:
        self.run, self.home, self.folder = run, home, folder
        words = ("--proposer", "agent", "--device", "cpu", "--accept-unmeasured", "--iterations", "2", "--yes")
        done = self("run", "start", *words)
        assert done.code == 0, done.out + done.err
        self.root = folder / "runs/kernel-001"

    def __call__(self, *words: str, **more: Any) -> Run:
        return self.run(self.home, *words, **{"cwd": self.folder, **more})

    def submit(self, *words: str, kernel: str = WARPS) -> Run:
        """What is typed to hand a kernel in."""
        (self.folder / "v1.py").write_text(kernel, "utf-8")
        return self("run", "submit", "--kernel", "v1.py", *words)

    @property
    def journal(self) -> bytes:
        return (self.root / "journal.jsonl").read_bytes()


@pytest.fixture
def person(run: Callable[..., Run], home: Path, tmp_path: Path) -> Person:
    return Person(run, home, workspace(tmp_path / "work"))


def test_from_showing_to_submitting(person: Person) -> None:
    request = wanted(person, person.folder)
    passage = next(s for s in request["searches"] if s["about"] == "kernel")["hits"][0]
    evidence = ("--evidence", passage["reference"])
    few = ("--method", "launch_config", "--why", WHY, *evidence, "--expect", "time down: a little")
    before = person.journal

    # --show writes nothing, and says what would be submitted
    shown = person.submit(*few, "--ask", "how many warps a short row needs", "--show")
    assert shown.code == 0, shown.out + shown.err
    for part in (WHY, passage["reference"], "time down: a little", "how many warps", "would be evaluated"):
        assert part in shown.out
    data = person.submit(*few, "--dry-run", "--json").json["data"]
    assert (data["outcome"], data["proposal"]["kernel"], data["proposal"]["version"]) == ("shown", WARPS, 1)
    assert data["proposal"]["evidence"]["selected"][0]["quote"]
    assert person.journal == before
    assert not (person.root / "v1/refused").exists()

    # the page of the method is found, and may be cited
    page = person.submit("--method", "launch_config", "--why", WHY, "--evidence", METHOD_PAGE, "--show")
    assert page.code == 0, page.out + page.err

    # a proposal that was shown can be handed in as a file, and shown again
    (person.folder / "proposal.json").write_text(json.dumps(data["proposal"]))
    assert person("run", "submit", "proposal.json", "--show").code == 0
    assert person.journal == before

    done = person.submit(*few)
    assert done.code == 0, done.out + done.err
    assert "passed, and is the best version now" in done.out
    assert json.loads((person.root / "v1/proposal.json").read_bytes()) == data["proposal"]
    assert person("run", "gate", "v1").code == 0

    # the parent is the best version now, and its receipt is the evidence where none is named
    again = person.submit("--method", "launch_config", "--why", WHY, "--json", kernel=WARPS.replace("=2", "=4"))
    assert again.code == 0, again.out + again.err
    made = again.json["data"]["proposal"]
    receipt = json.loads((person.root / "v1/receipt.json").read_bytes())
    assert made["parent"] == 1
    assert made["evidence"]["selected"][0]["reference"] == f"receipt/{receipt['id']}#reason"
    assert made["evidence"]["selected"][0]["quote"] == receipt["reason"]


def test_what_next_says_to_type_works(person: Person) -> None:
    said = person("run", "next")
    assert said.code == 0
    request = wanted(person, person.folder)
    assert all(hit["text"].splitlines()[0] in said.out for search in request["searches"] for hit in search["hits"])
    copied, submitted = (
        next(line for line in said.out.splitlines() if line.strip().startswith(word)) for word in ("cp ", "kopt run ")
    )
    _, old, new = shlex.split(copied.split("    then")[0])
    Path(new).write_text(Path(old).read_text("utf-8").replace("num_warps=1", "num_warps=2"), "utf-8")
    words = shlex.split(submitted.replace("METHOD", "launch_config").replace("WHY IT SHOULD HELP", WHY))
    shown = person(*words[1:], "--show")
    assert shown.code == 0, shown.out + shown.err
    assert person(*words[1:]).code == 0
    assert "v1 from v0, launch_config: passed and kept" in person("run", "next").out
    assert f"because: {WHY}" in person("run", "report").out, "a report tells why, in the words that were typed"


def test_what_is_refused_names_what_was_typed(person: Person) -> None:
    refused = person.submit("--method", "more_warps", "--why", "The HBM of this GPU gives 3.9 TB/s.", "--show")
    assert refused.code == 4
    assert "unknown-method" in refused.out
    assert " --method: " in refused.out
    assert " --why:1: " in refused.out
    assert not (person.root / "v1/refused").exists()
    assert person.submit("--method", "more_warps", "--why", WHY).code == 4
    assert (person.root / "v1/refused/s1/proposal.json").exists()
    unfound = ("--evidence", "gpu-wiki/hardware/t4.md:L30", "--show")
    refused = person.submit("--method", "launch_config", "--why", WHY, *unfound)
    assert "Add a query that finds it with --ask" in refused.out
    assert "evidence.queries" not in refused.out
    other = person.submit(
        "--method",
        "launch_config",
        "--why",
        WHY,
        "--show",
        kernel=WARPS.replace("tl.maximum(v, 0.0) * 2.0", "tl.maximum(v * 2.0, 0.0)"),
    )
    assert "the code differs from v0 (function scaled_relu)" in other.out
    same = person.submit("--method", "launch_config", "--why", WHY, kernel=f"{KERNEL}\n# the same\n")
    assert same.code == 4
    assert " v1.py:1: " in same.out


MISSING: list[tuple[tuple[str, ...], str, str]] = [
    ((), "proposal_missing", "there is no proposal"),
    (("proposal.json", "--why", "x"), "proposal_twice", "not both"),
    (("--why", "x"), "proposal_incomplete", "--kernel is missing"),
    (("--kernel", "kernel.py"), "proposal_incomplete", "--method is missing"),
    (("--kernel", "none.py", "--method", "a", "--why", "b"), "file_not_found", "none.py does not exist"),
    (("--kernel", "kernel.py", "--method", "a", "--why", "b", "--parent", "v7"), "version_unknown", "v7"),
    (("--kernel", "kernel.py", "--method", "a", "--why", "b", "--parent", "last"), "version_invalid", "last"),
    (
        ("--kernel", "kernel.py", "--method", "a", "--why", "b", "--evidence", "gpu-wiki/none.md:L1"),
        "proposal_incomplete",
        "gpu-wiki has no page none.md",
    ),
]


def test_what_is_missing_is_named(person: Person) -> None:
    before = person.journal
    for words, code, said in MISSING:
        done = person("run", "submit", *words, "--json")
        assert done.code == 2, words
        assert done.json["errors"][0]["code"] == code
        assert said in done.json["errors"][0]["message"]
    assert person.journal == before
