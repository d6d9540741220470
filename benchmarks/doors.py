"""Fifty clients at once on `kopt web` and `kopt mcp --http`, while pages are ingested and a sandbox worker is killed.

    python benchmarks/doors.py [--seconds 60] [--clients 50] [--out benchmarks/results/doors.json]
    python benchmarks/doors.py --clients 0 --out benchmarks/results/doors-warm.json     # a warm question alone

Bars: no request fails but the one whose worker was killed; a search that begins after an ingest has ended finds what it
ingested; and what a warm question takes, alone (also over standard input and output) and among the others. Servers are
processes of their own. Beside the time, the processor's time of the server says what an idle machine would have taken.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx
import httpx2
import psutil
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

ROOT = Path(__file__).resolve().parent.parent
TOKEN = "a-token-of-the-benchmark"
QUESTIONS = (
    "why is my softmax memory-bound on H100",
    "what is a bank conflict",
    "what is the HBM bandwidth of H200",
    "how do I get rid of uncoalesced accesses",
)
PAGES = ("/wiki/gpu-wiki/kernel/softmax.html", "/log", "/runs", "/bench", "/log/recommend?kernel=softmax")
SOUGHT = "zebra number of the doors"
ALONE = 40
"""Questions that one client asks a door one after the other, before the others come."""
PAUSE = 6.0
"""Seconds between two ingests, at most a fifth of the time."""
SLOW = """import time, torch
class ModelNew(torch.nn.Module):
    def forward(self, x):
        time.sleep(0.5)
        return torch.relu(x)
"""
REFERENCE = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(8, 96)]
def get_init_inputs():
    return []
"""


@dataclass
class Seen:
    """What came of the requests."""

    times: dict[str, list[float]] = field(default_factory=dict)
    """What was asked → seconds of each request."""
    errors: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    """Searches that did not find what an ingest that had ended before they began has ingested."""
    ingested: int = 0
    """The last number whose ingest has ended."""
    killed: str = ""
    """What the client whose worker was killed was told."""
    processor: dict[str, float] = field(default_factory=dict)
    """What was asked → seconds of the processor that the server spent, all requests together."""

    def add(self, what: str, seconds: float) -> None:
        """A request that was answered."""
        self.times.setdefault(what, []).append(seconds)

    def summary(self) -> dict[str, Any]:
        """Figures of each thing that was asked, in milliseconds."""
        return {
            what: {
                "requests": len(found),
                "p50_ms": round(1000 * sorted(found)[len(found) // 2], 1),
                "p95_ms": round(1000 * sorted(found)[min(len(found) - 1, int(0.95 * len(found)))], 1),
                "max_ms": round(1000 * max(found), 1),
                **({"processor_ms": round(1000 * self.processor[what] / len(found), 1)} if self.processor else {}),
            }
            for what, found in sorted(self.times.items())
        }


@dataclass(frozen=True)
class Doors:
    """The servers."""

    web: str
    mcp: str
    web_process: psutil.Process
    mcp_process: psutil.Process
    home: Path
    work: Path
    environment: dict[str, str]

    async def kopt(self, *words: str) -> None:
        """Run a command. RuntimeError if it fails."""
        done = await anyio.run_process(
            [sys.executable, "-m", "kopt", *words], cwd=self.work, env=self.environment, check=False
        )
        if done.returncode:
            raise RuntimeError(f"kopt {' '.join(words)}: {done.stderr.decode()}")


@contextlib.contextmanager
def doors(home: Path, work: Path) -> Iterator[Doors]:
    """Start both servers on a KOPT_HOME and a folder with a kernel."""
    (work / "kernel.py").write_text(SLOW, "utf-8")
    (work / "ref.py").write_text(REFERENCE, "utf-8")
    environment = {**os.environ, "KOPT_HOME": str(home), "KOPT_WEB_TOKEN": TOKEN, "KOPT_MCP_TOKEN": TOKEN}
    environment["PYTHONPATH"] = str(ROOT)
    with contextlib.ExitStack() as stack:

        def start(*words: str) -> tuple[str, psutil.Process]:
            process = subprocess.Popen(
                [sys.executable, "-m", "kopt", *words], cwd=work, env=environment, stderr=subprocess.PIPE, text=True
            )
            stack.callback(_end, process)
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"http://127\.0\.0\.1:\d+", said)
            if found is None:
                raise RuntimeError(said + process.stderr.read())
            return found[0], psutil.Process(process.pid)

        web, web_process = start("web", "--port", "0")
        mcp, mcp_process = start("mcp", "--http", "--port", "0")
        yield Doors(web, f"{mcp}/mcp", web_process, mcp_process, home, work, environment)


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(60)  # what its threads are at is brought to its end
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stderr is not None
    process.stderr.close()


@contextlib.asynccontextmanager
async def _browser(found: Doors) -> Any:
    async with httpx.AsyncClient(base_url=found.web, timeout=120) as client:
        (await client.get("/", params={"token": TOKEN})).raise_for_status()
        yield client


@contextlib.asynccontextmanager
async def _agent(found: Doors) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=120) as http,
        Client(streamable_http_client(found.mcp, http_client=http)) as client,
    ):
        yield client


