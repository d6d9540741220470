"""Who is let in, and what every answer forbids."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from kopt.web.app import PAGES
from tests.kopt.web.site import PORT, TOKEN, Site

HOST = f"127.0.0.1:{PORT}"


def test_no_page_without_the_token(site: Site) -> None:
    stranger = site.client(enter=False)
    for path, _ in PAGES:
        for given in (path, f"{path}?token=wrong", f"{path}?token={TOKEN[:-1]}", f"{path}?token="):
            assert stranger.get(given.replace("{", "").replace("}", "")).status_code == 401
    for cookie in ("", "x", TOKEN, '"; \\', "\u00e9"):
        said = stranger.get("/wiki", headers={"Cookie": f"kopt-{PORT}={cookie}".encode("latin-1", "replace")})
        assert said.status_code == 401
    assert stranger.get(f"/wiki?token={TOKEN}").status_code == 401, "the token opens the first page alone"
    assert stranger.get("/static/app.css").status_code == 200


def test_the_token_becomes_a_cookie_that_nobody_else_gets(site: Site) -> None:
    said = site.client(enter=False).get("/", params={"token": TOKEN})
    cookie = said.headers["set-cookie"]
    assert re.search(r"; HttpOnly", cookie)
    assert re.search(r"; SameSite=strict", cookie)
    assert str(PORT) in cookie
    assert TOKEN not in cookie
    assert TOKEN not in said.text


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"{HOST}.evil.example", ""]
)
def test_a_name_that_leads_here_is_no_name_of_ours(client: TestClient, host: str) -> None:
    said = client.get("/", headers={"Host": host})
    assert said.status_code == 421
    assert "softmax" not in said.text


def test_another_sites_page_may_not_ask(client: TestClient) -> None:
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ):
        assert client.get("/log", headers=headers).status_code == 403, headers
    for headers in (
        {"Origin": f"http://{HOST}"},
        {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
    ):
        assert client.get("/log", headers=headers).status_code == 200, headers


def test_pages_are_only_read(client: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        for path, _ in PAGES:
            assert client.request(method, path.replace("{", "").replace("}", "")).status_code == 405


def test_every_answer_has_the_policy(client: TestClient, site: Site) -> None:
    stranger = site.client(enter=False)
    for said in (client.get("/"), client.get("/nothing"), client.get("/static/app.js"), stranger.get("/"),
                 client.get("/log/nothing"), client.get("/", headers={"Host": "evil.example"})):  # fmt: skip
        policy = said.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert said.headers["x-content-type-options"] == "nosniff"
        assert said.headers["referrer-policy"] == "no-referrer"
