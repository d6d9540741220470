"""The wikis in use: where they are, their pages, and the current text of each page."""

from __future__ import annotations

import codecs
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from kbs.common.errors import ConfigurationError
from kbs.evidence.citation import NOTES, EvidenceKind, lines_hash
from kbs.evidence.spec import Spec
from kbs.evidence.vocabulary import Product, Vocabulary, vocabulary
from wiki.page import MAX_PAGE_BYTES, Page, Problem, split_lines

BUNDLED = "gpu-wiki"
"""Name of the wiki that ships with kopt."""
INDEX_PAGE = "README.md"
"""The generated list of pages; it has no front matter and is not a page."""
_RESERVED = frozenset({EvidenceKind.RECEIPT, EvidenceKind.PROFILE, EvidenceKind.LOG, EvidenceKind.NOTE})
"""What references to other evidence begin with."""
NOTE_SUFFIXES = (".md", ".markdown", ".txt", ".rst")
"""Endings of the files of notes that are read."""
_HISTORY = 500
"""Revisions of a page that are searched for lines that have changed."""


_SETTLED = 2_000_000_000
"""Nanoseconds after which a file's time tells it from what is written to it next."""
_MOST_HASHES = 50_000
_HASHES: dict[tuple[Path, WikiFile], str] = {}
"""(folder of a wiki, file with its size and time) → hash of its bytes."""


Told = Callable[[int, int], None]
"""Told how many pages are read, of how many."""


class WikiFile(NamedTuple):
    """A file of a wiki as the file system sees it."""

    path: str
    size: int
    mtime_ns: int


@dataclass(frozen=True)
class Wiki:
    """A folder of pages, and the name that its citations begin with: `note/<name>` for foreign notes.

    Paths of notes are quoted as in addresses (`a%20b.txt`), so that every one can be cited.
    """

    name: str
    root: Path

    @property
    def notes(self) -> bool:
        """Whether it is foreign notes: text without front matter, which states no hardware value."""
        return self.name.startswith(NOTES)

    def place(self, path: str) -> Path:
        """Where a file is, which may be outside of the wiki."""
        return self.root / (unquote(path) if self.notes else path)

    def files(self) -> list[WikiFile]:
        """Every page file, sorted by path. Hidden folders are left out, and links that lead out of the wiki; of notes
        such links are named, to be told of, and cannot be read."""
        root = self.root.resolve()
        found: list[WikiFile] = []
        folders, start = [str(root)], len(str(root))
        while folders:
            try:
                entries = list(os.scandir(folders.pop()))
            except OSError:
                continue
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                try:
                    link, folder = entry.is_symlink(), entry.is_dir()
                    out = link and not Path(entry.path).resolve().is_relative_to(root)
                    if folder and not (out and self.notes):
                        folders += [] if link or name.startswith("__") else [entry.path]
                        continue
                    if not (folder or name.endswith(NOTE_SUFFIXES if self.notes else ".md")):
                        continue
                    if out and not self.notes:
                        continue
                    status = entry.stat(follow_symlinks=not out)
                except (OSError, RuntimeError):  # RuntimeError: a link that leads to itself
                    continue
                # A name that is not UTF-8 cannot be cited: it is listed as it can be printed, and reads as no page.
                path = entry.path[start:].lstrip("/")
                if not path.isascii():
                    path = os.fsencode(path).decode("utf-8", "replace")
                path = quote(path) if self.notes else path
                if path != INDEX_PAGE or self.notes:
                    found.append(WikiFile(path, status.st_size, status.st_mtime_ns))
        return sorted(found, key=lambda file: file.path)

    def read(self, path: str) -> bytes | None:
        """The bytes of a page; None if there is no such page inside the wiki."""
        try:
            file = self.place(path).resolve()
            if (self.notes and quote(unquote(path)) != path) or not file.is_relative_to(self._resolved):
                return None
            if not file.is_file():
                return None
            with file.open("rb") as stream:
                return stream.read(MAX_PAGE_BYTES + 1)
        except (OSError, RuntimeError, ValueError):  # RuntimeError: a link that leads to itself
            return None

    def pages(self, terms: Vocabulary, told: Told | None = None) -> Iterator[Page | list[Problem]]:
        """Every page, or what is wrong with it. `told` hears how many of how many were read."""
        from wiki.reader import read_page  # imports the parsers of Markdown and YAML, which few commands need

        revision = self.revision
        files = self.files()
        for number, file in enumerate(files):
            if told is not None:
                told(number, len(files))
            data = self.read(file.path)
            if data is None:
                yield [self.unreadable(file.path)]
            else:
                yield read_page(self.name, file.path, data, revision, terms)

    def unreadable(self, path: str) -> Problem:
        """That a file is there and `read` gives nothing."""
        why = ", or a link that leads out of the folder" if self.notes else ""
        return Problem(path, 1, "unreadable", f"the file cannot be read; check its permissions{why}")

    @cached_property
    def _resolved(self) -> Path:
        """The root without links, as it is when first asked for."""
        return self.root.resolve()

    @cached_property
    def revision(self) -> str:
        """SHA-256 of the sorted list of paths and content hashes, as it is when first asked for."""
        return revision_of({file.path: self._hash(file) for file in self.files()})

    def _hash(self, file: WikiFile) -> str:
        """The hash of a file's bytes. Those of a file that has been as it is for a while are not read again."""
        key = (self.root, file)
        if key in _HASHES:
            return _HASHES[key]
        found = content_hash(self.read(file.path))
        if time.time_ns() - file.mtime_ns > _SETTLED and len(_HASHES) < _MOST_HASHES:
            _HASHES[key] = found
        return found