async def _page(client: httpx.AsyncClient, address: str) -> str:
    said = await client.get(address)
    if said.status_code != 200:
        raise RuntimeError(f"{address}: {said.status_code}")
    return said.text


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    done = await client.call_tool(tool, arguments)
    if done.is_error or not isinstance(done.structured_content, dict):
        raise RuntimeError(f"{tool}: {done.content}")
    return done.structured_content


async def _asked_page(client: httpx.AsyncClient, question: str) -> str:
    return await _page(client, f"/?q={question}")


async def _ask(client: Client, question: str) -> dict[str, Any]:
    return await _call(client, "ask", question=question)


async def measure(found: Doors, seconds: float, clients: int) -> tuple[dict[str, Any], Seen]:
    """(what a warm question takes alone, what came of the requests of all clients)."""
    alone, seen = Seen(), Seen()
    times = ALONE if seconds > 10 else 5
    async with _browser(found) as browser:
        await _alone(alone, "web ask", found.web_process, times, functools.partial(_asked_page, browser))
    async with _agent(found) as agent:
        await _alone(alone, "mcp ask", found.mcp_process, times, functools.partial(_ask, agent))
    words = StdioServerParameters(
        command=sys.executable, args=["-m", "kopt", "mcp"], env=found.environment, cwd=str(found.work)
    )
    before = {child.pid for child in psutil.Process().children()}
    async with Client(words) as agent:
        [started] = [child for child in psutil.Process().children() if child.pid not in before]
        await _alone(alone, "mcp stdio ask", started, times, functools.partial(_ask, agent))
    end = time.monotonic() + seconds
    if clients:
        async with anyio.create_task_group() as group:
            for n in range(clients):
                group.start_soon(_client, _web_client if n % 5 < 3 else _mcp_client, found, seen, end, n)
            group.start_soon(_ingest, found, seen, end, min(PAUSE, seconds / 5))
            group.start_soon(_kill, found, seen)
    return alone.summary(), seen


async def _alone(
    alone: Seen, what: str, server: psutil.Process, times: int, ask: Callable[[str], Awaitable[Any]]
) -> None:
    """Ask one question after the other, each once before, so that the server is warm."""
    for question in QUESTIONS:
        await ask(question)
    before = sum(server.cpu_times()[:2])
    for n in range(times):
        began = time.perf_counter()
        await ask(QUESTIONS[n % len(QUESTIONS)])
        alone.add(what, time.perf_counter() - began)
    alone.processor[what] = sum(server.cpu_times()[:2]) - before


async def _client(work: Callable[..., Awaitable[None]], found: Doors, seen: Seen, end: float, n: int) -> None:
    """A client; what goes wrong with its connection, and not with one request, is an error too."""
    try:
        await work(found, seen, end, n)
    except Exception as error:
        seen.errors.append(f"{work.__name__}: {_innermost(error)!r}"[:300])


