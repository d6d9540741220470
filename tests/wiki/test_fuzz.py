"""Hostile pages: whatever a file holds, it is a page or a list of problems, and nothing is written beside the index."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.passages import passages_of
from ingest.update import Index
from kbs.evidence.citation import lines_hash
from kbs.evidence.vocabulary import vocabulary
from wiki.library import Wiki, Wikis
from wiki.page import Page
from wiki.reader import links, read_page, split_lines
from wiki.tables import ADVICE_HEADER, COST_HEADER, MEASURED_HEADER, SPEC_HEADER, THRESHOLD_HEADER

pytestmark = pytest.mark.timeout(120)
FUZZ = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
HEAD = (
    "---\nid: {id}\nkind: {kind}\ntitle: X\nconfidence: verified\nreviewed: 2026-11-21\n"
    "sources:\n  - {{id: src, title: S, url: u, kind: paper, accessed: 2026-11-21}}\n---\n"
)

marks = st.sampled_from(
    [
        *(
            "# ",
            "## ",
            "- ",
            "1. ",
            "> ",
            "    ",
            "\t",
            "```",
            "```cuda",
            "~~~",
            "---",
            "|",
            "|---|",
            "*",
            "_",
            "`",
            "[",
        ),
        *(
            "](",
            ")",
            "![",
            "[^a]",
            "[^a]: ",
            "<!--",
            "-->",
            "<a>",
            "&amp;",
            "\\",
            "$",
            "  ",
            "",
            "\r",
            "\r\n",
            "\v",
            "\f",
        ),
        *(
            "\x85",
            "\u2028",
            "\ufeff",
            "\u0000",
            "🦊",
            "e\u0301",
            "\U0010ffff",
            "=" * 5,
            "***",
            "| metric | value |",
            "src p. 1",
        ),
    ]
)
words = st.text(max_size=12)
lines = st.lists(st.one_of(marks, words), max_size=6).map("".join)
markdown = st.lists(lines, max_size=30).map("\n".join)

cells = st.one_of(
    st.sampled_from(
        [
            *(
                "HBM bandwidth",
                "SM count",
                "softmax",
                "read",
                "vector FLOP",
                "M N",
                "fp32",
                "low-throughput",
                "<",
                "TB/s",
            ),
            *(
                "memory-bound",
                "online-softmax",
                "[online-softmax](x.md)",
                "verified",
                "dense",
                "src p. 1",
                "derived: 1",
            ),
            *(
                "3.35",
                "1e400",
                "1e-400",
                "NaN",
                "sNaN",
                "-Infinity",
                "١٢",
                "1,2,3",
                "9" * 400,
                "unpublished",
                "none",
                "",
                "\\|",
            ),
        ]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r|"), max_size=10),
)
headers = st.sampled_from([SPEC_HEADER, COST_HEADER, THRESHOLD_HEADER, ADVICE_HEADER, MEASURED_HEADER])


@st.composite
def tables(draw: st.DrawFn) -> str:
    header = draw(headers)
    rows = draw(st.lists(st.lists(cells, max_size=len(header) + 2), max_size=5))
    made = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(made + ["| " + " | ".join(row) + " |" for row in rows])


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=10), st.dates().map(str)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
fields = [
    *(
        "id",
        "kind",
        "title",
        "aliases",
        "product",
        "family",
        "vendor",
        "architectures",
        "operations",
        "tags",
        "confidence",
    ),
    *("reviewed", "sources", "unknown"),
]


def check(path: str, data: bytes) -> None:
    """What must hold of whatever was read."""
    found = read_page("team", path, data, "rev", vocabulary())
    if isinstance(found, list):
        assert found
        for problem in found:
            assert problem.path == path
            assert problem.line >= 1
            assert problem.message
        return
    assert found.lines == split_lines(data.decode("utf-8-sig"))
    for problem in found.problems:
        assert 1 <= problem.line <= len(found.lines)
    for block in found.blocks:
        assert found.body_start <= block.line_start <= block.line_end <= len(found.lines)
    for row in [*found.specs, *found.costs, *found.advice, *found.thresholds, *found.measured]:
        assert row.citation.quote == found.lines[row.citation.line_start - 1]
    last = 0
    for passage in passages_of(found, "rev"):
        cited = passage.citation
        assert cited.line_start > last
        last = cited.line_end
        quoted = found.lines[cited.line_start - 1 : cited.line_end]
        assert passage.text == "\n".join(quoted)
        assert cited.hash == lines_hash(quoted)
    links(found)


@FUZZ
@given(markdown)
def test_any_markdown(body: str) -> None:
    check("technique/x.md", (HEAD.format(id="technique/x", kind="technique") + body).encode())


@FUZZ
@given(tables(), st.sampled_from(["hardware", "kernel", "profiling"]))
def test_any_table(table: str, kind: str) -> None:
    check(f"{kind}/x.md", (HEAD.format(id=f"{kind}/x", kind=kind) + "\n" + table).encode())


@FUZZ
@given(st.dictionaries(st.sampled_from(fields), values, max_size=8))
def test_any_front_matter_values(front: dict[str, object]) -> None:
    text = "\n".join(f"{name}: {json.dumps(value)}" for name, value in front.items())
    check("technique/x.md", f"---\n{text}\n---\nText.\n".encode())


@FUZZ
@given(markdown)
def test_any_front_matter_text(front: str) -> None:
    check("technique/x.md", f"---\n{front}\n---\nText.\n".encode())


@pytest.mark.slow
@FUZZ
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    check("technique/x.md", data)
    check("technique/x.md", HEAD.format(id="technique/x", kind="technique").encode() + data)


def tree(folder: Path) -> dict[str, str]:
    """Every file below a folder, and what is in it."""
    return {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in folder.rglob("*")
        if file.is_file()
    }


@pytest.mark.slow
@settings(FUZZ, max_examples=40)
@given(st.lists(st.one_of(markdown, tables()), min_size=1, max_size=4), st.binary(max_size=60))
def test_ingesting_anything_writes_the_index_and_nothing_else(bodies: list[str], data: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        root, home = top / "team", top / "home"
        for kind in ("hardware", "kernel"):
            (root / kind).mkdir(parents=True)
            for number, body in enumerate(bodies):
                text = HEAD.format(id=f"{kind}/x{number}", kind=kind) + body
                (root / kind / f"x{number}.md").write_bytes(text.encode())
        (root / "kernel/bytes.md").write_bytes(data)
        before = tree(root)
        index, wiki = Index(home), Wiki("team", root)
        result = index.update([wiki], vocabulary(), None)
        assert tree(root) == before
        assert {path.split("/")[0] for path in tree(top)} == {"team", "home"}
        assert {path for path in tree(home) if not path.startswith("index/")} <= {"index.lock"}
        with index.open() as store:
            assert store.check() == ""
            counts = store.counts()
            assert counts["pages"] + counts["broken"] == len(wiki.files())
            assert counts["passages"] == result.passages
            library = Wikis([wiki])
            for passage in store.passages(store.passage_ids()).values():
                cited = passage.citation
                lines = library.lines("team", cited.path)
                assert lines is not None
                assert list(lines[cited.line_start - 1 : cited.line_end]) == cited.quote.split("\n")
            store.specs()
            for kind in ("cost", "advice", "threshold", "measured"):
                store.rows(kind)


def test_the_checker_of_these_tests_sees_a_page() -> None:
    body = HEAD.format(id="technique/x", kind="technique") + "\n# X\n\nOne.\n"
    assert isinstance(read_page("team", "technique/x.md", body.encode(), "rev", vocabulary()), Page)
