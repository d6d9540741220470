"""A finished run that somebody changed afterwards does not pass `gate --final`; what harms nothing does.

Every corruption starts from the same valid run. None has the key of the KOPT_HOME that the run was made with.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib._bootstrap_external
import importlib.util
import json
import os
import py_compile
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluator.store.seal import ensure_key
from kbs.common.errors import KoptError
from loop import pages
from loop.gate.report import GateReport, run_gate
from loop.journal import journal, seeds
from loop.journal.folder import RunFolder
from loop.journal.seals import Sealer
from loop.run.driver import Driver, read_run
from tests.loop.gate.valid import GpuTools, RealParts, ValidRun, context, kernel

pytestmark = pytest.mark.processes

Act = Callable[[ValidRun], object]


def edits(path: str, old: str, new: str) -> Act:
    """Words of a file are replaced."""

    def act(run: ValidRun) -> None:
        file = run.root / path
        text = file.read_text("utf-8")
        assert old in text, path
        file.write_text(text.replace(old, new), "utf-8")

    return act


def adds(path: str, text: str = "x = 1\n") -> Act:
    """A line at the end of a file, or a new file."""

    def act(run: ValidRun) -> None:
        file = run.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as stream:
            stream.write(text)

    return act


def removes(path: str) -> Act:
    """A file or a folder is gone."""

    def act(run: ValidRun) -> None:
        place = run.root / path
        shutil.rmtree(place) if place.is_dir() else place.unlink()

    return act


def copies(source: str, target: str) -> Act:
    """A file stands in the place of another."""
    return lambda run: shutil.copy(run.root / source, run.root / target)


def swaps(one: str, other: str) -> Act:
    """Two files change their places."""

    def act(run: ValidRun) -> None:
        first, second = (run.root / one).read_bytes(), (run.root / other).read_bytes()
        (run.root / one).write_bytes(second)
        (run.root / other).write_bytes(first)

    return act


def links(path: str, target: str | None = None) -> Act:
    """A link stands in the place of a file or a folder, to the same content elsewhere."""

    def act(run: ValidRun) -> None:
        place, moved = run.root / path, run.root.parent / "elsewhere"
        place.rename(moved)
        place.symlink_to(moved if target is None else target)

    return act


def git(*words: str) -> Act:
    """A command of git in the run's folder."""

    def act(run: ValidRun) -> None:
        name = ("-c", "user.name=somebody", "-c", "user.email=somebody@localhost")
        subprocess.run(["git", *name, *words], cwd=run.root, check=True, capture_output=True, timeout=60)

    return act


def together(*acts: Act) -> Act:
    """One after the other."""
    return lambda run: [act(run) for act in acts]


def commits(*options: str) -> Act:
    """A commit with another kernel, while the folder has the right one."""
    done = git("commit", "-qa", "-m", "x", *options)
    return together(adds("v1/kernel.py"), done, edits("v1/kernel.py", "x = 1\n", ""))


# --- the journal, by somebody who knows how it is made ----------------------------------------------------------------


def lines_of(run: ValidRun) -> list[dict[str, Any]]:
    """The journal's lines as JSON."""
    return [json.loads(line) for line in (run.root / "journal.jsonl").read_text("utf-8").splitlines()]


def rechain(run: ValidRun, lines: list[dict[str, Any]]) -> None:
    """Write a journal whose chain is right, with whatever seals the lines have."""
    head, made = journal.FIRST, []
    for number, line in enumerate(lines, 1):
        line |= {"n": number, "prev": head}
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()
        head = hashlib.sha256(data).hexdigest()
        made.append(data)
    (run.root / "journal.jsonl").write_bytes(b"\n".join(made) + b"\n")


def rewrites(change: Callable[[list[dict[str, Any]]], object], seals: str = "kept", *, render: bool = True) -> Act:
    """Events are changed, all lines chained again, recorded hashes corrected, and every page rendered anew."""

    def act(run: ValidRun) -> None:
        lines = lines_of(run)
        change(lines)
        for line in lines:
            if seals == "none":
                line.pop("seal", None)
        rechain(run, lines)
        if render:
            _render_again(run)
            _correct_hashes(run, lines)
            rechain(run, lines)

    return act


