"""Addresses as people type them: a citation, a page's name, a folder, what a page is about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from tests.kopt.web.site import RUN, Site

SOFTMAX = "/wiki/gpu-wiki/kernel/softmax.html"


@pytest.mark.parametrize(
    ("typed", "place"),
    [
        ("/wiki/gpu-wiki/kernel/softmax.md:L36", f"{SOFTMAX}#L36"),
        ("/wiki/gpu-wiki/kernel/softmax.md", SOFTMAX),
        ("/wiki/kernel/softmax", SOFTMAX),
        ("/wiki/softmax", SOFTMAX),
        ("/wiki/", "/wiki"),
        ("/wiki/gpu-wiki", "/wiki"),
        ("/wiki/gpu-wiki/kernel/", "/wiki"),
        ("/ask?q=what%20is%20a%20bank%20conflict", "/?q=what%20is%20a%20bank%20conflict"),
        ("/search?q=bank", "/wiki?q=bank"),
        ("/receipts", "/bench"),
        ("/experiments", "/log"),
    ],
)
def test_an_address_that_is_typed_leads_to_its_page(client: TestClient, typed: str, place: str) -> None:
    done = client.get(typed, follow_redirects=False)
    assert (done.status_code, done.headers["location"]) == (302, place)
    assert client.get(typed).status_code == 200


def test_what_is_not_there_is_told_with_the_list_of_its_kind(client: TestClient) -> None:
    for address, all_of in (("/log/nope", "/log"), ("/runs/nope", "/runs"), ("/bench/nope", "/bench")):
        done = client.get(address)
        assert done.status_code == 404
        assert f'<a class="button" href="{all_of}">' in done.text
    assert "kopt log list" not in client.get("/log/nope").text
    assert "Did you mean" in client.get("/wiki/gpu-wiki/kernel/softmx").text
    assert client.get("/nothing").status_code == 404


def test_what_was_read_otherwise_is_told_once(client: TestClient) -> None:
    assert "(read “H1OO” as “H100”)" in client.get("/?q=what is the memory bandwidth of the H1OO SXM").text
    assert "(no GPU named h1000 is known)" in client.get("/?q=why is softmax slow&gpu=h1000").text


@pytest.mark.parametrize(("typed", "read"), [("half", "fp16"), ("float", "fp32"), ("double", "fp64")])
def test_an_element_type_may_be_named_as_in_cuda(client: TestClient, typed: str, read: str) -> None:
    asked = "/?q=is softmax memory-bound on H100&dtype="
    leads = [
        client.get(asked + dtype).text.partition("Why")[0].partition("claims checked")[2] for dtype in (typed, read)
    ]
    assert read.upper() in leads[0]
    assert leads[0].partition(" ms")[2] == leads[1].partition(" ms")[2]


def test_a_run_with_one_version_has_nothing_to_compare(site: Site, tmp_path: Path) -> None:
    for name, lines in (("whole", None), ("begun", 8)):
        shutil.copytree(RUN, tmp_path / "runs" / name)
        journal = tmp_path / "runs" / name / "journal.jsonl"
        journal.write_text("".join(journal.read_text("utf-8").splitlines(keepends=True)[:lines]), "utf-8")
    at = Site(site.home, tmp_path)
    with at.client() as client:
        whole, begun = (client.get(f"/runs/{at.key(name)}").text for name in ("whole", "begun"))
        assert '<a class="button" href="/runs/' in whole
        assert "/compare" in whole
        assert "v0" in begun
        assert "/compare" not in begun
        assert "has no final report" in client.get(f"/runs/{at.key('begun')}/report").text
        assert "has no final report" not in client.get(f"/runs/{at.key('whole')}/report").text


def test_a_recommendation_for_no_kernel_asks_for_one(client: TestClient) -> None:
    done = client.get("/log/recommend?chip=h200")
    assert done.status_code == 400
    assert "no kernel or operation is named" in done.text
    assert 'value="h200"' in done.text
    assert client.get("/log/recommend").status_code == 200
    assert 'name="kernel"' in done.text.partition(" required>")[0].rpartition("<input")[2]
