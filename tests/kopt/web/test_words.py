"""How words of pages and counts read."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_passages_that_were_found_are_shown_without_marks(client: TestClient) -> None:
    text = client.get("/wiki", params={"q": "TMA multicast"}).text
    snippets = text.split('<ol class="hits"')[1].split("</ol>")[0]
    assert snippets.count("<p>") >= 8
    for mark in ("\\n", "](", "[^"):
        assert mark not in snippets, mark


def test_one_of_a_kind_is_no_plural(client: TestClient) -> None:
    text = client.get("/", params={"q": "what is the HBM bandwidth of H200 SXM"}).text
    assert "1 claim checked · 1 source ·" in text