def _render_again(run: ValidRun) -> None:
    view = read_run(run.root)
    made = pages.run_files(view.folder, view.record, view.state)
    made |= pages.final_files(view.folder, view.record, view.state)
    for path, data in made.items():
        (run.root / path).write_bytes(data)


def _correct_hashes(run: ValidRun, lines: list[dict[str, Any]]) -> None:
    """Every event names the hash that its files have now."""
    for line in lines:
        for field in ("files", "searches", "checked"):
            for path in line["event"].get(field, {}):
                file = run.root / path
                if file.is_file():
                    line["event"][field][path] = hashlib.sha256(file.read_bytes()).hexdigest()


def event(lines: list[dict[str, Any]], kind: str, version: int | None = None) -> dict[str, Any]:
    """The last event of a kind, of a version."""
    found: dict[str, Any] = next(
        line["event"]
        for line in reversed(lines)
        if line["event"]["kind"] == kind and version in (None, line["event"].get("version"))
    )
    return found


def sets(kind: str, version: int | None = None, **values: Any) -> Callable[[list[dict[str, Any]]], object]:
    """Fields of an event get other values."""
    return lambda lines: event(lines, kind, version).update(values)


def other_key(run: ValidRun) -> None:
    """All lines sealed anew by somebody with a key of their own."""
    view = read_run(run.root)
    key, head, made = ensure_key(run.root.parent / "their-home"), journal.FIRST, []
    for entry in view.state.entries:
        line = journal.render(entry.model_copy(update={"prev": head}), Sealer(view.record.id, key, began=True))
        head = hashlib.sha256(line).hexdigest()
        made.append(line)
    (run.root / "journal.jsonl").write_bytes(b"\n".join(made) + b"\n")


def other_run(run: ValidRun) -> None:
    """The whole journal of another run of the same KOPT_HOME: run.json gets another id, all else stays."""
    edits("run.json", read_run(run.root).record.id, "softmax-20261121-140500-zzzz")(run)
    hash = hashlib.sha256((run.root / "run.json").read_bytes()).hexdigest()
    rewrites(lambda lines: lines[0]["event"].update(record=hash), render=False)(run)


def forged_record(run: ValidRun) -> None:
    """Looser rules in run.json, and the journal made to fit."""
    edits("run.json", '"minimum_effect": 0.01', '"minimum_effect": 0.0')(run)
    hash = hashlib.sha256((run.root / "run.json").read_bytes()).hexdigest()
    rewrites(lambda lines: lines[0]["event"].update(record=hash), "none")(run)


def forged_kernel(run: ValidRun) -> None:
    """Another kernel wherever the best one stands, and the journal made to fit."""
    for path in ("v2/kernel.py", "best/kernel.py", "v2/attempts/a1/kernel.py", "trajectory/v2-a1.py"):
        (run.root / path).write_text(kernel(2, 20), "utf-8")
    rewrites(lambda _: None, "none")(run)


def no_attempt(run: ValidRun) -> None:
    """Version 3, which was slower, never happened."""
    for path in ("v3", "v4", "trajectory/v3-a1.py", "profiles/v3.ncu-rep"):
        removes(path)(run)
    (run.root / "current_iteration.txt").write_text("2\n", "ascii")

    def change(lines: list[dict[str, Any]]) -> None:
        lines[:] = [
            line
            for line in lines
            if line["event"].get("version") not in (3, 4) and line["event"].get("what") not in ("iter 3", "iter 4")
        ]

    rewrites(change)(run)


def pipe(path: str) -> Act:
    """A pipe that nobody writes to."""
    return lambda run: os.mkfifo(run.root / path)


