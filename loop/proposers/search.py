"""The proposer `search`: families of kernels and rewrites of the parent, their settings searched; no language model.

It proposes one family for each version, its best configurations as candidates. What it writes rests on the request: it
states no figure, quotes a passage that a query found, and says which configuration each candidate has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from loop.journal.folder import MAIN
from loop.proposals.proposal import NAME, Branch, Evidence, Expected, Hypothesis, Proposal, Query, Selected, Skipped
from loop.proposals.request import NextRequest
from loop.proposers.reading import Unread
from loop.search.study import Candidate
from loop.tools import FoundPassage

Look = Callable[[str], Sequence[FoundPassage]]
"""A query → the passages that the knowledge base finds by it."""
_FAMILY = "the family `"
_WORDS = 12
"""Words of a passage that are quoted."""


def answer(
    request: NextRequest,
    candidates: Sequence[Candidate],
    look: Look,
    discipline: str,
    families: int = 1,
    unread: str = "",
) -> Proposal | Unread:
    """The proposal of a family; a refusal where there is nothing left to propose.

    `candidates`: of one family, the most promising first, at most as many as the request allows. `families`: how many
    there were to choose from. `unread`: why there are no whole kernels for the reference, if so.
    """
    if not candidates:
        why = "every family of kernels and every rewrite that applies to this version was tried"
        none = f"the search has no kernels of its own for this reference ({unread or 'none of them can work here'}),"
        none += " and nothing to rewrite in this kernel: a plain launch of a `@triton.jit` function, without autotuner"
        none += " and without a `while`, is what it reads"
        return Unread(
            "search-exhausted",
            (why if families else none,),
            "Give more iterations another proposer: `kopt run start --proposer agent`, from the best version.",
        )
    variant = candidates[0].variant
    methods = variant.methods[:1] if discipline == "single" else variant.methods[:3]
    found = _passage(request, methods, look)
    if found is None:
        return Unread(
            "search-evidence",
            (f"no query found a passage for {', '.join(methods)}",),
            "Bring the wikis up to date with `kopt ingest`.",
        )
    query, passage = found
    names = _names(candidates[1:])
    return Proposal(
        version=request.version,
        parent=request.parent.version,
        kernel=candidates[0].text,
        language="cuda" if "__global__" in candidates[0].text else "python",
        methods=methods,
        skipped=tuple(_skipped(request, methods)),
        hypothesis=Hypothesis(
            current_evidence=_current(request),
            decision_link=f"{variant.why} The search looks at what the problem and the parent allow.",
            single_change=_change(candidates[0]),
            rationale=f"“{_plain(passage.title)}” speaks of it; which configuration is best is known on the GPU alone.",
            expected=(Expected(metric="time", direction="down", size="not known beforehand"),),
            risk="Another configuration may spill registers or leave parts of the GPU idle; the result is checked.",
            decision_rule="Kept if the lower bound of the ratio to the parent says that it is faster.",
        ),
        evidence=Evidence(
            queries=(Query(about="other", text=query),) if query else (),
            selected=(
                Selected(reference=passage.reference, quote=_first_words(passage.text), why="It is about this method."),
            ),
        ),
        circumstances=_circumstances(request, methods, candidates[0]),
        branches=tuple(Branch(name=name, kernel=one.text) for name, one in zip(names, candidates[1:], strict=True)),
    )


def family_of(single_change: str) -> str:
    """The family that a change names as `answer` writes it; empty where it names none."""
    return single_change.partition(_FAMILY)[2].partition("`")[0]


def _change(candidate: Candidate) -> str:
    """`the family rewrite-warps, with num_warps=8`: values that the kernel's text has as they are."""
    shown = [
        f"{name}={value}"
        for name, value in candidate.config.items()
        if re.search(rf"(?<![\w.]){re.escape(str(value))}(?![\w.])", candidate.text)
    ]
    return f"{_FAMILY}{candidate.variant.name}`" + (f", with {', '.join(shown)}" if shown else "")


def _names(candidates: Sequence[Candidate]) -> list[str]:
    """A name of a branch for each: its configuration, as far as that fits."""
    found: list[str] = []
    for number, one in enumerate(candidates, start=2):
        words = "-".join(f"{name}-{value}" for name, value in one.config.items())
        name = re.sub(r"[^a-z0-9_-]+", "-", words.lower()).strip("-_")[:36] or "candidate"
        if not re.match(NAME, name) or name in (*found, MAIN):
            name = f"candidate-{number}"
        found.append(name)
    return found


def _passage(request: NextRequest, methods: Sequence[str], look: Look) -> tuple[str, FoundPassage] | None:
    """(the query that finds it, or empty where the request has it; a passage on the family's method)."""
    by_id = {one.id: one.page for one in request.methods}
    pages = [by_id[method] for method in methods if by_id.get(method)]
    hits = [hit for search in request.searches for hit in search.hits if hit.past is None]
    query = _query(request, methods)
    further = list(look(query))
    for wanted in pages:
        for said, several in (("", hits), (query, further)):
            for hit in several:
                if hit.reference.startswith(f"{wanted}:") and hit.text.strip():
                    return said, hit
    for said, several in ((query, further), ("", hits)):
        for hit in several:
            if hit.text.strip() and not hit.reference.startswith("log/"):
                return said, hit
    return None


def _query(request: NextRequest, methods: Sequence[str]) -> str:
    titles = [one.title for one in request.methods if one.id in methods]
    return f"when does this help a kernel: {', '.join(titles or methods)}"[:400]


def _current(request: NextRequest) -> str:
    measured, diagnosis = request.measured, request.diagnosis
    shown = f"The diagnosis of the parent is {diagnosis.bottleneck}." if diagnosis else "There is no diagnosis."
    return f"{shown} Its receipt is {measured.receipt[:16]}." if measured else shown


def _skipped(request: NextRequest, methods: Sequence[str]) -> Iterable[Skipped]:
    for one in request.methods:
        if one.applies and one.id not in methods and not one.tried:
            yield Skipped(method=one.id, reason="the search has a more promising family, or none for this method")


def _circumstances(request: NextRequest, methods: Sequence[str], candidate: Candidate) -> str:
    """What is different now, where a method was tried here without gain, or the log knows it as a failure."""
    here = any(set(past.methods) & set(methods) and not past.kept for past in request.history)
    said = [hit.past for search in request.searches for hit in search.hits if hit.past is not None]
    known = any(one.method in methods and one.advice == "known failure" for one in said)
    if not here and not known:
        return ""
    return f"Another configuration or another parent than before: {_change(candidate)}, on v{request.parent.version}."


def _first_words(text: str) -> str:
    """The beginning of a passage, word for word."""
    line = next(line for line in text.splitlines() if line.strip())
    return " ".join(line.split()[:_WORDS])


def _plain(title: str) -> str:
    """A title without figures, which would need a source of their own."""
    parts = [part for part in title.split(" > ") if not re.search(r"\d", part)]
    return " > ".join(parts) or "the page"
