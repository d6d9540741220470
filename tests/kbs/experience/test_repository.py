"""A log that several clones share through git."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kbs.common.errors import KoptError, UsageError
from kbs.experience.filters import Filter
from kbs.experience.log import ExperienceLog
from kbs.experience.repository import sync
from tests.kbs.experience.records import experiment, measured

pytestmark = pytest.mark.processes

EVERY = Filter(masked=None)


def git(folder: Path, *words: str) -> str:
    """Run git as somebody."""
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clones(tmp_path: Path) -> tuple[ExperienceLog, ExperienceLog]:
    """Two clones of an empty shared repository; both use one KOPT_HOME, as on one machine."""
    git(tmp_path, "init", "--quiet", "--bare", "shared.git")
    for name in ("one", "two"):
        git(tmp_path, "clone", "--quiet", "shared.git", name)
        git(tmp_path / name, "switch", "--quiet", "-c", "main")
        (tmp_path / name / "log").mkdir()
    return tuple(ExperienceLog(tmp_path / name / "log", tmp_path / "home") for name in ("one", "two"))  # type: ignore[return-value] # two


def state(log: ExperienceLog) -> list[tuple[str, bool, tuple[str, ...]]]:
    """All that the log says of which experiments there are."""
    with log.index() as index:
        return [(entry.experiment.optimization, entry.masked, entry.ids) for entry in index.entries(EVERY)]


def test_two_clones_that_both_appended_and_masked(clones: tuple[ExperienceLog, ExperienceLog]) -> None:
    one, two = clones
    common = experiment(optimization="common")
    one.append([common])
    sync(one)
    sync(two)
    one.append([experiment(optimization=f"one {number}") for number in range(5)])
    one.mask(common.id, True, "noisy machine")
    two.append([experiment(optimization=f"two {number}") for number in range(5)])
    two.mask(common.id, True, "wrong shape")
    two.mask(common.id, False, "right shape after all")
    assert sync(one).pushed == 1
    done = sync(two)
    assert (done.committed, done.pulled) == (1, 1)
    assert sync(one).pulled >= 1
    assert state(one) == state(two)
    found = {name: masked for name, masked, _ in state(one)}
    assert sorted(found) == sorted(["common", *(f"{who} {n}" for who in ("one", "two") for n in range(5))])
    assert len(state(one)) == 11
    assert found["common"] is False, "the mask that was written last holds"
    assert one.problems() == two.problems() == []
    assert sync(two).pushed == 0


def test_one_experiment_that_both_recorded_is_joined_once(clones: tuple[ExperienceLog, ExperienceLog]) -> None:
    one, two = clones
    first, second = measured("a", lesson="learnt"), measured("a", hypothesis="fewer loads")
    one.append([first])
    two.append([second])
    sync(one)
    assert sync(two).joined == 1
    sync(one)
    for log in clones:
        with log.index() as index:
            (entry,) = index.entries(EVERY)
            assert set(entry.ids) == {first.id, second.id}
            assert index.get(second.id) == entry
            assert (entry.experiment.lesson, entry.experiment.hypothesis) == ("learnt", "fewer loads")


def test_nothing_but_the_log_is_committed_and_no_hook_runs(clones: tuple[ExperienceLog, ExperienceLog]) -> None:
    one, _ = clones
    top = one.files.root.parent
    (top / "mine.txt").write_text("not for others")
    git(top, "add", "mine.txt")
    hook = top / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    one.append([experiment()])
    sync(one)
    assert git(top, "show", "--name-only", "--format=") == f"log/{one.files.names()[0]}"
    assert git(top, "status", "--porcelain") == "A  mine.txt"


def test_a_torn_line_is_not_given_to_others(clones: tuple[ExperienceLog, ExperienceLog]) -> None:
    one, two = clones
    one.append([experiment(optimization="whole")])
    with (one.files.root / one.files.names()[0]).open("a") as stream:
        stream.write('{"kind": "exper')
    sync(one)
    sync(two)
    assert [name for name, _, _ in state(two)] == ["whole"]
    assert two.problems() == []
    assert len(one.files.notes) == 1


def test_a_conflict_elsewhere_leaves_the_repository_as_it_was(clones: tuple[ExperienceLog, ExperienceLog]) -> None:
    one, two = clones
    for log, text in ((one, "a"), (two, "b")):
        top = log.files.root.parent
        (top / "README").write_text(text)
        git(top, "add", "README")
        git(top, "commit", "--quiet", "-m", text)
        log.append([experiment(optimization=text)])
    sync(one)
    with pytest.raises(KoptError) as caught:
        sync(two)
    assert caught.value.code == "merge_conflict"
    assert "README" in caught.value.message
    assert (two.files.root.parent / "README").read_text() == "b"
    assert git(two.files.root.parent, "status", "--porcelain") == ""
    assert [name for name, _, _ in state(two)] == ["b"]


def test_a_writer_may_have_a_name_that_git_takes_for_a_pattern(clones: tuple[ExperienceLog, ExperienceLog]) -> None:
    one, two = clones
    one.append([experiment(optimization="mine")])
    (one.files.root / ":!x.jsonl").write_text(experiment(optimization="theirs").model_dump_json() + "\n")
    sync(one)
    sync(two)
    assert sorted(name for name, _, _ in state(two)) == ["mine", "theirs"]


def test_without_a_remote_it_commits(tmp_path: Path) -> None:
    log = ExperienceLog(tmp_path / "log", tmp_path / "home")
    log.append([experiment()])
    with pytest.raises(UsageError) as caught:
        sync(log)
    assert caught.value.code == "no_repository"
    git(log.files.root, "init", "--quiet")
    done = sync(log)
    assert (done.committed, done.remote, done.pushed) == (1, "", 0)
    assert sync(log).committed == 0


def test_variables_of_another_repository_are_refused(
    clones: tuple[ExperienceLog, ExperienceLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    with pytest.raises(KoptError) as caught:
        sync(clones[0])
    assert caught.value.code == "git_environment"
