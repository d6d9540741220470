"""How a command is declared: a function that takes its options in groups and returns a `Reply`.

    @dataclass(frozen=True)
    class LimitOptions:
        panel: ClassVar[str] = "Limits"     # the section of the help page
        restarts: Annotated[int, typer.Option("--restarts", min=2, help="...")] = 5
        timeout: TimeoutOption = 60.0

    @bench.command("run")
    @command("bench")                       # its name in the JSON envelope
    def run(candidate: Annotated[Path, typer.Argument()], limits: LimitOptions) -> Reply:
        ...

`kopt bench run --restarts 7` calls `run(candidate, limits=LimitOptions(restarts=7))`. Every command gets `--json` and
`--debug`; a function that needs to know of one takes it as a parameter of that name. An option with
`rich_help_panel=RARE` is shown by `--help-all` only.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import Field, field, fields, is_dataclass, make_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

RARE = "Rarely needed"
"""Panel of the options that only `--help-all` shows."""

_Options = list[tuple[str, Any, Any]]
"""Name, annotation, and default (a dataclass field) of each option of a command."""


def command(name: str) -> Callable[[Callable[..., Reply]], Callable[..., None]]:
    """Declare the command `name`: runs the function, prints its reply, and ends with its exit code."""

    def declare(work: Callable[..., Reply]) -> Callable[..., None]:
        own = inspect.signature(work).parameters

        def run(**given: Any) -> None:
            json, debug = given["json"], given["debug"]
            asked = {key: value for key, value in given.items() if key in own or key not in ("json", "debug")}
            deliver(name, json, debug, lambda: work(**asked))

        flags = [("json", JsonFlag, field(default=False)), ("debug", DebugFlag, field(default=False))]
        return _taking_options(work, run, [flag for flag in flags if flag[0] not in own])

    return declare


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """A command that prints by itself, with options in groups as in `command`."""
    return _taking_options(function, function, [])


def _taking_options(function: Callable[..., Any], call: Callable[..., None], more: _Options) -> Callable[..., None]:
    """`call`, which takes the parameters of `function`, as a callback for Typer: each field of a group is an option."""
    groups: dict[str, type[Any]] = {}
    options: _Options = []
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints[parameter.name]
        if is_dataclass(annotation):
            groups[parameter.name] = annotation  # type: ignore[assignment]  # the class, not an instance
            options += _fields_of(groups[parameter.name])
        else:
            default = field() if parameter.default is parameter.empty else field(default=parameter.default)
            options.append((parameter.name, annotation, default))
    options += more
    if any(_panel(annotation) == RARE for _, annotation, _ in options):
        options.append(("help_all", HelpAllFlag, field(default=False)))
    # Typer reads options from a constructor as well as from a function: it follows `__wrapped__` to this class.
    flat = make_dataclass(function.__name__, options, kw_only=True, namespace={"__doc__": function.__doc__})

    @functools.wraps(flat, updated=())
    def callback(**given: Any) -> None:
        given.pop("help_all", None)
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        call(**given)

    return callback


def _fields_of(group: type[Any]) -> Iterator[tuple[str, Any, Field[Any]]]:
    """The options of a group, in the group's panel unless they name another."""
    hints = get_type_hints(group, include_extras=True)
    for one in fields(group):
        annotation = hints[one.name]
        if _panel(annotation) is None and hasattr(group, "panel"):
            kind, info = get_args(annotation)
            info = copy.copy(info)
            info.rich_help_panel = group.panel
            annotation = Annotated[kind, info]
        yield one.name, annotation, field(default=one.default)


def _panel(annotation: Any) -> str | None:
    """The help panel that an option names for itself."""
    if get_origin(annotation) is not Annotated:
        return None
    return getattr(get_args(annotation)[1], "rich_help_panel", None)


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        context.meta[RARE] = True
        typer.echo(context.get_help())
        raise typer.Exit


HelpAllFlag = Annotated[
    bool,
    typer.Option("--help-all", is_eager=True, callback=_show_all, help="Show this message with all options and exit."),
]


# --- help -----------------------------------------------------------------------------------------------------------

_TYPES = {"str": "TEXT", "Path": "PATH", "int": "INTEGER", "float": "FLOAT"}


class Command(TyperCommand):
    """A command whose help has a section for each panel of options and fits 80 columns."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        _name_types(self.params)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and the sections that panels name."""
        _write_options(self, ctx, formatter)


class Group(TyperGroup):
    """A group whose help looks as that of `Command`, and says of each command what it does in a whole sentence."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        _name_types(self.params)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write options, and the commands with what they do."""
        _write_options(self, ctx, formatter)
        rows = [(name, _first_paragraph(one.help or "")) for name, one in self.commands.items() if not one.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _write_options(of: Command | Group, ctx: Any, formatter: Any) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
    for param in of.get_params(ctx):
        section = "Options" if isinstance(param, TyperOption) else "Arguments"
        panel = getattr(param, "rich_help_panel", None) or section
        record = param.get_help_record(ctx)
        if record is not None and (panel != RARE or ctx.meta.get(RARE)):
            sections.setdefault(panel, []).append(record)
    rare = sections.pop(RARE, [])
    for title, rows in {**sections, RARE: rare}.items():
        if rows:
            with formatter.section(title):
                formatter.write_dl(rows)


class _Argument(TyperArgument):
    """An argument that help shows by its name alone: KERNEL, [VERSION], [WORDS]..."""

    def display_type_rich(self, ctx: Any) -> str | None:  # noqa: ARG002
        """Leave the type out: the name and its help say what is wanted."""
        return None

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """Brackets around what may be left out."""
        name = f"{self.metavar}" if self.required else f"[{self.metavar}]"
        return [f"{name}..." if self.nargs != 1 and not name.endswith("...]") else name]


def _name_types(params: list[Any]) -> None:
    """Show types as TEXT, PATH, INTEGER, FLOAT, and arguments as their names in capitals."""
    for param in params:
        if isinstance(param, TyperArgument):
            param.__class__ = _Argument  # Typer has no option for the class of an argument
            param.metavar = param.metavar or param.name.upper()
        elif param.metavar is None:
            param.metavar = _TYPES.get(param.bare_type().removeprefix("list[").removesuffix("]"))


def _first_paragraph(text: str) -> str:
    return " ".join(inspect.cleandoc(text).partition("\n\n")[0].split())
