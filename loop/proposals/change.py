"""Compares two kernels as programs: comments, white space, docstrings and local names do not count."""

from __future__ import annotations

import ast
import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaluator.source.cpp_tokens import Kind, Token, lex
from loop.proposals.knobs import folded
from loop.proposals.programs.cuda_essence import live, macros
from loop.proposals.programs.essence import essential, names
from loop.tools import MachineNote

_TYPES = frozenset(
    ["void", "bool", "char", "short", "int", "long", "float", "double", "unsigned", "signed", "auto", "half", "size_t"]
)
_STATEMENTS = frozenset(
    ["return", "else", "case", "goto", "throw", "delete", "new", "typedef", "using", "namespace", "struct", "class"]
)
_DECLARES = frozenset({"=", ";", ",", ")", "[", "{", ":"})


@dataclass(frozen=True)
class Change:
    """The difference between a parent's kernel and a new one."""

    same: bool
    """Whether only comments, white space, docstrings and names of local variables differ."""
    why: str
    """Why they count as the same; empty if they differ."""
    parts: tuple[str, ...]
    """Separate places that differ: `function softmax_kernel`, `keyword num_warps in run` …"""


def compare(before: str, after: str, language: str, before_language: str) -> Change:
    """Compare a parent's text with a new one. Texts that cannot be parsed are compared by their words."""
    if language != before_language:
        return Change(False, "", (f"language {before_language} to {language}",))
    if before == after:
        return Change(True, "the files are equal byte for byte", ())
    if language == "cuda":
        return _compare_cuda(before, after)
    trees = [_parsed(text) for text in (before, after)]
    if trees[0] is None or trees[1] is None:
        same = before.split() == after.split()
        return Change(same, "only white space differs" if same else "", ("the text",) if not same else ())
    both = names(trees[0]) & names(trees[1])
    old, new = (_Normal().parts(essential(_Folded().visit(tree), both)) for tree in trees if tree is not None)
    if old == new:
        return Change(True, "only comments, white space, docstrings, names of local variables or dead code differ", ())
    return Change(False, "", tuple(_differing(old, new)))


def same_machine_code(before: MachineNote, after: MachineNote) -> bool:
    """Whether every function has the same instructions; False if one of the two is unknown."""
    known = before.functions and after.functions and before.target == after.target
    return bool(known) and sorted(before.functions.values()) == sorted(after.functions.values())


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


class _Folded(ast.NodeTransformer):
    """Computes arithmetic of constants."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        return folded(self.generic_visit(node))


class _Normal(ast.NodeTransformer):
    """Removes docstrings, and numbers the local names of a function as they come."""

    def __init__(self) -> None:
        self._scopes: list[dict[str, str]] = []

    def parts(self, tree: ast.Module) -> dict[str, str]:
        """Label and number of each function, class and other statement → its dump, in order."""
        found: dict[str, str] = {}
        seen: Counter[str] = Counter()
        for statement in _without_docstring(tree.body):
            label, dump = _label(statement), ast.dump(self.visit(statement))
            found[f"{label}\0{seen[label]}"] = dump
            seen[label] += 1
        return found

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        node.body = _without_docstring(node.body) or [ast.Pass()]
        node.decorator_list = [self.visit(part) for part in node.decorator_list]
        node.args = self.visit(node.args)
        self._scopes.append(_locals(node))
        node.body = [self.visit(part) for part in node.body]
        self._scopes.pop()
        return node

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # the name is that of `ast`

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.body = _without_docstring(node.body) or [ast.Pass()]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        for scope in reversed(self._scopes):
            if node.id in scope:
                return ast.copy_location(ast.Name(scope[node.id], node.ctx), node)
        return node


def _without_docstring(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements that do something: no docstrings or bare constants."""
    return [
        statement
        for statement in body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
    ]


def _locals(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """Names that the function binds, each with a number. Parameters keep their names, because callers use them."""
    arguments = function.args
    kept = {a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    kept |= {a.arg for a in (arguments.vararg, arguments.kwarg) if a}
    for node in ast.walk(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            kept |= set(node.names)
    numbered: dict[str, str] = {}
    for node in _in_order(function.body):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id not in kept:
            numbered.setdefault(node.id, f"§{len(numbered)}")
    return numbered


def _in_order(nodes: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield node
        yield from _in_order(list(ast.iter_child_nodes(node)))


def _label(statement: ast.stmt) -> str:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        return f"function {statement.name}"
    if isinstance(statement, ast.ClassDef):
        return f"class {statement.name}"
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return f"value {', '.join(ast.unparse(target) for target in targets)[:60]}"
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return "imports"
    return "other statements"


def _differing(old: dict[str, str], new: dict[str, str]) -> Iterator[str]:
    for label in dict.fromkeys((*new, *old)):
        shown = label.partition("\0")[0]
        if shown != "imports" and old.get(label) != new.get(label):
            yield shown + ("" if label in old and label in new else " (new)" if label in new else " (gone)")
    if all(old.get(label) == new.get(label) for label in (*new, *old) if not label.startswith("imports\0")):
        yield "imports or the order of statements"


def _compare_cuda(before: str, after: str) -> Change:
    old, new = lex(before).tokens, lex(after).tokens
    if _spelled(old) == _spelled(new):
        return Change(True, "only comments and white space differ", ())
    if _spelled(_numbered(old)) == _spelled(_numbered(new)):
        return Change(True, "only comments, white space or names of local variables differ", ())
    both = macros(old) & macros(new)
    if _spelled(_numbered(live(old, both))) == _spelled(_numbered(live(new, both))):
        return Change(True, "only comments, white space, names of local variables or dead code differ", ())
    matcher = difflib.SequenceMatcher(None, [t.text for t in old], [t.text for t in new], autojunk=True)
    lines = (
        [new[min(b, len(new) - 1)].line for tag, _, _, b, _ in matcher.get_opcodes() if tag != "equal"] if new else []
    )
    return Change(False, "", tuple(f"line {line}" for line in dict.fromkeys(lines)))


def _spelled(tokens: Sequence[Token]) -> list[tuple[Kind, str]]:
    return [(token.kind, token.text) for token in tokens]


def _numbered(tokens: Sequence[Token]) -> list[Token]:
    """Tokens with local names of functions, also parameters, numbered in the order of declaration."""
    names: dict[str, str] = {}
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.text in ("{", "(")) - (token.text in ("}", ")"))
        if token.kind is not Kind.NAME or not 0 < at < len(tokens) - 1 or depth < 1:
            continue
        last, following = tokens[at - 1], tokens[at + 1].text
        typed = last.text in ("*", "&", ">") or (last.kind is Kind.NAME and last.text not in _STATEMENTS)
        declared = typed and following in _DECLARES and token.text not in _TYPES
        # `a * b;` looks like a declaration: after a star, only names that follow a known type count.
        if declared and last.text in ("*", "&"):
            before = tokens[at - 2] if at > 1 else None
            declared = before is not None and before.text in _TYPES | {"const", "restrict", "__restrict__"}
        if declared:
            names.setdefault(token.text, f"§{len(names)}")
    return [Token(t.kind, names.get(t.text, t.text), t.line) if t.kind is Kind.NAME else t for t in tokens]
