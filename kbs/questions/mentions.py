"""What a question names indirectly, as a limit "a thread"; and mentions that are not meant, as of a verb."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kbs.evidence.vocabulary import Mention, words

_WHOSE = r"(?P<whose>thread|warp|block|sm)\b"
_HELD_BY = re.compile(
    r"\bhow\s+(?:many|much)\s+(?P<what>[\w ]{3,40}?)\s+(?:can|may|does|do|could|will)\s+(?:an?|one|each|every"
    r"|the|my)\s+" + _WHOSE,
    re.IGNORECASE,
)
_RESIDENT = re.compile(
    r"(?P<what>threads|warps|blocks|ctas|thread blocks)\b[\w ]{0,40}?\b(?:resident|active|at once|simultaneously|fit)\b"
    r"[\w ]{0,30}?\b(?:on|per|in|into|an|one|each)\s+(?:\w+\s+){0,3}?(?P<whose>sm|multiprocessor)\b",
    re.IGNORECASE,
)
_OF_EACH = re.compile(r"(?P<what>\b(?:\w+ )??\w+)\s+(?:in |of |for )?(?:an?|each)\s+" + _WHOSE, re.IGNORECASE)
_BEFORE_A_VERB = frozenset(
    {"to", "i", "we", "you", "can", "could", "should", "would", "may", "will", "and", "or", "that", "please"}
)
_SUMMED_OVER = frozenset({"over", "along", "across", "in", "on", "kernel", "operation", "is"})


def of_each(text: str) -> str:
    """`registers per thread` of "how many registers can a thread have" and of "registers a thread"; else nothing."""
    if found := _RESIDENT.search(text):
        return f"{found['what'].split()[-1]} per sm"
    found = _HELD_BY.search(text) or _OF_EACH.search(text)
    return f"{found['what']} per {found['whose']}" if found else ""


_LINK = re.compile(
    r"\b(?:nv ?link\w*|nvswitch|xgmi|infinity fabric|pci ?e\w*|pci express|infiniband|roce|nccl|rccl|ethernet"
    r"|inter ?connect\w*|connectivity|(?:bi|uni) ?directional(?:ly)?|(?:one|each|both|either|per) (?:ways?|directions?)"
    r"|per link|host to device|device to host|[hd]2[hd]|pinned|pageable)\b"
)
_MEMORY = re.compile(r"\b(?:hbm\w*|[gd]dr\w*|dram|vram|memory|mem)\b")
OF_MEMORY = "hbm_bandwidth"


def of_a_link(text: str, found: Sequence[Mention]) -> bool:
    """Whether a bandwidth that a text names is one of a link between GPUs or to the host, and not of memory. What
    stands in the name of a GPU ("H100 PCIe") names no link."""
    named = {place for m in found if m.kind in ("product", "family") for place in range(m.start, m.end)}
    rest = " ".join(word for place, word in enumerate(words(text)) if place not in named)
    return bool(_LINK.search(rest)) and not _MEMORY.search(rest)


def meant(found: list[Mention], text: str, identifiers: Sequence[str] = ()) -> list[Mention]:
    """The mentions that are meant: no metric inside of a product's name (the "CC" of "CC 8.9") or of an identifier (the
    L2 of `l2_hit_rate`), no bandwidth of the memory where links are spoken of, and no operation that is the verb of a
    question about something else ("how do I reduce spills")."""
    tokens = words(text)
    joined = [
        (place, place + len(parts))
        for parts in map(words, identifiers)
        for place in range(len(tokens))
        if len(parts) > 1 and tokens[place : place + len(parts)] == parts
    ]
    names = [m for m in found if m.kind == "product"]
    cues = {(m.start, m.end) for m in found if m.kind == "intent"}

    def inside(m: Mention) -> bool:
        return any(name.start <= m.start and m.end <= name.end for name in names) or any(
            start <= m.start and m.end <= end and (m.start, m.end) != (start, end) for start, end in joined
        )

    def verb(m: Mention) -> bool:
        before = tokens[m.start - 1] if m.start else "to"
        after = tokens[m.end] if m.end < len(tokens) else ""
        return (m.start, m.end) in cues and before in _BEFORE_A_VERB and after not in _SUMMED_OVER

    link = of_a_link(text, found)
    return [
        m
        for m in found
        if not (m.kind == "metric" and (inside(m) or (link and m.id == OF_MEMORY)))
        and not (m.kind == "operation" and verb(m))
    ]
