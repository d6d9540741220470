"""The `kopt` command."""

from __future__ import annotations

import gc
import io
import os
import shlex
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

import typer

# Many threads gain nothing on the short texts of a question, and cost a second where other programs run beside.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from kopt.cli.command import Command, Group
from kopt.cli.output import fail, whole_pipe
from kopt.cli.terminal.completion import typed_command

# What a command imports stays until its end: looking through it for cycles after every 700 objects took an eighth of an
# answer. Half a million are at most some 50 MB that wait to be freed.
gc.set_threshold(500_000)

_ABOUT = "Evidence for making GPU kernels faster: answers whose every claim cites a line that code has checked."
_SHORT = """\
kopt: evidence for making GPU kernels faster. Every claim cites a line that code has checked.

  kopt ask why is my softmax slow on H200     answer a question, with sources
  kopt spec h100-sxm hbm_bandwidth            look a hardware value up
  kopt show softmax                           read a page, or a cited line
  kopt bench kernel.py --ref ref.py           check a kernel and, on a GPU, time it
  kopt diagnose report.ncu-rep                find what bounds a kernel
  kopt run start                              make a kernel faster, step by step

`kopt --help` lists all commands, and `kopt COMMAND --help` explains one. `kopt doctor` says what works here.
"""
"""What `kopt` alone prints."""
_COMMANDS = {
    "ask": "knowledge.ask:ask",
    "search": "knowledge.ask:search",
    "show": "knowledge.cite:show",
    "spec": "knowledge.spec:spec",
    "cite": "knowledge.cite:cite",
    "ingest": "wiki.ingest:ingest",
    "profile": "analysis.profile:profile",
    "diagnose": "analysis.diagnose:diagnose",
    "sass": "machine_code.sass:sass",
    "occupancy": "machine_code.occupancy:occupancy",
    "roofline": "analysis.roofline:roofline",
    "doctor": "doctor:doctor",
    "schema": "schema:schema",
    "eval": "knowledge.eval:evaluate",
    "wiki": "wiki.sharing:wiki",
    "bench": "bench.commands:bench",
    "log": "log.commands:log",
    "run": "run.commands:run",
    "mcp": "mcp:mcp",
    "web": "web:web",
    "skill": "skill:skill",
}
"""Commands and groups of commands, in the order of the help: module under `kopt.cli`, and name in it."""


_DEEPEST = 2
"""Words of a command in a group: `run start`."""


def application(names: Iterable[str] = _COMMANDS) -> typer.Typer:
    """The command line with these commands, of which only the modules are imported."""
    app = typer.Typer(
        name="kopt",
        help=_ABOUT,
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # help is plain text, laid out by `kopt.cli.command`
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name in names:
        module, _, attribute = _COMMANDS[name].partition(":")
        found = getattr(import_module(f"kopt.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            app.add_typer(found, name=name)
        else:
            app.command(name)(found)
    _lay_out_help(app)
    return app


def _names() -> typer.Typer:
    """A command line that has the names of the commands alone: a shell that completes one waits for no imports."""
    app = application(())
    for name in _COMMANDS:
        app.command(name)(lambda: None)
    return app


def __getattr__(name: str) -> typer.Typer:
    """`app`: the command line with all commands."""
    if name != "app":
        raise AttributeError(name)
    return application()


def _version(wanted: bool) -> None:
    if wanted:
        from kopt import __version__

        sys.stdout.write(f"kopt {__version__}\n")
        raise typer.Exit


def root(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001  # its callback prints it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Evidence for making GPU kernels faster: answers whose every claim cites a line that code has checked."""
    if context.invoked_subcommand is None:
        with whole_pipe():
            sys.stdout.write(_SHORT)


def _lay_out_help(of: typer.Typer) -> None:
    """Have `kopt.cli.command` write the help of all commands."""
    of.info.cls = of.info.cls if isinstance(of.info.cls, type) else Group
    for one in of.registered_commands:
        one.cls = Command
    for below in of.registered_groups:
        if below.typer_instance is not None:
            _lay_out_help(below.typer_instance)


def _as_text(word: str) -> str:
    """A word of the command line with what is not UTF-8 replaced."""
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _next(context: Any, message: str) -> str:
    """What to type in place of wrong words."""
    if context is not None and context.parent is not None:
        _, extra, rest = message.partition("unexpected extra argument(s) (")
        options = {option for one in context.command.params for option in one.opts}
        stray = rest.rstrip(".").removesuffix(")")
        if extra and "--run" in options:
            return f"A run is named with --run: {context.command_path} --run {stray}"
        if extra and "--ref" in options and stray.endswith(".py"):
            return f"A reference is named with --ref: {context.command_path} --ref {stray}"
        reads_pipes = any("standard input" in (getattr(one, "help", None) or "") for one in context.command.params)
        if message.startswith("Missing argument") and reads_pipes:
            return f"Give - to read a pipe; see `{context.command_path} --help`."
        return f"See `{context.command_path} --help`."
    words = [_as_text(word) for word in sys.argv[1:]]
    known = context.command.params if context is not None else ()
    if words and any(f"--{words[0]}" in one.opts for one in known):
        return f"It is an option: kopt --{words[0]}"
    if len(words) > 1 and not words[0].startswith("-") and "Did you mean" not in message and words[0] not in _COMMANDS:
        return f"To ask a question: kopt ask {shlex.join(words)}"
    return "See `kopt --help`."


def _help_words(words: list[str]) -> list[str]:
    """`help COMMAND` as `COMMAND --help`, in every other case the words themselves."""
    if words[:1] == ["help"] and (len(words) == 1 or words[1] in _COMMANDS) and len(words) <= _DEEPEST + 1:
        return [*words[1:], "--help"]
    return words


def _named(context: Any) -> str:
    """The command whose words are wrong, as its own envelopes name it; where it has got no further, the first word."""
    found: list[str] = []
    while context is not None and context.parent is not None:
        found.insert(0, context.info_name)
        context = context.parent
    if found[:1] == ["bench"]:
        from kopt.cli.bench.commands import DEFAULT

        found = [word for word in found if word != DEFAULT]
    words = [_as_text(word) for word in sys.argv[1:] if not word.startswith("-")]
    return " ".join(found or words[:1]) or "kopt"


def main() -> None:
    """Run the command line; what is wrong with the words themselves is said in the envelope too, with exit code 2."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a text with a letter that it cannot have is still shown
    sys.argv[1:] = _help_words(sys.argv[1:])
    try:
        if any(word != _as_text(word) for word in sys.argv[1:]):
            raise typer.BadParameter("a word of the command is not UTF-8 text")
        if (typed := typed_command()) is not None:
            (application([typed]) if typed in _COMMANDS else _names())(standalone_mode=False)
        called = [word for word in sys.argv[1:2] if word in _COMMANDS]
        alone = sys.argv[1:] in ([], ["--version"])
        code = application(() if alone else called or _COMMANDS)(standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        sys.exit(1)
    except typer.TyperException as error:
        from kbs.common.errors import ExitCode

        context = getattr(error, "ctx", None)
        message = error.format_message()
        hint = _next(context, message)
        try:
            with whole_pipe():
                fail(_named(context), "--json" in sys.argv, ExitCode.USAGE, "usage", message, hint)
        except typer.Exit as done:
            sys.exit(done.exit_code)


if __name__ == "__main__":
    main()
