"""Which kinds of things differ between two kernels, and which of them a method changes.

The settings of a launch, the sizes of tiles, hints to the caches and settings of precision are told apart from the body
of the code, so that a second change shows under the name of the first. A kernel function that is new brings its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluator.source.cpp_tokens import Kind as TokenKind
from evaluator.source.cpp_tokens import Token, lex
from loop.proposals.method_kinds import KINDS, Kind
from loop.proposals.programs import essence
from loop.proposals.programs.cuda_essence import live, macros

_KEYWORDS: dict[str, Kind] = {
    **dict.fromkeys(("num_warps", "num_ctas", "maxnreg", "num_consumer_groups"), "launch settings"),
    "num_stages": "pipeline stages",
    **dict.fromkeys(("eviction_policy", "cache_modifier", "volatile"), "cache hints"),
    **dict.fromkeys(("allow_tf32", "input_precision", "max_num_imprecise_acc", "out_dtype"), "precision settings"),
}  # fmt: skip
_SIZE = re.compile(r"block|tile|rows|chunk|unroll", re.IGNORECASE)
_TILE = re.compile(r"[A-Z][A-Z0-9_]*|.*(?:block|tile|rows|chunk|unroll).*", re.IGNORECASE)

_SPOKEN: tuple[tuple[str, Kind], ...] = (
    (r"\b(?:more|fewer|twice|double|half|\d+)\s+(?:as many\s+|the\s+)?warps\b", "launch settings"),
    (
        r"\bnum_?warps\b|\bwarps per (?:block|program|CTA)\b|\bnumber of warps\b|\bmaxnreg\b|\bnum_ctas\b",
        "launch settings",
    ),
    (r"\bnum_?stages\b|\bpipeline stages\b|\bnumber of stages\b", "pipeline stages"),
    (r"\beviction_?\s?polic(?:y|ies)\b|\bcache_?\s?modifiers?\b|\bevict_(?:first|last)\b", "cache hints"),
    (
        r"\ballow_tf32\b|\binput_precision\b|\b(?:to|in|use) (?:fp16|bf16|half precision|tf32|fp8)\b",
        "precision settings",
    ),
    (r"\bBLOCK(?:_\w+)?\b(?=.{0,20}?\d)|\b(?:block|tile) size\b", "tile sizes"),
)
"""How sentences name settings."""
_ANOTHER = re.compile(
    r"\b(?:and|also|plus|as well|besides|together with|while (?:we are )?at it|in addition|then|along with)\b"
    r"|[;&+]|\.\s",
    re.IGNORECASE,
)
_NOT = re.compile(
    r"\b(?:not|no|without|nothing|keep(?:s|ing|t)?|leav\w+|left|un(?:changed|touched)|same|as (?:it|they) (?:is|are)"
    r"|stays?|remain\w*|still|only|instead of|rather than|never|with)\b",
    re.IGNORECASE,
)


_BECOMES = re.compile(
    r"\b(\w+)`?\s+(?:(?:goes|is|are|raised|lowered|set|moves?|grows?|falls?)\s+)*(?:from\s+`?\d+`?\s+)?(?:to|becomes)\s+`?(\d+)\b"
    r"(?!\s?%|\.\d)"
)


@dataclass(frozen=True)
class Differs:
    """A kind of thing that differs, with an example."""

    kind: Kind
    example: str


def spoken(text: str) -> Iterator[Differs]:
    """Settings that a sentence says are changed beside something else: `and also raise num_warps`."""
    parts = _ANOTHER.split(text)
    for part in parts[1:]:
        for pattern, kind in _SPOKEN:
            match = re.search(pattern, part, re.IGNORECASE)
            if match and not _NOT.search(part):
                yield Differs(kind, match[0])


def told(text: str, code: str) -> Iterator[tuple[str, str]]:
    """(name, value) of each name of the code that a sentence says gets a value: `BLOCK from 1024 to 2048`."""
    for match in _BECOMES.finditer(text):
        name = re.escape(match[1])
        given = re.search(rf"(?<!\w){name}\s*(?:=\s*\d|:\s*(?:\w+\.)?constexpr\b)", code)
        if given or (re.search(rf"(?<!\w){name}(?!\w)", code) and ("_" in match[1] or match[1].isupper())):
            yield match[1], match[2]


def identifiers(text: str) -> Iterator[str]:
    """Names of code that a sentence has: words with an underscore, without what they belong to."""
    yield from dict.fromkeys(match[1] for match in re.finditer(r"(?<!\w)([A-Za-z]\w*_\w+)", text))


def differing(before: str, after: str, language: str) -> tuple[Differs, ...]:
    """What differs between two kernels of one language; none if one of them cannot be read."""
    if language == "cuda":
        lexed = [lex(text).tokens for text in (before, after)]
        defined = macros(lexed[0]) & macros(lexed[1])
        pair = [_cuda(live(tokens, defined)) for tokens in lexed]
    else:
        try:
            trees = [ast.parse(text) for text in (before, after)]
            both = essence.names(trees[0]) & essence.names(trees[1])
            pair = [_python(essence.essential(tree, both)) for tree in trees]
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
    old, new = pair
    both = old.functions & new.functions
    found = []
    for kind in KINDS:
        one, other = old.of(kind, both), new.of(kind, both)
        if kind == "numbers of the formula":  # one that takes the place of another; one more belongs to the code
            only, fresh = set(one) - set(other), set(other) - set(one)
            one, other = (sorted(only), sorted(fresh)) if only and fresh else ([], [])
        if kind == "masks":  # accesses without one, in a kernel all of whose accesses had one
            one, other = [], [said for said in other if not one and old.masked]
        if kind == "tile sizes":  # a constant that is new belongs to the code that needs it
            names = {_named(x) for x in one} & {_named(x) for x in other}
            one, other = ([x for x in several if _named(x) in names or "autotune" in x[1]] for several in (one, other))
        if kind == "order of tiles":  # a size that is new, or gone, has no axis to compare
            names = {_named(x) for x in one} & {_named(x) for x in other}
            one, other = (
                sorted({x for x in several if "=" not in x[1] or _named(x) in names}) for several in (one, other)
            )
        if one != other:
            first = next(iter(sorted(set(one) ^ set(other), key=str)), ("", ""))[-1]
            found.append(Differs(kind, (_where(one, other) if kind == "the code" else first)[:80]))
    return tuple(found)


def _where(one: Sequence[tuple[str, str]], other: Sequence[tuple[str, str]]) -> str:
    """Which statements of two programs differ, or the first words of the other that do."""
    named = dict.fromkeys(name for whole, name in (*other, *one) if ((whole, name) in one) != ((whole, name) in other))
    if any(named):
        return ", ".join(filter(None, named))
    before, after = (" ".join(whole for whole, _ in several).split() for several in (one, other))
    at = next((n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
    return " ".join(after[at : at + 8])


def folded(node: ast.AST) -> ast.AST:
    """Arithmetic of constants as the constant that it is: `1 << 10`, `"float" + "16"`."""
    if not (
        isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
    ):
        return node
    left, right = node.left.value, node.right.value
    if isinstance(left, str) and isinstance(right, str) and isinstance(node.op, ast.Add):
        return ast.copy_location(ast.Constant(left + right), node)
    if type(left) is not int or type(right) is not int or abs(left) > 2**40 or not 0 <= right <= 2**40:
        return node
    made = {
        ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right,
        ast.LShift: left << right if right < 64 else None, ast.FloorDiv: left // right if right else None,
    }.get(type(node.op))  # fmt: skip
    return node if made is None else ast.copy_location(ast.Constant(made), node)


def folded_strings(text: str) -> tuple[str, ...]:
    """Strings that a Python text puts together from others."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    made = (folded(node) for node in ast.walk(tree) if isinstance(node, ast.BinOp))
    return tuple(one.value for one in made if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _named(setting: tuple[str, str]) -> tuple[str, str]:
    return setting[0], setting[1].partition("=")[0]


@dataclass(frozen=True)
class _Parts:
    functions: set[str]
    """Functions of the device."""
    settings: list[tuple[Kind, str, str]]
    """(kind, function that it is of, or empty, setting)"""
    code: list[tuple[str, str]]
    """(what a statement or token is called, the whole of it)"""
    masked: bool = False
    """Whether accesses have masks."""

    def of(self, kind: Kind, functions: set[str]) -> list[tuple[str, str]]:
        """The settings of a kind, of functions that both kernels have."""
        if kind == "the code":
            return [(whole, name) for name, whole in self.code]
        return sorted(
            (where, said) for one, where, said in self.settings if one == kind and (not where or where in functions)
        )


class _Stripped(ast.NodeTransformer):
    """Takes settings out of a program, and notes them."""

    def __init__(self, kernels: set[str]) -> None:
        self.kernels = kernels
        self.settings: list[tuple[Kind, str, str]] = []
        self.inside = ""
        self.masked = False
        self.wide: set[str] = set()
        """Names of tensors of addresses or places, made by `tl.arange`."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return folded(self.generic_visit(node))

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, float) and node.value not in (0.0, 1.0):
            self.settings.append(("numbers of the formula", "", repr(node.value)))
            return ast.copy_location(ast.Constant("a number"), node)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        tuned = [one for one in node.decorator_list if re.search(r"\b(?:autotune|heuristics)\b", ast.unparse(one))]
        self.settings += [("tile sizes", node.name, f"autotune={ast.unparse(one)}") for one in tuned]
        node.decorator_list = [one for one in node.decorator_list if one not in tuned]
        outer, self.inside = self.inside, node.name if node.name in self.kernels else self.inside
        made = self.generic_visit(node)
        self.inside = outer
        return made

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        launched = _launched(node)
        called = ast.unparse(node.func) if not launched else ""
        where = launched or self.inside
        if self.inside and called in ("tl.load", "tl.store"):
            named = {keyword.arg for keyword in node.keywords}
            whole = len(node.args) > (1 if called == "tl.load" else 2)
            if named & {"mask", "boundary_check"} or whole:
                self.masked = True
            elif node.args and set(re.findall(r"\w+", ast.unparse(node.args[0]))) & {*self.wide, "arange"}:
                self.settings.append(("masks", self.inside, f"{ast.unparse(node)[:60]} without a mask"))
        if (
            called.endswith("cdiv")
            and not self.inside
            and len(node.args) == 2
            and isinstance(node.args[1], ast.Constant)
        ):
            self.settings.append(("tile sizes", "", f"cdiv({ast.unparse(node.args[0])})={ast.unparse(node.args[1])}"))
            node.args = node.args[:1]
        kept = []
        for keyword in node.keywords:
            name, value = keyword.arg or "", ast.unparse(keyword.value)
            kind = _KEYWORDS.get(name)
            if kind is None and launched and _TILE.fullmatch(name):
                kind = "tile sizes"
            if kind is None:
                kept.append(keyword)
            else:
                self.settings.append((kind, where, f"{name}={value}"))
        node.keywords = kept
        if called.endswith("Config") and node.args and isinstance(node.args[0], ast.Dict):
            self.settings.append(("tile sizes", "", ast.unparse(node.args[0])))
            node.args = node.args[1:]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        number = isinstance(node.value, ast.Constant) and isinstance(node.value.value, int)
        if len(names) == 1 and number and (names[0].isupper() or _SIZE.search(names[0])):
            self.settings.append(("tile sizes", "", f"{names[0]}={ast.unparse(node.value)}"))
            return ast.Pass()
        kind = _KEYWORDS.get(names[0].lower()) if len(names) == 1 else None
        if kind is not None and isinstance(node.value, ast.Constant):
            self.settings.append((kind, "", f"{names[0]}={ast.unparse(node.value)}"))
            return ast.Pass()
        return node


def _launched(node: ast.Call) -> str:
    """The kernel that a call launches: `kernel[grid](…)`; empty for any other call."""
    return ast.unparse(node.func.value) if isinstance(node.func, ast.Subscript) else ""


def _python(tree: ast.Module) -> _Parts:
    kernels = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(one) for one in node.decorator_list)
    }
    stripped = _Stripped(kernels)
    for node in ast.walk(tree):  # docstrings are no code
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            said = node.body and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
            node.body = (node.body[1:] if said else node.body) or [ast.Pass()]
    stripped.wide = _follow_from(tree, r"\barange\b")
    stripped.settings += [("order of tiles", where, said) for where, said in _orders(tree, kernels)]
    made = stripped.visit(tree)
    code = [(_called(one), ast.dump(one)) for one in made.body if not isinstance(one, ast.Pass)]
    return _Parts(kernels, stripped.settings, code, stripped.masked)


def _called(statement: ast.stmt) -> str:
    """`function softmax_kernel`, `class ModelNew`, or the statement as it would be typed."""
    kind = {ast.FunctionDef: "function", ast.AsyncFunctionDef: "function", ast.ClassDef: "class"}.get(type(statement))
    return f"{kind} {getattr(statement, 'name', '')}" if kind else ast.unparse(statement)


def _follow_from(tree: ast.AST, made: str) -> set[str]:
    """Names whose values follow from a call: `tl.arange` makes places of a tile."""
    found: set[str] = set()
    given = [(node.targets, node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    given += [([node.target], node.iter) for node in ast.walk(tree) if isinstance(node, ast.For)]
    for _ in range(4):
        for targets, value in given:
            said = ast.unparse(value)
            if re.search(made, said) or found & set(re.findall(r"\w+", said)):
                found |= {one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return found


def _orders(tree: ast.Module, kernels: set[str]) -> Iterator[tuple[str, str]]:
    """(kernel, expression) of each part of an order of tiles: a quotient or remainder of a program's number, a swizzle,
    and the axis of the grid that a size is multiplied with."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name not in kernels:
            continue
        ids = _follow_from(function, r"\b(?:program_id|num_programs)\b") - _follow_from(function, r"\barange\b")
        axes = {
            node.targets[0].id: ast.unparse(node.value)
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_axis(node.value)
        }
        for node in ast.walk(function):
            said = ast.unparse(node) if isinstance(node, ast.BinOp | ast.Call) else ""
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("swizzle2d"):
                yield function.name, said
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv | ast.Mod | ast.BitXor):
                left = set(re.findall(r"\w+", ast.unparse(node.left)))
                if left & {*ids, "program_id"}:
                    yield function.name, said
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.right, ast.Name):
                axis = axes.get(node.left.id) if isinstance(node.left, ast.Name) else ast.unparse(node.left)
                if axis and (_is_axis(node.left) or isinstance(node.left, ast.Name)):
                    yield function.name, f"{node.right.id}={axis}"