JOURNAL: dict[str, Act] = {
    "an event edited": edits("journal.jsonl", '"kept":false', '"kept":true'),
    "an event edited and rechained": rewrites(sets("closed", 3, why="not kept: it was much slower")),
    "an event edited, seals removed": rewrites(sets("closed", 3, why="not kept: it was much slower"), "none"),
    "a better ratio": rewrites(sets("final_measured", 2, ratio=[2.25, 2.2, 2.3])),
    "a better ratio, seals removed": rewrites(sets("final_measured", 2, ratio=[2.25, 2.2, 2.3]), "none"),
    "a better ratio of a version, seals removed": rewrites(sets("evaluated", 2, ratio=[2.25, 2.2, 2.3]), "none"),
    "another time of the median": rewrites(sets("evaluated", 1, median_us=10.0), "none"),
    "another reason to stop": rewrites(sets("stopped", reason="floor", evidence="nothing is left to gain"), "none"),
    "another method": rewrites(sets("submitted", 1, methods=["tensor_core"]), "none"),
    "an earlier start": rewrites(lambda lines: lines[0].update(time="2026-01-01T00:00:00Z"), "none"),
    "a masked version": rewrites(
        lambda lines: lines.insert(
            -1, {**lines[-1], "event": {"kind": "masked", "version": 3, "masked": True, "why": "x"}}
        ),
        "none",
    ),
    "a slower version left out": no_attempt,
    "a version left out, seals removed": together(no_attempt, rewrites(lambda _: None, "none")),
    "hashes of a changed kernel": forged_kernel,
    "a record with looser rules": forged_record,
    "the first line without a seal": rewrites(lambda lines: lines[0].pop("seal", None), render=False),
    "the last line without a seal": rewrites(lambda lines: lines[-1].pop("seal", None), render=False),
    "two lines exchange their events": rewrites(
        lambda lines: lines.__setitem__(slice(3, 5), [{**lines[4]}, {**lines[3]}]), render=False
    ),
    "seals of somebody else": other_key,
    "the journal of another run": other_run,
    "an empty journal": lambda run: (run.root / "journal.jsonl").write_bytes(b""),
    "no journal": removes("journal.jsonl"),
    "a journal cut in its middle": lambda run: rechain(run, lines_of(run)[:20]),
}
FILES: dict[str, Act] = {
    "a kernel": edits("v2/kernel.py", "us = 80", "us = 60"),
    "an earlier kernel": adds("v1/kernel.py"),
    "the first kernel": adds("v0/kernel.py"),
    "kernels of two versions exchanged": swaps("v1/kernel.py", "v2/kernel.py"),
    "receipts of two versions exchanged": swaps("v1/receipt.json", "v2/receipt.json"),
    "receipts of two attempts exchanged": swaps("v1/attempts/a1/receipt.json", "v3/attempts/a1/receipt.json"),
    "the final receipt in place of a version's": copies("final/v2/receipt.json", "v2/receipt.json"),
    "a version's receipt as the final one": copies("v2/receipt.json", "final/v2/receipt.json"),
    "profiles of two versions exchanged": swaps("v1/profile.csv", "v2/profile.csv"),
    "reports of Nsight Compute exchanged": swaps("profiles/v1.ncu-rep", "profiles/v2.ncu-rep"),
    "no report of Nsight Compute": removes("profiles/v2.ncu-rep"),
    "an attempt left out": removes("v3/attempts/a1"),
    "a version left out": removes("v3"),
    "an attempt's proposal": edits("v1/attempts/a1/proposal.json", "Fewer", "Far fewer"),
    "a hypothesis": adds("v1/hypothesis.txt", "And it worked.\n"),
    "a methods.json": edits("v2/methods.json", "warp_shuffle", "tensor_core"),
    "a sass_check.json": adds("v2/sass_check.json", " "),
    "a memory": edits("v3/memory.json", '"masked": false', '"masked": true'),
    "what a memory says": edits("v3/memory.json", '"kept": false', '"kept": true'),
    "searches of a version": removes("v1/searches.jsonl"),
    "searches of the run": adds("searches.jsonl", "{}\n"),
    "citations": edits("citations.json", "gpu-wiki", "our-wiki"),
    "a copy of a candidate": adds("trajectory/v1-a1.py", "# faster\n"),
    "a copy of a candidate left out": removes("trajectory/v3-a1.py"),
    "the reference": adds("ref.py", "# easier\n"),
    "the inputs": edits("inputs.json", "64", "32"),
    "the environment": edits("env.json", "H200", "H100"),
    "the page of the environment": edits("env_check.md", "H200", "H100"),
    "targets": edits("roofline.json", "512", "1024"),
    "a spec of the run": edits("README.md", "4.8 TB/s", "9.6 TB/s"),
    "the plan": adds("plan.md", "and more\n"),
    "iterations": edits("run.json", '"iterations": 6', '"iterations": 900'),
    "the run's tolerance": edits("run.json", '"tolerance": null', '"tolerance": [1.0, 1.0]'),
    "no run.json": removes("run.json"),
    "figures of the report": edits("final_report.md", "1.25", "2.25"),
    "figures of the benchmark": edits("benchmark.md", "80", "60"),
    "figures of the summary": edits("summary.json", "1.25", "2.25"),
    "no summary": removes("summary.json"),
    "the log of iterations": edits("ITERATIONS.md", "v3", "v2"),
    "the script that stands alone": adds("test_kernel.py", "print('faster')\n"),
    "no script": removes("test_kernel.py"),
    "the best kernel": adds("best/kernel.py"),
    "another version in best/": copies("v1/kernel.py", "best/kernel.py"),
    "a second file in best/": adds("best/faster.py"),
    "no best/": removes("best"),
    "the current iteration": lambda run: (run.root / "current_iteration.txt").write_text("7\n"),
    "attributes of git": adds(".gitattributes", "*.py text\n"),
    "a damaged file that reports are made of": lambda run: (run.root / "v4/memory.json").write_bytes(b"\xff"),
}
STRAY: dict[str, Act] = {
    "bytecode of another program": lambda run: _poisoned(run),
    "bytecode that nothing can read": adds("v2/__pycache__/kernel.cpython-312.pyc", "x"),
    "a compiled module beside the best kernel": adds("best/kernel.so", "x"),
    "a second kernel in a version": adds("v2/kernel.cu", "// faster\n"),
    "a note in a version": adds("v2/notes.md", "The L2 bandwidth is 12.5 TB/s.\n"),
    "another receipt in a version": copies("v1/receipt.json", "v3/receipt-2.json"),
    "another attempt": adds("v2/attempts/a2/kernel.py"),
    "an attempt's file that nobody wrote": adds("v2/attempts/a1/kernel.cu", "// x\n"),
    "a refusal that never was": adds("v2/refused/s1/reasons.json", "[]\n"),
    "a second final measurement": copies("v1/receipt.json", "final/receipt.json"),
    "another candidate in trajectory/": adds("trajectory/v2-a2.py"),
    "a file of another name in trajectory/": adds("trajectory/best.py"),
    "another profile": adds("profiles/v2b.ncu-rep"),
    "a later version": adds("v7/kernel.py"),
    "a folder of a version": adds("v2/more/kernel.py"),
    "a picture that nobody drew": adds("pictures/roofline.svg", "<svg/>"),
    "a file in replaced/": adds("replaced/a1-kernel.py"),
    "a pipe in a version": pipe("v2/kernel.cu"),
}
LINKS: dict[str, Act] = {
    "a kernel that is a link": links("v2/kernel.py"),
    "a version that is a link": links("v2"),
    "best/ that is a link": links("best"),
    "attempts that are a link": links("v1/attempts"),
    "a report that is a link": links("final_report.md"),
    "a link to another version": links("v1/receipt.json", "../v2/receipt.json"),
    "a new link in a version": lambda run: (run.root / "v2/other").symlink_to("/tmp"),
    "run.json that is a link": links("run.json"),
    "the journal that is a link": links("journal.jsonl"),
}  # fmt: skip
GIT: dict[str, Act] = {
    "no history": removes(".git"),
    "a history of one commit": together(
        removes(".git"), git("init", "-q"), git("add", "-A"), git("commit", "-qm", "x")
    ),
    "the last commit amended": commits("--amend"),
    "the last commit with another message": git("commit", "-q", "--amend", "--allow-empty", "-m", "another message"),
    "the branch set back by one commit": git("reset", "-q", "--soft", "HEAD~1"),
    "a commit on top with another kernel": commits(),
    "commits thrown away": git("reset", "-q", "--soft", "HEAD~3"),
    "an empty repository": together(removes(".git"), git("init", "-q")),
    "a commit without the journal": together(git("rm", "-q", "--cached", "journal.jsonl"), git("commit", "-qm", "x")),
}
CORRUPTIONS = {**JOURNAL, **FILES, **STRAY, **LINKS, **GIT}


