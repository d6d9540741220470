"""`kopt wiki propose`, `accept`, `reject` and `sync` with real repositories: two clones and a remote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbs.evidence.citation import lines_hash
from tests.kopt.cli.wiki.clones import SCAN, SUM, Clones, git, page

pytestmark = [pytest.mark.processes, pytest.mark.slow]
SWIZZLE = page("technique/swizzle", "A swizzle permutes tiles.", links="../kernel/scan.md")


@pytest.fixture
def clones(built_home: Path, tmp_path: Path) -> Clones:
    return Clones.make(tmp_path / "work", built_home)


def test_a_page_is_proposed_and_accepted(clones: Clones) -> None:
    one = clones.root / "one"
    clones.write("one", "kernel/sum", SUM + "\nNot committed.\n")
    git(one, "add", "kernel/sum.md")
    before = clones.state("one")
    made = clones.propose("technique/swizzle", SWIZZLE)
    assert [made[name] for name in ("branch", "wiki", "run")] == ["propose/technique-swizzle", "one", ""]
    assert [(p["rule"], p["error"]) for p in made["problems"]] == [("orphan", False)]
    assert clones.state("one")[1:] == before[1:], "the index and the files are as they were"
    message = git(one, "show", "-s", "--format=%B", made["commit"])
    assert message.startswith(
        "Propose the page technique/swizzle\n\nLint: errors 0, warnings 1\n- line 2: warning: orphan"
    )
    assert git(one, "diff", "--name-only", "main", made["commit"]) == "technique/swizzle.md"

    again = clones.propose("technique/swizzle", SWIZZLE)
    assert again["commit"] == made["commit"], "the same page is on its branch already"
    revised = clones.propose("technique/swizzle", SWIZZLE.replace("tiles", "rows"))
    assert git(one, "rev-parse", f"{revised['commit']}^") == made["commit"], "a revision follows what it revises"

    accepted = clones.json("accept", "technique/swizzle")
    assert accepted["commit"] == git(one, "rev-parse", "main")
    assert git(one, "rev-parse", "main^2") == revised["commit"]
    assert "permutes rows" in (one / "technique/swizzle.md").read_text()
    assert "technique/swizzle.md" in clones.text("one", "README"), "the list of pages has it"
    assert git(one, "branch", "--list", "propose/*") == ""
    assert git(one, "status", "--porcelain") == "M  kernel/sum.md", "what was not committed is still there"
    assert "Not committed." in (one / "kernel/sum.md").read_text()
    assert clones.json("accept", "technique/swizzle", code=2)["code"] == "proposal_unknown"
    assert not clones.lost()


def test_evidence_is_kept_with_the_page(clones: Clones) -> None:
    file = clones.root / "page.md"
    file.write_text(SWIZZLE)
    words = ("--page", str(file), "--evidence", "receipt/abc", "--evidence", "two\nlines\x1b[31m")
    made = clones.json("propose", *words)
    said = git(clones.root / "one", "show", "-s", "--format=%b", made["commit"])
    assert said.endswith("Evidence:\n- receipt/abc\n- two lines\\x1b[31m")
    assert clones.json("propose", *words, "--evidence", " ", code=2)["code"] == "evidence"


def test_a_page_with_errors_is_proposed_but_not_accepted(clones: Clones) -> None:
    bad = SWIZZLE.replace("[^src-a]: src, p. 1.", "")
    made = clones.propose("technique/swizzle", bad)
    assert any(problem["error"] for problem in made["problems"])
    before = clones.state("one")
    done = clones.json("accept", "technique/swizzle", code=4)
    assert (done["commit"], done["conflicts"]) == ("", [])
    assert {problem["rule"] for problem in done["problems"] if problem["error"]} == {
        problem["rule"] for problem in made["problems"] if problem["error"]
    }
    assert clones.state("one") == before
    text = clones.kopt("accept", "technique/swizzle")
    assert (text.code, text.out.splitlines()[0]) == (
        4,
        "technique/swizzle: not accepted, the lint finds errors; nothing was changed",
    )


def test_an_error_that_a_page_causes_elsewhere_stops_it(clones: Clones) -> None:
    other = SUM.replace("kernel/sum", "technique/sum")  # the same title as that of another page
    clones.propose("technique/sum", other)
    done = clones.json("accept", "technique/sum", code=4)
    assert "duplicate" in {problem["rule"] for problem in done["problems"]}


def test_a_conflict_is_explained_and_changes_nothing(clones: Clones) -> None:
    clones.propose("kernel/scan", SCAN.replace("adds up prefixes", "adds prefixes in pairs"))
    clones.commit("one", "kernel/scan", SCAN.replace("adds up prefixes", "is a running sum"))
    before = clones.state("one")
    done = clones.json("accept", "kernel/scan", code=4)
    (conflict,) = done["conflicts"]
    assert (conflict["path"], conflict["kind"]) == ("kernel/scan.md", "both changed")
    line = SCAN.splitlines().index("A scan adds up prefixes.[^src-a]") + 1
    assert conflict["detail"] == (
        f"1 place read otherwise; from line {line} on, here “A scan is a running sum.[^src-a]”, "
        "there “A scan adds prefixes in pairs.[^src-a]”"
    )
    assert clones.state("one") == before
    text = clones.kopt("accept", "kernel/scan").out
    assert "`git switch propose/kernel-scan`, `git merge main`" in text

    git(clones.root / "one", "switch", "-q", "propose/kernel-scan")
    assert clones.json("accept", "kernel/scan", code=2)["code"] == "proposal_checked_out"
    git(clones.root / "one", "merge", "-q", "main", check=False)
    both = SCAN.replace("adds up prefixes", "is a running sum in pairs")
    clones.write("one", "kernel/scan", both)
    git(clones.root / "one", "commit", "-qam", "Merge main")
    git(clones.root / "one", "switch", "-q", "main")
    assert clones.json("accept", "kernel/scan")["conflicts"] == []
    assert clones.text("one", "kernel/scan") == both
    assert not clones.lost()


@pytest.mark.parametrize("deleted_here", [True, False])
def test_a_page_that_one_deleted_and_another_changed(clones: Clones, deleted_here: bool) -> None:
    clones.commit("one", "kernel/fold", page("kernel/fold", "A fold is a scan.", links="scan.md"))
    clones.kopt("lint", "--fix", "--yes")
    git(clones.root / "one", "commit", "-qam", "List it")
    assert clones.kopt("sync").code == 0
    assert clones.kopt("sync", clone="two").code == 0
    keeps, removes = ("two", "one") if deleted_here else ("one", "two")
    clones.commit(keeps, "kernel/fold", page("kernel/fold", "A fold is no scan.", links="scan.md"))
    git(clones.root / removes, "rm", "-q", "kernel/fold.md")
    clones.kopt("lint", "--fix", "--yes", clone=removes)
    git(clones.root / removes, "commit", "-qam", "Remove it")
    assert clones.kopt("sync", clone="two").code == 0
    before = clones.state("one")
    done = clones.json("sync", code=4)
    assert ("kernel/fold.md", "deleted here" if deleted_here else "deleted there") in [
        (one["path"], one["kind"]) for one in done["conflicts"]
    ]
    assert clones.state("one") == before


def test_reject_keeps_what_was_rejected(clones: Clones) -> None:
    one = clones.root / "one"
    made = clones.propose("technique/swizzle", SWIZZLE)
    assert clones.json("reject", "technique/swizzle", "--reason", " ", code=2)["code"] == "reason_missing"
    done = clones.json("reject", "propose/technique-swizzle", "--reason", "It repeats\nthe page on tiling.")
    assert done["ref"].startswith("refs/rejected/technique-swizzle/")
    assert git(one, "rev-parse", f"{done['ref']}^") == made["commit"]
    assert "It repeats" in git(one, "show", "-s", "--format=%B", done["ref"])
    assert git(one, "branch", "--list", "propose/*") == ""
    git(one, "gc", "-q", "--prune=now")
    assert not clones.lost()
    assert git(one, "show", f"{done['ref']}:technique/swizzle.md") + "\n" == SWIZZLE


def test_two_clones_propose_and_sync_with_conflicts_and_nothing_is_lost(clones: Clones) -> None:
    """Each accepts pages of its own, both change one page, both propose one page, one rejects the other's."""
    mine, theirs = (SCAN.replace("adds up prefixes", f"{how} prefixes") for how in ("folds", "sums"))
    clones.propose("technique/swizzle", SWIZZLE)
    clones.propose("kernel/scan", mine)
    clones.propose("technique/tile", page("technique/tile", "A tile is a part.", links="../kernel/sum.md"))
    clones.propose("technique/pad", page("technique/pad", "A pad is unused.", links="../kernel/sum.md"), clone="two")
    clones.propose("kernel/scan", theirs, clone="two")
    other = page("technique/tile", "A tile is a block.", links="../kernel/scan.md")
    clones.propose("technique/tile", other, clone="two")
    for name in ("technique/swizzle", "kernel/scan"):
        assert clones.kopt("accept", name).code == 0
    for name in ("technique/pad", "kernel/scan"):
        assert clones.kopt("accept", name, clone="two").code == 0

    first = clones.json("sync")
    assert (first["pushed"], first["proposals_out"], first["conflicts"]) == (4, ["propose/technique-tile"], [])
    before = clones.state("two")
    second = clones.json("sync", clone="two", code=4)
    assert [(c["path"], c["kind"]) for c in second["conflicts"]] == [
        ("kernel/scan.md", "both changed"),
        ("propose/technique-tile", "proposed twice"),
    ]
    assert "folds prefixes" in second["conflicts"][0]["detail"], "what stands there"
    assert clones.state("two") == before
    assert not clones.lost()

    # The conflict is mended by hand, as the command says.
    two = clones.root / "two"
    assert f"`git rebase {second['remote']}`" in clones.kopt("sync", clone="two").out
    git(two, "rebase", "-q", "--rebase-merges", "origin/main", check=False)
    assert clones.json("sync", clone="two", code=2)["code"] == "git_under_way"
    for _ in range(6):
        if not (two / ".git/rebase-merge").exists():
            break
        clones.write("two", "kernel/scan", theirs.replace("sums", "folds and sums"))
        git(two, "checkout", "-q", "--ours", "README.md", check=False)
        git(two, "add", "-A")
        git(two, "rebase", "--continue", check=False, env={"GIT_EDITOR": "true"})
    clones.kopt("lint", "--fix", "--yes", clone="two")
    git(two, "commit", "-qam", "List all pages", check=False)
    # One page of both proposals follows both.
    clones.propose("technique/tile", other.replace("block", "block and a part"), clone="two")
    assert len(git(two, "rev-list", "--parents", "-1", "propose/technique-tile").split()) == 3
    third = clones.json("sync", clone="two")
    assert (third["conflicts"], third["proposals_out"]) == ([], ["propose/technique-tile"])

    clones.json("sync")
    clones.json("reject", "technique/tile", "--reason", "It says nothing.")
    last = clones.json("sync")
    assert last["decided"] == ["propose/technique-tile"]
    assert clones.json("sync", clone="two")["decided"] == ["propose/technique-tile"]
    for clone in ("one", "two", "remote.git"):
        assert git(clones.root / clone, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"
        git(clones.root / clone, "reflog", "expire", "--expire=now", "--all")
        git(clones.root / clone, "gc", "-q", "--prune=now")
    assert len({git(clones.root / c, "rev-parse", "main") for c in ("one", "two", "remote.git")}) == 1
    assert clones.text("one", "technique/pad")
    assert clones.text("one", "technique/swizzle") == SWIZZLE
    assert not clones.lost()
    assert len(set(clones.proposed)) == 7


def test_lists_of_pages_do_not_conflict(clones: Clones) -> None:
    for clone, name in (("one", "technique/aa"), ("two", "technique/ab")):
        clones.propose(name, page(name, f"It is {name[-2:]}.", links="../kernel/sum.md"), clone=clone)
        assert clones.kopt("accept", name, clone=clone).code == 0
        done = clones.json("sync", clone=clone)
        assert done["conflicts"] == []
    listed = clones.text("two", "README")
    assert "technique/aa.md" in listed
    assert "technique/ab.md" in listed
    assert listed.splitlines()[2] == "# one", "the title of the wiki stays"
    assert git(clones.root / "two", "status", "--porcelain") == ""
    assert git(clones.root / "two", "rev-parse", "main") == git(clones.root / "remote.git", "rev-parse", "main")


def test_errors_of_the_lint_stop_the_push(clones: Clones) -> None:
    clones.commit("two", "kernel/scan", SCAN.replace("prefixes", "prefixes of a row"))
    clones.json("sync", clone="two")
    clones.commit("one", "kernel/sum", SUM.replace("[^src-a]: src, p. 1.", ""))
    done = clones.json("sync", code=4)
    assert (done["pulled"], done["pushed"]) == (1, 0)
    assert {p["path"] for p in done["problems"]} == {"kernel/sum.md"}
    assert "of a row" in clones.text("one", "kernel/scan"), "what came is here"
    clones.commit("one", "kernel/sum", SUM.replace("elements", "numbers"))
    assert clones.json("sync")["pushed"] == 2


def test_what_was_not_committed_is_not_overwritten(clones: Clones) -> None:
    clones.commit("two", "kernel/scan", SCAN.replace("prefixes", "prefixes of a row"))
    clones.json("sync", clone="two")
    clones.write("one", "kernel/scan", SCAN + "\nMine.\n")
    clones.write("one", "kernel/new", "anything")
    before = clones.state("one")
    error = clones.json("sync", code=2)
    assert error["code"] == "uncommitted_changes"
    assert "kernel/scan.md" in error["message"]
    assert clones.state("one") == before
    git(clones.root / "one", "stash", "-q")
    assert clones.json("sync")["pulled"] == 1
    assert (clones.root / "one/kernel/new.md").read_text() == "anything"


def test_citations_that_a_change_made_stale(clones: Clones, tmp_path: Path) -> None:
    """Of pages, of runs and of the log: those that held before are told, with the command that lists them."""
    line = SCAN.splitlines().index("It reads each element once.[^src-a]") + 1
    said = SCAN.splitlines()[line - 1]
    cites = page(
        "technique/once", f'"It reads each element once" <- one/kernel/scan.md:L{line}', links="../kernel/scan.md"
    )
    clones.commit("one", "technique/once", cites)
    clones.kopt("lint", "--fix", "--yes")
    git(clones.root / "one", "commit", "-qam", "List it")
    run = clones.root / "runs/a"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    entry = {"cited_in": ["v1/proposal.json"], "lines": [said], "hash": lines_hash([said]), "why": ""}
    (run / "citations.json").write_text(json.dumps([{**entry, "reference": f"one/kernel/scan.md:L{line}"}]))
    home = tmp_path / "other-home"
    clones.home = home
    home.mkdir()
    digest = lines_hash([said])[:16]
    record = {
        "time": "2026-11-21T14:00:00Z", "kernel": "scan.py", "optimization": "Read once", "outcome": "neutral",
        "provenance": "reported", "evidence": [f"one/kernel/scan.md:L{line}@{digest}"],
    }  # fmt: skip
    from kbs.common.ulid import new_ulid
    from kbs.experience.experiment import Experiment
    from kopt.services.experience.log import open_log
    from kopt.services.settings import load_settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KOPT_HOME", str(home))
        open_log(load_settings(workspace=clones.root)).append([Experiment(id=new_ulid(), **record)])

    clones.propose("kernel/scan", SCAN.replace("It reads each", "It reads every"))
    done = clones.json("accept", "kernel/scan")
    assert sorted((one["ref"]["by"], one["page"], one["gone"]) for one in done["stale"]) == [
        ("log", "kernel/scan.md", False),
        ("page", "kernel/scan.md", False),
        ("run", "kernel/scan.md", False),
    ]
    git(clones.root / "one", "push", "-q", "origin", "main~:main")
    git(clones.root / "one", "reset", "-q", "--hard", "origin/main")
    git(clones.root / "two", "pull", "-q")
    clones.commit("two", "kernel/scan", SCAN.replace("It reads each", "It reads any"))
    clones.json("sync", clone="two")
    text = clones.kopt("sync").out
    assert "3 references made stale (1 of pages, 1 of runs, 1 of the log):" in text
    assert text.rstrip().endswith("`kopt wiki refs kernel/scan` lists what refers to it")


def test_a_wiki_below_the_repositorys_folder(built_home: Path, tmp_path: Path) -> None:
    clones = Clones.make(tmp_path / "work", built_home, "docs/wiki/")
    one = clones.root / "one"
    clones.propose("technique/swizzle", SWIZZLE)
    assert clones.json("accept", "technique/swizzle")["wiki"] == "wiki"
    changed = git(one, "diff", "--name-only", "main^", "main").splitlines()
    assert changed == ["docs/wiki/README.md", "docs/wiki/technique/swizzle.md"]
    assert clones.json("sync")["pushed"] == 2
    git(one, "switch", "-q", "-c", "work")
    clones.propose("technique/pad", page("technique/pad", "A pad is unused.", links="swizzle.md"))
    done = clones.kopt("accept", "technique/pad")
    assert "main is not checked out" in done.out
    assert not (one / "docs/wiki/technique/pad.md").exists(), "the checked out branch is another one"
    assert "A pad" in clones.text("one", "technique/pad")
    assert git(one, "status", "--porcelain") == ""


def test_another_clone_accepts_what_was_proposed(clones: Clones) -> None:
    clones.propose("technique/swizzle", SWIZZLE)
    clones.json("sync")
    assert clones.json("sync", clone="two")["proposals_in"] == ["propose/technique-swizzle"]
    assert clones.json("accept", "technique/swizzle", clone="two")["branch"] == "propose/technique-swizzle"
    assert clones.json("sync", clone="two")["decided"] == ["propose/technique-swizzle"]
    done = clones.json("sync")
    assert (done["pulled"], done["decided"]) == (2, ["propose/technique-swizzle"])
    assert clones.text("one", "technique/swizzle") == SWIZZLE
    assert git(clones.root / "remote.git", "branch", "--list", "propose/*") == ""
