"""How a tool is declared: a function that takes a call and the arguments, and returns what came of it.

    @tool("spec", "answering.citations.SpecData")
    def spec(call: Call, gpu: Annotated[str, Field(description="...")] = "") -> Done:
        ...

The name is that of the command whose `--json` has the same schema; `run next` becomes the tool `run_next`. The
docstring tells a client what the tool does, and the annotations of the parameters become its input schema.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_origin, get_type_hints

from mcp.types import Tool as Listed
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic_core import ErrorDetails

from ingest.progress import Progress
from kbs.common.errors import ExitCode, KoptError, UsageError
from kbs.common.json_model import json_schema
from kbs.common.visible_text import visible
from kopt.mcp.roots import Roots
from kopt.services.engine import Engine
from kopt.services.results.envelope import SCHEMA_VERSION, STATUS, error_data
from kopt.services.settings import load_settings

Lane = Literal["quick", "sandbox", "measure"]
"""What a call waits for: `quick` ones go side by side, `sandbox` ones run foreign code, `measure` ones go alone."""

_NO_MORE = r"(?=[`.,;:)]|$| [-A-Z\"'])"
"""What follows the name of a command: no word that makes it the name of another one, `kopt bench verify`."""


@dataclass(frozen=True)
class Call:
    """One call of a tool."""

    roots: Roots
    progress: Progress
    """Tells the client how far it is, and ends the call where the client took it back."""

    def engine(self, **flags: Any) -> Engine:
        """An engine with the settings in force now; what is warm is shared by all engines of the process."""
        return Engine(load_settings(flags, self.roots.root), progress=self.progress)


@dataclass
class Done:
    """What came of a call."""

    data: object
    """A `JsonModel`, or a `JsonDataclass`: what the command prints under `data`."""
    text: str = ""
    """For people and models; empty: the JSON."""
    code: ExitCode = ExitCode.OK
    warnings: list[str] = field(default_factory=list)
    errors: list[dict[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Tool:
    """A tool as it is declared."""

    command: str
    results: tuple[str, ...]
    """Types of what it gives: modules of `kopt.services.results` with their names."""
    work: Callable[..., Done]
    arguments: type[BaseModel]
    lane: Lane
    writes: bool

    @property
    def name(self) -> str:
        """`run_next`"""
        return self.command.replace(" ", "_")

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments, checked; a text where a list is wanted is a list of it. UsageError `arguments_invalid`."""
        fields = self.arguments.model_fields
        lists = {name for name, one in fields.items() if get_origin(one.annotation) is tuple}
        one_each = {
            name: [value] if name in lists and isinstance(value, str) else value for name, value in given.items()
        }
        try:
            read = self.arguments.model_validate(one_each)
        except ValidationError as error:
            wrong = [_wrong(one) for one in error.errors(include_url=False, include_input=False, include_context=False)]
            named = [f"{name} (needed)" if one.is_required() else name for name, one in fields.items()]
            raise UsageError(
                f"{self.name}: {'; '.join(wrong)[:1000]}",
                code="arguments_invalid",
                hint=f"Its arguments: {', '.join(named)}.",
            ) from error
        return {name: getattr(read, name) for name in fields}

    def worded(self, error: KoptError) -> dict[str, str]:
        """An error as `--json` has it, with options and commands by their names here: `smem`, `run_start`."""

        def option(found: re.Match[str]) -> str:
            name = found[1].replace("-", "_")
            return name if name in self.arguments.model_fields else found[0]

        commands = "|".join(sorted((one.command for one in TOOLS.values()), key=len, reverse=True))
        made = error_data(error)
        for key in ("message", "hint"):
            text = re.sub(rf"\bkopt ({commands}){_NO_MORE}", lambda found: found[1].replace(" ", "_"), made[key])
            made[key] = re.sub(r"(?<![\w-])--([a-z][a-z-]*)", option, text)
        made["hint"] = _of_this_tool(made["hint"])
        return made

    def listed(self) -> Listed:
        """As a client sees it."""
        return Listed(
            name=self.name,
            title=f"kopt {self.command}",
            description=inspect.cleandoc(self.work.__doc__ or ""),
            input_schema=self.input_schema,
            output_schema=self.output_schema(),
            annotations=ToolAnnotations(
                read_only_hint=not self.writes, destructive_hint=False, idempotent_hint=False, open_world_hint=False
            ),
        )

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The schema of its arguments."""
        return dict(_without(self.arguments.model_json_schema(), "title"))

    def output_schema(self) -> dict[str, Any]:
        """The schema of what `--json` prints: `data` as `kopt schema COMMAND` has it, null beside an error.

        Titles and descriptions, half of it, are left out: a client checks results with it and keeps it from its model.
        """
        kind: Any = _imported(self.results[0])
        for name in self.results[1:]:
            kind = kind | _imported(name)
        data = json_schema(kind)
        parts = data.pop("$defs", {})
        texts = {"type": "array", "items": {"type": "string"}}
        error = {"type": "object", "additionalProperties": {"type": "string"}, "required": ["code", "message", "hint"]}
        properties = {
            "schema_version": {"const": SCHEMA_VERSION},
            "command": {"const": self.command},
            "status": {"enum": sorted(set(STATUS.values()))},
            "data": {"anyOf": [data, {"type": "null"}]},
            "warnings": texts,
            "errors": {"type": "array", "items": error},
        }
        made = {"type": "object", "properties": properties, "required": list(properties)}
        return dict(_without({**made, "$defs": parts} if parts else made, "title", "description"))


def _of_this_tool(hint: str) -> str:
    """A hint without the sentences on options that are no arguments here, unless it has no others."""
    said = re.split(r"(?<=[.!?]) (?=[A-Z])", hint)
    kept = [one for one in said if not re.search(r"(?<![\w-])--[a-z]", re.sub(r"`[^`]*`", "", one))]
    return " ".join(kept or said)


def _without(schema: Any, *keys: str, named: bool = False) -> Any:
    """A schema without some of its keywords. `named`: the keys of an object are names of its author's."""
    if isinstance(schema, list):
        return [_without(one, *keys) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without(value, *keys, named=not named and key in ("properties", "$defs"))
        for key, value in schema.items()
        if named or key not in keys
    }


