"""The site of some wikis: every file of it, in memory, and its way into a folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from html import escape
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

from ingest.progress import Progress, no_progress
from kbs.common.canonical_json import dumps
from kbs.common.errors import UsageError
from kbs.common.files import read_if_there, write_all, write_error
from kbs.common.visible_text import visible
from kbs.evidence.checking import plain_text
from kbs.evidence.vocabulary import Vocabulary
from kopt.services.publishing.addresses import ASSETS, HOME, PICTURES, Addresses, file_of
from kopt.services.publishing.layout import FILES, Frame, Link
from kopt.services.publishing.page_html import PageHtml
from kopt.services.publishing.pictures import read_picture, svg_size
from wiki.index_page import HEADINGS, first_sentence
from wiki.library import INDEX_PAGE, Wiki
from wiki.page import Page
from wiki.reader import links

MARK = "kopt-site.json"
"""Lists the files that were published into a folder: these alone are ever replaced or removed."""
LLMS = "llms.txt"


@dataclass
class Site:
    """Files by path, and what was left out of them."""

    files: dict[str, bytes] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    wikis: list[str] = field(default_factory=list)
    pages: int = 0


def build_site(wikis: Sequence[Wiki], terms: Vocabulary, progress: Progress = no_progress) -> Site:
    """The site of every page of some wikis that can be read. The same wikis give the same bytes."""
    site = Site(wikis=[wiki.name for wiki in wikis])
    pages: dict[str, list[Page]] = {}
    for wiki in wikis:
        pages[wiki.name] = []
        for read in wiki.pages(terms, partial(progress, f"reading {wiki.name}")):
            if isinstance(read, Page):
                pages[wiki.name].append(read)
            else:
                site.left_out += [f"{wiki.name}/{one.path}:{one.line}: {visible(one.message)}" for one in read[:1]]
    pictures = _pictures(wikis, pages, site)
    known = {(page.wiki, page.path) for of_wiki in pages.values() for page in of_wiki}
    sizes = {at: size for at, data in pictures.items() if at[1].endswith(".svg") and (size := svg_size(data))}
    for wiki in wikis:
        of_kinds = _by_kind(pages[wiki.name])
        for number, page in enumerate(pages[wiki.name]):
            progress(f"writing {wiki.name}", number, len(pages[wiki.name]))
            made = PageHtml(page, Addresses(page, known, pictures.keys()), sizes)
            site.files[file_of(page.wiki, page.path)] = _page(page, made, of_kinds)
            site.files[f"{page.wiki}/{page.path}"] = wiki.read(page.path) or b""
        site.files[file_of(wiki.name, INDEX_PAGE)] = _overview(wiki.name, of_kinds)
    site.files |= {f"{wiki}/{path}": data for (wiki, path), data in pictures.items()}
    site.files[HOME] = _home(pages)
    site.files[LLMS] = _llms(pages)
    site.files[f"{ASSETS}/index.js"] = _index(pages)
    for name in FILES:
        site.files[f"{ASSETS}/{name}"] = (resources.files(__package__) / "assets" / name).read_bytes()
    for name in [n for n in site.files if any(str(up) in site.files for up in PurePosixPath(n).parents)]:
        del site.files[name]  # a folder named as another page's file
        site.left_out.append(f"{name}: another page's file has the name of its folder")
    site.pages = len(known)
    return site


def _pictures(wikis: Sequence[Wiki], pages: Mapping[str, Sequence[Page]], site: Site) -> dict[tuple[str, str], bytes]:
    """The pictures that pages of their own wiki show."""
    found: dict[tuple[str, str], bytes] = {}
    for wiki in wikis:
        wanted: dict[str, str] = {}
        for page in pages[wiki.name]:
            addresses = Addresses(page, (), ())
            for line, target in links(page):
                if target.lower().endswith(PICTURES) and ":" not in target and not target.startswith("/"):
                    wanted.setdefault(addresses.path_of(target), f"{wiki.name}/{page.path}:{line}")
        for path, place in wanted.items():
            data = read_picture(wiki, path) if not path.startswith("../") else "it is outside of the wiki"
            if isinstance(data, bytes):
                found[wiki.name, path] = data
            else:
                site.left_out.append(f"{place}: the picture {visible(path)} is left out: {data}")
    return found


def _by_kind(pages: Iterable[Page]) -> dict[str, list[Page]]:
    kinds: dict[str, list[Page]] = {kind: [] for kind in (*HEADINGS, "note")}
    for page in sorted(pages, key=lambda page: (page.meta.title.casefold(), page.path)):
        kinds[page.meta.kind].append(page)
    return {kind: listed for kind, listed in kinds.items() if listed}


def _heading(kind: str) -> str:
    return HEADINGS.get(kind, "Notes")


def _links(pages: Iterable[Page], here: Page | None = None) -> list[Link]:
    return [Link(visible(p.meta.title), file_of(p.wiki, p.path), here=p is here) for p in pages]


def _page(page: Page, made: PageHtml, kinds: Mapping[str, Sequence[Page]]) -> bytes:
    meta, overview = page.meta, file_of(page.wiki, INDEX_PAGE)
    body = made.body()
    if "<h1" not in body:
        body = f"<h1>{escape(visible(meta.title))}</h1>{body}"
    cited = f"{page.wiki}/{page.path}"
    about = [f'<span class="cite">{escape(cited)}</span>', *map(escape, filter(None, [str(meta.confidence)]))]
    reviewed = getattr(meta, "reviewed", None)
    about += [f"reviewed {reviewed}"] if reviewed else []
    raw = escape(PurePosixPath(page.path).name.replace("%", "%25"))
    about.append(f'<a href="{raw}">as text</a>')
    head, _, below = body.partition("</h1>")
    parts = [f'{head}</h1><p class="about">{"".join(f"<span>{one}</span>" for one in about)}</p>{below}']
    if meta.sources:
        parts.append(f'<h2 id="kopt-sources">Sources</h2><ol class="sources">{"".join(_sources(page, made))}</ol>')
    if rest := made.rest():
        parts.append(f"<details><summary>Lines not shown above</summary><pre>{rest}</pre></details>")
    kind = Link(_heading(meta.kind), overview, f"#{meta.kind}")
    beside = [
        (
            _heading(other),
            _links(listed, page) if other == meta.kind else [Link(_heading(other), overview, f"#{other}")],
        )
        for other, listed in kinds.items()
    ]
    contents = [
        (plain_text(visible(section.heading)), f"#L{section.line_start}")
        for section in page.sections
        if section.place and section.heading != meta.title
    ]
    trail = (Link(page.wiki, overview), kind)
    title = f"{visible(meta.title)} · {page.wiki}"
    return Frame(file_of(page.wiki, page.path), title, trail, beside, contents, cited).html("\n".join(parts))


def _sources(page: Page, made: PageHtml) -> Iterator[str]:
    for source in page.meta.sources:
        said, url = escape(visible(source.title)), made.urls.get(source.id)
        linked = f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{said}</a>' if url else said
        yield f"<li>{linked} <small>{escape(source.id)} · {escape(source.kind)} · read {source.accessed}</small></li>"


def _overview(wiki: str, kinds: Mapping[str, Sequence[Page]]) -> bytes:
    file = file_of(wiki, INDEX_PAGE)
    parts = [f"<h1>{escape(wiki)}</h1>"]
    for kind, pages in kinds.items():
        parts.append(f'<h2 id="{kind}">{_heading(kind)}</h2>')
        entries = [(link.html(file), first_sentence(page)) for link, page in zip(_links(pages), pages, strict=True)]
        if kind in ("hardware", "note"):
            parts.append(f'<ul class="list">{"".join(f"<li>{link}</li>" for link, _ in entries)}</ul>')
        else:
            said = (f"<li>{link}<br><span>{escape(visible(lead))}</span></li>" for link, lead in entries)
            parts.append(f'<ul class="said">{"".join(said)}</ul>')
    contents = [(_heading(kind), f"#{kind}") for kind in kinds]
    return Frame(file, wiki, (Link(wiki, file),), (), contents).html("\n".join(parts))


def _home(pages: Mapping[str, Sequence[Page]]) -> bytes:
    parts = ["<h1>Wikis on GPU kernels</h1>"]
    parts.append(
        "<p>Every line of a page can be cited. Paste a citation such as <code>gpu-wiki/kernel/softmax.md:L30</code> "
        "into the search, and it opens at that line; a metric or a part of its name finds the lines that have it.</p>"
    )
    for wiki, of_wiki in pages.items():
        overview = file_of(wiki, INDEX_PAGE)
        parts.append(f"<h2>{Link(wiki, overview).html(HOME)}</h2>")
        counts = (
            Link(_heading(kind), overview, f"#{kind}")
            .html(HOME)
            .replace("</a>", f"<small>{len(listed)} pages</small></a>")
            for kind, listed in _by_kind(of_wiki).items()
        )
        parts.append(f'<ul class="counts">{"".join(f"<li>{one}</li>" for one in counts)}</ul>')
    return Frame(HOME, "Wikis on GPU kernels").html("\n".join(parts))


def _llms(pages: Mapping[str, Sequence[Page]]) -> bytes:
    """llms.txt in the form of llmstxt.org: a title, a summary, and lists of links to the pages as text."""
    lines = [
        "# Wikis on GPU kernels",
        "",
        "> Pages that code can check: each line says one thing, and can be cited.",
        "",
    ]
    lines.append("Cite lines as WIKI/PATH:L30 or WIKI/PATH:L30-L32; the links below are WIKI/PATH. Lines count from 1.")
    for wiki, of_wiki in pages.items():
        for kind, listed in _by_kind(of_wiki).items():
            lines += ["", f"## {wiki}: {_heading(kind)}", ""]
            for page in listed:
                title, lead = _flat(page.meta.title), _flat(first_sentence(page))
                target = f"{page.wiki}/{page.path.replace('%', '%25')}"
                lines.append(f"- [{title}]({target})" + (f": {lead}" if lead else ""))
    return ("\n".join(lines) + "\n").encode()


def _flat(text: str) -> str:
    return visible(text).replace("[", "(").replace("]", ")")[:300]


def _index(pages: Mapping[str, Sequence[Page]]) -> bytes:
    """What is searched, as a script: a page that was opened from a folder may load no JSON."""
    found: list[Any] = []
    for page in (page for of_wiki in pages.values() for page in of_wiki):
        sections = []
        for section in page.sections:
            said: list[int | str] = []
            for block in page.blocks:
                if block.place == section.place and block.kind not in ("asks", "footnote"):
                    for number in range(block.line_start, block.line_end + 1):
                        text = page.lines[number - 1]
                        text = text if text.isprintable() else visible(text)
                        shown = text.strip() if block.kind == "code" else plain_text(text)
                        said += [number, shown] if any(map(str.isalnum, shown)) else []
            heading = plain_text(visible(section.heading))
            sections.append([section.line_start, heading, " · ".join(section.asks), said])
        file = file_of(page.wiki, page.path).replace("%", "%25")
        kind = _heading(page.meta.kind)
        found.append([file, f"{page.wiki}/{page.path}", visible(page.meta.title), kind, sections])
    return f"koptIndex({json.dumps(found, ensure_ascii=False, separators=(',', ':'))});\n".encode()


# --- into a folder --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """What a site did to its folder."""

    folder: str
    wikis: tuple[str, ...]
    pages: int
    files: int
    changed: int
    """Files that are new or have other bytes than before."""
    removed: int
    left_out: tuple[str, ...]


def check_folder(folder: Path) -> list[str]:
    """The files that were published into a folder before. Raises `UsageError` (`site_folder`): it holds others' files
    and was not written by `kopt wiki publish`, or cannot be read."""
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return []
        listed = json.loads(read_if_there(folder / MARK) or b"null") if folder.is_dir() else None
    except (OSError, ValueError, RecursionError):
        listed = None
    names = listed.get("files") if isinstance(listed, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UsageError(
            f"{folder} is not empty, and not a site that kopt published",
            code="site_folder",
            hint="Give a new folder, or an empty one.",
        )
    return [name for name in names if not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts]


def write_site(site: Site, folder: Path) -> Written:
    """Write each file of a site whole, and remove those of the site before that it has no more.

    The list of files is written first, so that a run that was killed can be repeated. Raises what `check_folder` does,
    and `KoptError` where a file cannot be written.
    """
    before = check_folder(folder)
    gone = [name for name in before if name not in site.files]
    write_all(folder, {MARK: _mark([*site.files, *gone])})
    changed = sum(read_if_there(folder / name) != data for name, data in site.files.items())
    write_all(folder, site.files)
    removed = sum(_remove(folder, name) for name in gone)
    write_all(folder, {MARK: _mark(site.files)})
    counts = (site.pages, len(site.files), changed, removed)
    return Written(str(folder), tuple(site.wikis), *counts, tuple(site.left_out))


def _mark(names: Iterable[str]) -> bytes:
    return dumps({"written_by": "kopt wiki publish", "files": sorted(names)}) + b"\n"


def _remove(folder: Path, name: str) -> bool:
    path = folder / name
    try:
        if not path.parent.resolve().is_relative_to(folder.resolve()) or not path.is_file():
            return False
        path.unlink()
        for up in PurePosixPath(name).parents:
            if str(up) != "." and not any((folder / up).iterdir()):
                (folder / up).rmdir()
    except OSError as error:
        raise write_error(error, path) from error
    return True