def content_hash(data: bytes | None) -> str:
    """SHA-256 of a page's bytes; of no bytes where it cannot be read."""
    return hashlib.sha256(data or b"").hexdigest()


def revision_of(hashes: Mapping[str, str]) -> str:
    """The revision of a wiki whose files, by path, have these hashes."""
    digest = hashlib.sha256()
    for path in sorted(hashes):
        digest.update(f"{path}\0{hashes[path]}\n".encode())
    return digest.hexdigest()


def bundled_wiki() -> Wiki:
    """The wiki inside the package."""
    return Wiki(BUNDLED, Path(str(resources.files("wiki") / "pages")))


def open_wiki(root: Path, name: str | None = None, *, notes: bool = False) -> Wiki:
    """The wiki, or the notes, in a folder. The name is the folder's, unless given.

    Raises `ConfigurationError` if the folder is not that: it is missing, cannot be read, or holds no page.
    """
    try:
        folder = root.expanduser().resolve(strict=True)
        files = Wiki(NOTES if notes else "", folder).files() if folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        files = None
    if files is None:
        raise ConfigurationError(
            f"{root} is not a folder that can be read",
            code="wiki_not_found",
            hint="Give the folder that holds the wiki's Markdown pages.",
        )
    chosen = name or re.sub(r"[^a-z0-9._-]+", "-", folder.name.lower()).strip("-.")
    if not re.fullmatch(r"[a-z0-9][\w.-]*", chosen) or chosen in _RESERVED:
        raise ConfigurationError(
            f"{chosen!r} cannot be the name of a wiki", code="wiki_name", hint="Name it with --name NAME."
        )
    if notes:
        if not files:
            raise ConfigurationError(
                f"{root} holds no notes", code="no_notes", hint=f"Files of notes end with {', '.join(NOTE_SUFFIXES)}."
            )
        return Wiki(NOTES + chosen, folder)
    wiki = Wiki(chosen, folder)
    if not any((wiki.read(file.path) or b"").removeprefix(codecs.BOM_UTF8).startswith(b"---") for file in files):
        raise ConfigurationError(
            f"{root} is not a wiki: no Markdown file in it begins with a front matter",
            code="not_a_wiki",
            hint="A page begins with a front matter between two --- lines; see docs/wiki-format.md.",
        )
    return wiki


def check_names(wikis: Iterable[Wiki]) -> dict[str, Wiki]:
    """The wikis by name. Raises `ConfigurationError` (`wiki_name`): one of another's name could pass for it."""
    named: dict[str, Wiki] = {}
    for wiki in wikis:
        other = named.setdefault(wiki.name, wiki)
        if other.root != wiki.root:
            raise ConfigurationError(
                f"two wikis are named {wiki.name}: {other.root} and {wiki.root}",
                code="wiki_name",
                hint="Give one of them another name with `kopt ingest PATH --name NAME`.",
            )
    return named


