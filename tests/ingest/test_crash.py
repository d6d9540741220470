"""The index when its writer is killed: at every step of an update, and at random while others ask."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ingest.vectors
from ingest.progress import UpdateResult
from ingest.update import Index
from kbs.common.errors import IndexBusyError
from kbs.evidence.citation import lines_hash
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.log import ExperienceLog
from kbs.index.chroma import VectorIndexError
from kbs.index.encoder import Encoder, Vectors, default_identity
from kbs.index.search import Query, search
from kbs.index.sqlite_file import DamagedIndexError
from tests.command_server import Command
from tests.conftest import command_server
from tests.kbs.experience.records import experiment
from wiki.library import Wikis, bundled_wiki, open_wiki

MakePage = Callable[..., str]

# --- killed at every step of an update ------------------------------------------------------------------------------

WRITER = textwrap.dedent(
    '''
    """Updates an index, and kills itself with SIGKILL at the Nth moment at which its state on disk changes."""
    import hashlib, itertools, os, shutil, signal, sys
    from pathlib import Path

    import numpy as np

    import ingest.vectors as vectors
    from ingest.update import Index
    from kbs.evidence.vocabulary import vocabulary
    from kbs.experience.log import ExperienceLog
    from kbs.index import chroma, sqlite_file
    from wiki.library import open_wiki

    seed, homes, root, log = map(Path, sys.argv[1:])
    moments = deadly = 0


    def moment(name):
        global moments
        moments += 1
        if moments == deadly:
            print(name, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)


    class Encoder:
        identity = "hashes:1"

        def encode(self, texts, progress=None):
            made = [np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8) for text in texts]
            found = np.stack(made).astype(np.float32) - 127.5
            return found / np.linalg.norm(found, axis=1, keepdims=True)


    class Database:
        """The SQLite connection; each change of the file is a moment."""

        def __init__(self, real):
            object.__setattr__(self, "real", real)

        def __getattr__(self, name):
            return getattr(self.real, name)

        def execute(self, statement, *more):
            if statement == "COMMIT":
                moment("before a commit")
            done = self.real.execute(statement, *more)
            if statement == "COMMIT" or statement.startswith("PRAGMA journal"):
                moment("after " + statement)
            elif statement.startswith(("INSERT INTO pages", "DELETE FROM pages", "UPDATE pages")):
                moment("within the swap")
            return done


    def connect(*words, _connect=sqlite_file.sqlite3.connect, **more):
        real = _connect(*words, **more)
        moment("after the file was opened")
        return Database(real)


    def around(name, wrapped):
        def call(*words, **more):
            moment("before " + name)
            done = wrapped(*words, **more)
            moment("after " + name)
            return done

        return call


    class Sqlite:
        """sqlite3, as the index file sees it."""

        connect = staticmethod(connect)

        def __getattr__(self, name):
            import sqlite3

            return getattr(sqlite3, name)


    import chromadb.api.models.Collection as collection

    sqlite_file.sqlite3 = Sqlite()
    for method in ("upsert", "delete", "modify"):
        setattr(collection.Collection, method, around(method, getattr(collection.Collection, method)))
    for method in ("filling", "writing"):
        setattr(chroma.VectorIndex, method, around(method, getattr(chroma.VectorIndex, method)))
    chroma.VectorIndex.discard = around("discard", chroma.VectorIndex.discard)
    vectors.carried_vectors = lambda model, keys: {}
    vectors.BATCH = 2
    chroma.BATCH = 2

    for deadly in itertools.count(1):
        home = homes / str(deadly)
        shutil.copytree(seed, home)
        child = os.fork()
        if child == 0:
            with ExperienceLog(log, home).index() as index:
                Index(home).update([open_wiki(root)], vocabulary(), Encoder(), log=index)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            print("the last was not killed, and ended with", os.waitstatus_to_exitcode(status), flush=True)
            break
    '''
)


BEFORE = {"a": "Text of a.", "b": "Text of b.", "c": "Text of c."}
AFTER = {"a": "Text of a.", "b": "Another text of b.", "d": "Text of d.", "e": "Text of e, which is new."}


def write_pages(root: Path, page: MakePage, texts: dict[str, str]) -> None:
    for file in root.rglob("*.md"):
        file.unlink()
    for name, text in texts.items():
        file = root / "technique" / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page(f"technique/{name}", f"# {name}\n\n{text}"))


def asked(texts: dict[str, str]) -> dict[str, str]:
    """The same pages, some of which have a section with asks."""
    more = "\n\n## How does {0} work?\n<!-- asks: why {0} · {0} explained -->\n\nSo does {0} work."
    return {name: text + (more.format(name) if name in "bde" else "") for name, text in texts.items()}


class Hashes:
    """The encoder of the writer."""

    identity = "hashes:1"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> Vectors:  # noqa: ARG002 - an encoder's
        self.asked += texts
        made = [np.frombuffer(hashlib.sha256(text.encode()).digest(), np.uint8) for text in texts]
        found = np.stack(made).astype(np.float32) - 127.5
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def state(home: Path) -> dict[str, list[str]]:
    """All that an index holds, but for counters; SQLite and Chroma must agree."""
    index = Index(home)
    with index.open() as store:
        assert store.check() == ""
        assert store.pending() == []
        tables = {
            table: sorted(map(repr, store.db.execute(f"SELECT {columns} FROM {table}")))
            for table, columns in {
                "wikis": "*",
                "pages": "wiki, path, title, size, mtime_ns, sha256, hidden",
                "passages": "passage, place, asked, line_start, line_end, asks, text, embedding_key",
                "embeddings": "key, model, vector, unused IS NULL",
                "words": "title, headings, body",
                "meta": "key, value <> ''",
            }.items()
        }
        model = store.meta("vector_model")
        assert {store.meta(key) for key in ("vector_next", "collection_begun", "collection_before")} == {""}
        have = dict(store.vectors(model))
        every = {str(id) for (id,) in store.db.execute("SELECT passage FROM passages")}
        assert have.keys() == every
        vectors, known = index.vectors(store), index.known(store)
    vectors.check(known)
    found = vectors.query(np.frombuffer(next(iter(have.values())), np.float32), len(have), known)
    assert vectors.ids() == have.keys()
    # The graph of what is near is no list: it may miss one, as the check of a search allows.
    assert {id for id, _ in found} <= have.keys()
    assert len(found) >= 0.9 * len(have)
    assert [folder.name for folder in (index.folder / "chroma").iterdir()] == [vectors.folder.name]
    return {**tables, "chroma": sorted(vectors.ids())}


def update(home: Path, root: Path, log: ExperienceLog, encoder: Encoder) -> UpdateResult:
    with ExperienceLog(log.files.root, home).index() as index:
        return Index(home).update([open_wiki(root)], vocabulary(), encoder, log=index)


def assert_right(home: Path, pages: Collection[frozenset[str]], step: str) -> None:
    """A reader sees the pages before or after an update, and finds each of them, with Chroma or without."""
    index = Index(home)
    with index.open() as store:
        seen = frozenset(passage.text for passage in store.passages(store.passage_ids()).values())
        assert seen in pages, f"half an update can be seen after a kill at {step}"
        collection, vectors, known = store.meta("collection"), index.vectors(store), index.known(store)

        def ask(vector: Vectors, count: int, ids: Sequence[str] | None) -> list[tuple[str, float]]:
            if not collection:
                raise VectorIndexError("there is none yet", code="none", hint="Wait.")
            return vectors.query(vector, count, known, ids)

        have = dict(store.vectors("hashes:1", store.passage_ids()))
        for id, data in have.items():
            query = Query("zzz", np.frombuffer(data, np.float32), count=1)
            found = search(store, query, vocabulary(), "hashes:1", ask)
            assert [hit.passage.id for hit in found.hits] == [id], f"after a kill at {step}"


@pytest.mark.processes
@pytest.mark.slow
@pytest.mark.parametrize("start", ["new", "changed", "damaged"])
def test_a_kill_at_any_step_is_mended_by_the_next_update(
    tmp_path: Path, page: MakePage, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing_carried(model: str, keys: set[str]) -> dict[str, bytes]:
        return {}

    monkeypatch.setattr(ingest.vectors, "carried_vectors", nothing_carried)
    root, seed, homes = tmp_path / "team", tmp_path / "seed", tmp_path / "homes"
    log = ExperienceLog(tmp_path / "log", tmp_path / "unused")
    seed.mkdir()
    log.append([experiment(optimization="One."), experiment(optimization="Two.")])
    pages = {frozenset[str]()}
    if start != "new":
        write_pages(root, page, asked(BEFORE))
        update(seed, root, log, Hashes())
        pages = {texts(seed)}
        first, *_ = log.files.read(log.files.names()[0], 0, 0).records
        log.mask(first[1].id, True, "noisy")
        log.append([experiment(optimization="Three.")])
    if start == "damaged":
        shutil.rmtree(next((seed / "index/chroma").iterdir()))
    write_pages(root, page, asked(AFTER))
    undisturbed = shutil.copytree(seed, tmp_path / "undisturbed")
    update(undisturbed, root, log, Hashes())
    expected = state(undisturbed)
    pages.add(texts(undisturbed))

    writer = [sys.executable, "-c", WRITER, str(seed), str(homes), str(root), str(log.files.root)]
    done = subprocess.run(writer, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    *steps, last = done.stdout.splitlines()
    assert last == "the last was not killed, and ended with 0", done.stderr
    wanted = {"within the swap", "before a commit", "after COMMIT", "before upsert", "after upsert"}
    wanted |= {"changed": {"after writing", "after modify", "after delete"}}.get(start, {"after filling"})
    wanted |= {"damaged": {"after discard"}}.get(start, set())
    assert wanted <= set(steps)
    assert len(steps) >= 14

    for number, step in enumerate([*steps, "not killed"], start=1):
        home = homes / str(number)
        with contextlib.suppress(FileNotFoundError, DamagedIndexError):
            assert_right(home, pages, step)
        update(home, root, log, Hashes())
        assert state(home) == expected, f"after a kill at {step}"


def texts(home: Path) -> frozenset[str]:
    with Index(home).open() as store:
        return frozenset(passage.text for passage in store.passages(store.passage_ids()).values())


def test_texts_embedded_before_a_kill_are_not_embedded_again(
    tmp_path: Path, page: MakePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    class Dying(Hashes):
        def encode(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> Vectors:
            if len(self.asked) == 4:
                raise Killed
            return super().encode(texts, progress)

    monkeypatch.setattr(ingest.vectors, "BATCH", 2)
    root, home = tmp_path / "team", tmp_path / "home"
    write_pages(root, page, {name: f"Text of {name}." for name in "abcdef"})
    dying, next_one = Dying(), Hashes()
    with pytest.raises(Killed):
        Index(home).update([open_wiki(root)], vocabulary(), dying)
    Index(home).update([open_wiki(root)], vocabulary(), next_one)
    assert len(dying.asked) == 4
    assert len(next_one.asked) == 2
    assert not set(dying.asked) & set(next_one.asked)


# --- two writers ----------------------------------------------------------------------------------------------------


def test_a_second_writer_waits_for_the_first(tmp_path: Path, page: MakePage) -> None:
    root, home = tmp_path / "team", tmp_path / "home"
    write_pages(root, page, AFTER)
    inside, leave = threading.Event(), threading.Event()

    class Slow(Hashes):
        def encode(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> Vectors:
            inside.set()
            assert leave.wait(60)
            return super().encode(texts, progress)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(Index(home).update, [open_wiki(root)], vocabulary(), Slow())
        assert inside.wait(60)
        with pytest.raises(IndexBusyError, match=f"process {os.getpid()} on "):
            Index(home).update([open_wiki(root)], vocabulary(), Hashes())
        late = Hashes()
        second = pool.submit(Index(home).update, [open_wiki(root)], vocabulary(), late, timeout=60.0)
        leave.set()
        assert first.result().embedded == 4
        assert second.result().embedded == 0
    assert late.asked == []


# --- killed at random while others ask ------------------------------------------------------------------------------

ASKERS = 4
ASKED = 3
"""Questions that each of them asks at least."""
KILLS = 20
"""How often a writer is killed at work, while they ask."""
QUESTIONS = [
    ("What is the HBM bandwidth of the H100 SXM?", "3.35 TB/s"),
    ("H100 SXM FP32 throughput", "66.9 TFLOPS"),
    ("How much memory has the H200 SXM?", "141 GB"),
]


def team_page(page: MakePage, version: int, name: str) -> str:
    notes = f"## Notes\n\nA note of version {version} on {name}."
    return page(f"technique/team-{name}", f"# Team {name}\n\nVersion {version} of the team page {name}.\n\n{notes}")


@pytest.mark.timeout(400)
def test_answers_are_right_while_a_writer_is_killed_again_and_again(
    home: Path, run: Callable[..., Any], tmp_path: Path, page: MakePage
) -> None:
    dice = random.Random(7)
    root = tmp_path / "team"
    (root / "technique").mkdir(parents=True)
    lock = threading.Lock()
    pages: dict[str, int] = {}

    def change(version: int) -> None:
        with lock:
            for name in dice.sample("abcdefgh", 3):
                file = root / "technique" / f"team-{name}.md"
                if name in pages and dice.random() < 0.3:
                    file.unlink()
                    del pages[name]
                else:
                    fresh = file.with_suffix(".tmp")
                    fresh.write_text(team_page(page, version, name))
                    fresh.replace(file)
                    pages[name] = version

    change(0)
    assert run(home, "ingest", str(root)).code == 0
    environment = {**os.environ, "KOPT_HOME": str(home)}
    right = killed = started = 0
    enough = threading.Event()
    wrong: list[str] = []

    def ask(number: int) -> None:
        nonlocal right
        text, value = QUESTIONS[number % len(QUESTIONS)]
        answered = run(home, "ask", "--json", text)
        if answered.code != 0:
            wrong.append(f"{text}: exit {answered.code}: {answered.out[-500:]} {answered.err[-500:]}")
            return
        data = answered.json["data"]
        if value not in data["answer"].split("\n")[0]:
            wrong.append(f"{text}: {data['answer'][:300]}")
        checked = run(home, "cite", "-", "--json", stdin=answered.out.strip())
        if checked.code != 0 or checked.json["data"]["ok"] < 1:
            wrong.append(f"{text}: {checked.out[-500:]}")
        cited = [citation for claim in data["claims"] for citation in claim["citations"]]
        wrong.extend(f"{text}: {c}" for c in cited if lines_hash(c["quote"].split("\n")) != c["hash"])
        with lock:
            right += 1

    def ask_on(first: int) -> int:
        number = first
        while number < first + ASKED or not enough.is_set():
            ask(number)
            number += 1
        return number - first

    with ThreadPoolExecutor(ASKERS) as pool:
        asked = [pool.submit(ask_on, number) for number in range(ASKERS)]
        while not all(future.done() for future in asked):
            started += 1
            change(started)
            with Command(command_server(), ["ingest"], "", tmp_path, environment) as writer:
                time.sleep(dice.uniform(0.05, 0.5))
                killed += writer.kill()
            if killed >= KILLS or started >= 10 * KILLS or wrong:
                enough.set()
        questions = sum(future.result() for future in asked)
    assert wrong == []
    assert right == questions >= ASKERS * ASKED
    assert killed >= KILLS, "the writer was hardly ever killed at work"

    last = run(home, "ingest", "--json")
    assert last.code == 0, last.err
    assert "set aside" not in "".join(last.json["warnings"])
    index, wikis = Index(home), [bundled_wiki(), open_wiki(root)]
    assert sorted(file.path for file in wikis[1].files()) == sorted(f"technique/team-{name}.md" for name in pages)
    with index.open() as store:
        assert index.is_fresh(store, wikis, default_identity())
        assert store.check() == ""
        for wiki in wikis:
            assert set(store.files(wiki.name)) == {file.path for file in wiki.files()}
        assert store.pending() == []
        ids = {str(row[0]) for row in store.db.execute("SELECT passage FROM passages")}
        have = dict(store.vectors(default_identity()))
        vectors, known = index.vectors(store), index.known(store)
        library = Wikis(wikis)
        passages = store.passages(list(ids)).values()
    assert have.keys() == ids
    for passage in passages:
        lines = library.lines(passage.citation.wiki, passage.citation.path)
        assert lines is not None
        assert "\n".join(lines[passage.citation.line_start - 1 : passage.citation.line_end]) == passage.text
    assert vectors.ids() == ids
    found = vectors.query(np.frombuffer(next(iter(have.values())), np.float32), len(ids), known)
    assert {id for id, _ in found} == ids
    doctor = run(home, "doctor", "--json")
    assert doctor.code == 0, doctor.out
    checks = {check["name"]: check for check in doctor.json["data"]["checks"]}
    assert checks["index"]["status"] == checks["vectors"]["status"] == "ok"