def _is_axis(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("program_id")


def _cuda(tokens: Sequence[Token]) -> _Parts:
    functions, settings, code = set[str](), list[tuple[Kind, str, str]](), list[str]()
    at, inside = 0, ""
    while at < len(tokens):
        token = tokens[at]
        if token.kind is TokenKind.NAME and token.text == "__launch_bounds__":
            end = _closing(tokens, at + 1)
            settings.append(("launch settings", inside, " ".join(one.text for one in tokens[at:end])))
            at = end
            continue
        define = (
            re.fullmatch(r"define\s+(\w+)\s+(\d+)", token.text.strip()) if token.kind is TokenKind.DIRECTIVE else None
        )
        given = _constant(tokens, at)
        if define:
            settings.append(("tile sizes", "", f"{define[1]}={define[2]}"))
        elif given:
            settings.append(("tile sizes", "", f"{tokens[given - 3].text}={tokens[given - 1].text}"))
            at = given
            continue
        elif token.text == "<" and [one.text for one in tokens[at : at + 3]] == ["<"] * 3:
            threads = _threads(tokens, at + 3)
            code += ["<", "<", "<"]
            if threads:
                settings.append(("launch settings", "", f"threads={tokens[threads].text}"))
                code += [one.text for one in tokens[at + 3 : threads]]
            at = threads + 1 if threads else at + 3
            continue
        elif token.kind is TokenKind.NAME and token.text == "__global__":
            inside = _function(tokens, at)
            functions.add(inside)
            code.append(token.text)
        else:
            code.append(token.text)
        at += 1
    settings += [("order of tiles", "", said) for said in _cuda_orders(" ".join(one.text for one in tokens))]
    return _Parts(functions, settings, [("", " ".join(code))])


def _cuda_orders(code: str) -> Iterator[str]:
    """As `_orders`, of a block's number: its quotients and remainders, and the axis that a size is multiplied with."""
    axis = r"(?:blockIdx|gridDim) \. [xyz]"
    named = set(re.findall(rf"\b(\w+) = (?:\( \w+ \) )?{axis} ;", code))
    number = "|".join([axis, *map(re.escape, sorted(named))])
    yield from (match[0] for match in re.finditer(rf"(?<![\w.] )\b(?:{number}) [/%^] [\w.]+", code))
    yield from (f"{match[2]}={match[1]}" for match in re.finditer(rf"({axis}) \* ([A-Z]\w*)", code))


def _function(tokens: Sequence[Token], at: int) -> str:
    """The name of the function that is declared here: the first that parameters follow, and no attribute's."""
    while at + 1 < len(tokens) and tokens[at].text not in ("{", ";"):
        called = tokens[at].kind is TokenKind.NAME and tokens[at + 1].text == "("
        if called and not tokens[at].text.startswith("__"):
            return tokens[at].text
        at = _closing(tokens, at + 1) if called else at + 1
    return ""


def _constant(tokens: Sequence[Token], at: int) -> int:
    """The place of the `;` of `constexpr int BLOCK = 256;`; 0 where no constant of such a name begins."""
    if tokens[at].text not in ("constexpr", "const"):
        return 0
    for place in range(at + 1, min(at + 6, len(tokens) - 3)):
        name, equals, number, end = tokens[place : place + 4]
        if equals.text == "=" and number.kind is TokenKind.NUMBER and end.text == ";" and _TILE.fullmatch(name.text):
            return place + 3
        if name.kind is not TokenKind.NAME:
            break
    return 0


def _threads(tokens: Sequence[Token], at: int) -> int:
    """The place of the number of threads in `<<<grid, 256>>>`; 0 where it is no number."""
    depth = 0
    for place in range(at, len(tokens) - 1):
        depth += (tokens[place].text in ("(", "[")) - (tokens[place].text in (")", "]"))
        if depth < 0 or tokens[place].text == ";":
            return 0
        if depth == 0 and tokens[place].text == ",":
            alone = tokens[place + 1].kind is TokenKind.NUMBER and tokens[place + 2].text in (",", ">")
            return place + 1 if alone else 0
    return 0


def _closing(tokens: Sequence[Token], at: int) -> int:
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].text == "(") - (tokens[place].text == ")")
        if depth == 0:
            return place + 1
    return len(tokens)