def _touched(run: ValidRun) -> None:
    for path in run.root.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))


def _driven(act: Callable[[Driver], object]) -> Act:
    """kopt itself does something with the finished run."""

    def done(run: ValidRun) -> None:
        tools = GpuTools(run.home, run.record, wiki=run.wiki)
        parts: Any = RealParts(RunFolder(run.root), run.record, tools, wiki=run.wiki)
        with Driver.open(run.root, tools, run.home, parts) as driver:
            act(driver)

    return done


def _applied(driver: Driver) -> None:
    target = driver.folder.root.parent / "softmax.py"
    target.write_text(kernel(0, 100), "utf-8")
    assert driver.apply(target, hashlib.sha256(target.read_bytes()).hexdigest()) is not None
    assert any((driver.folder.root / "replaced").iterdir())


def _compiled(run: ValidRun, path: str, *, optimize: int = 0) -> None:
    made = importlib.util.cache_from_source(str(run.root / path), optimization=optimize or "")
    py_compile.compile(str(run.root / path), made, optimize=optimize, doraise=True)


def _poisoned(run: ValidRun) -> None:
    """Bytecode of another program under the name of the kernel's, with the kernel's size and time."""
    kernel = run.root / "v2/kernel.py"
    data = importlib._bootstrap_external._code_to_timestamp_pyc(  # type: ignore[attr-defined]  # as Python writes it
        compile("def run(x):\n    return x\n", str(kernel), "exec"), int(kernel.stat().st_mtime), kernel.stat().st_size
    )
    made = Path(importlib.util.cache_from_source(str(kernel)))
    made.parent.mkdir()
    made.write_bytes(data)


