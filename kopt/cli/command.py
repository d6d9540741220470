"""How a command is declared: a function that takes its options in groups and returns a `Reply`.

    @dataclass(frozen=True)
    class LimitOptions:
        panel: ClassVar[str] = "Limits"     # the section of the help page
        restarts: Annotated[int, typer.Option("--restarts", min=2, help="...")] = 5
        timeout: TimeoutOption = 60.0

    @command("bench run", bench)            # its name in the JSON envelope, and the group that it belongs to
    def run(candidate: Annotated[Path, typer.Argument()], limits: LimitOptions) -> Reply:
        ...

`kopt bench run --restarts 7` calls `run(candidate, limits=LimitOptions(restarts=7))`. Groups may hold groups. Every
command gets `--json` and `--debug`; a function that needs one takes it as a parameter of that name. An option with
`rich_help_panel=RARE` is shown by `--help-all` only.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import field, is_dataclass, make_dataclass
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver
from kopt.services.settings import TRUSTING

TrustFlag = Annotated[
    bool, typer.Option("--trust", help="Use the wikis that this folder's kopt.toml names, for this command.")
]
PagerFlag = Annotated[bool, typer.Option("--no-pager", help="Print all at once, also what is longer than the screen.")]
RARE = "Rarely needed"
"""Panel of the options that only `--help-all` shows."""

_Option = tuple[str, Any, Any]
"""Name, annotation, and default (a dataclass field) of an option."""


def command(
    name: str, group: typer.Typer | None = None, *, reads_wikis: bool = False, paged: bool = False
) -> Callable[[Callable[..., Reply]], Callable[..., None]]:
    """Declare the command `name`: it runs the function, prints its reply, and ends with its exit code.

    In a `group` it is called by the last word of its name. `reads_wikis`: it takes `--trust`, for the wikis that the
    workspace names. `paged`: on a terminal, what is longer than the screen goes through a pager.
    """

    def declare(work: Callable[..., Reply]) -> Callable[..., None]:
        options = list(_options(work))
        own = [option for option, _, _ in options]
        flags: list[_Option] = [("json", JsonFlag, field(default=False)), ("debug", DebugFlag, field(default=False))]
        if reads_wikis:
            options.append(("trust", TrustFlag, field(default=False)))
        if paged:
            options.append(("no_pager", PagerFlag, field(default=False)))
        options += [flag for flag in flags if flag[0] not in own]
        if any(_panel(annotation) == RARE for _, annotation, _ in options):
            options.append(("help_all", HelpAllFlag, field(default=False)))
        # Typer reads options from a constructor as well as from a function: it follows `__wrapped__` to this class.
        flat = make_dataclass(work.__name__, options, kw_only=True, namespace={"__doc__": work.__doc__})

        @functools.wraps(flat, updated=())
        def callback(**given: Any) -> None:
            arguments = _arguments(work, given)
            trusting = TRUSTING.set(given.get("trust", False))
            try:
                deliver(
                    *(name, given["json"], given["debug"], lambda: work(**arguments)),
                    paged=paged and not given["no_pager"],
                )
            finally:
                TRUSTING.reset(trusting)

        return callback if group is None else group.command(name.split()[-1])(callback)

    return declare


def _options(owner: Callable[..., Any]) -> Iterator[_Option]:
    """The options of a command or a group, and of the groups in it."""
    hints = get_type_hints(owner, include_extras=True)
    for name, parameter in inspect.signature(owner).parameters.items():
        if is_dataclass(hints[name]):
            yield from _options(hints[name])
        else:
            default = field() if parameter.default is parameter.empty else field(default=parameter.default)
            yield name, _in_panel(hints[name], getattr(owner, "panel", None)), default


def _arguments(owner: Callable[..., Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command or a group, made from the values of all options."""
    hints = get_type_hints(owner)
    return {
        name: hints[name](**_arguments(hints[name], given)) if is_dataclass(hints[name]) else given[name]
        for name in inspect.signature(owner).parameters
    }


def _in_panel(annotation: Any, panel: str | None) -> Any:
    """An option in its group's panel, unless it names another."""
    if panel is None or _panel(annotation) is not None:
        return annotation
    kind, info = get_args(annotation)
    info = copy.copy(info)
    info.rich_help_panel = panel
    return Annotated[kind, info]


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

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer; with no words, help is what was asked for, and no error."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

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

    def display_type_rich(self, ctx: Any) -> str | None:  # noqa: ARG002  # the signature is Typer's
        """Leave the type out: the name and its help say what is wanted."""
        return None

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002  # the signature is Typer's
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
