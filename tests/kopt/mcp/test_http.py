"""HTTP on this machine: the token, the names that a request may come by, several clients, cancellation."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import anyio
import httpx2
import psutil
import pytest

from kopt.services.serving.port import listen
from tests.conftest import run_kopt
from tests.kopt.mcp.client import TOKEN, call, environment, over_http, served
from tests.kopt.run_workspace import KERNEL, workspace

pytestmark = pytest.mark.processes
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
SLOW = KERNEL.replace("    def forward(self, x):", "    def forward(self, x):\n        import time; time.sleep(3)")


def test_who_is_let_in(home: Path, tmp_path: Path) -> None:
    with served(home, tmp_path) as server:
        port = server.address.split(":")[2].split("/")[0]
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        right = {**accept, "Authorization": f"Bearer {TOKEN}"}

        def status(headers: dict[str, str], *, address: str = server.address, method: str = "POST") -> int:
            return httpx2.request(method, address, headers=headers, content=json.dumps(PING)).status_code

        for given in (
            None,
            "",
            "Bearer",
            f"Bearer {TOKEN}x",
            f"Bearer {TOKEN[:-1]}",
            f"Basic {TOKEN}",
            TOKEN,
        ):
            for method in ("POST", "GET", "DELETE", "PUT"):
                said = httpx2.request(
                    method, server.address, headers=accept if given is None else {**accept, "Authorization": given}
                )
                assert said.status_code == 401, (given, method)
                assert said.headers["www-authenticate"] == "Bearer"
                assert TOKEN not in said.text
        assert status(accept, address=f"{server.address}?token={TOKEN}") == 401
        assert status(right) not in (401, 403, 421)
        for host in (
            "evil.example",
            f"evil.example:{port}",
            "127.0.0.1:1",
            "127.0.0.1",
            f"127.0.0.1.evil.example:{port}",
        ):
            assert status({**right, "Host": host}) == 421, host
        for origin in ("https://evil.example", "null", f"https://127.0.0.1:{port}", "http://127.0.0.1:1"):
            assert status({**right, "Origin": origin}) == 403, origin
        assert status({**right, "Origin": f"http://127.0.0.1:{port}"}) not in (401, 403, 421)
        assert status({**right, "Content-Type": "text/plain"}) == 400
        assert status(right, address=server.address.replace("/mcp", "/other")) == 404
        with socket.socket() as tried:  # this machine alone: not on its other addresses
            tried.settimeout(2)
            assert tried.connect_ex((_other_address(), int(port))) != 0


def _other_address() -> str:
    """An address of this machine besides 127.0.0.1; 127.0.0.2 where it has no other."""
    for found in psutil.net_if_addrs().values():
        for one in found:
            if one.family == socket.AF_INET and not one.address.startswith("127."):
                return one.address
    return "127.0.0.2"


def test_clients_side_by_side_see_what_was_ingested(home: Path, tmp_path: Path) -> None:
    wiki = tmp_path / "wiki"
    (wiki / "technique").mkdir(parents=True)

    async def main(address: str) -> None:
        async with over_http(address) as one, over_http(address) as two:
            first = await call(one, "search", query="zebra striping of tiles", k=3)
            assert "mine" not in {hit["wiki"] for hit in first["data"]["passages"]}
            text = (
                "---\nid: technique/zebra\nkind: technique\ntitle: Zebra striping\nconfidence: verified\n"
                "reviewed: 2026-11-21\nsources:\n  - {id: src, title: \"A source\", url: \"https://example.org/a\","
                " kind: vendor-doc, accessed: 2026-11-21}\n---\n\n# Zebra striping of tiles\n\n"
                "Zebra striping of tiles alternates banks. [src]\n"
            )  # fmt: skip
            (wiki / "technique" / "zebra.md").write_text(text, "utf-8")
            done = await asyncio.to_thread(run_kopt, home, "ingest", str(wiki), "--name", "mine")
            assert done.code == 0, done.err
            for client in (one, two):
                found = await call(client, "search", query="zebra striping of tiles", k=3)
                assert "mine" in {hit["wiki"] for hit in found["data"]["passages"]}
            shown = await call(two, "show", reference="mine/technique/zebra.md:L13")
            assert "Zebra" in shown["data"]["lines"][0][1]

    with served(home, tmp_path) as server:
        anyio.run(main, server.address)


@pytest.mark.slow
def test_a_call_that_is_taken_back_ends_its_processes(home: Path, tmp_path: Path) -> None:
    root = workspace(tmp_path / "work", kernel=SLOW)

    async def main(address: str, server: int) -> None:
        steps: list[str] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            del progress, total
            steps.append(message or "")

        async with over_http(address) as client, over_http(address) as other:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:

                    async def stop() -> None:
                        while not (steps and children(server)):
                            await anyio.sleep(0.05)
                        # the server answers others while it measures
                        began = time.monotonic()
                        await call(other, "spec", gpu=["h100-sxm"], metric="hbm_bandwidth")
                        assert time.monotonic() - began < 20
                        scope.cancel()

                    group.start_soon(stop)
                    arguments = {"kernel": "kernel.py", "ref": "ref.py", "device": "cpu", "plan": "verdict"}
                    await client.call_tool("bench", arguments, progress_callback=hear)
            assert scope.cancelled_caught, "the bench was over before it could be taken back"
            with anyio.fail_after(120):
                while children(server):
                    await anyio.sleep(0.2)
            # and the lane is free again
            (root / "kernel.py").write_text(KERNEL, "utf-8")
            made = await call(client, "bench", kernel="kernel.py", ref="ref.py", device="cpu", plan="signal")
            assert made["data"]["verdict"] == "accepted"

    with served(home, root) as server:
        anyio.run(main, server.address, server.process.pid)


def children(pid: int) -> list[psutil.Process]:
    """The processes that a server started and that go on."""
    return [one for one in psutil.Process(pid).children(recursive=True) if one.status() != psutil.STATUS_ZOMBIE]


def test_it_ends_when_it_is_told_to(home: Path, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        with served(home, tmp_path) as server:
            os.kill(server.process.pid, number)
            assert server.process.wait(30) in (0, -number, 128 + number)


def test_whoever_types_it_in_a_terminal_is_told_what_it_waits_for(home: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kopt", "mcp"], cwd=tmp_path, env=environment(home), stdin=theirs,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert "kopt skill install" in process.stderr.readline()
        os.kill(process.pid, signal.SIGINT)
        os.write(ours, b"\n\x04")  # the thread that reads waits for a line
        out, _ = process.communicate(timeout=60)
        assert out == ""
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)


def test_ports_tokens_and_folders_that_do_not_go(home: Path, tmp_path: Path) -> None:
    taken = listen(0)
    port = str(taken.getsockname()[1])
    try:
        done = run_kopt(home, "mcp", "--http", "--port", port, "--json", env={"KOPT_MCP_TOKEN": TOKEN}, fresh=True)
        assert (done.code, done.json["errors"][0]["code"]) == (2, "port_taken")
    finally:
        taken.close()
    for weak in ("short", "with a blank in the token", "ünprintable-for-a-header-"):
        done = run_kopt(home, "mcp", "--http", "--json", env={"KOPT_MCP_TOKEN": weak}, fresh=True)
        assert (done.code, done.json["errors"][0]["code"]) == (2, "token_weak")
        assert weak not in done.out
    done = run_kopt(home, "mcp", "--root", str(tmp_path / "nothing"), "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, "root_not_found")
    assert environment(home)["KOPT_HOME"] == str(home)
