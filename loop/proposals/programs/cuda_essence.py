"""What of a CUDA program does something: values that nobody reads, branches that are never taken, and functions, macros
and constants that nothing names are taken out. Nothing is compiled: what is not understood stays."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set

from evaluator.source.cpp_tokens import Kind, Token

_ROUNDS = 8
_MOST_TOKENS = 20_000
"""A longer program is compared as it is."""
_PURE = frozenset(
    [
        "int",
        "float",
        "double",
        "bool",
        "char",
        "unsigned",
        "long",
        "short",
        "size_t",
        "half",
        "static_cast",
        "reinterpret_cast",
        "const_cast",
        "sizeof",
        "min",
        "max",
        "abs",
        "fabsf",
        "fmaxf",
        "fminf",
        "expf",
        "logf",
        "sqrtf",
        "rsqrtf",
        "exp2f",
        "log2f",
        "powf",
        "fmaf",
        "__expf",
        "__logf",
        "__fdividef",
        "__ldg",
        "__half2float",
        "__float2half",
    ]
)
"""What has a value, and does nothing."""
_HEADS = ("if", "for", "while", "switch")
_NO_NAMES = frozenset(
    {"return", "else", "case", "goto", "delete", "new", "throw", "using", "typedef", "extern", "template"}
)


def live(tokens: Sequence[Token], keep: Set[str] = frozenset()) -> tuple[Token, ...]:
    """The tokens of what a program does. `keep`: macros that stay although nothing names them."""
    for _ in range(_ROUNDS if len(tokens) <= _MOST_TOKENS else 0):
        before = len(tokens)
        try:
            tokens = _Program(tokens, keep).without_dead()
        except RecursionError:  # blocks in blocks: nobody writes so
            break
        if len(tokens) == before:
            break
    return tuple(tokens)


def macros(tokens: Sequence[Token]) -> set[str]:
    """The names that a program defines."""
    told = (re.match(r"define\s+(\w+)", token.text.strip()) for token in tokens if token.kind is Kind.DIRECTIVE)
    return {match[1] for match in told if match}


class _Program:
    def __init__(self, tokens: Sequence[Token], keep: Set[str]) -> None:
        self.tokens, self.keep = tokens, keep
        self.text = [token.text for token in tokens]
        told = " ".join(token.text for token in tokens if token.kind in (Kind.DIRECTIVE, Kind.STRING))
        self.spoken = Counter(re.findall(r"[A-Za-z_]\w*", told))
        names = [at for at, token in enumerate(tokens) if token.kind is Kind.NAME]
        self.reads = Counter(self.text[at] for at in names if not self._written(at)) + self.spoken
        self.declared = {self.text[at] for at in names if self._declared(at)}

    def _written(self, at: int) -> bool:
        """Whether the name at a place is only given a value, or declared."""
        if at and self.text[at - 1] in (".", "->", "&", "[", "("):
            return False
        following = "".join(self.text[at + 1 : at + 4])
        gives = re.match(r"=(?!=)|[-+*/%&|^]=|(?:<<|>>)=|;", following)
        return bool(gives) and (self._declared(at) or (following[:1] != ";" and self._begins(at)))

    def _begins(self, at: int) -> bool:
        return at == 0 or self.text[at - 1] in (";", "{", "}", ")", "else")

    def _declared(self, at: int) -> bool:
        last = self.tokens[at - 1] if at else None
        return (
            last is not None
            and last.kind is Kind.NAME
            and last.text not in _NO_NAMES
            and self.text[at + 1 : at + 2] != ["("]
        )

    def _dead(self, name: str) -> bool:
        return name in self.declared and not self.reads[name]

    def without_dead(self) -> list[Token]:
        made, at = list[Token](), 0
        while at < len(self.tokens):
            at = self._statement(at, made)
        return made

    def _statement(self, at: int, made: list[Token]) -> int:
        """Add the statement that begins at a place, unless it does nothing: the place behind it."""
        token = self.tokens[at]
        if token.kind is Kind.DIRECTIVE:
            macro = re.match(r"define\s+(\w+)", token.text.strip())
            if (
                macro is None
                or macro[1] in self.keep
                or self.spoken[macro[1]] > 1
                or self.reads[macro[1]] > self.spoken[macro[1]]
            ):
                made.append(token)
            return at + 1
        if token.text in _HEADS and self.text[at + 1 : at + 2] == ["("]:
            return self._headed(at, made)
        if token.text == "{":
            made.append(token)
            at += 1
            while at < len(self.tokens) and self.text[at] != "}":
                at = self._statement(at, made)
            made += self.tokens[at : at + 1]
            return at + 1
        end, opens = self._end(at)
        if end < at:  # a brace that closes nothing
            made.append(token)
            return at + 1
        if opens:  # a function, a struct or `do`: its body is read on its own
            if self._unused(at, end):
                return self._closing(end) + 1
            made += self.tokens[at:end]
            return self._statement(end, made)
        if not self._does_nothing(at, end):
            made += self.tokens[at : end + 1]
        return end + 1

    def _headed(self, at: int, made: list[Token]) -> int:
        close = self._closing(at + 1)
        condition, body = self.text[at + 2 : close], list[Token]()
        end = self._statement(close + 1, body) if close + 1 < len(self.tokens) else close + 1
        nothing = [token.text for token in body] in ([], ["{", "}"], [";"])
        never = condition in (["0"], ["false"])
        otherwise = self.text[end : end + 1] == ["else"] and self.text[at] == "if"
        if self.text[at] in ("if", "while") and not otherwise and (never or (nothing and self._is_pure(condition))):
            return end
        if otherwise and never:
            return self._statement(end + 1, made)
        made += self.tokens[at : close + 1]
        made += body or [Token(Kind.PUNCTUATION, ";", self.tokens[close].line)]
        return end

    def _end(self, at: int) -> tuple[int, bool]:
        """(place of the `;` that ends a statement, or of the `{` of a body, whether it is a body)"""
        depth = 0
        for place in range(at, len(self.tokens)):
            text = self.text[place]
            depth += (text in ("(", "[")) - (text in (")", "]"))
            if text == ";" and depth <= 0:
                return place, False
            if text == "{" and depth <= 0:
                if self.text[place - 1] in ("=", ",", "return", "]"):
                    depth += 1  # an initializer
                else:
                    return place, True
            elif text == "}":
                if depth <= 0:
                    return place - 1, False
                depth -= 1
            elif self.tokens[place].kind is Kind.DIRECTIVE and place > at and depth <= 0:
                return place - 1, False
        return len(self.tokens) - 1, False

    def _closing(self, at: int) -> int:
        pairs, depth = {"(": ")", "{": "}"}, 0
        for place in range(at, len(self.tokens)):
            depth += (self.text[place] == self.text[at]) - (self.text[place] == pairs[self.text[at]])
            if depth == 0:
                return place
        return len(self.tokens) - 1

    def _unused(self, at: int, end: int) -> bool:
        """Whether it is a function of the device or the file alone that nothing calls."""
        head = self.text[at:end]
        named = [
            head[n - 1] for n, one in enumerate(head) if one == "(" and n and re.match(r"[A-Za-z_]\w*$", head[n - 1])
        ]
        own = {"static", "inline", "__device__"} & set(head)
        return (
            bool(own and named)
            and "__global__" not in head
            and self.text.count(named[-1]) + self.spoken[named[-1]] == 1
        )

    def _does_nothing(self, at: int, end: int) -> bool:
        """Whether a statement only gives a value to a name that nobody reads."""
        text = self.text[at:end]
        if text[:1] and text[0] in _NO_NAMES:
            return False
        for place in range(at, end):
            if self.tokens[place].kind is Kind.NAME and self._dead(self.text[place]) and self._written(place):
                types = all(token.kind is Kind.NAME for token in self.tokens[at:place])
                return types and self._is_pure(self.text[place + 1 : end], first=True)
        one = [token for token in self.tokens[at:end] if token.text != ","]
        return (
            len(one) > 1 and all(token.kind is Kind.NAME for token in one) and text[-1:] != ["else"]
            and self._dead(text[-1]) and len(text) == len(one)
        )  # fmt: skip

    def _is_pure(self, text: Sequence[str], *, first: bool = False) -> bool:
        """Whether an expression only has a value; `first`: behind the name that is given one."""
        rest = list(text)
        while first and rest and rest[0] in "+-*/%&|^<>":
            rest.pop(0)
        rest = rest[1:] if first and rest[:1] == ["="] else rest
        joined = " ".join(rest)
        called = {match[1] for match in re.finditer(r"([A-Za-z_]\w*) \(", joined)}
        gives = re.search(r"(?<![=!<>] )(?<![=!<>])= (?!=)|\+ \+|- -", joined)
        return called <= _PURE and not gives and "," not in rest
