"""Numbers of a kernel's code that nothing explains, and those that are written as something else.

A number is explained if it is small, a power of two or one less, a size of the run or a constant of the parent, what
follows from two of these, a factor of a formula, a limit of a type, or a tile or launch setting by its place. Any other
needs a source, whatever its name is. What is no number where it is written (`ord("\\x84")`, a sum over a tuple of
shifts, a default of an environment variable, the length of a string) is refused: nobody can see its value.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Set
from decimal import Decimal

from evaluator.source.cpp_tokens import Kind, lex
from loop.gate.constants.grids import defaults, paired

Explains = Callable[[Decimal], bool]
"""Whether a value needs no source."""
_LIMITS = frozenset(map(Decimal, (240, 448, 57344, 65504, 127, 32767, 2147483647)))
"""The largest values of types."""
_ROLE = re.compile(
    r"(?:.*_)?(?:BLOCK|TILE|CHUNK|UNROLL|ROWS|COLS|GROUP|SPLIT|STEP|WIDTH|VEC|B?[MNKLHDQVRSC]|NUM_WARPS|NUM_STAGES|WARPS|STAGES"
    r"|THREADS|NTHREADS|NT|MAXNREG|NUM_CTAS|XBLOCK|YBLOCK|RBLOCK)(?:_?(?:SIZE|[A-Z0-9]))*S?",
    re.IGNORECASE,
)
_ARCHITECTURE = re.compile(r"capability|\bcc\b|\barch|sm_?version|major|minor|version_info|__version__", re.IGNORECASE)
_HIDING = frozenset({"ord", "hash", "eval", "exec", "compile", "id", "getattr", "__import__", "open"})
_METHODS_NAMED = (
    "literal_eval from_bytes unpack unpack_from getenv fromhex loads b64decode crc32 adler32 read_text read_bytes"
)
_HIDING_METHODS = frozenset(_METHODS_NAMED.split())
"""Functions that make a number of what is none."""
_BUILTIN_NAMES = (
    "sum len min max abs int float round pow range list tuple set sorted reversed zip map enumerate bool str"
    " divmod any all"
    " math functools operator reduce prod itertools bin hex chr bytes bytearray dict filter"
)
_BUILTINS = frozenset(_BUILTIN_NAMES.split())
_SEVERAL = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.Subscript, ast.JoinedStr, ast.Lambda)
_C_HIDING = frozenset({"getenv", "atoi", "atof", "strtol", "strtoul", "strlen", "stoi", "fopen", "ifstream", "sscanf"})


def unexplained(text: str, name: str, explains: Explains) -> Iterator[tuple[int, str, Decimal]]:
    """(line, as written, value) of each number of the code that nothing explains; none if it cannot be read."""
    from loop.gate.constants.hardware import literals

    if not name.endswith(".py"):
        yield from _unexplained_cuda(text, explains)
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    excused = _with_a_role(tree)
    for node, value in literals(tree):
        role = value <= 1024 and (value % 32 == 0 or (id(node) in excused and value % 8 == 0))
        if not (role or id(node) in excused.whatever or _is_plain(value) or explains(value)):
            yield node.lineno, f"{value:f}", value


def _is_plain(value: Decimal) -> bool:
    """Whether it is a factor, a limit of a type or a mark such as 1e30."""
    whole = value == value.to_integral()
    mark = value >= 10**4 and value.normalize().as_tuple().digits == (1,)
    return (not whole and value < 256) or value in _LIMITS or mark or value > Decimal(10) ** 30


class _Excused(set[int]):
    """Ids of numbers that are tile or launch settings by their place."""

    def __init__(self) -> None:
        super().__init__()
        self.whatever: set[int] = set()
        """Ids of numbers that need no source, whatever they are: of architectures, and what nobody reads."""


def _with_a_role(tree: ast.Module) -> _Excused:
    found = _Excused()

    def excuse(name: str, value: ast.expr) -> None:
        if _ROLE.fullmatch(name):
            found.update(id(one) for one in ast.walk(value))

    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                for _, name, value in paired(target, node.value):
                    excuse(name, value)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            excuse(node.target.id, node.value)
        elif isinstance(node, ast.arguments):
            for name, value in defaults(node):
                excuse(name, value)
        elif isinstance(node, ast.keyword) and node.arg:
            excuse(node.arg, node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    excuse(key.value, value)
        elif isinstance(node, ast.Compare) and _ARCHITECTURE.search(ast.unparse(node)):
            found.whatever |= {id(one) for one in ast.walk(node)}
    read = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    for statement in tree.body:
        names = [one.id for one in getattr(statement, "targets", ()) if isinstance(one, ast.Name)]
        if names and not read & set(names):
            found.whatever |= {id(one) for one in ast.walk(statement)}
    return found


def _unexplained_cuda(text: str, explains: Explains) -> Iterator[tuple[int, str, Decimal]]:
    from loop.gate.constants.hardware import is_place, number_of

    tokens = lex(text).tokens
    for at, token in enumerate(tokens):
        before = [one.text for one in tokens[max(0, at - 3) : at]]
        if token.kind is Kind.DIRECTIVE:
            macro = re.fullmatch(r"define\s+(\w+)\s+(\S[^\n]*)", token.text.strip())
            made = number_of(macro[2]) if macro else None
            parts = [number_of(one) for one in re.findall(r"(?<![\w.])[\d.][\w.']*", macro[2])] if macro else []
            named = [(macro[1], value) for value in ([made] if made is not None else parts)] if macro else []
        elif token.kind is Kind.NUMBER and not is_place(tokens, at):
            given = before[-1:] == ["="] or before[-1:] == ["{"]
            named = [(before[-2] if given and len(before) > 1 else " ".join(before), number_of(token.text))]
        else:
            continue
        for name, value in named:
            role = bool(_ROLE.fullmatch(name)) or "__launch_bounds__" in name or name.split(" ")[0] == "dim3"
            if value is None or value <= 1 or _is_plain(value) or explains(value):
                continue
            if not (value <= 1024 and (value % 32 == 0 or (role and value % 8 == 0))):
                yield token.line, f"{name} {value:f}" if token.kind is Kind.DIRECTIVE else f"{value:f}", value


def hidden(text: str, name: str) -> Iterator[tuple[int, str]]:
    """(line, expression) of what makes a number of something that is none."""
    if not name.endswith(".py"):
        tokens = lex(text).tokens
        for at, token in enumerate(tokens):
            named = token.kind is Kind.NAME and token.text in _C_HIDING and tokens[at + 1 : at + 2]
            if named and tokens[at + 1].text == "(":
                yield token.line, token.text
            elif token.kind is Kind.STRING and text.split("\n")[token.line - 1].count("'") > 1:
                yield from (
                    (token.line, found[0])
                    for found in re.finditer(r"'(?:\\.|[^'\\])+'", text.split("\n")[token.line - 1])
                )
        return
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    closed = _closed_names(tree)
    inner: set[int] = set()
    for node in ast.walk(tree):
        if id(node) in inner or not _hides(node, closed):
            continue
        inner |= {id(one) for one in ast.walk(node)}
        yield node.lineno, ast.unparse(node)[:80]  # type: ignore[attr-defined]  # it is an expression


def _closed_names(tree: ast.Module) -> Set[str]:
    """Names that are given nothing but what is written in the file."""
    given: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        for target in node.targets if isinstance(node, ast.Assign) else ():
            for _, name, value in paired(target, node.value):  # type: ignore[attr-defined]  # it is an assignment
                given.setdefault(name, []).append(value)
    found: set[str] = set()
    for _ in range(4):
        found |= {name for name, values in given.items() if all(_is_closed(one, found) for one in values)}
    return found


def _is_closed(node: ast.expr, names: Set[str]) -> bool:
    own = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    own |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
    free = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)} - own
    written = free & names or any(isinstance(one, ast.Constant) for one in ast.walk(node))
    return free <= names | _BUILTINS and bool(written)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _hides(node: ast.AST, names: Set[str]) -> bool:
    if isinstance(node, ast.Name) and node.id == "ord":  # handed to `map` it is not called
        return isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Call):
        method = isinstance(node.func, ast.Attribute)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        spelled = ast.unparse(node.func)
        of_text = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Constant)
        if of_text and called in ("count", "index", "find", "rfind", "rindex", "bit_length", "__len__"):
            return True
        reads = method and called not in ("setdefault", "update", "putenv")
        if called in (_HIDING_METHODS if method else _HIDING) or (reads and re.search(r"\benviron\b", spelled)):
            return not (called == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
                        and len(node.args) == 2)  # fmt: skip
        if called in ("int", "float", "Decimal", "complex") and node.args:
            said = node.args[0]
            strings = [
                one.value
                for one in ast.walk(said)
                if isinstance(one, ast.Constant) and isinstance(one.value, str | bytes)
            ]
            return bool(strings) and not all(
                re.fullmatch(r"[+-]?(?:inf|infinity|nan)", str(one), re.I) for one in strings
            )
        if called in ("len", "sum", "reduce", "prod", "max", "min", "sorted", "divmod") and node.args:
            several = any(isinstance(one, _SEVERAL) or _is_text(one) for one in ast.walk(node))
            return _is_closed(node, names) and (several or called in ("len", "reduce"))
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        if re.search(r"\benviron\b", ast.unparse(node.value)):
            return True
        whole = isinstance(node.value, ast.Constant | ast.Tuple | ast.List | ast.Dict)
        return whole and _is_closed(node, names) and not isinstance(node.value, ast.Dict)
    return False
