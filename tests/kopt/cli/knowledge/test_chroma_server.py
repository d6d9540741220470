"""A Chroma server that several KOPT_HOMEs share: nothing is lost, wrong, or told to the wrong."""

from __future__ import annotations

import contextlib
import gc
import json
import shutil
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import chromadb
import pytest
from chromadb.api.shared_system_client import SharedSystemClient

from ingest.progress import UpdateResult
from kbs.index.chroma import OPEN, Writer
from kopt.services.engine import Engine
from kopt.services.knowledge import answers
from kopt.services.settings import load_settings
from tests.conftest import Run
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.processes,
    # Chroma's client leaves connections to be closed by the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
Runner = Callable[..., Run]
MakePage = Callable[..., str]
SLOW = "why is my softmax slow"


class ChromaServer:
    """`chroma run` in a folder of its own; can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = Path(sys.executable).with_name("chroma")
        words = [str(program), "run", "--path", str(self.folder), "--host", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self.answers, 60.0)

    def answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
            return True
        return False

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def collections(self) -> set[str]:
        client = chromadb.HttpClient(host="127.0.0.1", port=self.port)
        return {collection.name for collection in client.list_collections()}


@pytest.fixture(autouse=True)
def connections() -> Iterator[None]:
    """Chroma leaves connections to the garbage collector, after an error also those that were closed: it runs here."""
    yield
    for there in list(OPEN.values()):
        there.client.close()
    OPEN.clear()
    SharedSystemClient.clear_system_cache()
    gc.collect()


@pytest.fixture
def chroma(tmp_path: Path) -> Iterator[ChromaServer]:
    server = ChromaServer(tmp_path / "server")
    server.start()
    yield server
    server.kill()


def engine_of(home: Path, monkeypatch: pytest.MonkeyPatch, chroma: ChromaServer) -> Engine:
    """An engine on a home whose index is on the server."""
    monkeypatch.setenv("KOPT_HOME", str(home))
    monkeypatch.setenv("KOPT_CHROMA_URL", chroma.url)
    return Engine(load_settings(workspace=home))


def updated(engine: Engine) -> UpdateResult:
    return Engine(engine.settings).update()


def found(engine: Engine, text: str = SLOW) -> tuple[list[tuple[str, float]], list[str]]:
    """(what the next command finds, why it was degraded)."""
    fresh = Engine(engine.settings)
    result = answers.search(fresh, text, {})
    return [(hit.passage.reference, round(hit.score, 4)) for hit in result.hits], [*result.degraded, *fresh.warnings]


def own(engine: Engine) -> str:
    with engine.index.open() as store:
        return f"kopt-{store.meta('collection').lower()}"


def write_team(root: Path, page: MakePage, text: str) -> Path:
    (root / "technique").mkdir(parents=True, exist_ok=True)
    (root / "technique/team.md").write_text(page("technique/team", f"# Team\n\n{text}"))
    return root


ASKER = textwrap.dedent(
    """
    # Asks the same again and again, each time as a new command would, until its standard input ends.
    import json, sys, threading
    from kopt.services.engine import Engine
    from kopt.services.knowledge import answers
    from kopt.services.settings import load_settings

    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    settings = load_settings()
    seen, asked = {}, 0
    while not ended.is_set() or asked < 5:
        text = sys.argv[1 + asked % (len(sys.argv) - 1)]
        eng = Engine(settings)
        found = answers.search(eng, text, {})
        hits = [[hit.passage.reference, round(hit.score, 4)] for hit in found.hits]
        said = [*found.degraded, *(warning for warning in eng.warnings if "index as it was" not in warning)]
        seen.setdefault(json.dumps([text, hits, said]), 0)
        seen[json.dumps([text, hits, said])] += 1
        asked += 1
        if asked == 1:
            print("began", flush=True)
    print(json.dumps([[*json.loads(key), count] for key, count in seen.items()]), flush=True)
    """
)


@pytest.mark.slow
def test_two_homes_ask_while_one_is_rebuilt_again_and_again(
    home: Path, tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch, chroma: ChromaServer
) -> None:
    homes = [home, shutil.copytree(home, tmp_path / "other")]
    questions = [SLOW, "the frobnicated warps of our team", "what is a bank conflict"]
    expected: list[dict[str, Any]] = []
    engines = []
    for number, one in enumerate(homes):
        engine = engine_of(one, monkeypatch, chroma)
        root = write_team(tmp_path / f"team{number}", page, f"The frobnicated warps of our team number {number}.")
        (one / "wikis.json").write_text(json.dumps({f"team{number}": str(root)}))
        assert updated(engine).degraded == ""
        engines.append(engine)
        expected.append({text: found(engine, text) for text in questions})
        assert all(degraded == [] for _, degraded in expected[-1].values())
        assert expected[-1][questions[1]][0][0][0].startswith(f"team{number}/technique/team.md")
    askers = []
    for one in homes:
        monkeypatch.setenv("KOPT_HOME", str(one))
        words = [sys.executable, "-c", ASKER, *questions]
        askers.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    for asker in askers:
        assert asker.stdout is not None
        assert asker.stdout.readline() == "began\n"
    for _ in range(3):
        assert Engine(engines[0].settings).update(rebuild=True).degraded == ""
    for asker, wanted in zip(askers, expected, strict=True):
        out, _ = asker.communicate(timeout=120)
        assert asker.returncode == 0
        seen = json.loads(out)
        assert sum(count for *_, count in seen) >= 5
        for text, hits, said, _ in seen:
            assert (said, [(reference, score) for reference, score in hits]) == ([], wanted[text][0]), text
    assert chroma.collections() == {own(engine) for engine in engines}


def test_a_server_that_dies_within_an_update_is_mended_by_the_next(
    home: Path, tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch, chroma: ChromaServer
) -> None:
    root = write_team(tmp_path / "team", page, "One text of the team.")
    (home / "wikis.json").write_text(json.dumps({"team": str(root)}))
    engine = engine_of(home, monkeypatch, chroma)
    assert updated(engine).degraded == ""
    write_team(root, page, "Frobnicated warps of the team.")
    put = Writer.put

    def dies(self: Writer, vectors: Any) -> None:
        chroma.kill()
        put(self, vectors)

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "put", dies)
        assert chroma.url in updated(engine).degraded
    hits, said = found(engine, "frobnicated warps")
    assert hits[0][0].startswith("team/technique/team.md")
    assert any("one by one" in why for why in said)
    chroma.start()
    assert found(engine, "frobnicated warps") == (hits, [])
    with engine.index.open() as store:
        assert store.pending() == []
        engine.index.vectors(store).check(engine.index.known(store))
    assert chroma.collections() == {own(engine)}


def test_a_copy_of_a_home_ends_with_a_collection_of_its_own(
    home: Path, tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch, chroma: ChromaServer
) -> None:
    root = write_team(tmp_path / "team", page, "One text of the team.")
    (home / "wikis.json").write_text(json.dumps({"team": str(root)}))
    first = engine_of(home, monkeypatch, chroma)
    updated(first)
    second = engine_of(shutil.copytree(home, tmp_path / "copy"), monkeypatch, chroma)
    usual = found(first)
    assert usual[1] == []
    assert found(second) == usual, "they share a collection until one of them writes"
    write_team(root, page, "Frobnicated warps of the team.")
    assert found(first, "frobnicated warps")[1] == []
    hits, said = found(second)
    assert hits == usual[0]
    assert any("written by another kopt" in why for why in said) or own(second) != own(first)
    assert updated(second).degraded == ""
    for engine in (first, second, first):
        assert found(engine) == usual
        assert found(engine, "frobnicated warps")[0][0][0].startswith("team/technique/team.md")
    assert own(first) != own(second)
    assert chroma.collections() == {own(first), own(second)}
    assert Engine(second.settings).update(rebuild=True).degraded == ""
    assert found(first) == found(second) == usual
    assert chroma.collections() == {own(first), own(second)}


def test_an_index_moves_from_disk_to_a_server_and_back(
    home: Path, monkeypatch: pytest.MonkeyPatch, chroma: ChromaServer
) -> None:
    engine = engine_of(home, monkeypatch, chroma)
    hits, said = found(engine)
    assert said
    assert updated(engine).degraded == ""
    assert found(engine) == (hits, [])
    assert list((home / "index/chroma").iterdir()) == []
    monkeypatch.delenv("KOPT_CHROMA_URL")
    local = Engine(load_settings(workspace=home))
    assert found(local)[0] == hits
    assert updated(local).degraded == ""
    assert found(local) == (hits, [])


def test_a_tenant_that_the_server_has_not_is_told_as_such(
    run: Runner, home: Path, monkeypatch: pytest.MonkeyPatch, chroma: ChromaServer
) -> None:
    first = engine_of(home, monkeypatch, chroma)
    assert updated(first).degraded == ""
    usual, collection = found(first), own(first)
    for setting in ("TENANT", "DATABASE"):
        env = {"KOPT_CHROMA_URL": chroma.url, f"KOPT_CHROMA_{setting}": "nowhere"}
        for words in (("search", SLOW), ("ingest",)):
            done = run(home, *words, env=env)
            assert (done.code, "degraded: the Chroma server at" in done.err, "nowhere" in done.err) == (0, True, True)
            assert "Run `kopt ingest`" not in done.err
    assert (found(first), own(first)) == (usual, collection), "its collection stays its own"


# --- secrets ----------------------------------------------------------------------------------------------------------

TOKEN, EXTRA = "token-that-nobody-may-see", "header-that-nobody-may-see"


class Recorder(BaseHTTPRequestHandler):
    """Remembers the headers of requests, and refuses each with an answer that repeats them."""

    headers_seen: list[dict[str, str]]

    def refuse(self) -> None:
        self.headers_seen.append(dict(self.headers))
        length = int(self.headers.get("Content-Length") or 0)
        self.rfile.read(length)
        body = json.dumps({"error": "AuthError", "message": f"refused: {dict(self.headers)}"}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = refuse  # noqa: N815 - the base class names them so

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def recorder() -> Iterator[tuple[str, list[dict[str, str]]]]:
    """(address of a server that refuses, the headers that it was sent)."""
    seen: list[dict[str, str]] = []
    handler = type("Handler", (Recorder,), {"headers_seen": seen})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/below/this", seen
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "words", [("search", SLOW), ("ask", "what is a bank conflict"), ("ingest",), ("doctor",), ("ingest", "--debug")]
)
def test_token_and_headers_reach_the_server_and_nobody_else(
    run: Runner, home: Path, recorder: tuple[str, list[dict[str, str]]], words: tuple[str, ...]
) -> None:
    url, seen = recorder
    env = {"KOPT_CHROMA_URL": url, "KOPT_CHROMA_TOKEN": TOKEN, "KOPT_CHROMA_HEADERS": json.dumps({"X-Extra": EXTRA})}
    for more in ((), ("--json",)):
        done = run(home, *words, *more, env=env)
        for secret in (TOKEN, EXTRA):
            assert secret not in done.out + done.err
    told = run(home, *words, env=env | {"KOPT_CHROMA_TOKEN": f"{TOKEN}\nof two lines"})
    assert (TOKEN in told.out + told.err, "Traceback" in told.err and "--debug" not in words) == (False, False)
    assert "chroma_token" in told.out + told.err
    assert seen
    for headers in seen:
        sent = {name.lower(): value for name, value in headers.items()}
        assert (sent["authorization"], sent["x-chroma-token"], sent["x-extra"]) == (f"Bearer {TOKEN}", TOKEN, EXTRA)
    for file in home.rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert TOKEN.encode() not in data
            assert EXTRA.encode() not in data
