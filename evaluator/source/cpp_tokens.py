"""Split C++ and CUDA source into tokens, and find its functions. Nothing is preprocessed or compiled."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a token is."""

    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    PUNCTUATION = "punctuation"
    DIRECTIVE = "directive"


@dataclass(frozen=True, slots=True)
class Token:
    """One token of C++."""

    kind: Kind
    text: str
    """As written; of a string its content without quotes and prefix; of a directive the text after `#`."""
    line: int
    """Where it begins, from 1."""


@dataclass(frozen=True)
class Lexed:
    """A file of C++."""

    tokens: tuple[Token, ...]
    """Everything but comments and what stands under `#if 0`."""
    comments: tuple[tuple[int, str], ...]
    """Line and text of each comment, without its marks."""


# A directive ends where a comment begins. Quantifiers are possessive: no input makes the search quadratic.
_TOKEN = re.compile(
    r"""
    (?P<space>\s++)
  | (?P<line>//[^\n]*+)
  | (?P<block>/\*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\()
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\[^\n])*+"?)
  | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\[^\n])*+'?)
  | (?P<name>[^\W\d]\w*+)
  | (?P<number>\.?\d(?:[eEpP][+-]|'?\w|\.)*+)
  | (?P<hash>\#)
  | (?P<punctuation>->|::|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"""(?:[^\n/"']|/(?![/*])|"(?:[^"\\\n]|\\[^\n])*+"|'(?:[^'\\\n]|\\[^\n])*+'|["'])*+""")
_SPLICE = re.compile(r"\\[ \t]*\n")


def lex(text: str) -> Lexed:
    """The tokens of `text`; never raises."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    newlines = [match.start() for match in re.finditer("\n", text)]
    spliced, removed = _splice(text)
    tokens: list[Token] = []
    comments: list[tuple[int, str]] = []
    position, fresh = 0, True  # fresh: nothing but space and comments on this line so far

    def line_of(offset: int) -> int:
        before = bisect_right(removed, offset, key=lambda pair: pair[0]) - 1
        original = offset + (removed[before][1] if before >= 0 else 0)
        return bisect_right(newlines, original - 1) + 1

    while match := _TOKEN.match(spliced, position):
        kind, start = str(match.lastgroup), position
        position = match.end()
        if kind == "space":
            fresh = fresh or "\n" in match.group()
            continue
        if kind == "line":
            comments.append((line_of(start), match.group()[2:]))
            continue
        if kind == "block":
            end = spliced.find("*/", position)
            comments.append((line_of(start), spliced[position : end if end >= 0 else len(spliced)]))
            position = end + 2 if end >= 0 else len(spliced)
            continue
        if kind == "hash" and fresh:
            directive = _DIRECTIVE.match(spliced, position)
            assert directive is not None
            tokens.append(Token(Kind.DIRECTIVE, directive.group().strip(), line_of(start)))
            position = directive.end()
        elif match.group("raw") is not None:
            end = spliced.find(f'){match.group("delimiter")}"', position)
            tokens.append(Token(Kind.STRING, spliced[position : end if end >= 0 else len(spliced)], line_of(start)))
            position = end + len(match.group("delimiter")) + 2 if end >= 0 else len(spliced)
        elif kind in ("string", "char"):
            quote = '"' if kind == "string" else "'"
            content = match.group().partition(quote)[2].removesuffix(quote)
            tokens.append(Token(Kind.STRING, content, line_of(start)))
        else:
            known = {"name": Kind.NAME, "number": Kind.NUMBER}
            tokens.append(Token(known.get(kind, Kind.PUNCTUATION), match.group(), line_of(start)))
        fresh = False
    return Lexed(tuple(_without_disabled(tokens)), tuple(comments))


def _splice(text: str) -> tuple[str, list[tuple[int, int]]]:
    """`text` with continued lines joined, and (offset in the result, characters removed up to there) of each joint."""
    parts: list[str] = []
    removed: list[tuple[int, int]] = []
    start = length = gone = 0
    for match in _SPLICE.finditer(text):
        parts.append(text[start : match.start()])
        length += match.start() - start
        gone += match.end() - match.start()
        removed.append((length, gone))
        start = match.end()
    parts.append(text[start:])
    return "".join(parts), removed


def _without_disabled(tokens: Sequence[Token]) -> list[Token]:
    """Tokens without those between `#if 0` and its `#else`, `#elif` or `#endif`."""
    kept: list[Token] = []
    depth = 0  # of conditions inside a disabled part; 0 outside
    for token in tokens:
        word = token.text.split(maxsplit=1)[0] if token.kind is Kind.DIRECTIVE and token.text else ""
        if depth:
            if word.startswith("if"):
                depth += 1
            elif word == "endif":
                depth -= 1
            elif word.startswith("el") and depth == 1:
                depth = 0
        elif word == "if" and token.text.split()[1:] in (["0"], ["false"]):
            depth = 1
        else:
            kept.append(token)
    return kept


def brackets(tokens: Sequence[Token]) -> dict[int, int]:
    """Index of the closing bracket by that of the opening one: ( ), [ ] and { }; one that never closes is left out."""
    pairs: dict[int, int] = {}
    opened: dict[str, list[int]] = {")": [], "]": [], "}": []}
    closer = {"(": ")", "[": "]", "{": "}"}
    for index, token in enumerate(tokens):
        if token.kind is not Kind.PUNCTUATION:
            continue
        if token.text in closer:
            opened[closer[token.text]].append(index)
        elif opened.get(token.text):
            pairs[opened[token.text].pop()] = index
    return pairs


def macros(tokens: Sequence[Token]) -> dict[str, str]:
    """Object-like macros: `#define NAME text`; the last definition counts."""
    found: dict[str, str] = {}
    for token in tokens:
        if token.kind is Kind.DIRECTIVE:
            match = re.fullmatch(r"define\s+([^\W\d]\w*)(?:\s+(.*))?", token.text, re.DOTALL)
            if match:
                found[match.group(1)] = match.group(2) or ""
    return found


@dataclass(frozen=True, slots=True)
class Declaration:
    """A function that is declared or defined outside of a call."""

    name: Token
    index: int
    """The place of its name among the tokens."""
    before: slice
    """Where its specifiers and return type stand; template parameters too where there are some."""
    inside: slice
    """Where its parameters stand, without the brackets. No copy: declarations can be nested in a hostile text."""
    defined: bool
    """Whether it has a body."""


BEFORE_CALL = frozenset({"return", "else", "do", "new", "throw", "case", "co_return", "and", "or", "not"})
"""Words in front of a call: what follows them is no declaration."""
_ENDS_TYPE = {"*", "&", ">", ")", "]"}
_MAX_BEFORE = 40


def declarations(tokens: Sequence[Token]) -> Iterator[Declaration]:
    """Functions by their form: a type, a name, brackets, and then a body or a semicolon. `tokens` has no directives."""
    pairs = brackets(tokens)
    for index in range(1, len(tokens) - 1):
        name, before = tokens[index], tokens[index - 1]
        if name.kind is not Kind.NAME or tokens[index + 1].text != "(" or index + 1 not in pairs:
            continue
        if before.text not in _ENDS_TYPE and (before.kind is not Kind.NAME or before.text in BEFORE_CALL):
            continue
        end = pairs[index + 1]
        follows = next((t.text for t in tokens[end + 1 : end + 4] if t.text not in ("noexcept", "const")), "")
        if follows not in ("{", ";"):
            continue
        start = index
        while start > 0 and tokens[start - 1].text not in (";", "{", "}", ":") and index - start < _MAX_BEFORE:
            start -= 1
        yield Declaration(name, index, slice(start, index), slice(index + 2, end), follows == "{")