TOOLS: dict[str, Tool] = {}
"""Every tool by its name, in the order in which they are declared."""


def tool(
    command: str, *results: str, lane: Lane = "quick", writes: bool = False
) -> Callable[[Callable[..., Done]], Callable[..., Done]]:
    """Declare the tool of a command. `writes`: it changes files, so that a client asks its user first."""

    def declare(work: Callable[..., Done]) -> Callable[..., Done]:
        hints = get_type_hints(work, include_extras=True)
        fields: dict[str, Any] = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in list(inspect.signature(work).parameters.items())[1:]
        }
        arguments = create_model(work.__name__, __config__=ConfigDict(extra="forbid"), **fields)
        made = Tool(command, results, work, arguments, lane, writes)
        TOOLS[made.name] = made
        return work

    return declare


def _imported(place: str) -> Any:
    module, _, name = f"kopt.services.results.{place}".rpartition(".")
    return getattr(importlib.import_module(module), name)


def told(error: Mapping[str, str]) -> str:
    """An error as the command line tells it."""
    return f"{error['message']}\n{error['hint']}" if error["hint"] else error["message"]


def _wrong(error: ErrorDetails) -> str:
    """What is wrong with an argument: `gpu: Input should be a valid string`."""
    place = ".".join(map(str, error["loc"])) or "arguments"
    if error["type"] == "missing":
        return f"{place} is missing"
    if error["type"] == "extra_forbidden":
        return f"there is no argument {visible(place)}"
    return f"{visible(place)}: {error['msg'].replace('tuple', 'list')}"
