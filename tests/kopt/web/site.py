"""A server of pages with content: wikis, a log, a run and a receipt, of which some are a stranger's and mean harm."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.testclient import TestClient

from kopt.services.serving.port import listen
from kopt.services.viewing.runs import KnownRuns
from kopt.web.app import make_app
from kopt.web.desk import Desk
from tests.conftest import ROOT, page_text, run_kopt

TOKEN = "a-token-of-the-tests"
RUN = ROOT / "benchmarks/results/loop/h200/agent"
HARM = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">\"><svg onload=alert(1)>"
"""In every place that others write."""
PORT = 7_777
"""Of clients that talk to the application itself."""


@dataclass(frozen=True)
class Site:
    """What the server shows."""

    home: Path
    root: Path
    """The folder that it was started in; `runs/` below it has the run, and one that a stranger made."""

    def desk(self) -> Desk:
        """What its handlers share."""
        return Desk(self.root)

    def key(self, name: str) -> str:
        """The key of a run below the folder."""
        return next(key for key, run in KnownRuns.of(self.home, self.root).all.items() if run.name == name)

    def client(self, token: str = TOKEN, *, enter: bool = True) -> TestClient:
        """A browser without a window, let in already."""
        made = TestClient(make_app(self.desk(), PORT, TOKEN), base_url=f"http://127.0.0.1:{PORT}")
        if enter:
            assert made.get("/", params={"token": token}).status_code == 200
        return made


def make_site(pristine_home: Path, folder: Path) -> Site:
    """The content, made once: KOPT_HOME with an index, and a folder with two runs."""
    home, root, wiki = shutil.copytree(pristine_home, folder / "home"), folder / "work", folder / "wiki"
    (root / "runs").mkdir(parents=True)
    run = root / "runs" / "softmax-run"
    shutil.copytree(RUN, run)
    receipts = home / "receipts"
    receipts.mkdir()
    receipt = (run / "v3/receipt.json").read_bytes()
    (receipts / f"{json.loads(receipt)['id'][:16]}.json").write_bytes(receipt)
    _harm_run(shutil.copytree(RUN, root / "runs" / "harm-run"))
    harm = (
        f"# Harm\n\n{HARM} zebra stripes and banks [src]\n\n[x](javascript:document.title='ran') [y](file:///etc/passwd)"
        f" ![far](https://example.invalid/x.png) ![up](../../../secret.png)\n\n"
        f"| {HARM} | b |\n|---|---|\n| `{HARM}` | c |\n"
    )
    (wiki / "technique").mkdir(parents=True)
    (wiki / "technique" / "harm.md").write_text(
        page_text("technique/harm", harm, title=json.dumps("Harm <b>bold</b>")), "utf-8"
    )
    (wiki / "technique" / "broken.md").write_text(f"---\nid: {HARM}\n---\n{HARM}\n", "utf-8")
    (wiki / "technique" / "link.md").symlink_to(folder / "secret.md")
    (folder / "secret.md").write_text("the secret of the house", "utf-8")
    for words in (
        ("ingest", str(wiki), "--name", "harm"),
        ("log", "import", str(RUN)),
        ("log", "add", f"{HARM} zebra", "--kernel", f"k{HARM}"[:120], "--outcome", "failed", "--lesson", HARM),
    ):
        done = run_kopt(home, *words, cwd=root)
        assert done.code == 0, done.err
    return Site(home, root)


def _harm_run(run: Path) -> None:
    """Put harm into what a stranger's run says, with a journal whose chain is right."""
    (run / "v2/kernel.py").write_text(f'"""{HARM}"""\nx = "</span></pre>{HARM}"\n', "utf-8")
    (run / "final_report.md").write_text(f"# R\n\n{HARM}\n\n[x](javascript:alert(1)) ![x](http://example.invalid/x)\n")
    for name in ("diagnosis.json", "proposal.json"):
        found = json.loads((run / "v2" / name).read_text("utf-8"))
        if name == "diagnosis.json":
            found["symptoms"][0] |= {"name": HARM, "text": HARM, "techniques": [HARM]}
            found |= {"resource": HARM, "headroom": [HARM]}
        else:
            found["hypothesis"] |= {"single_change": HARM, "rationale": HARM, "risk": HARM}
        (run / "v2" / name).write_text(json.dumps(found), "utf-8")
    lines, before = [], "0" * 64
    for line in (run / "journal.jsonl").read_text("utf-8").splitlines():
        entry = json.loads(line)
        for name in ("reason", "why", "evidence"):
            if isinstance(entry["event"].get(name), str) and entry["event"]["kind"] != "stopped":
                entry["event"][name] = HARM
        entry["prev"] = before
        data = json.dumps(entry, separators=(",", ":")).encode()
        before = hashlib.sha256(data).hexdigest()
        lines.append(data)
    (run / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")


@contextmanager
def served(site: Site) -> Iterator[str]:
    """The site on a port, from a thread of this process: its address with the token."""
    bound = listen(0)
    port = bound.getsockname()[1]
    config = uvicorn.Config(make_app(site.desk(), port, TOKEN), log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(30)
        bound.close()
