"""Comments, docstrings and strings of a kernel's file, and its code without comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from functools import lru_cache

from evaluator.source.cpp_tokens import Kind, lex

_UNREADABLE = (tokenize.TokenError, SyntaxError, ValueError)


@lru_cache(maxsize=4)
def each_comment(text: str, name: str) -> tuple[tuple[int, str], ...]:
    """(line, text) of each single comment and docstring."""
    if not name.endswith(".py"):
        return tuple(lex(text).comments)
    found: list[tuple[int, str]] = []
    try:
        for token, comment in _python_tokens(text):
            if token.type == tokenize.COMMENT:
                found.append((token.start[0], token.string.lstrip("#").strip()))
            elif comment:
                found.append((token.start[0], token.string.strip("rbuRBU\"'")))
    except _UNREADABLE:
        found += [(n, line.partition("#")[2]) for n, line in enumerate(text.splitlines(), 1) if "#" in line]
        found = sorted(set(found))
    return tuple(found)


def code_without_comments(text: str, name: str) -> str:
    """A kernel's code on its lines, as tokens separated by blanks, without comments and docstrings."""
    lines = [""] * (text.count("\n") + 2)
    if not name.endswith(".py"):
        for cuda in lex(text).tokens:
            lines[cuda.line - 1] += f" {cuda.text}"
        return "\n".join(lines)
    try:
        for token, comment in _python_tokens(text):
            if not comment:
                lines[token.start[0] - 1] += f" {token.string}"
    except _UNREADABLE:
        return text
    return "\n".join(lines)


def _python_tokens(text: str) -> Iterator[tuple[tokenize.TokenInfo, bool]]:
    """Each token, and whether it is a comment or a docstring: a string at the beginning of a statement."""
    begins = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        yield token, token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins)
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


@lru_cache(maxsize=4)
def strings(text: str, name: str) -> tuple[tuple[int, str], ...]:
    """(line, text) of each string of the code; of one that is a program in C++, its comments."""
    if not name.endswith(".py"):
        return tuple((token.line, token.text.strip('"')) for token in lex(text).tokens if token.kind is Kind.STRING)
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found = []
    for node in ast.walk(tree):
        whole = _put_together(node)
        if whole is not None and not isinstance(node, ast.Constant):
            found.append((node.lineno, whole))  # type: ignore[attr-defined]  # it is an expression
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if "\n" in node.value and ("__global__" in node.value or "#include" in node.value):
                found += [(node.lineno + line - 1, said) for line, said in lex(node.value).comments]
            else:
                found.append((node.lineno, node.value))
    return tuple(found)


def _put_together(node: ast.AST) -> str | None:
    """The text of a string, of a sum of strings or of an f-string, with the numbers that stand in it; else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
        return str(node.value) if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        inner = (one.value if isinstance(one, ast.FormattedValue) else one for one in node.values)
        return "".join(str(one.value) if isinstance(one, ast.Constant) else " " for one in inner)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_put_together(node.left), _put_together(node.right)]
        return None if sides == [None, None] else "".join(" " if one is None else one for one in sides)
    return None


def names(text: str, name: str) -> tuple[tuple[int, str], ...]:
    """(line, name) of the first place of each name of the code."""
    found: dict[str, int] = {}
    for line, code in enumerate(code_without_comments(text, name).split("\n"), start=1):
        for word in re.findall(r"(?<![\w\"'])[A-Za-z_]\w*(?![\"'])", code):
            found.setdefault(word, line)
    return tuple((line, word) for word, line in found.items())


def joined(found: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Comments on successive lines as one text whose lines are those of the file."""
    start, texts = 0, list[str]()
    for line, text in found:
        if texts and line == start + sum(t.count("\n") + 1 for t in texts):
            texts.append(text)
            continue
        if texts:
            yield start, "\n".join(texts)
        start, texts = line, [text]
    if texts:
        yield start, "\n".join(texts)
