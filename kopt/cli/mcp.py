"""`kopt mcp`: kopt as an MCP server for coding agents."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply, tell

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_PORT = 7879
TOKEN = "KOPT_MCP_TOKEN"
"""Environment variable of the token, where a client's settings must name one that stays."""


@command("mcp", reads_wikis=True)
def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP on 127.0.0.1 in place of stdin and stdout.")] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="With --http: port; 0 takes any that is free.")
    ] = DEFAULT_PORT,
    root: Annotated[
        Path | None, typer.Option("--root", help="Folder whose files clients may name (default: the working folder).")
    ] = None,
) -> Reply:
    """Serve coding agents by the Model Context Protocol: answers, analyses, benchmarks and runs as tools.

    An agent starts it itself and talks over stdin and stdout: `kopt skill install --for NAME` sets that up. With --http
    it listens on this machine alone at http://127.0.0.1:PORT/mcp, and clients send the token that it prints, or the one
    in KOPT_MCP_TOKEN, as `Authorization: Bearer TOKEN`.

    Files that a client names must lie below the folder; of runs and wikis it may read. Kernels run in the sandbox of
    `kopt bench`, and no language model is asked. Ctrl-C ends it.
    """
    from kbs.common.errors import UsageError
    from kopt.services.results.installation import McpData
    from kopt.services.settings import load_settings

    folder = (root or Path.cwd()).resolve()
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}", code="root_not_found", hint="Give a folder with --root.")
    os.chdir(folder)  # the tools work there as commands do
    load_settings()
    address = ""
    with contextlib.suppress(KeyboardInterrupt):  # it is how the server ends
        if http:
            address = _serve_http(port, folder)
        else:
            from kopt.mcp.serve import serve_stdio

            if sys.stdin.isatty():
                tell("Waits for an agent: `kopt skill install --for NAME` sets one up. Ctrl-C, then Enter, ends it.\n")
            serve_stdio(folder)

    def show(console: Console) -> None:
        """Nothing: standard output was the client's."""

    return Reply(McpData(address=address, root=str(folder)), show)


def _serve_http(port: int, folder: Path) -> str:
    from kopt.mcp.serve import PATH, serve_http
    from kopt.services.serving.port import listen
    from kopt.services.serving.token import token_of

    token, given = token_of(TOKEN)
    bound = listen(port)
    address = f"http://127.0.0.1:{bound.getsockname()[1]}{PATH}"
    shown = f"the token in {TOKEN}" if given else token
    said = f"kopt mcp: {address}\nAuthorization: Bearer {shown}\nCtrl-C ends it.\n"
    serve_http(bound, folder, token, lambda: tell(said))
    return address
