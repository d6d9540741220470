"""A Triton kernel file as its rewrites see it: jitted functions, launches, and edits that leave the rest as it is.

Edits replace spans of the text that the syntax tree names, so comments and layout stay the user's own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

Edit = tuple[int, int, str]
"""(first byte, byte after the last, what stands there instead)"""
Kernel = ast.FunctionDef


@dataclass(frozen=True)
class Launch:
    """A call `kernel[grid](...)`."""

    kernel: Kernel
    call: ast.Call
    grid: ast.expr

    def keyword(self, name: str) -> ast.keyword | None:
        """The argument of this name, if it is given by name."""
        return next((one for one in self.call.keywords if one.arg == name), None)


class Source:
    """The text of a kernel file. Raises SyntaxError and ValueError where it cannot be parsed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode("utf-8")
        self.tree = ast.parse(text)
        starts = [0]
        for line in self.data.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self._starts = starts

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """Functions under `@triton.jit`, by name; without those under autotune or heuristics, and those
        with a `while`: programs may wait for each other there, and another launch could make them wait for ever."""
        found = {}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                over = [ast.unparse(one) for one in node.decorator_list]
                waits = any(isinstance(one, ast.While) for one in ast.walk(node))
                if len(over) == 1 and over[0].partition("(")[0] in ("triton.jit", "jit") and not waits:
                    found[node.name] = node
        return found

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        """Every launch of one of the kernels."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                name = node.func.value
                if isinstance(name, ast.Name) and name.id in self.kernels:
                    found.append(Launch(self.kernels[name.id], node, node.func.slice))
        return tuple(found)

    def at(self, node: ast.AST) -> tuple[int, int]:
        """First byte of a node, and the byte after its last."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        last, end = getattr(node, "end_lineno", 1), getattr(node, "end_col_offset", 0)
        return self._starts[line - 1] + column, self._starts[last - 1] + end

    def line_start(self, node: ast.stmt) -> int:
        """First byte of the line that a statement begins on."""
        return self._starts[node.lineno - 1]

    def words(self, node: ast.AST) -> str:
        """The text of a node as it stands."""
        start, end = self.at(node)
        return self.data[start:end].decode("utf-8")

    def edited(self, edits: Iterable[Edit]) -> str:
        """The text with edits; spans may hold others only where the outer one does not repeat their text."""
        data = self.data
        for start, end, new in sorted(edits, key=lambda edit: (edit[0], edit[1]), reverse=True):
            data = data[:start] + new.encode("utf-8") + data[end:]
        return data.decode("utf-8")

    def argument(self, call: ast.Call, name: str, value: str) -> Edit:
        """Give a call an argument by name, in place of the one that it has."""
        for one in call.keywords:
            if one.arg == name:
                start, end = self.at(one.value)
                return start, end, value
        end = self.at(call)[1] - 1  # the closing parenthesis
        given = [*call.args, *(one.value for one in call.keywords)]
        behind = self.data[max((self.at(one)[1] for one in given), default=end) : end].decode("utf-8")
        joined = not given or "," in re.sub(r"#.*", "", behind)
        return end, end, f"{'' if joined else ', '}{name}={value}"

    def assigned(self, name: str) -> ast.expr | None:
        """What a name stands for that is assigned exactly once in the file."""
        stored = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)
        ]
        values = [
            node.value
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Assign) and any(to in stored for to in node.targets)
        ]
        return values[0] if len(values) == len(stored) == 1 else None

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name of the file, so that a new one can be told from it."""
        named = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}
        given = {node.arg for node in ast.walk(self.tree) if isinstance(node, ast.arg)}
        return frozenset(named | given | set(self.kernels))

    def free(self, name: str) -> str:
        """The name, or the name with a number behind it if the file has it already."""
        made, number = name, 1
        while made in self.names:
            number += 1
            made = f"{name}_{number}"
        return made

    @cached_property
    def language(self) -> str:
        """What the file calls `triton.language`; empty where it has no name for it."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for one in node.names:
                    if one.name == "triton.language" and one.asname:
                        return one.asname
            if isinstance(node, ast.ImportFrom) and node.module == "triton":
                for one in node.names:
                    if one.name == "language":
                        return one.asname or one.name
        return ""


def called(node: ast.AST, source: Source, *names: str) -> bool:
    """Whether a node calls one of these functions of the language."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == source.language
        and node.func.attr in names
    )


def calls(source: Source, *names: str) -> Iterator[ast.Call]:
    """The calls of a function of the language in all kernels, in the order of the text."""
    for kernel in source.kernels.values():
        yield from calls_in(kernel, source, *names)


def calls_in(node: ast.AST, source: Source, *names: str) -> Iterator[ast.Call]:
    """The calls of a function of the language below a node."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and called(one, source, *names):
            yield one


def constexprs(kernel: Kernel) -> frozenset[str]:
    """Parameters that are constants of the compiler."""
    every = (*kernel.args.posonlyargs, *kernel.args.args, *kernel.args.kwonlyargs)
    return frozenset(one.arg for one in every if one.annotation and "constexpr" in ast.unparse(one.annotation))


def integer(node: ast.AST | None) -> int | None:
    """The value of a literal whole number."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def reader(text: str) -> Source | None:
    """The file, or None where nothing can be rewritten in it: it is no Python, or has no launch of a Triton kernel."""
    try:
        source = Source(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return source if source.language and source.launches else None
