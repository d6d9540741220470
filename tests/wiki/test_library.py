"""The wikis in use: which files are pages, what a path may reach, and the revision."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kbs.common.errors import ConfigurationError
from kbs.evidence.checking import Status, check_text
from kbs.evidence.citation import lines_hash
from kbs.evidence.vocabulary import vocabulary
from tests.bundled_pages import read_bundled
from wiki.library import Wiki, Wikis, bundled_wiki, open_wiki, products_of
from wiki.page import Page

MakePage = Callable[..., str]


@pytest.fixture
def root(tmp_path: Path, page: MakePage) -> Path:
    """A wiki of two pages, and a secret beside it."""
    folder = tmp_path / "team"
    (folder / "technique").mkdir(parents=True)
    for name in ("a", "b"):
        (folder / "technique" / f"{name}.md").write_text(page(f"technique/{name}", f"# {name}\n\nText of {name}."))
    (folder / "README.md").write_text("# An index\n")
    (tmp_path / "secret.md").write_text("---\nsecret\n")
    return folder


def paths(wiki: Wiki) -> list[str]:
    return [file.path for file in wiki.files()]


def test_the_bundled_wiki_has_pages_and_each_can_be_read() -> None:
    assert len(read_bundled()) > 40
    assert [found for found in read_bundled() if not isinstance(found, Page)] == []


def test_pages_are_listed_in_order_without_index_hidden_and_other_files(root: Path) -> None:
    for name in (".hidden.md", "technique/notes.txt", ".git/x.md", "__pycache__/x.md"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("---\n")
    (root / "technique/README.md").write_text("---\n")
    assert paths(open_wiki(root)) == ["technique/README.md", "technique/a.md", "technique/b.md"]


def test_links_that_lead_out_of_the_wiki_are_no_pages(root: Path) -> None:
    (root / "technique/out.md").symlink_to(root.parent / "secret.md")
    (root / "technique/in.md").symlink_to(root / "technique/a.md")
    (root / "elsewhere").symlink_to(root.parent)
    (root / "technique/loop.md").symlink_to("loop.md")
    (root / "technique/dangling.md").symlink_to("nowhere.md")
    wiki = open_wiki(root)
    assert paths(wiki) == ["technique/a.md", "technique/b.md", "technique/in.md"]
    assert wiki.read("technique/in.md") == wiki.read("technique/a.md")
    assert wiki.read("elsewhere/secret.md") is None


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.md", "technique/../../secret.md", "/etc/passwd", "technique", "", "nowhere.md", "a\0b.md"),
        *("technique/out.md", "technique/loop.md", "x" * 5000 + ".md"),
    ],
)
def test_nothing_outside_is_read(root: Path, path: str) -> None:
    (root / "technique/out.md").symlink_to(root.parent / "secret.md")
    (root / "technique/loop.md").symlink_to("loop.md")
    library = Wikis([open_wiki(root)])
    assert library.lines("team", path) is None
    assert library.page("team", path) is None
    assert list(library.specs("team", path)) == []


@pytest.mark.parametrize(
    "reference",
    [
        "gpu-wiki/../../etc/passwd.md:L1",
        "gpu-wiki/hardware/../../../secret.md:L1",
        "team/../secret.md:L1",
        "team/technique/out.md:L1",
    ],
)
def test_no_reference_reaches_out_of_a_wiki(root: Path, reference: str) -> None:
    (root / "technique/out.md").symlink_to(root.parent / "secret.md")
    library = Wikis([bundled_wiki(), open_wiki(root)])
    for checked in check_text(f'"secret words are here" <- {reference}', library, vocabulary()):
        assert checked.status is Status.NOT_FOUND
        assert checked.says == ""


def test_a_pipe_and_a_file_that_cannot_be_read_are_problems_and_the_rest_is_read(root: Path) -> None:
    os.mkfifo(root / "technique/pipe.md")
    (root / "technique/folder.md").mkdir()
    read = list(open_wiki(root).pages(vocabulary()))
    assert [type(found).__name__ for found in read] == ["Page", "Page", "list"]
    problems = read[-1]
    assert isinstance(problems, list)
    assert (problems[0].path, problems[0].rule) == ("technique/pipe.md", "unreadable")


def test_a_name_that_is_not_utf8_is_a_problem_and_no_crash(root: Path) -> None:
    (root / os.fsdecode(b"technique/\xff.md")).write_text("---\n")
    wiki = open_wiki(root)
    read = list(wiki.pages(vocabulary()))
    assert [type(found).__name__ for found in read] == ["Page", "Page", "list"]
    assert len(wiki.revision) == 64


def test_a_broken_page_leaves_the_others(root: Path) -> None:
    (root / "technique/a.md").write_text("---\nid: [\n---\n")
    first, second = open_wiki(root).pages(vocabulary())
    assert isinstance(first, list)
    assert (first[0].path, first[0].line) == ("technique/a.md", 3)
    assert isinstance(second, Page)
    assert Wikis([open_wiki(root)]).lines("team", "technique/a.md") == ("---", "id: [", "---")


def test_the_revision_is_the_hash_of_paths_and_contents(root: Path) -> None:
    expected = hashlib.sha256()
    for path in ("technique/a.md", "technique/b.md"):
        expected.update(f"{path}\0{hashlib.sha256((root / path).read_bytes()).hexdigest()}\n".encode())
    assert open_wiki(root).revision == expected.hexdigest()


def test_the_revision_moves_with_contents_and_names_only(root: Path) -> None:
    before = open_wiki(root).revision
    file = root / "technique/a.md"
    os.utime(file, (1, 1))
    (root / "README.md").write_text("another index")
    assert open_wiki(root).revision == before
    text = file.read_text()
    file.write_text(text + "more\n")
    changed = open_wiki(root).revision
    assert changed != before
    file.write_text(text)
    assert open_wiki(root).revision == before
    file.rename(root / "technique/c.md")
    assert open_wiki(root).revision not in (before, changed)


def test_a_folder_that_is_no_wiki_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.md").write_text("# no front matter\n")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.md").write_text("---\n")
    for name, code in (("notes", "not_a_wiki"), ("empty", "not_a_wiki"), ("file.md", "wiki_not_found")):
        with pytest.raises(ConfigurationError) as error:
            open_wiki(tmp_path / name)
        assert error.value.code == code
        assert error.value.hint


@pytest.mark.parametrize("path", ["nowhere", "~nobody-of-this-name/wiki", "a\0b", "x" * 5000, ""])
def test_a_path_that_is_no_folder_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigurationError):
        open_wiki(Path(tmp_path / path) if path in ("", "nowhere") else Path(path))


def test_a_wiki_whose_pages_begin_with_a_byte_order_mark_is_one(root: Path) -> None:
    for file in (root / "technique").iterdir():
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert len(paths(open_wiki(root))) == 2


@pytest.mark.parametrize("name", ["note", "-x", "a b", "a/b", "..", "Ümlaut"])
def test_a_name_that_a_citation_cannot_begin_with_is_refused(root: Path, name: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        open_wiki(root, name)
    assert error.value.code == "wiki_name"


def test_two_wikis_of_one_name_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="two wikis are named"):
        Wikis([Wiki("team", root), Wiki("team", tmp_path)])


@pytest.mark.processes
def test_old_lines_are_found_in_the_git_history(root: Path) -> None:
    def git(*words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *name, *words], cwd=root, check=True, capture_output=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "one")
    file = root / "technique/a.md"
    old = file.read_text().split("\n")
    file.write_text(file.read_text().replace("Text of a.", "Another text."))
    git("commit", "-qam", "two")
    library = Wikis([open_wiki(root)])
    line = old.index("Text of a.") + 1
    assert library.past_lines("team", "technique/a.md", line, line, lines_hash(["Text of a."])[:12]) == ("Text of a.",)
    assert library.past_lines("team", "technique/a.md", line, line, "0" * 12) is None
    assert library.past_lines("team", "technique/nowhere.md", 1, 1, "0" * 12) is None


@pytest.mark.processes  # importing GitPython asks git for its version
def test_history_without_git_is_none(root: Path) -> None:
    assert Wikis([open_wiki(root)]).past_lines("team", "technique/a.md", 1, 1, "0" * 12) is None


def test_products_that_the_vocabulary_lacks_are_declared(page: MakePage, root: Path) -> None:
    (root / "hardware").mkdir()
    more = "vendor: nvidia\naliases: [My Board]\nfamily: my"
    (root / "hardware/my-gpu.md").write_text(page("hardware/my-gpu", "# My GPU", title="My GPU", more=more))
    (root / "hardware/h100-sxm.md").write_text(page("hardware/h100-sxm", "# Known"))
    read = [found for found in open_wiki(root).pages(vocabulary()) if isinstance(found, Page)]
    assert [(p.id, p.name, p.aliases, p.families) for p in products_of(read, vocabulary())] == [
        ("my-gpu", "My GPU", ("My Board",), ("my",))
    ]