class Wikis:
    """All wikis in use, the bundled one first. Implements `kbs.evidence.checking.Library`; pages are read once and
    kept."""

    def __init__(self, wikis: Iterable[Wiki], terms: Vocabulary | None = None) -> None:
        self.all = check_names(wikis)
        self.vocabulary = terms or vocabulary()
        self._pages: dict[tuple[str, str], Page | list[Problem] | None] = {}
        self._lines: dict[tuple[str, str], Sequence[str] | None] = {}

    def page(self, wiki: str, path: str) -> Page | list[Problem] | None:
        """A page as it is now, or its problems; None if there is none. Its citations name no revision of the wiki, for
        which every file would have to be read."""
        key = (wiki, path)
        if key not in self._pages:
            known = self.all.get(wiki)
            data = known.read(path) if known else None
            self._pages[key] = _kept_page(wiki, path, data, self.vocabulary) if data is not None else None
        return self._pages[key]

    def lines(self, wiki: str, path: str) -> Sequence[str] | None:
        """All lines of a page as they are now, a broken page's too; of notes, those that can be read."""
        if wiki.startswith(NOTES):
            page = self.page(wiki, path)
            return page.lines if isinstance(page, Page) else None
        key = (wiki, path)
        if key not in self._lines:
            known = self.all.get(wiki)
            data = known.read(path) if known else None
            self._lines[key] = None if data is None else split_lines(data.decode("utf-8-sig", "replace"))
        return self._lines[key]

    def specs(self, wiki: str, path: str) -> Sequence[Spec]:
        """The specs that a page states; notes state none."""
        page = None if wiki.startswith(NOTES) else self.page(wiki, path)
        return page.specs if isinstance(page, Page) else ()

    def pages_of(self, wiki: str) -> Sequence[str] | None:
        """Paths of all pages of a wiki; None if the wiki is not known."""
        known = self.all.get(wiki)
        return [file.path for file in known.files()] if known else None

    def past_lines(self, wiki: str, path: str, start: int, end: int, hash_prefix: str) -> Sequence[str] | None:
        """The lines as the git history of the wiki had them, found by their hash."""
        known = self.all.get(wiki)
        return _from_history(known.place(path), start, end, hash_prefix) if known else None


@lru_cache(maxsize=2048)
def _kept_page(wiki: str, path: str, data: bytes, terms: Vocabulary) -> Page | list[Problem]:
    """A page by its bytes: a server looks the same pages up for each question."""
    from wiki.reader import read_page  # imports the parsers of Markdown and YAML

    return read_page(wiki, path, data, "", terms)


def _from_history(file: Path, start: int, end: int, hash_prefix: str) -> Sequence[str] | None:
    import git  # 70 ms: only a stale citation needs it

    try:
        repository = git.Repo(file.parent, search_parent_directories=True)
        relative = file.resolve().relative_to(Path(str(repository.working_tree_dir)).resolve()).as_posix()
        for commit in repository.iter_commits(paths=relative, max_count=_HISTORY):
            try:
                blob = commit.tree / relative
            except KeyError:
                continue
            lines = split_lines(blob.data_stream.read().decode("utf-8-sig", "replace"))[start - 1 : end]
            if lines_hash(lines).startswith(hash_prefix):
                return lines
    except (git.GitError, git.GitCommandNotFound, ValueError, OSError):
        return None
    return None


def products_of(pages: Iterable[Page], terms: Vocabulary) -> list[Product]:
    """Products that hardware pages declare and the vocabulary does not know."""
    return [
        Product(
            id=page.product,
            name=page.meta.title,
            aliases=page.meta.aliases,
            vendor=page.meta.vendor or "",
            architecture=page.meta.architectures[0] if page.meta.architectures else "",
            families=(page.meta.family,) if page.meta.family else (),
        )
        for page in pages
        if page.product and page.product not in terms.products
    ]
