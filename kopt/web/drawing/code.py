"""Code with its line numbers and colours, and two versions of it side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape
from pygments.lexer import Lexer
from pygments.lexers import CudaLexer, PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String, is_token_subtype

from kbs.common.visible_text import visible_lines

MOST_COLOURED = 200_000
"""Characters of a file that is coloured; a longer one is shown plain."""
MOST_COMPARED = 5_000
"""Lines of files that are compared."""
AROUND = 4
"""Lines that are shown around each change."""
_CLASSES = (
    (Comment, "c"), (String, "s"), (Number, "n"), (Keyword, "k"), (Name.Function, "f"), (Name.Class, "f"),
    (Name.Builtin, "b"), (Name.Decorator, "d"), (Operator.Word, "k"),
)  # fmt: skip


def coloured(text: str, name: str = "kernel.py") -> Markup:
    """A file as a list of numbered lines. `name` says which language it is in."""
    rows = [
        Markup('<span class="row" id="K{0}"><a class="no" href="#K{0}">{0}</a><span>{1}</span></span>').format(n, line)
        for n, line in enumerate(_lines(text, name), start=1)
    ]
    return Markup('<pre class="code" tabindex="0">{}</pre>').format(Markup("").join(rows))


def _lines(text: str, name: str) -> list[Markup]:
    """Each line of a file as markup."""
    text = visible_lines(text.replace("\r\n", "\n")).rstrip("\n")
    if len(text) > MOST_COLOURED:
        return [escape(line) for line in text.split("\n")]
    lexer: Lexer = (CudaLexer if name.endswith((".cu", ".cuh", ".cpp", ".h")) else PythonLexer)(
        stripnl=False, ensurenl=False
    )
    lines = [Markup("")]
    for kind, value in lexer.get_tokens(text):
        style = next((style for of, style in _CLASSES if is_token_subtype(kind, of)), "")
        first, *rest = value.split("\n")
        for at, part in enumerate((first, *rest)):
            if at:
                lines.append(Markup(""))
            if part:
                lines[-1] += Markup('<span class="{}">{}</span>').format(style, part) if style else escape(part)
    return lines


@dataclass(frozen=True)
class Row:
    """A line of two versions side by side; on a side that has none, the number is 0."""

    kind: str
    """`same`, `changed`, `removed`, `added`, or `skipped`: lines that are the same and left out."""
    old: int
    old_text: Markup
    new: int
    new_text: Markup
    skipped: int = 0


@dataclass(frozen=True)
class Diff:
    """What changed from one version of a file to another."""

    rows: tuple[Row, ...]
    added: int
    removed: int
    why: str = ""
    """Why there are no rows; empty where there are."""


def compared(old: str, new: str, name: str = "kernel.py") -> Diff:
    """Two versions of a file, the lines around each change and no others."""
    before, after = (text.replace("\r\n", "\n").rstrip("\n").split("\n") for text in (old, new))
    if len(before) + len(after) > MOST_COMPARED:
        return Diff((), 0, 0, f"the files have more than {MOST_COMPARED:,} lines together")
    shown = _lines(old, name), _lines(new, name)
    groups = difflib.SequenceMatcher(None, before, after).get_opcodes()
    rows = list(_rows(groups, *shown))
    return Diff(
        tuple(rows),
        sum(row.new > 0 and row.kind in ("added", "changed") for row in rows),
        sum(row.old > 0 and row.kind in ("removed", "changed") for row in rows),
        "" if any(row.kind not in ("same", "skipped") for row in rows) else "the files are the same",
    )


def _rows(
    groups: Sequence[tuple[str, int, int, int, int]], old: Sequence[Markup], new: Sequence[Markup]
) -> Iterator[Row]:
    for at, (tag, a, b, c, d) in enumerate(groups):
        if tag == "equal":
            lead, tail = (0 if at == 0 else AROUND), (0 if at == len(groups) - 1 else AROUND)
            same = [Row("same", a + n + 1, old[a + n], c + n + 1, new[c + n]) for n in range(b - a)]
            hidden = len(same) - lead - tail
            if hidden > 1:
                yield from same[:lead]
                yield Row("skipped", 0, Markup(""), 0, Markup(""), hidden)
                yield from same[len(same) - tail :]
            else:
                yield from same
            continue
        for n in range(max(b - a, d - c)):
            there, here = a + n < b, c + n < d
            yield Row(
                "changed" if there and here else "removed" if there else "added",
                a + n + 1 if there else 0,
                old[a + n] if there else Markup(""),
                c + n + 1 if here else 0,
                new[c + n] if here else Markup(""),
            )
