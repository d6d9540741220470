"""Serves a client on standard input and output, or any number over HTTP on this machine alone, each with the token."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from kopt.mcp.server import make_server
from kopt.services.serving.port import names

PATH = "/mcp"


def serve_stdio(root: Path) -> None:
    """Serve the one client that started this process, until it closes the pipe."""
    anyio.run(_stdio, root)


async def _stdio(root: Path) -> None:
    async with stdio_server() as (read, write):
        server = make_server(root)
        await server.run(read, write, server.create_initialization_options())


def serve_http(bound: socket.socket, root: Path, token: str, ready: Callable[[], None]) -> None:
    """Serve HTTP clients that send the token, until Ctrl-C or SIGTERM; `ready` is called when it does."""
    from kopt.services.serving.server import serve

    app = make_app(lambda: make_server(root), bound.getsockname()[1], token)
    serve(app, bound, ready)


def make_app(make: Callable[[], Server], port: int, token: str) -> ASGIApp:
    """The application: a request needs the token, a `Host` of this machine, and an `Origin` of it if it has one."""
    hosts = names(port)
    security = TransportSecuritySettings(allowed_hosts=[*hosts], allowed_origins=[f"http://{name}" for name in hosts])
    return _Guard(make().streamable_http_app(streamable_http_path=PATH, transport_security=security), token)


class _Guard:
    """Lets nobody in without the token: every program and every web page of this machine reaches the port."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app = app
        self.right = f"bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401, or pass the request on."""
        if scope["type"] != "http" or self._known(Headers(scope=scope)):
            await self.app(scope, receive, send)
            return
        told = {"error": "invalid_token", "error_description": "Send the token that `kopt mcp --http` printed."}
        await JSONResponse(told, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, send)

    def _known(self, headers: Headers) -> bool:
        given = headers.getlist("authorization")
        if len(given) != 1:
            return False
        scheme, _, word = given[0].partition(" ")
        return hmac.compare_digest(f"{scheme.lower()} {word.strip()}".encode(), self.right)
