"""`kopt web`: kopt as pages in a browser."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kopt.cli.command import command
from kopt.cli.output import Reply, tell

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_PORT = 7880
TOKEN = "KOPT_WEB_TOKEN"
"""Environment variable of the token, where a bookmark must stay valid."""


@command("web", reads_wikis=True)
def web(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port; 0 takes any that is free.")
    ] = DEFAULT_PORT,
    runs: Annotated[
        list[Path] | None,
        typer.Option("--runs", help="A run's folder, or a folder of runs, to show beside those known here."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> Reply:
    """Serve answers, wikis, the log, runs, receipts and the doctor as pages to a browser of this machine.

    It listens on 127.0.0.1 alone and prints an address with a token, which the browser exchanges for a cookie; the
    token in KOPT_WEB_TOKEN stays the same from start to start. Pages only read: of runs those that were begun with this
    KOPT_HOME, those below ./runs, and those of --runs. A run that goes on is shown as it goes on. Nothing is fetched
    from elsewhere, and no language model is asked. Ctrl-C ends it.
    """
    from kbs.common.errors import UsageError
    from kopt.services.results.installation import WebData
    from kopt.services.serving.port import HOST, listen
    from kopt.services.serving.token import token_of
    from kopt.services.settings import load_settings
    from kopt.web.serve import serve_web

    root, further = Path.cwd(), tuple(runs or ())
    for folder in further:
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}", code="runs_not_found", hint="Give a folder with --runs.")
    load_settings()
    token, given = token_of(TOKEN)
    bound = listen(port)
    address = f"http://{HOST}:{bound.getsockname()[1]}/"
    whole = f"{address}?token={token}"

    def ready() -> None:
        tell(f"kopt web: {address}?token={f'the one in {TOKEN}' if given else token}\nCtrl-C ends it.\n")
        if open_:
            import webbrowser

            webbrowser.open(whole)

    with contextlib.suppress(KeyboardInterrupt):  # it is how the server ends
        serve_web(bound, root, tuple(folder.resolve() for folder in further), token, ready)

    def show(console: Console) -> None:
        """Nothing: all was said in the browser."""

    return Reply(WebData(address=address, root=str(root)), show)
