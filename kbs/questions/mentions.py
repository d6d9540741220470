"""Finds what a question names indirectly: a product by its variant alone, a limit "a thread"."""

from __future__ import annotations

import re

from kbs.evidence.vocabulary import Mention, Vocabulary, words

_NAMES = ("product", "family")
_CONNECTIVES = frozenset({"and", "or", "vs", "versus", "against", "than"})
_VARIANT_WORDS = 2
"""Words that tell a product from another of its kind, at most: "SXM 40GB"."""
_WHOSE = r"(?P<whose>thread|warp|block|sm)\b"
_HELD_BY = re.compile(
    r"\bhow\s+(?:many|much)\s+(?P<what>[\w ]{3,40}?)\s+(?:can|may|does|do|could|will)\s+(?:an?|one|each|every|the)\s+"
    + _WHOSE,
    re.IGNORECASE,
)
_OF_EACH = re.compile(r"(?P<what>\b(?:\w+ )?\w+)\s+(?:in |of |for )?(?:an?|each)\s+" + _WHOSE, re.IGNORECASE)
_BEFORE_A_VERB = frozenset(
    {"to", "i", "we", "you", "can", "could", "should", "would", "may", "will", "and", "or", "that", "please"}
)
_SUMMED_OVER = frozenset({"over", "along", "across", "in", "on", "kernel", "operation", "is"})


def variants(found: list[Mention], text: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """Products named by what sets them apart alone: PCIe in "H100 SXM and PCIe", 40GB in "A100 80GB vs 40GB"."""
    tokens = words(text)
    spans = {(m.start, m.end) for m in found if m.kind in _NAMES}
    starts = {start for start, _ in spans}
    groups: list[tuple[str, ...]] = []
    for start, end in sorted(spans):
        if end + 1 >= len(tokens) or tokens[end] not in _CONNECTIVES or end + 1 in starts:
            continue
        tried = (
            vocabulary.resolve("product", " ".join([*tokens[start:kept], *tokens[end + 1 : end + 1 + added]]))
            for kept in range(end - 1, start, -1)
            for added in range(_VARIANT_WORDS, 0, -1)
        )
        members = next(filter(None, tried), None)
        if members:
            groups.append(tuple(members))
    return groups


def targets(named: list[tuple[str, ...]], text: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """The compute capabilities that are named as compilers do (`sm_89`), but for products that are named."""
    present = {vocabulary.products[product].architecture for group in named for product in group}
    return [(id,) for id in vocabulary.capabilities(text) if vocabulary.products[id].architecture not in present]


def of_each(text: str) -> str:
    """`registers per thread` of "how many registers can a thread have" and of "registers a thread"; else nothing."""
    found = _HELD_BY.search(text) or _OF_EACH.search(text)
    return f"{found['what']} per {found['whose']}" if found else ""


def meant(found: list[Mention], text: str) -> list[Mention]:
    """The mentions that are meant: no metric inside of a product's name (the "CC" of "CC 8.9"), and no operation that
    is the verb of a question about something else ("how do I reduce spills")."""
    tokens = words(text)
    names = [m for m in found if m.kind == "product"]
    cues = {(m.start, m.end) for m in found if m.kind == "intent"}

    def inside(m: Mention) -> bool:
        return any(name.start <= m.start and m.end <= name.end for name in names)

    def verb(m: Mention) -> bool:
        before = tokens[m.start - 1] if m.start else "to"
        after = tokens[m.end] if m.end < len(tokens) else ""
        return (m.start, m.end) in cues and before in _BEFORE_A_VERB and after not in _SUMMED_OVER

    return [m for m in found if not (m.kind == "metric" and inside(m)) and not (m.kind == "operation" and verb(m))]