def _innermost(error: BaseException) -> BaseException:
    return _innermost(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


async def _timed(seen: Seen, what: str, work: Callable[[], Awaitable[Any]]) -> Any:
    began = time.perf_counter()
    try:
        found = await work()
    except Exception as error:
        seen.errors.append(f"{what}: {type(error).__name__}: {error}"[:300])
        await anyio.sleep(0.2)
        return None
    seen.add(what, time.perf_counter() - began)
    return found


def _check(seen: Seen, wanted: int, door: str, text: str) -> None:
    """Whether a search has what was ingested before it began, or something later."""
    numbers = [int(number) for number in re.findall(r"zebra number (\d+)", text)]
    if wanted and max(numbers, default=0) < wanted:
        seen.stale.append(f"{door}: {max(numbers, default=0)} after {wanted}: {_told(text)}")


def _told(text: str) -> str:
    """What a stale answer says of itself, and which passages it has."""
    found = re.findall(r'(?:"(?:degraded|warnings)": \[[^\]]*\]|[\w-]+/[\w/-]+\.md:L\d+)', text)
    return " ".join(dict.fromkeys(found))[:500]


async def _web_client(found: Doors, seen: Seen, end: float, n: int) -> None:
    async with _browser(found) as client:
        while time.monotonic() < end:
            n += 1
            question, page, wanted = QUESTIONS[n % len(QUESTIONS)], PAGES[n % len(PAGES)], seen.ingested
            if n % 3 == 0:
                text = await _timed(seen, "web search", lambda: _page(client, f"/wiki?q={SOUGHT}"))
                if text is not None:
                    _check(seen, wanted, "web", text)
            elif n % 3 == 1:
                await _timed(seen, "web ask", functools.partial(_asked_page, client, question))
            else:
                await _timed(seen, "web page", functools.partial(_page, client, page))


async def _mcp_client(found: Doors, seen: Seen, end: float, n: int) -> None:
    async with _agent(found) as client:
        while time.monotonic() < end:
            n += 1
            question, wanted = QUESTIONS[n % len(QUESTIONS)], seen.ingested
            if n % 2:
                data = await _timed(seen, "mcp search", lambda: _call(client, "search", query=SOUGHT, k=5))
                if data is not None:
                    _check(seen, wanted, "mcp", json.dumps(data))
            else:
                await _timed(seen, "mcp ask", functools.partial(_ask, client, question))


async def _ingest(found: Doors, seen: Seen, end: float, pause: float) -> None:
    """Write a page with the next number and ingest it, again and again."""
    wiki = found.work / "wiki"
    (wiki / "technique").mkdir(parents=True, exist_ok=True)
    number = 0
    while time.monotonic() < end:
        number += 1
        page = (
            "---\nid: technique/zebra\nkind: technique\ntitle: Zebra of the doors\nconfidence: verified\n"
            'reviewed: 2026-11-21\nsources:\n  - {id: src, title: "A source", url: "https://example.org/a",'
            " kind: vendor-doc, accessed: 2026-11-21}\n---\n\n# Zebra number of the doors\n\n"
            f"The zebra number {number} of the doors was ingested last. [src]\n"
        )
        (wiki / "technique" / "zebra.md").write_text(page, "utf-8")
        try:
            await found.kopt("ingest", str(wiki), "--name", "zebra")
        except RuntimeError as error:
            seen.errors.append(f"ingest: {error}")
        else:
            seen.ingested = number
        await anyio.sleep(pause)


async def _kill(found: Doors, seen: Seen) -> None:
    """Begin a benchmark through MCP, and kill the worker that runs the kernel."""
    async with _agent(found) as client, anyio.create_task_group() as group:
        ended = anyio.Event()

        async def bench() -> None:
            done = await client.call_tool("bench", {"kernel": "kernel.py", "ref": "ref.py", "device": "cpu"})
            text = getattr(done.content[0], "text", "") if done.content else ""
            seen.killed = text if done.is_error else json.dumps(done.structured_content)[:2000]
            ended.set()

        group.start_soon(bench)
        while not ended.is_set():
            young = [one for one in found.mcp_process.children(recursive=True) if not one.children()]
            if len(young) > 1:  # reference and candidate: the one that was started last
                await anyio.sleep(1)
                with contextlib.suppress(psutil.Error):
                    max(young, key=lambda one: one.create_time()).kill()
                break
            await anyio.sleep(0.05)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "doors.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder) / "home", Path(folder) / "work"
        work.mkdir()
        environment = {**os.environ, "KOPT_HOME": str(home), "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-m", "kopt", "ingest"], env=environment, cwd=work, check=True)
        with doors(home, work) as found:
            alone, seen = anyio.run(measure, found, options.seconds, options.clients)
    load = os.getloadavg()
    result = {
        "command": f"python benchmarks/doors.py --seconds {options.seconds:g} --clients {options.clients}",
        "date": time.strftime("%Y-%m-%d"),
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "load_average": load},
        "seconds": options.seconds,
        "clients": options.clients,
        "alone": alone,
        "together": seen.summary(),
        "requests": sum(map(len, seen.times.values())),
        "ingests": seen.ingested,
        "errors": seen.errors[:50],
        "stale": seen.stale[:50],
        "killed": seen.killed[:300],
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
