"""Read a candidate's text for hazards. Nothing is executed.

A text can always be written so that it does not say what it does. So what is found here are notes for a reader, but for
one thing: a library's function that C++ calls by its name, of which nothing shows where no GPU runs it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from evaluator.scan.hazards import Hazard, Severity
from evaluator.scan.prompt_injection import find_hidden, find_instructions
from evaluator.source.cpp_tokens import Kind, Token, brackets, declarations, lex
from evaluator.source.forms import Backend
from evaluator.source.python_source import parse
from evaluator.source.source_file import SourceFile, is_cuda
from kbs.common.errors import UsageError

MAX_OF_A_KIND = 20
"""Hazards of one id that are kept; a file with more says nothing new with them."""

_LIBRARY_FUNCTION = re.compile(
    r"(?:cublas|cudnn|cusparse|cusolver|cufft|cutensor|nvblas)(?:Lt|Xt|Dn|Sp)?_?[A-Z]\w*(?<!_t)\Z"
)
_CPP = re.compile(r'#\s*include\b|__global__|extern\s+"C"|PYBIND11_MODULE|TORCH_LIBRARY|\bat::|\btorch::|\bpy::')
_NOTED = {
    "low_precision_text": re.compile(
        r"tf32|fp8|float8|e4m3|e5m2|set_float32_matmul_precision|allow_fp16_reduced_precision_reduction"
        r"|__half|\bhalf2\b|__nv_bfloat16|__float2(?:half|bfloat16)"
        r"|\.(?:half|bfloat16)\(\)|\.to\([^()\n]*\b(?:float16|bfloat16|half)\b",
        re.IGNORECASE,
    ),
    "persisting_l2": re.compile(
        r"\b(?:cudaLimitPersistingL2CacheSize|CU_LIMIT_PERSISTING_L2_CACHE_SIZE|cudaCtxResetPersistingL2Cache"
        r"|accessPolicyWindow|\w+AccessPolicyWindow|cudaAccessPropertyPersisting|CU_ACCESS_PROPERTY_PERSISTING)\b"
    ),
}


def scan(source: SourceFile, backend: Backend) -> list[Hazard]:
    """Hazards of a candidate's text, one of a kind and name, rejections first; none where it cannot be parsed.

    `library_call` does not look at --allow-library: that is the caller's to do.
    """
    try:
        cpp = [(1, source.text)] if backend is Backend.CUDA or is_cuda(source) else list(_embedded(source))
    except UsageError:
        return []
    lines = source.text.splitlines()
    found: dict[tuple[str, str], Hazard] = {}

    def add(id_: str, severity: Severity, what: str, line: int) -> None:
        quoted = lines[line - 1].strip()[:100] if 0 < line <= len(lines) else ""
        if sum(known == id_ for known, _ in found) < MAX_OF_A_KIND:
            evidence = f"{what}: {quoted}"
            found.setdefault((id_, what), Hazard(id=id_, severity=severity, evidence=evidence, line=line))

    for first, text in cpp:
        for name, line in _library_calls(text):
            add("library_call", Severity.REJECT, name, first + line - 1)
    for id_, pattern in _NOTED.items():
        for number, line_text in enumerate(lines, 1):
            for match in pattern.finditer(line_text[:1000]):
                add(id_, Severity.NOTE, match.group().lower(), number)
    return [*found.values(), *find_instructions(source.text), *find_hidden(source.text)]


def _embedded(source: SourceFile) -> Iterator[tuple[int, str]]:
    """(first line, text) of C++ in the strings of a Python file."""
    tree = parse(source.name, source.text)
    plain = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in plain else ""
        if isinstance(text, str) and len(text) > 20 and _CPP.search(text):
            yield getattr(node, "lineno", 1), text


def _library_calls(text: str) -> Iterator[tuple[str, int]]:
    """(name, line) of functions of NVIDIA's libraries that C++ calls or passes on, in macros too.

    Names that the text defines are its own; its `main`, which nothing calls, is left out.
    """
    tokens: list[Token] = []
    for token in lex(text).tokens:
        if token.kind is not Kind.DIRECTIVE:
            tokens.append(token)
        elif not token.text.startswith("include"):
            tokens += [Token(t.kind, t.text, token.line) for t in lex(token.text.partition(" ")[2]).tokens]
    tokens = _without_main(tokens)
    defined = {d.name.text for d in declarations(tokens) if d.defined}
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.kind is not Kind.NAME or token.text in defined or not _LIBRARY_FUNCTION.match(token.text):
            continue
        if (after and after.text == "(") or (before and before.text in ("=", "&", ",", "(")):
            yield token.text, token.line


def _without_main(tokens: list[Token]) -> list[Token]:
    """Tokens without the body of `main`, unless it is named twice: then something may call it."""
    places = [i for i, t in enumerate(tokens[:-1]) if t.text == "main" and t.kind is Kind.NAME]
    if len(places) != 1 or tokens[places[0] + 1].text != "(":
        return tokens
    pairs = brackets(tokens)
    end = pairs.get(places[0] + 1, len(tokens))
    if [t.text for t in tokens[end + 1 : end + 2]] != ["{"] or end + 1 not in pairs:
        return tokens
    return tokens[: end + 1] + tokens[pairs[end + 1] + 1 :]
