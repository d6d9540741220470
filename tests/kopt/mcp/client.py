"""A client of the SDK that talks to a real `kopt mcp`."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

TOKEN = "a-token-of-the-tests"
Talk = Callable[[Client], Awaitable[None]]


def environment(home: Path) -> dict[str, str]:
    """For a server."""
    return {**os.environ, "KOPT_HOME": str(home), "KOPT_MCP_TOKEN": TOKEN}


def over_stdio(home: Path, root: Path, talk: Talk) -> None:
    """Start `kopt mcp` in a folder, and talk to it."""

    async def main() -> None:
        started = StdioServerParameters(
            command=sys.executable, args=["-m", "kopt", "mcp"], env=environment(home), cwd=str(root)
        )
        with anyio.fail_after(300):
            async with Client(started) as client:
                await talk(client)

    anyio.run(main)


@dataclass(frozen=True)
class Served:
    """A `kopt mcp --http` that goes on."""

    address: str
    process: subprocess.Popen[str]


@contextlib.contextmanager
def served(home: Path, root: Path) -> Iterator[Served]:
    """Start `kopt mcp --http` on a free port."""
    words = [sys.executable, "-m", "kopt", "mcp", "--http", "--port", "0", "--root", str(root)]
    process = subprocess.Popen(words, env=environment(home), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = process.stderr.readline()
        assert line.startswith("kopt mcp: http://127.0.0.1:"), line + process.stderr.read()
        yield Served(line.split()[-1], process)
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()


@contextlib.asynccontextmanager
async def over_http(address: str, token: str = TOKEN) -> AsyncIterator[Client]:
    """A client that sends the token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The envelope of a call that is no error of the tool."""
    done = await client.call_tool(tool, arguments)
    assert not done.is_error, said(done)
    assert isinstance(done.structured_content, dict)
    return done.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    """The code of the error that a call is answered with."""
    done = await client.call_tool(tool, arguments)
    assert done.is_error, said(done)
    assert isinstance(done.structured_content, dict)
    error = done.structured_content["errors"][0]
    assert said(done).startswith(f"{error['message']}\n{error['hint']}"[:200])
    assert isinstance(error["code"], str)
    return error["code"]


def said(done: CallToolResult) -> str:
    """The text of a result."""
    [content] = done.content
    assert isinstance(content, TextContent)
    return content.text
