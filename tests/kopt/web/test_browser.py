"""The pages in a headless browser: looks, keys, widths, a run that goes on. Skipped where none is installed."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator

import pytest

from tests.browser import NAMES, Browser, installed
from tests.conftest import ROOT
from tests.kopt.web.site import HARM, RUN, TOKEN, Site, served

pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(installed() is None, reason=f"no browser is installed: none of {', '.join(NAMES)}"),
]
AXE = ROOT / "tests/third_party/axe/axe.min.js"
QUESTION = "/?q=why%20is%20my%20softmax%20memory-bound%20on%20H100"
ENTER, DOWN, ESCAPE = ("Enter", 13), ("ArrowDown", 40), ("Escape", 27)


def pages(site: Site) -> dict[str, str]:
    """Name → address of each page."""
    key = site.key("softmax-run")
    [receipt] = (site.home / "receipts").glob("*.json")
    files = (site.home / "experience").glob("*.jsonl")
    lines = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    record = next(line["id"] for line in lines if line["kind"] == "experiment" and line["methods"])
    return {
        "first": "/", "answer": QUESTION, "unanswered": "/?q=what%20is%20the%20best%20pizza", "wiki": "/wiki",
        "search": "/wiki?q=bank%20conflict", "page": "/wiki/gpu-wiki/kernel/softmax.html", "log": "/log",
        "recommend": "/log/recommend?kernel=softmax&chip=h200", "experiment": f"/log/{record}", "runs": "/runs",
        "run": f"/runs/{key}", "version": f"/runs/{key}/v2", "compare": f"/runs/{key}/compare",
        "report": f"/runs/{key}/report", "bench": "/bench", "receipt": f"/bench/{receipt.stem}", "doctor": "/doctor",
        "error": "/nothing",
    }  # fmt: skip


NAMED = ("first", "answer", "unanswered", "wiki", "search", "page", "log", "recommend", "experiment", "runs", "run",
         "version", "compare", "report", "bench", "receipt", "doctor", "error")  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = installed()
    assert program is not None
    found = Browser(program, tmp_path_factory.mktemp("browser"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def address(made_site: Site, browser: Browser) -> Iterator[str]:
    """A server of the site, which the browser was let in to."""
    with pytest.MonkeyPatch.context() as patched, served(made_site) as where:
        patched.setenv("KOPT_HOME", str(made_site.home))
        browser.open(f"{where}/?token={TOKEN}")
        browser.until("location.search === '' && !!document.querySelector('#ask')")
        yield where


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Browser]:
    """The browser, which must log no error, breach no policy, and ask nothing of another address."""
    browser.errors.clear()
    browser.asked.clear()
    browser.size(1400)
    yield browser
    assert browser.errors == []
    assert [one for one in browser.asked if not one.startswith((address, "about:", "data:"))] == []


def visit(page: Browser, address: str, path: str) -> None:
    """Open a page; the one that is not there is logged as such by the browser itself."""
    page.open(address + path)
    if path == "/nothing":
        page.errors.clear()


@pytest.mark.parametrize("name", NAMED)
def test_a_page_at_each_width_and_colour(page: Browser, address: str, site: Site, name: str) -> None:
    visit(page, address, pages(site)[name])
    assert page.run("document.querySelectorAll('h1, article').length") >= 1
    page.run(AXE.read_text("utf-8") + ";0")
    for width, dark in itertools.product((400, 1600), (False, True)):
        page.size(width, dark=dark)
        found = page.run(
            "axe.run(document, {resultTypes: ['violations']}).then((done) => done.violations.filter((one) =>"
            " ['serious', 'critical'].includes(one.impact)).map((one) =>"
            " one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(' | ')))"
        )
        assert found == [], f"{width} wide, dark: {dark}"
    for width in (400, 700, 1000, 1600):
        page.size(width)
        wide = page.run("document.documentElement.scrollWidth")
        assert wide <= width, f"{wide} at {width}"


def test_on_a_narrow_screen_a_list_shows_each_row_and_a_plot_its_words(page: Browser, address: str, site: Site) -> None:
    within = "[...document.querySelectorAll('{} td')].every((one) => one.getBoundingClientRect().right <= 400)"
    for name in ("log", "runs", "run", "bench", "doctor"):
        visit(page, address, pages(site)[name])
        page.size(400)
        assert page.run(within.format(".list")), name
    visit(page, address, pages(site)["run"])
    page.size(400)
    tall = "document.querySelector('.plot text').getBoundingClientRect().height"
    assert page.run(tall) >= 10, "pixels of a label"
    assert page.run("document.documentElement.scrollWidth") <= 400


def test_a_source_opens_the_page_at_its_line(page: Browser, address: str) -> None:
    visit(page, address, QUESTION)
    page.run("[...document.querySelectorAll('.source a')].find((a) => a.href.includes('softmax.html')).click()")
    page.until("location.pathname.endsWith('/kernel/softmax.html')")
    line = page.until("location.hash.slice(2)").split("-")[0]
    assert page.until("document.querySelector('.hit')?.id") == f"L{line}"
    top = page.run("document.querySelector('.hit').getBoundingClientRect().top")
    assert 0 < top < 900, "the line is in view"
    page.run("history.back()")
    page.until("!!document.querySelector('#answer')")


def test_keys(page: Browser, address: str) -> None:
    visit(page, address, "/runs")
    page.press("j", 74)
    assert page.run("document.activeElement.pathname").startswith("/runs/")
    first = page.run("document.activeElement.href")
    page.press("j", 74)
    assert page.run("document.activeElement.href") != first
    page.press("k", 75)
    assert page.run("document.activeElement.href") == first
    page.press(*DOWN)
    assert page.run("document.activeElement.href") != first
    page.press("?", 191)
    assert page.run("document.querySelector('#help').open")
    page.press(*ESCAPE)
    page.run("document.querySelector('#help').close()")
    page.press("/", 191)
    assert page.run("document.activeElement.id") == "ask"
    page.type("what is j/k?")
    assert page.run("document.querySelector('#ask').value") == "what is j/k?"
    page.press(*ESCAPE)
    assert page.run("document.activeElement.id") != "ask"
    for key, code, path in (("w", 87, "/wiki"), ("l", 76, "/log"), ("b", 66, "/bench"), ("a", 65, "/")):
        page.press("g", 71)
        page.press(key, code)
        page.until(f"location.pathname === '{path}' && document.readyState === 'complete'")
    visit(page, address, "/wiki")
    page.run("document.querySelector('[data-filter]').focus()")
    page.type("softmax online")
    assert page.until("[...document.querySelectorAll('#pages li')].filter((li) => !li.hidden).length") in range(1, 6)


def test_a_title_or_a_line_that_is_not_there_is_said_to_be_none(page: Browser, address: str) -> None:
    visit(page, address, "/wiki")
    assert page.run("document.querySelector('#no-title').hidden")
    page.run("document.querySelector('[data-filter]').focus()")
    page.type("no such title")
    assert page.until("!document.querySelector('#no-title').hidden")
    assert page.run("document.querySelector('#no-title a').getAttribute('href')") == "/wiki?q=no%20such%20title"
    visit(page, address, "/wiki/gpu-wiki/kernel/softmax.html#L9999")
    assert page.run("document.querySelector('#no-line').innerText").startswith("This page has no line 9999.")
    page.run("location.hash = '#L36'")
    assert page.until("document.querySelector('#no-line').hidden && !!document.querySelector('.hit')")


def test_a_question_that_its_field_cuts_off_stands_above_the_answer(page: Browser, address: str) -> None:
    visit(page, address, QUESTION)
    shown = "getComputedStyle(document.querySelector('.asked')).display"
    assert page.run(shown) == "none"
    page.size(400)
    assert page.run(shown) == "block"
    page.size(1400)
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.run(shown) == "block"
    page.call("Emulation.setEmulatedMedia", media="")


def test_colours_are_chosen_and_kept(page: Browser, address: str) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    page.size(1400, dark=False)
    visit(page, address, "/log")
    light = page.run(ground)
    page.size(1400, dark=True)
    dark = page.run(ground)
    assert light != dark
    page.press("t", 84)
    assert page.run(ground) == light, "light is chosen where the system is dark"
    visit(page, address, "/wiki")
    assert page.run(ground) == light, "and kept on the next page"
    page.press("t", 84)
    assert page.run("document.documentElement.dataset.theme") == "dark"
    page.press("t", 84)
    assert page.run("document.documentElement.dataset.theme") is None
    page.size(1400, dark=False)


def test_harm_has_no_effect(page: Browser, address: str, site: Site) -> None:
    key = site.key("harm-run")
    for path in (
        "/wiki/harm/technique/harm.html",
        "/wiki/harm/technique/broken.html",
        "/log?outcome=failed",
        f"/runs/{key}",
        f"/runs/{key}/v2",
        f"/runs/{key}/report",
        "/?q=what%20are%20zebra%20stripes",
    ):
        visit(page, address, path)
        title, scripts, pictures = page.run(
            "[document.title, document.scripts.length, [...document.images].filter((i) => i.src.endsWith('/x')).length]"
        )
        assert (scripts, pictures) == (2, 0)
        assert title != "ran"
        assert HARM[:30] in page.run("document.body.textContent") or path.startswith("/?q=")


def test_a_run_is_shown_as_it_goes_on(page: Browser, address: str, site: Site) -> None:
    run = site.root / "runs" / "live-run"
    shutil.copytree(RUN, run)
    lines = (run / "journal.jsonl").read_bytes().splitlines(keepends=True)
    end = next(n for n, line in enumerate(lines) if b'"kind":"opened","version":2' in line)
    try:
        (run / "journal.jsonl").write_bytes(b"".join(lines[: end + 1]))
        visit(page, address, f"/runs/{site.key('live-run')}")
        assert page.run("document.querySelectorAll('.chip.live').length") > 0
        assert page.run("document.querySelectorAll('tbody tr').length") == 3
        (run / "journal.jsonl").write_bytes(b"".join(lines[:-1]))
        page.until("document.querySelectorAll('tbody tr').length === 4")
        (run / "journal.jsonl").write_bytes(b"".join(lines))
        page.until("document.querySelector('.head .chip').textContent === 'finished'")
    finally:
        shutil.rmtree(run)


def test_a_stranger_sees_nothing_and_a_script_no_cookie(page: Browser, address: str) -> None:
    visit(page, address, "/log")
    assert page.run("document.cookie") == ""
    page.open(address.replace("127.0.0.1", "localhost") + "/log")
    assert "not been let in" in page.run("document.body.textContent")
    assert re.search("401", "".join(page.errors))
    page.errors.clear()
    page.asked.clear()
