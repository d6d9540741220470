"""The published site: every line can be linked to, hostile text has no effect, and no other file is touched."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kbs.evidence.vocabulary import vocabulary
from kopt.services.publishing.layout import POLICY
from kopt.services.publishing.pictures import harmless_svg, read_picture
from kopt.services.publishing.site import LLMS, MARK, Site, build_site, check_folder, write_site
from scripts.figures import FIGURES
from wiki.library import Wiki, bundled_wiki

MakePage = Callable[..., str]
SVG = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9" width="9" height="9">{}</svg>'
_TEXT = "h1 h2 h3 h4 h5 h6 p span sup code pre ul ol li table thead tbody tr th td figure figcaption em strong small"
_AROUND = "html head meta title link script body header nav div main a img input blockquote br hr details summary"
_TAGS = frozenset([*_TEXT.split(), *_AROUND.split()])


class Read(HTMLParser):
    """Tags, ids and links of a page."""

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> list[str]:
        """Every value of an attribute."""
        return [str(attrs[name]) for _, attrs in self.tags if name in attrs]


@pytest.fixture(scope="module")
def bundled() -> Site:
    return build_site([bundled_wiki()], vocabulary())


@pytest.fixture
def team(tmp_path: Path, page: MakePage) -> Callable[..., tuple[Site, Read]]:
    """The site of a wiki with one page, and that page."""

    def build(body: str, **files: bytes | str) -> tuple[Site, Read]:
        (tmp_path / "team/technique").mkdir(parents=True, exist_ok=True)
        (tmp_path / "team/technique/tile.md").write_text(page("technique/tile", body))
        for name, data in files.items():
            path = tmp_path / "team/technique" / name.replace("__", ".")
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
        site = build_site([Wiki("team", tmp_path / "team")], vocabulary())
        return site, Read(site.files["team/technique/tile.html"])

    return build


@pytest.mark.slow
def test_each_line_of_each_page_is_an_anchor(bundled: Site) -> None:
    assert bundled.left_out == []
    assert bundled.pages == len(bundled_wiki().files())
    for file in bundled_wiki().files():
        read = Read(bundled.files[f"gpu-wiki/{file.path.removesuffix('.md')}.html"])
        ids = read.all("id")
        assert len(ids) == len(set(ids)), file.path
        text = (bundled_wiki().read(file.path) or b"").decode()
        lines = {f"L{number}" for number, line in enumerate(text.split("\n"), start=1) if line.strip()}
        assert lines <= set(ids), (file.path, sorted(lines - set(ids))[:5])


def test_an_anchor_has_the_text_of_its_line(team: Callable[..., tuple[Site, Read]]) -> None:
    body = (
        "# T\n\nOne *a\nb* two.\nThree `c`.\n\n- four\n  five\n\n| h | i |\n|---|--:|\n| six | 7 |\n\n```py\nx = 8\n```"
    )
    site, _ = team(body)
    html, raw = site.files["team/technique/tile.html"].decode(), site.files["team/technique/tile.md"].decode()
    for number, text in enumerate(raw.split("\n"), start=1):
        at = re.search(rf'id="L{number}"[^>]*>(.*?)(?=id="L\d|$)', html, re.DOTALL)
        for word in re.findall(r"\b(?:one|two|three|four|five|six|x = 8)\b", text.lower()):
            assert at, number
            assert word in at[1].lower(), number


@pytest.mark.slow
def test_links_lead_somewhere(bundled: Site) -> None:
    """Every address of every page: a file of the site and an anchor in it, or the web, from which nothing comes."""
    read = {name: Read(data) for name, data in bundled.files.items() if name.endswith(".html")}
    ids = {name: set(one.all("id")) for name, one in read.items()}
    for name, one in read.items():
        assert {tag for tag, _ in one.tags} <= _TAGS
        assert {key for _, attrs in one.tags for key in attrs} & {"style", "onclick", "onerror", "srcset"} == set()
        for tag, attrs in one.tags:
            target = attrs.get("href") or attrs.get("src") or ""
            if tag == "a" and target.startswith("http"):
                assert attrs["rel"] == "noopener noreferrer nofollow"
                continue
            path, _, anchor = target.partition("#")
            parts = [*name.split("/")[:-1], *path.split("/")] if path else name.split("/")
            while ".." in parts:
                at = parts.index("..")
                del parts[at - 1 : at + 1]
            file = "/".join(one for one in parts if one != ".")
            if target:
                assert file in bundled.files, (name, target)
            if anchor:
                assert anchor in ids[file], (name, target)


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "a <b onclick='alert(1)'>b</b>",
        "[x](javascript:alert(1)) [x](JaVaScRiPt:alert(1)) [x](data:text/html,x) [x](vbscript:x) <javascript:alert(1)>",
        "[x](//evil.example/x) [x](file:///etc/passwd) [x](/etc/passwd) [x](../../../secret.md) [x](tile.md%00.html)",
        '![x](https://evil.example/x.png) ![x](../../../secret.png) !["><script>](x.svg)',
        '[x](https://a.example/"onmouseover=alert(1))',
        '# <script>alert(1)</script>\n\n## " onclick=x id=y',
        '```"><script>\nalert(1)</script>\n```',
        "| <script>a</script> | b |\n|---|---|\n| <!-- x --> | <img src=x> |",
        "[^1]: <script>x</script>\n\nA[^1] [^<script>]",
        "[a]: javascript:alert(1)\n\n[a] [b][a]",
        "<!-- a --><script>alert(1)</script>",
        "<!-- asks: <script>x</script> · b · c -->",
        "\u202egnp.exe \x0c \x85 \u2028",
        "<style>*{display:none}</style><meta http-equiv=refresh content=0><base href=//evil.example>",
        "&lt;script&gt; &#x3C;script&#x3E; \\<script\\>",
    ],
)
def test_hostile_text_is_text(team: Callable[..., tuple[Site, Read]], text: str) -> None:
    site, read = team(f"# T\n\nFirst.\n\n{text}\n\nLast.")
    plain, _ = team("# T")
    usual = Read(plain.files["team/technique/tile.html"])
    assert {tag for tag, _ in read.tags} <= _TAGS
    for tag in ("script", "link", "meta", "input", "img"):
        assert [attrs for name, attrs in read.tags if name == tag] == [
            attrs for name, attrs in usual.tags if name == tag
        ]
    names = {key for _, attrs in read.tags for key in attrs}
    assert not {name for name in names if name.startswith("on") or name == "style"}
    for href in read.all("href"):
        assert re.match(r"https?://|mailto:|#|(?:\.\./)*[\w.-]+[\w./#-]*$", href), href
        assert "passwd" not in href
    assert not re.search(r"[\u202e\x0c\x85\u2028]", site.files["team/technique/tile.html"].decode())
    assert f'content="{POLICY}"'.replace("'", "&#x27;") in site.files["team/technique/tile.html"].decode()


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "*a " * 100_000, "`" * 99_999, "![" * 90_000, "<" * 200_000, "> " * 300_000]
)
@pytest.mark.slow
def test_a_hostile_page_takes_seconds_at_most(team: Callable[..., tuple[Site, Read]], text: str) -> None:
    begun = time.monotonic()
    team(f"# T\n\n{text}")
    assert time.monotonic() - begun < 20


def test_citations_and_pages_are_linked(team: Callable[..., tuple[Site, Read]]) -> None:
    _, read = team(
        "# T\n\nSee team/technique/tile.md:L3 and `team/technique/tile.md:L3-L5@0123456789`, [itself](tile.md#t).\n\n"
        "Nothing at other/technique/tile.md:L3, and [b](team/technique/tile.md:L9)."
    )
    hrefs = [href for href in read.all("href") if "tile.html" in href]
    assert hrefs.count("tile.html#L3") == 1
    assert "tile.html#L3-L5" in hrefs
    assert "tile.html#t" in hrefs
    assert not any("L9" in href for href in hrefs)


# --- pictures -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_our_figures_are_harmless_and_published(bundled: Site) -> None:
    for name, draw in FIGURES.items():
        assert harmless_svg(draw().encode())
        assert bundled.files[f"gpu-wiki/figures/{name}"] == draw().encode()
    page = Read(bundled.files["gpu-wiki/profiling/roofline.html"])
    (img,) = (attrs for tag, attrs in page.tags if tag == "img")
    assert (img["src"], img["width"]) == ("../figures/roofline.svg", "480")


@pytest.mark.parametrize(
    "inner",
    [
        "<script>alert(1)</script>",
        '<rect onload="alert(1)"/>',
        '<a href="https://evil.example"><text>x</text></a>',
        '<image href="https://evil.example/x.png"/>',
        "<style>@import 'https://evil.example/x.css';</style>",
        "<style>rect{fill:url(https://evil.example/x)}</style>",
        "<style>rect{fill:u\\72l(https://evil.example/x)}</style>",
        '<rect style="fill:url(//evil.example/x)"/>',
        "<foreignObject><body xmlns='http://www.w3.org/1999/xhtml'/></foreignObject>",
        '<set attributeName="href" to="javascript:alert(1)"/>',
        '<use xlink:href="#x" xmlns:xlink="http://www.w3.org/1999/xlink"/>',
        '<h:script xmlns:h="http://www.w3.org/1999/xhtml">x</h:script>',
        "<rect",
    ],
)
def test_an_svg_that_does_more_than_draw_is_left_out(team: Callable[..., tuple[Site, Read]], inner: str) -> None:
    assert harmless_svg(SVG.format('<rect fill="url(#a)"/>').encode())
    site, read = team("# T\n\n![what it shows](x.svg)", x__svg=SVG.format(inner))
    assert not [tag for tag, _ in read.tags if tag == "img"]
    assert "what it shows" in read.text
    (said,) = site.left_out
    assert "x.svg is left out: an SVG with more than shapes" in said
    assert "team/technique/x.svg" not in site.files


@pytest.mark.parametrize("head", ["<!DOCTYPE svg [<!ENTITY a 'b'>]>", "<?xml-stylesheet href='https://evil.example'?>"])
def test_an_svg_with_a_head_of_its_own_is_left_out(head: str) -> None:
    assert harmless_svg(f"<?xml version='1.0'?><!-- a -->{SVG.format('')}".encode())
    assert not harmless_svg(f"{head}{SVG.format('')}".encode())


def test_a_picture_is_what_its_name_says_and_in_the_wiki(tmp_path: Path) -> None:
    root = tmp_path / "team"
    root.mkdir()
    wiki = Wiki("team", root)
    (root / "a.png").write_bytes(b"\x89PNG\r\n")
    (root / "b.png").write_bytes(b"<html>")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG")
    (root / "link.png").symlink_to(tmp_path / "secret.png")
    assert read_picture(wiki, "a.png") == b"\x89PNG\r\n"
    for path in ("b.png", "../secret.png", "link.png", "c.png", "a.txt"):
        assert isinstance(read_picture(wiki, path), str), path


# --- search, llms.txt, notes ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_index_has_every_metric_with_its_line(bundled: Site) -> None:
    text = bundled.files["_/index.js"].decode()
    pages = json.loads(text.removeprefix("koptIndex(").removesuffix(");\n"))
    lines = {
        (cited, said[at]): said[at + 1]
        for _, cited, _, _, sections in pages
        for *_, said in sections
        for at in range(0, len(said), 2)
    }
    for file in bundled_wiki().files():
        raw = (bundled_wiki().read(file.path) or b"").decode().split("\n")
        for (cited, number), shown in lines.items():
            if cited == f"gpu-wiki/{file.path}":
                for name in re.findall(r"`((?:smsp|sm|dram|lts|l1tex)__\w+)", raw[number - 1]):
                    assert name in shown


@pytest.mark.slow
def test_llms_txt_has_the_form_of_llmstxt_org(bundled: Site) -> None:
    lines = bundled.files[LLMS].decode().split("\n")
    assert lines[0].startswith("# ")
    assert lines[2].startswith("> ")
    kinds = [line for line in lines if line.startswith("#")][1:]
    assert all(line.startswith("## gpu-wiki: ") for line in kinds)
    items = [line for line in lines if line.startswith("- ")]
    links = [re.fullmatch(r"- \[[^\[\]]+\]\(([^()\s]+)\)(?:: .+)?", line) for line in items]
    targets = [link[1] for link in links if link]
    assert len(targets) == len(items) == bundled.pages
    assert bundled.files[targets[0]].startswith(b"---")


def test_notes_are_published_as_they_are(tmp_path: Path) -> None:
    root = tmp_path / "papers"
    root.mkdir()
    (root / "a b.txt").write_text("# no heading <b>\n\nSecond *line*.\n")
    (root / "a.md").write_text("# A\n\nSee note/papers/a%20b.txt:L3.\n")
    site = build_site([Wiki("note/papers", root)], vocabulary())
    text = site.files["note/papers/a%20b.txt.html"].decode()
    assert '<span class="line" id="L3">Second *line*.</span>' in text
    assert "no heading &lt;b&gt;" in text
    assert 'href="a%2520b.txt.html#L3"' in site.files["note/papers/a.md.html"].decode()


def test_a_page_that_cannot_be_read_is_told_of(team: Callable[..., tuple[Site, Read]]) -> None:
    site, _ = team("# T", bad__md="no front matter")
    assert len(site.left_out) == 1
    assert site.left_out[0].startswith("team/technique/bad.md:1: ")
    assert site.pages == 1


# --- into a folder --------------------------------------------------------------------------------------------------


def test_a_folder_of_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for marked in (None, "no JSON", "[]", '{"files": [1]}'):
        if marked:
            (tmp_path / MARK).write_text(marked)
        with pytest.raises(UsageError, match="not a site that kopt published"):
            write_site(Site({"index.html": b"x"}), tmp_path)
    with pytest.raises(UsageError):
        check_folder(tmp_path / "mine")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([MARK, "mine"])


def test_publishing_again_replaces_what_changed_and_removes_what_is_gone(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = write_site(Site({"index.html": b"1", "a/b.html": b"2", "a/c.html": b"3"}), out)
    assert (first.files, first.changed, first.removed) == (3, 3, 0)
    (out / "CNAME").write_text("kept")
    (out / "a/mine.html").write_text("kept")
    again = write_site(Site({"index.html": b"1", "a/c.html": b"4"}), out)
    assert (again.files, again.changed, again.removed) == (2, 1, 1)
    left = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert left == ["CNAME", "a/c.html", "a/mine.html", "index.html", MARK]
    assert (out / "a/c.html").read_bytes() == b"4"


def test_a_list_of_files_cannot_name_those_outside(tmp_path: Path) -> None:
    out, outside = tmp_path / "out", tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_text("kept")
    write_site(Site({"index.html": b"1"}), out)
    (out / "link").symlink_to(outside)
    (out / MARK).write_text(json.dumps({"files": ["../outside/x", str(outside / "x"), "link/x", "index.html"]}))
    assert write_site(Site({"index.html": b"2"}), out).removed == 0
    assert (outside / "x").exists()


def test_a_run_that_was_killed_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import kopt.services.publishing.site as module

    writes = module.write_all

    def killed(root: Path, files: dict[str, bytes]) -> dict[str, str]:
        if MARK not in files:
            raise KeyboardInterrupt
        return writes(root, files)

    monkeypatch.setattr(module, "write_all", killed)
    with pytest.raises(KeyboardInterrupt):
        write_site(Site({"index.html": b"1"}), tmp_path / "out")
    monkeypatch.undo()
    assert write_site(Site({"index.html": b"1"}), tmp_path / "out").changed == 1


def test_the_same_wikis_give_the_same_bytes(team: Callable[..., tuple[Site, Read]]) -> None:
    assert team("# T\n\nText.")[0].files == team("# T\n\nText.")[0].files