HARMLESS: dict[str, Act] = {
    "nothing": lambda _: None,
    "notes of the user": adds("notes/todo.txt", "The H200 might have 12 TB/s of L2 bandwidth?\n"),
    "a note at the top": adds("TODO.md", "try more warps\n"),
    "a folder of the user": adds("plots/times.csv", "1,2\n"),
    "a link of the user": lambda run: (run.root / "latest").symlink_to("v2"),
    "an editor's swap file": adds("v2/.kernel.py.swp", "b0VIM"),
    "an editor's backup": adds("v2/kernel.py~", "old\n"),
    "an editor's lock": lambda run: (run.root / "v2/.#kernel.py").symlink_to("somebody@host.1234:567"),
    "a file browser's file": adds("v1/.DS_Store", "x"),
    "bytecode of the kernel": lambda run: _compiled(run, "v2/kernel.py"),
    "optimized bytecode of the best kernel": lambda run: _compiled(run, "best/kernel.py", optimize=2),
    "an empty folder": lambda run: (run.root / "v2/empty").mkdir(),
    "hints in another form": lambda run: (run.root / "HINTS.md").write_bytes(
        (run.root / "HINTS.md").read_bytes().replace(b"\n", b"\r\n")
    ),
    "other hints": adds("HINTS.md", "- prefer: async_copy\n"),
    "other times": _touched,
    "other modes": lambda run: (run.root / "v2/kernel.py").chmod(0o755),
    "packed objects": git("gc", "-q"),
    "a tag": git("tag", "good"),
    "a commit of the user's notes": together(adds("TODO.md"), git("add", "TODO.md"), git("commit", "-qm", "notes")),
    "another branch beside": git("branch", "mine"),
    "a torn line that was set aside": adds("journal.torn-1", "{"),
    "a version that kopt masked": _driven(lambda driver: driver.mask(3, True, "a dead end")),
    "the best version applied": _driven(_applied),
    "another place": lambda run: run.root.rename(run.root.parent / "moved"),
}


