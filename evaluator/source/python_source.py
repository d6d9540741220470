"""Parse Python source. It is never executed or imported."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kbs.common.errors import UsageError

_MAX_QUOTED = 160
_LONGEST_TEXT, _MOST_TEXTS = 40, 8

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Definitions:
    """Names that a module binds at its top level, also in `if`, `try` and `with`, but not under a `__main__` guard."""

    functions: dict[str, Function]
    """Functions by name; the last definition of a name counts."""
    classes: dict[str, ast.ClassDef]
    """Classes by name."""
    others: frozenset[str]
    """Names that are assigned or imported."""

    def __contains__(self, name: str) -> bool:
        return name in self.functions or name in self.classes or name in self.others

    def has_class(self, name: str) -> bool:
        """Whether `name` may be constructed: a class, or something assigned or imported."""
        return name in self.classes or name in self.others

    def callable(self, name: str) -> bool:
        """Whether `name` may be called as a function: a function, or something assigned or imported."""
        return name in self.functions or name in self.others


def parse(name: str, text: str) -> ast.Module:
    """The syntax tree of `text`, the content of the file `name`.

    UsageError `syntax_error` with file, line, column and the line itself, for everything that the parser cannot read:
    wrong syntax, NUL bytes, lone surrogates, numbers with too many digits, nesting that is too deep.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        what = error.msg or "invalid syntax"
        line, column = (error.lineno, error.offset or 1) if error.lineno else _bad_character(text)
        raise syntax_error(name, text, line, column, what) from None
    except (RecursionError, MemoryError):
        raise syntax_error(name, text, 1, 1, "it is nested too deeply to be read") from None
    except (ValueError, OverflowError) as error:
        line, column = _bad_character(text)
        raise syntax_error(name, text, line, column, str(error)) from None


def syntax_error(name: str, text: str, line: int, column: int, what: str) -> UsageError:
    """The error that quotes a line (from 1) of a file that cannot be read."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    quoted = lines[line - 1] if 0 < line <= len(lines) else ""
    shown = "".join(c if c.isprintable() else "�" for c in quoted.strip()[:_MAX_QUOTED])
    return UsageError(
        f"{name}:{line}:{max(column, 1)}: {what}" + (f"\n    {shown}" if shown else ""),
        code="syntax_error",
        hint="Fix that line; `python -m py_compile FILE` shows the same for a Python file.",
    )


def _bad_character(text: str) -> tuple[int, int]:
    """Line and column of the first NUL byte or lone surrogate, (1, 1) if there is none."""
    for position, character in enumerate(text):
        if character == "\0" or "\ud800" <= character <= "\udfff":
            return text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
    return 1, 1


def definitions(tree: ast.Module) -> Definitions:
    """What `tree` binds at its top level."""
    functions: dict[str, Function] = {}
    classes: dict[str, ast.ClassDef] = {}
    others: set[str] = set()
    for node in top_level(tree):
        if isinstance(node, Function):
            functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            classes[node.name] = node
        elif isinstance(node, ast.Import):
            others.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            others.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            if isinstance(node, ast.AnnAssign) and node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                others.update(name.id for name in ast.walk(target) if isinstance(name, ast.Name))
    return Definitions(functions, classes, frozenset(others))


def top_level(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported; bodies of functions and classes are left out."""
    waiting: list[ast.stmt] = list(reversed(tree.body))
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, Function | ast.ClassDef):
            continue
        inner: list[ast.stmt] = []
        skipped = isinstance(node, ast.If) and _is_main_guard(node)
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            if skipped and name == "body":
                continue
            for child in getattr(node, name, ()):
                inner += [child] if isinstance(child, ast.stmt) else child.body
        waiting += reversed(inner)


def _is_main_guard(node: ast.If) -> bool:
    """Whether `node` is `if __name__ == "__main__":`."""
    test = node.test
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return False
    sides = (test.left, test.comparators[0])
    named = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
    return named and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)


def decorator_names(function: Function) -> Sequence[str]:
    """The decorators of a function as they are written, without arguments: `triton.autotune`, `triton.jit`."""
    return [written(d.func if isinstance(d, ast.Call) else d) for d in function.decorator_list]


def needs_arguments(made: ast.ClassDef) -> bool:
    """Whether the class's own `__init__` has parameters without defaults besides `self`."""
    for node in made.body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            given = len(node.args.posonlyargs) + len(node.args.args) - 1 - len(node.args.defaults)
            return given > 0 or any(default is None for default in node.args.kw_defaults)
    return False


def has_triton_kernel(tree: ast.Module) -> bool:
    """Whether the file imports triton and makes a kernel with a `jit` of it."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] == "triton":
                    names[alias.asname or "triton"] = alias.name if alias.asname else "triton"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "triton" and not node.level:
            names.update({alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names})
    for node in ast.walk(tree):
        used = decorator_names(node) if isinstance(node, Function) else ()
        called = [written(node.func)] if isinstance(node, ast.Call) else []
        for name in [*used, *called]:
            root, dot, rest = name.partition(".")
            if f"{names.get(root, '')}{dot}{rest}".endswith(".jit") and root in names:
                return True
    return False


def imported(tree: ast.Module) -> frozenset[str]:
    """The modules that a file imports, wherever it does, by their full names: `triton.language`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def written(node: ast.expr) -> str:
    """A dotted name as it is written; "" for any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join(reversed([*parts, node.id])) if isinstance(node, ast.Name) else ""


def texts_in(name: str, text: str) -> tuple[str, ...]:
    """Short texts that a Python source has as constants, docstrings left out: values that an argument may have. Empty
    for what is no Python."""
    if not name.endswith(".py"):
        return ()
    try:
        tree = parse(name, text)
    except UsageError:
        return ()
    plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    constants = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in plain)
    texts = (node.value for node in constants if isinstance(node.value, str) and 0 < len(node.value) <= _LONGEST_TEXT)
    return tuple(dict.fromkeys(texts))[:_MOST_TEXTS]


def names_called(name: str, text: str) -> frozenset[str]:
    """Names by which a Python source asks others for something, such as `hypot` of `torch.hypot`; none of no Python."""
    try:
        tree = parse(name, text) if name.endswith(".py") else ast.Module([], [])
    except UsageError:
        return frozenset()
    return frozenset(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
