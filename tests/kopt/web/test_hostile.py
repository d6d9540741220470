"""What strangers wrote is shown as text, and no address reads anything but wikis, log, receipts and runs."""

from __future__ import annotations

import html
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kbs.common.errors import UsageError
from kopt.services.viewing.runs import KnownRuns, RunLook, unsafe
from kopt.web.drawing.code import MOST_COLOURED, coloured, compared
from kopt.web.drawing.markdown import markdown
from kopt.web.linking import linked
from loop.journal.folder import RunFolder
from tests.kopt.web.site import HARM, RUN, Site

_TAGS = (
    "html head meta title link script body a header img nav form input div button main dialog h1 h2 h3 h4 dl dt dd kbd"
    " footer p span ul ol li table thead tbody tr th td details summary pre code section article aside figure"
    " figcaption svg line path rect circle text blockquote label select option datalist b small sup meter em strong"
    " hr colgroup col"
)
"""What the pages are made of."""


class _Inert(HTMLParser):
    """Collects what would have an effect that kopt did not write."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        source, href = given.get("src") or "", given.get("href") or ""
        if tag not in _TAGS.split() or any(name.startswith("on") or name == "style" for name in given):
            self.found.append(self.get_starttag_text() or tag)
        if tag == "script" and not source.startswith("/static/"):
            self.found.append(self.get_starttag_text() or tag)
        if tag == "img" and re.match(r"[a-z]+:|//", source):
            self.found.append(source)
        if re.match(r"\s*(javascript|data|file|vbscript):", href, re.IGNORECASE):
            self.found.append(href)

    def handle_decl(self, decl: str) -> None:
        if decl.lower() != "doctype html":
            self.found.append(decl)


def inert(page: str) -> None:
    """Fail where a page holds a tag, an attribute or an address that kopt did not write."""
    parser = _Inert()
    parser.feed(page)
    assert parser.found == []


def harmful(client: TestClient, site: Site) -> list[str]:
    """Addresses of pages that show what a stranger wrote."""
    key = site.key("harm-run")
    record = re.search(r'href="(/log/\w{26})"', client.get("/log?outcome=failed").text)
    assert record is not None
    return [
        f"/?q={HARM}", "/?q=what are zebra stripes and banks", f"/wiki?q={HARM}", "/wiki", "/wiki?q=zebra stripes",
        "/wiki/harm/technique/harm.html", "/wiki/harm/technique/broken.html", f"/wiki/{HARM}.html",
        "/log", f"/log?words={HARM}", f"/log?kernel={HARM}", record[1], f"/log/{HARM}", f"/log/recommend?kernel={HARM}",
        f"/log/recommend?kernel=k&dims={HARM}", "/runs", f"/runs/{key}", f"/runs/{key}/v2", f"/runs/{key}/v2?gate=1",
        f"/runs/{key}/compare?a=0&b=2", f"/runs/{key}/report", f"/runs/{HARM}", f"/bench/{HARM}", f"/{HARM}",
    ]  # fmt: skip


def test_harm_is_shown_as_text(client: TestClient, site: Site) -> None:
    shown = 0
    for address in harmful(client, site):
        said = client.get(address)
        assert said.status_code < 500, address
        inert(said.text)
        shown += "<script>document.title" in html.unescape(said.text)
    assert shown >= 12, "the harm is there, as text"


@pytest.mark.parametrize(
    "path", ["technique/link", "../secret", "..%2fsecret", "technique/../../secret", "%2fetc/passwd"]
)
def test_no_address_leads_out_of_a_wiki(client: TestClient, path: str) -> None:
    for ending in (".html", ".md", "", ".svg", ".png"):
        for wiki in ("harm", "gpu-wiki", "note/x"):
            said = client.get(f"/wiki/{wiki}/{path}{ending}")
            assert said.status_code in (404, 400), (wiki, path, ending)
            assert "secret of the house" not in said.text
            assert "root:" not in said.text


def test_files_of_kopt_itself_are_out_of_reach(client: TestClient, site: Site) -> None:
    for address in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/bench/receipt.key",
        "/bench/..%2freceipt.key",
        "/log/..%2f..%2fconfig.toml",
        "/runs/..%2f..",
        "//etc/passwd",
    ):
        said = client.get(address)
        assert said.status_code in (400, 404), address
        assert "kopt-receipt-key" not in said.text


@pytest.mark.parametrize("place", ["v2/kernel.py", "v1/proposal.json", "final_report.md", "run.json", "v1", "new"])
def test_a_run_with_a_link_is_not_read(site: Site, client: TestClient, tmp_path: Path, place: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret of the house", "utf-8")
    run = site.root / "runs" / "link-run"
    shutil.copytree(RUN, run)
    try:
        target = run / place
        if target.is_dir():
            shutil.rmtree(target)
            target.symlink_to(tmp_path)
        else:
            target.unlink(missing_ok=True)
            target.symlink_to(secret)
        assert unsafe(RunFolder(run)).startswith(place)
        known = KnownRuns.of(site.home, site.root)
        [found] = [one for one in known.all.values() if one.name == "link-run"]
        with pytest.raises(UsageError, match="is a link"):
            RunLook.of(found)
        for page in ("", "/v2", "/compare", "/report"):
            said = client.get(f"/runs/{found.key}{page}")
            assert said.status_code == 400
            assert "secret of the house" not in said.text
        assert "damaged" in client.get("/runs").text
    finally:
        shutil.rmtree(run)


def test_text_code_and_markdown_of_others() -> None:
    table = f"| {HARM} | b |\n|--:|---|\n| {HARM} | `{HARM}` |\n\n    {HARM}\n\n```{HARM}\nx\n```"
    for made in (coloured(HARM), coloured(HARM, "k.cu"), markdown(HARM), markdown(table), linked(HARM)):
        inert(str(made))
        assert "<script>document" in html.unescape(str(made))
    assert "<a" not in markdown("[x](javascript:alert(1)) <https://example.invalid> ![p](http://example.invalid/p.png)")
    assert '<a href="/wiki/gpu-wiki/kernel/softmax.html#L3-L5">' in linked("see gpu-wiki/kernel/softmax.md:L3-L5 <b>")
    assert "\\x1b" in linked("\x1b[31m") and "\\u202e" in coloured("# \u202e x")  # noqa: PT018


def test_large_files_take_no_time() -> None:
    many = "x = (((((((((( '\"'\"'\"" * (MOST_COLOURED // 10)
    assert len(coloured(many)) > len(many)
    assert "lines together" in compared("a\n" * 9_000, "b\n").why
    assert len(markdown("[" * 200_000)) > 200_000
    assert len(markdown("*a " * 6_000)) > 6_000
