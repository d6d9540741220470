"""Foreign notes: any text is read without front matter, cited by its lines, and states no hardware value."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.passages import passages_of
from kbs.answers.knowledge import sentences
from kbs.common.errors import ConfigurationError
from kbs.evidence.checking import Status, check_citation, check_text
from kbs.evidence.citation import lines_hash, parse_reference
from kbs.evidence.vocabulary import vocabulary
from tests.wiki.test_fuzz import FUZZ, markdown, tables
from wiki.library import Wiki, Wikis, open_wiki
from wiki.lint import fixes
from wiki.page import MAX_PAGE_BYTES, Page
from wiki.reader import read_page

SPEC = "| metric | value | unit |\n|---|---|---|\n| HBM bandwidth | 9.99 | TB/s |\n"
FRONT = "---\nid: hardware/h100-sxm\nkind: hardware\ntitle: H100\nproduct: h100-sxm\naliases: [h100]\n---\n"


def note(text: str | bytes, path: str = "a.md") -> Page:
    data = text if isinstance(text, bytes) else text.encode()
    read = read_page("note/papers", path, data, "", vocabulary())
    assert isinstance(read, Page), read
    return read


def rows(page: Page) -> tuple[object, ...]:
    return (*page.specs, *page.costs, *page.advice, *page.thresholds, *page.measured, *page.signatures)


def problem(data: bytes, path: str = "a.md") -> tuple[int, str]:
    read = read_page("note/papers", path, data, "", vocabulary())
    assert isinstance(read, list)
    return read[0].line, read[0].rule


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "notes/deep").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("secret words are here\n")
    for name in ("README.md", "a b.txt", "deep/c.rst", "deep/d.markdown", "e.pdf", ".hidden.md"):
        (tmp_path / "notes" / name).write_text(f"Text of {name} stands here.\n")
    return tmp_path / "notes"


@pytest.mark.parametrize(
    ("text", "path", "title"),
    [
        ("# Paged *attention*\n\nText.", "a.md", "Paged attention"),
        ("Some text.\n\n## Later\n\nText.", "a.md", "Later"),
        ("=====\nTitle\n=====\n\nText.", "x/a.rst", "Title"),
        ("Just text.", "x/Flash%20Attention.txt", "Flash Attention.txt"),
        ("", "a.md", "a.md"),
    ],
)
def test_the_title_is_the_first_heading_or_the_name(text: str, path: str, title: str) -> None:
    assert note(text, path).meta.title == title


def test_a_front_matter_and_tables_state_nothing() -> None:
    page = note(f"{FRONT}# H100\n\n## Memory\n\n{SPEC}")
    assert (page.meta.kind, page.meta.confidence, page.product, page.method) == ("note", "note", None, None)
    assert rows(page) == page.meta.aliases == page.meta.tags == page.problems == ()


def test_lines_keep_their_numbers_below_a_front_matter_and_between_rules() -> None:
    assert [p.citation.reference for p in passages_of(note(f"{FRONT}Text.\n"), "")] == ["note/papers/a.md:L8"]
    ruled = passages_of(note("---\nFirst text.\n\n---\n\nLast text.\n"), "")
    assert [(p.citation.line_start, p.citation.line_end) for p in ruled] == [(2, 6)]
    below = passages_of(note("A paragraph of\ntwo lines\n-----\nand more.\n", "a.txt"), "")
    assert [(p.citation.line_start, p.citation.line_end, p.trail) for p in below] == [(1, 4, ())]


def test_a_sentence_over_lines_is_quoted_whole_with_just_its_lines() -> None:
    text = "A short one here. A ring buffer\nkeeps the copies in flight. It\nneeds barriers.\n\n- An item of a list.\n"
    [passage] = passages_of(note(text), "")
    said = [(c.text, c.citations[0].line_start, c.citations[0].line_end, c.note) for c in sentences(passage)]
    assert said == [
        ("A short one here.", 1, 1, "note"),
        ("A ring buffer keeps the copies in flight.", 1, 2, "note"),
        ("It needs barriers.", 2, 3, "note"),
        ("An item of a list.", 5, 5, "note"),
    ]


def test_files_are_those_of_text(root: Path) -> None:
    notes = open_wiki(root, "papers", notes=True)
    assert notes.name == "note/papers"
    assert [file.path for file in notes.files()] == ["README.md", "a%20b.txt", "deep/c.rst", "deep/d.markdown"]
    assert notes.read("a%20b.txt") == b"Text of a b.txt stands here.\n"
    assert notes.read("a b.txt") is None  # one place has one name
    assert fixes(notes, vocabulary()) == []


@pytest.mark.parametrize("name", ["note/x", "a/b", "../x", "", "log", "a b"])
def test_names_that_notes_cannot_have(root: Path, name: str) -> None:
    if name == "":
        assert open_wiki(root, name, notes=True).name == "note/notes"
        return
    with pytest.raises(ConfigurationError) as caught:
        open_wiki(root, name, notes=True)
    assert caught.value.code == "wiki_name"


def test_a_wiki_cannot_pass_for_notes_nor_notes_for_a_wiki(root: Path) -> None:
    for name, code in (("note/papers", "wiki_name"), ("papers", "not_a_wiki")):
        with pytest.raises(ConfigurationError) as caught:
            open_wiki(root, name)
        assert caught.value.code == code


def test_an_empty_folder_holds_no_notes(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_wiki(tmp_path, "papers", notes=True)
    assert caught.value.code == "no_notes"


def test_what_cannot_be_read_is_told() -> None:
    assert problem(b"one\n\xff") == (2, "encoding")
    assert problem("täxt".encode("utf-16")) == (1, "encoding")
    assert problem(b"one\ntwo\n\0") == (3, "encoding")
    assert problem(b"x" * (MAX_PAGE_BYTES + 1)) == (1, "page-size")
    assert problem(b"text", "-a.md") == (1, "name")


def test_links_out_of_the_folder_are_told_and_never_read(root: Path) -> None:
    (root / "out.md").symlink_to(root.parent / "secret.md")
    (root / "gone.md").symlink_to("/nowhere/x.md")
    (root / "folder").symlink_to(root.parent)
    (root / "in.md").symlink_to("README.md")
    (root / "loop.md").symlink_to("loop.md")
    os.mkfifo(root / "pipe.txt")
    notes = open_wiki(root, "papers", notes=True)
    told = {p[0].path: p[0].rule for p in notes.pages(vocabulary()) if isinstance(p, list)}
    assert told == dict.fromkeys(["folder", "gone.md", "out.md", "pipe.txt"], "unreadable")
    library = Wikis([notes])
    for path in ("out.md", "folder/secret.md", "%2e%2e/secret.md", "..%2Fsecret.md", "%00.md"):
        [checked] = check_text(f'"secret words are here" <- note/papers/{path}:L1', library, vocabulary())
        assert (checked.status, checked.says) == (Status.NOT_FOUND, ""), path


@pytest.mark.processes  # git is asked what the lines said
def test_citations_are_checked_against_the_lines(root: Path) -> None:
    (root / "a.md").write_text(f"The H100 SXM is a GPU.\n\n{SPEC}")
    (root / "bad.md").write_bytes(b"words that can be read\n\xff\n")
    library = Wikis([open_wiki(root, "papers", notes=True)])

    def status(line: str) -> tuple[Status, str]:
        [checked] = check_text(line, library, vocabulary())
        return checked.status, checked.detail

    old = lines_hash(["other"])[:16]
    assert status('"The H100 SXM is" <- note/papers/a.md:L1')[0] is Status.OK
    assert status('"stands here" <- note/papers/a%20b.txt:L1')[1] == "a quotation needs at least 3 words"
    assert status('"b.txt stands here" <- note/papers/a%20b.txt:L1')[0] is Status.OK
    assert status('"The H200 SXM is" <- note/papers/a.md:L1')[0] is Status.MISMATCH
    assert status(f"see note/papers/a.md:L1@{old}")[0] is Status.STALE
    assert status("see note/papers/a.md:L99")[0] is Status.NOT_FOUND
    assert status("see note/others/a.md:L1") == (Status.NOT_FOUND, "there are no notes named others")
    assert status('"words that can be read" <- note/papers/bad.md:L1')[0] is Status.NOT_FOUND
    for said in ("H100 SXM HBM bandwidth: 9.99 TB/s", "HBM bandwidth: 9.99 TB/s", "TDP: 700 W"):
        found, why = status(f"{said} <- note/papers/a.md:L5")
        assert (found, why) == (Status.MISMATCH, "notes are no source of hardware values; they can be quoted")


@FUZZ
@given(st.one_of(markdown, tables(), markdown.map(lambda text: FRONT + text)), st.sampled_from(["a.md", "b.txt"]))
def test_any_text(text: str, path: str) -> None:
    read = read_page("note/papers", path, text.encode("utf-8", "surrogatepass"), "", vocabulary())
    if isinstance(read, list):
        assert read[0].rule in ("encoding", "markdown")
        return
    assert rows(read) == ()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / path).write_bytes(text.encode("utf-8", "surrogatepass"))
        library = Wikis([Wiki("note/papers", Path(folder))])
        last = 0
        for passage in passages_of(read, ""):
            assert last < passage.citation.line_start
            last = passage.citation.line_end
            for citation in (passage.citation, *(c for claim in sentences(passage) for c in claim.citations)):
                assert check_citation(citation, library).status is Status.OK
                assert parse_reference(citation.reference) is not None


@FUZZ
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    read = read_page("note/papers", "a.md", data, "", vocabulary())
    assert isinstance(read, Page) or read[0].rule in ("encoding", "markdown")


@FUZZ
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=40))
def test_any_name(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            (Path(folder) / f"{name}.md").write_text("Some words to cite.\n")
        except OSError:
            return
        notes = Wiki("note/papers", Path(folder))
        for file in notes.files():
            read = read_page(notes.name, file.path, notes.read(file.path) or b"", "", vocabulary())
            [found] = check_text(f'"Some words to cite" <- note/papers/{file.path}:L1', Wikis([notes]), vocabulary())
            assert isinstance(read, Page) == (found.status is Status.OK)
