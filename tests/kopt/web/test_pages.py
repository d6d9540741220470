"""Each page: what it shows of a home, a wiki, a log and a run, and where its links lead."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from kopt.web.app import make_app
from kopt.web.desk import Desk
from tests.kopt.web.site import PORT, TOKEN, Site
from wiki.library import bundled_wiki


def seen(client: TestClient, path: str, status: int = 200) -> str:
    """The text of a page, without its tags."""
    said = client.get(path)
    assert said.status_code == status, said.text[-2000:]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", said.text)).split())


def test_an_answer_stands_beside_its_sources_and_each_leads_to_its_line(client: TestClient) -> None:
    page = client.get("/?q=why is my softmax memory-bound on H100").text
    text = html.unescape(re.sub(r"<[^>]+>", " ", page))
    assert "Memory-bound: softmax in FP32 does 0.625 FLOP per byte" in text
    assert "answered" in text
    marks = set(re.findall(r'data-source="(\d+)"', page))
    sources = re.findall(r'<li id="s(\d+)" class="source">.*?<a href="([^"]+)">', page, re.DOTALL)
    assert marks == {number for number, _ in sources}
    for _, address in sources:
        path, _, line = html.unescape(address).partition("#")
        page_cited = client.get(path)
        assert page_cited.status_code == 200
        assert line or path.startswith("/log/")
        assert not line or f'id="{line.split("-")[0]}"' in page_cited.text, address
    assert 'long=1">' in page
    assert len(client.get("/?q=why is my softmax memory-bound on H100&long=1").text) > len(page)


def test_what_is_not_known_is_said_and_noted_for_the_wiki(client: TestClient, site: Site) -> None:
    text = seen(client, "/?q=what is the best pizza in Rome")
    assert "not answered" in text
    assert "claims checked" not in text, "nothing was claimed"
    assert "pizza" in (site.home / "gaps.jsonl").read_text("utf-8")


def test_options_of_a_question(client: TestClient) -> None:
    assert "H200" in seen(client, "/?q=what is the HBM bandwidth&gpu=h200")
    assert "not an element type" in seen(client, "/?q=how slow is softmax&dtype=fp99", 400)
    text = seen(client, "/?q=how long does a softmax take on H200&dims=M=16384,N=4096")
    assert "minimum time at M=16384, N=4096" in text
    assert "example sizes" not in text
    assert "example sizes M=4096, N=4096; give yours with “Sizes”" in seen(client, "/?q=why is softmax slow on H200")
    assert "--dims" not in seen(client, "/?q=why is softmax slow on H200")
    wrong = client.get("/?q=how slow is softmax&dims=M=x&gpu=h200")
    assert wrong.status_code == 400
    for said in (
        "&#39;M=x&#39; is not NAME=NUMBER",
        'value="how slow is softmax"',
        'value="h200"',
        "Examples of “Sizes”",
    ):
        assert said in wrong.text, said
    assert "What do you want to know" in seen(client, "/?q=   ")


def test_the_wiki_is_listed_and_searched(client: TestClient) -> None:
    text = seen(client, "/wiki")
    for said in ("gpu-wiki", f"{len(list(bundled_wiki().files()))} pages", "Softmax", "Hardware", "Techniques"):
        assert said in text
    assert "gpu-wiki/" in seen(client, "/wiki?q=bank conflict")
    assert client.get("/wiki/gpu-wiki/README.html", follow_redirects=False).headers["location"] == "/wiki"
    wrong = client.get("/wiki/gpu-wiki/kernel/softmx.html")
    assert wrong.status_code == 404
    assert 'Did you mean <a href="/wiki/gpu-wiki/kernel/softmax.html#L1">' in wrong.text
    assert "The list has every page" in seen(client, "/wiki/gpu-wiki/kernel/qqqqqqqqqqqqqqqqqqqqqqqqqq.html", 404)


def test_a_page_shows_its_figures_and_sources(client: TestClient) -> None:
    wiki = bundled_wiki()
    path = next(file.path for file in wiki.files() if b".svg)" in (wiki.read(file.path) or b""))
    with_figure = f"/wiki/gpu-wiki/{path.removesuffix('.md')}.html"
    source = re.search(r'<img src="([^"]+\.svg)"', client.get(with_figure).text.partition("<main")[2])
    assert source is not None
    picture = client.get(f"{with_figure.rpartition('/')[0]}/{source[1]}")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "sandbox" in picture.headers["content-security-policy"]
    text = seen(client, "/wiki/gpu-wiki/kernel/softmax.html")
    for said in ("Softmax", "Sources", "On this page", "reviewed"):
        assert said in text


def test_the_log_is_filtered_searched_and_paged(client: TestClient) -> None:
    assert "4 of 4 experiments" in seen(client, "/log")
    assert "3 of 4 experiments" in seen(client, "/log?op=softmax&chip=h200")
    assert "1 of 4 experiments" in seen(client, "/log?outcome=neutral")
    assert "No experiment fits" in seen(client, "/log?method=tensor_cores")
    wrong = client.get("/log?op=nothing&method=tiling")
    assert wrong.status_code == 400
    assert "unknown “Operation” &#39;nothing&#39;" in wrong.text, "what a form cannot read is said in its words"
    assert 'name="method" value="tiling"' in wrong.text, "beside the form as it was filled in"
    assert "ilp_unroll_register_tile" in seen(client, "/log?words=whole row in registers")
    assert seen(client, "/log?page=9") == seen(client, "/log"), "beyond the last page is the last one"
    assert "4 of 4" in seen(client, "/log?page=-3")
    assert "4 of 4" in seen(client, "/log?page=１")


def test_what_to_try_and_an_experiment_with_its_receipt(client: TestClient) -> None:
    page = client.get("/log/recommend?kernel=softmax&chip=h200").text
    assert "ilp_unroll_register_tile" in page
    record = re.search(r'href="/log/(\w{26})"', page)
    assert record is not None
    text = seen(client, f"/log/{record[1]}")
    assert "measured" in text
    assert "dram_bytes_read" in text
    assert re.search(r"dram_bytes_read [\d,]{9,} [\d,]{9,} ", text), "without zeros behind the point"
    receipt = re.search(r'href="(/bench/\w{64})"', client.get(f"/log/{record[1]}").text)
    assert receipt is not None
    assert "NVIDIA H200" in seen(client, receipt[1])
    assert "Nothing is recommended" in seen(client, "/log/recommend?kernel=fft&chip=a100")
    assert "cannot read the sizes" in seen(client, "/log/recommend?kernel=softmax&dims=M", 400)
    assert seen(client, "/log/01ZZZZZZZZZZZZZZZZZZZZZZZZ", 404)


def test_a_run_shows_its_versions_pictures_and_events(client: TestClient, site: Site) -> None:
    assert "softmax-20261121-200826-hywx" in seen(client, "/runs")
    key = site.key("softmax-run")
    page, text = client.get(f"/runs/{key}").text, seen(client, f"/runs/{key}")
    for said in ("132.0 µs", "1.957×", "ilp_unroll_register_tile", "1.533× [1.527, 1.537]", "finished"):
        assert said in text, said
    assert page.count('<svg class="plot"') == 2
    assert page.count('<circle class="mark kept"') == 2 * 3
    assert "v3: 132.0 µs, 95 % interval" in page
    assert "v1 evaluated: attempt 1 accepted" in text
    mark = re.search(r'data-mark="([^"]+)"', page)
    assert mark is not None
    assert client.get(f"/runs/{key}/mark").json() == {"mark": mark[1]}
    assert "no such run" in seen(client, "/runs/0123456789ab", 404)


def test_a_version_and_two_side_by_side(client: TestClient, site: Site) -> None:
    key = site.key("softmax-run")
    text = seen(client, f"/runs/{key}/v2")
    for said in ("maximum and sum in one loop", "more bytes moved than needed", "What changed from v0", "passed"):
        assert said in text, said
    assert client.get(f"/runs/{key}/v2").text.count('<tr class="changed">') > 2
    text = seen(client, f"/runs/{key}/compare?a=0&b=3")
    for said in ("258.4 µs", "132.0 µs", "l2 hit rate 26.85 % 51.49 %"):
        assert said in text, said
    assert "the files are the same" in seen(client, f"/runs/{key}/compare?a=1&b=1")
    for wrong in ("compare?b=9", "compare?a=x", "v9"):
        assert client.get(f"/runs/{key}/{wrong}").status_code == 404
    report = client.get(f"/runs/{key}/report").text
    assert "Hypotheses and what happened" in report
    assert " style=" not in report


def test_the_gate_looks_again(client: TestClient, site: Site) -> None:
    text = seen(client, f"/runs/{site.key('harm-run')}/v2?gate=1")
    assert "As it stands on the disk now" in text
    assert "broken" in text


def test_a_receipt_says_all_that_it_holds(client: TestClient, site: Site) -> None:
    [file] = (site.home / "receipts").glob("*.json")
    receipt = json.loads(file.read_bytes())
    text = seen(client, "/bench")
    assert receipt["id"][:12] in text
    for id in (receipt["id"], receipt["id"][:8]):
        text = seen(client, f"/bench/{id}")
        for said in ("accepted", "faster", "GB/s", "95 % interval", "ModelNew", "right in all", "foreign key"):
            assert said in text, said
    page = client.get(f"/bench/{receipt['id']}").text
    assert page.count('class="sample') > 20
    for wrong in ("0" * 64, receipt["id"][:7], "%2e%2e%2freceipt.key", "A" * 64):
        assert client.get(f"/bench/{wrong}").status_code == 404


@pytest.mark.slow
def test_the_doctor(client: TestClient) -> None:
    text = seen(client, "/doctor")
    for said in ("sentence-transformers", "index", "Settings", "chroma_token"):
        assert said in text


def test_an_empty_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    client = TestClient(make_app(Desk(tmp_path), PORT, TOKEN), base_url=f"http://127.0.0.1:{PORT}")
    client.get("/", params={"token": TOKEN})
    assert "Nothing was tried yet" in seen(client, "/log")
    assert "No run is known here" in seen(client, "/runs")
    assert "No kernel was benched" in seen(client, "/bench")
    assert "Nothing is recommended" in seen(client, "/log/recommend?kernel=softmax")
    assert "What do you want to know" in seen(client, "/")
    assert not (tmp_path / "home").exists(), "looking makes nothing"


def test_until_a_first_index_is_there_pages_say_how_far_it_is(
    tmp_path: Path, built_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    desk = Desk(tmp_path)
    client = TestClient(make_app(desk, PORT, TOKEN), base_url=f"http://127.0.0.1:{PORT}")
    client.get("/", params={"token": TOKEN})
    told: list[str] = []

    def building(engine: object, words: str, filters: object) -> None:
        del engine, words, filters
        desk._tell("indexing vectors", 5_000, 18_038)
        told.append(seen(client, "/?q=what is a bank conflict", 503))
        assert client.get("/wiki").headers["retry-after"] == "2"
        assert "Nothing was tried yet" in seen(client, "/log")

    monkeypatch.setattr("kopt.services.knowledge.answers.search", building)
    desk.warm()
    assert "indexing vectors: 5,000 of 18,038" in told[0]
    assert desk.building == ""
    monkeypatch.setenv("KOPT_HOME", str(built_home))
    monkeypatch.setattr("kopt.services.knowledge.answers.search", lambda *_: told.append(desk.building))
    desk.warm()
    assert told[-1] == "", "an index that is there is asked at once"


def test_settings_that_are_wrong_are_a_page(site: Site, tmp_path: Path) -> None:
    (tmp_path / "kopt.toml").write_text("model = 'x'\n", "utf-8")
    client = TestClient(make_app(Desk(tmp_path), PORT, TOKEN), base_url=f"http://127.0.0.1:{PORT}")
    client.get("/", params={"token": TOKEN})
    assert "which a workspace may not set" in seen(client, "/wiki", 500)