def gate(run: ValidRun) -> GateReport:
    """What `kopt run gate --final` says."""
    found = context(run.root, run.wiki, run.home, 2, "final")
    return run_gate(dataclasses.replace(found, began_sealed=seeds.sealed(run.home, found.record.id),
                                        last_commit=seeds.last_commit(run.home, found.record.id)))  # fmt: skip


def rejected(run: ValidRun) -> bool:
    """Whether `gate --final` refuses the folder, or cannot even read it as a run."""
    try:
        return not gate(run).passed
    except KoptError:
        return True


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corrupted_run_is_rejected(name: str, ended: ValidRun) -> None:
    CORRUPTIONS[name](ended)
    assert rejected(ended)


@pytest.mark.parametrize("name", HARMLESS)
def test_what_harms_nothing_is_accepted(name: str, ended: ValidRun) -> None:
    HARMLESS[name](ended)
    run = ended if ended.root.is_dir() else ValidRun(ended.root.parent / "moved", ended.wiki, ended.home)
    found = gate(run)
    assert found.passed, "\n".join(found.lines())


KEYLESS = [name for name in JOURNAL if "edited" in name or "seal" in name or name.startswith(("a better", "another"))]


@pytest.mark.parametrize("name", KEYLESS)
def test_git_is_not_needed_to_find_a_rewritten_journal(name: str, ended: ValidRun) -> None:
    """Its history can be rewritten by whoever rewrites the journal; a seal cannot be made without the key."""
    JOURNAL[name](ended)
    data = (ended.root / "journal.jsonl").read_bytes()
    try:
        lines = journal.read(data).lines
    except KoptError:
        return  # not even its chain is right
    assert Sealer.of(ended.home, ended.record.id).check(lines).state in ("broken", "foreign key")
    assert "journal-seal" in gate(ended).rules


def test_the_gate_says_whose_seal_it_is(ended: ValidRun) -> None:
    assert gate(ended).seal == "own key"
    their_home = shutil.copytree(ended.home, ended.root.parent / "their-home")
    (their_home / "receipt.key").unlink()
    ensure_key(their_home)
    theirs = gate(ValidRun(ended.root, ended.wiki, their_home))
    assert theirs.seal == "foreign key"
    assert "journal-seal" in theirs.rules


def test_a_run_of_before_seals_is_checked_without_them(ended: ValidRun) -> None:
    """Its KOPT_HOME knows nothing of seals and of commits, and git has the same lines."""
    home = shutil.copytree(ended.home, ended.root.parent / "old-home")
    seed = next((home / "runs").glob("*.seed"))
    seed.write_text(seed.read_text("ascii").removesuffix(" sealed\n") + "\n", "ascii")
    next((home / "runs").glob("*.commit")).unlink()
    rewrites(lambda _: None, "none", render=False)(ended)
    git("add", "journal.jsonl")(ended)
    git("commit", "-qm", "the journal as it was then")(ended)
    found = gate(ValidRun(ended.root, ended.wiki, home))
    assert (found.seal, found.rules) == ("none", ())


def test_there_are_enough() -> None:
    assert len(CORRUPTIONS) >= 100
    assert len(HARMLESS) >= 20


def test_the_folder_is_what_the_corruptions_expect(pristine_end: ValidRun) -> None:
    """Otherwise they would be rejected for another reason."""
    assert (pristine_end.root / ".git").is_dir()
    assert Path(pristine_end.root / "final/v2/receipt.json").is_file()
