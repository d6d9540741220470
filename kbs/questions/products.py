"""The GPUs that a question names, in any spelling, and words that look like one and are none that is known."""

from __future__ import annotations

import re

from kbs.evidence.vocabulary import Mention, Vocabulary, words

NAMES = ("product", "family")
"""Kinds of mentions that name GPUs."""
_CONNECTIVES = frozenset({"and", "or", "vs", "versus", "against", "than"})
_VARIANT_WORDS = 2
"""Words that tell a product from another of its kind, at most: "SXM 40GB"."""
NOBODY = "othergpu"
"""What stands in a text in the place of a GPU that is not known, so that no part of its name names another."""


def without_unknown(text: str, vocabulary: Vocabulary) -> tuple[str, tuple[str, ...]]:
    """`text` with the names of unknown GPUs taken out, and these names as they are written."""
    unknown = [name for name in vocabulary.product_like(text) if not vocabulary.is_named(name)]
    unknown += vocabulary.unknown_targets(text)
    for name in sorted(unknown, key=len, reverse=True):  # one may begin with another: "RTX 9999 Ti"
        # Between blanks: in "M60/K80" it would stay a part of one word with the GPU that is known.
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", f" {NOBODY} ", text)
    return " ".join(text.split()) if unknown else text, tuple(dict.fromkeys(unknown))


def named(found: list[Mention], text: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """The products of each name in the question, in its order: several where a name leaves the variant open."""
    groups: dict[tuple[int, int], list[str]] = {}
    for mention in found:
        if mention.kind == "product":
            groups.setdefault((mention.start, mention.end), []).append(mention.id)
        elif mention.kind == "family":
            groups.setdefault((mention.start, mention.end), []).extend(vocabulary.family_members(mention.id))
    whole = [tuple(dict.fromkeys(group)) for _, group in sorted(groups.items())]
    whole += _variants(found, text, vocabulary)
    return whole + _targets(whole, text, vocabulary)


def _variants(found: list[Mention], text: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """Products named by what sets them apart alone: PCIe in "H100 SXM and PCIe", 40GB in "A100 80GB vs 40GB"."""
    tokens = words(text)
    spans = {(m.start, m.end) for m in found if m.kind in NAMES}
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


def _targets(whole: list[tuple[str, ...]], text: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """The compute capabilities that are named as compilers do (`sm_89`), but for products that are named."""
    present = {vocabulary.products[product].architecture for group in whole for product in group}
    return [(id,) for id in vocabulary.capabilities(text) if vocabulary.products[id].architecture not in present]
