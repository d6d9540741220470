"""The published site in a headless browser: search, citations, figures, widths, colors. Skipped where there is none."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbs.evidence.vocabulary import vocabulary
from kopt.services.publishing.site import build_site, write_site
from scripts.figures import FIGURES, FOLDER, WIDTH
from tests.browser import NAMES, Browser, installed
from wiki.library import Wiki, bundled_wiki

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(installed() is None, reason=f"no browser is installed: none of {', '.join(NAMES)}"),
]
WIDTHS = (400, 1400)
METRIC = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared"
HOSTILE = (
    """# T

<script>document.title = "ran"</script> <img src=x onerror="document.title = 'ran'">

[x](javascript:document.title='ran') ![far](https://example.invalid/x.png)

| """
    + "a long cell without end " * 20
    + """ | b |
|---|---|
| `"""
    + "name__without_a_blank" * 30
    + """` | c |
"""
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = installed()
    assert program is not None
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of the bundled wiki and of a hostile one."""
    root = tmp_path_factory.mktemp("wikis") / "team"
    (root / "technique").mkdir(parents=True)
    front = "id: technique/tile\nkind: technique\ntitle: T\nconfidence: verified\nreviewed: 2026-11-22\n"
    source = '  - {id: s, title: S, url: "javascript:alert(1)", kind: article, accessed: 2026-11-22}\n'
    (root / "technique/tile.md").write_text(f"---\n{front}sources:\n{source}---\n\n{HOSTILE}")
    out = tmp_path_factory.mktemp("site")
    site = build_site([bundled_wiki(), Wiki("team", root)], vocabulary())
    assert site.left_out == []
    write_site(site, out)
    return out


@pytest.fixture(scope="module", params=["server", "folder"])
def address(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    """The site's address, from a server of this machine or from the folder itself."""
    if request.param == "folder":
        yield folder.as_uri() + "/"
        return

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    serve = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """The browser, which must log no error and ask nothing of another site."""
    browser.errors.clear()
    browser.asked.clear()
    browser.size(1400)
    yield browser
    assert browser.errors == []
    assert [url for url in browser.asked if not url.startswith((address, "about:", "data:"))] == []


def search(page: Browser, text: str) -> None:
    page.run("document.getElementById('kopt-search').focus()")
    page.type(text)
    page.until("document.querySelectorAll('#kopt-found a').length > 0")


IN_VIEW = """(() => {
  const at = document.querySelector(%r)?.getBoundingClientRect();
  const top = document.querySelector("header").getBoundingClientRect().bottom;
  return !!at && at.top >= top && at.bottom <= innerHeight;
})()"""


@pytest.mark.parametrize("asked", [METRIC, "conflicts_pipe_lsu", "BANK_CONFLICTS_PIPE"])
@pytest.mark.parametrize("width", WIDTHS)
def test_search_finds_a_metric_and_a_part_of_its_name(page: Browser, address: str, asked: str, width: int) -> None:
    page.size(width)
    page.open(f"{address}index.html")
    search(page, asked)
    assert METRIC in page.run("document.getElementById('kopt-found').textContent")
    assert page.run("document.querySelector('#kopt-found mark').textContent").lower() == asked.lower()
    page.press("Enter", 13)
    page.until("location.hash.startsWith('#L') && document.readyState === 'complete'")
    page.until("!!document.querySelector('.hit')")
    assert asked.lower() in page.run("document.querySelector('.hit').textContent").lower()
    assert page.until(IN_VIEW % ".hit")


@pytest.mark.parametrize("width", WIDTHS)
def test_a_citation_lands_on_its_line(page: Browser, address: str, width: int) -> None:
    lines = (bundled_wiki().read("hardware/h100-sxm.md") or b"").decode().split("\n")
    number = next(n for n, text in enumerate(lines, start=1) if text.startswith("| HBM bandwidth | 3.35 |"))
    page.size(width)
    page.open(f"{address}gpu-wiki/hardware/h100-sxm.html#L{number}")
    assert page.until(IN_VIEW % f"#L{number}")
    assert "3.35" in page.run(f"document.getElementById('L{number}').textContent")
    color = "getComputedStyle(document.querySelector('%s')).backgroundColor"
    assert page.run(color % f"#L{number} > td") != page.run(color % f"#L{number - 1} > td")
    page.open(f"{address}index.html")
    search(page, f"gpu-wiki/hardware/h100-sxm.md:L{number}@0123456789")
    page.press("Enter", 13)
    page.until(f"location.hash === '#L{number}' && document.readyState === 'complete'")
    assert page.until(IN_VIEW % f"#L{number}")


def test_lines_of_a_range_and_hidden_lines_are_shown(page: Browser, address: str) -> None:
    page.open(f"{address}gpu-wiki/kernel/softmax.html#L2-L4")
    assert page.until("document.querySelectorAll('.hit').length === 3")
    assert page.until("document.querySelector('main > details').open")
    assert page.until(IN_VIEW % "#L2")


def test_figures_are_drawn(page: Browser, address: str) -> None:
    page.open(f"{address}gpu-wiki/technique/memory-hierarchy.html")
    assert page.run("document.images.length") == 1
    assert page.until(f"[...document.images].every((one) => one.complete && one.naturalWidth === {WIDTH})")


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_scrolls_sideways(page: Browser, address: str, folder: Path, width: int) -> None:
    page.size(width)
    names = ["index.html", "gpu-wiki/README.html", "team/technique/tile.html"]
    for kind in sorted((folder / "gpu-wiki").iterdir()):
        names += (
            [f"gpu-wiki/{kind.name}/{max(kind.glob('*.html'), key=lambda one: one.stat().st_size).name}"]
            if kind.is_dir() and any(kind.glob("*.html"))
            else []
        )
    for name in names:
        page.open(address + name)
        assert page.run("document.documentElement.scrollWidth") <= width, name
        assert page.run("document.querySelector('main').getBoundingClientRect().right") <= width, name


def test_hostile_text_does_nothing(page: Browser, address: str) -> None:
    page.open(f"{address}team/technique/tile.html")
    assert page.run("document.title") == "T · team"
    assert page.run("document.images.length + document.scripts.length") == 1
    assert page.run("[...document.links].filter((one) => one.protocol === 'javascript:').length") == 0
    search(page, "onerror")
    assert page.run("document.title") == "T · team"


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_in_light_and_dark(page: Browser, address: str, dark: bool) -> None:
    page.size(1400, dark=dark)
    page.open(f"{address}gpu-wiki/kernel/softmax.html")
    light = """(() => {
      const of = (name, what) => getComputedStyle(document.querySelector(name))[what].match(/\\d+/g).slice(0, 3)
        .map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
      const back = of("body", "backgroundColor");
      return ["body", "main p a", ".about", ".kinds li a"].map((name) => of(name, "color"))
        .map((c) => (Math.max(c, back) + 0.05) / (Math.min(c, back) + 0.05)).concat(back);
    })()"""
    *contrasts, back = page.run(light)
    assert min(contrasts) >= 4.5  # WCAG 2.2, 1.4.3
    assert (back < 0.1) is dark


def test_no_text_of_a_figure_is_cut_off_or_covers_another(browser: Browser) -> None:
    browser.size(1400)
    for name in FIGURES:
        browser.open((FOLDER / name).as_uri())
        boxes = browser.run(
            "[...document.querySelectorAll('text')].map((one) => [one.getBBox(), one.textContent])"
            ".map(([b, said]) => [b.x, b.y, b.x + b.width, b.y + b.height, said])"
        )
        height = browser.run("document.documentElement.viewBox.baseVal.height")
        for left, top, right, bottom, said in boxes:
            assert left >= 0, (name, said)
            assert right <= WIDTH, (name, said)
            assert top >= 0, (name, said)
            assert bottom <= height, (name, said)
        for at, (left, top, right, bottom, said) in enumerate(boxes):
            for other_left, other_top, other_right, other_bottom, other in boxes[at + 1 :]:
                apart = right <= other_left or other_right <= left or bottom - 4 <= other_top or other_bottom - 4 <= top
                assert apart, (name, said, other)
