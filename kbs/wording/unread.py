"""Which words of a question nothing was found for."""

from __future__ import annotations

import re

from kbs.answers.model import Answer, ClaimKind
from kbs.evidence.vocabulary import Vocabulary, words
from kbs.questions.question import Question

_ENDING = re.compile(r"(?:ing|ed|es|s)$")
_NUMBER = re.compile(r"[\d.,x×*=]+")


def not_understood(question: Question, answer: Answer, vocabulary: Vocabulary) -> list[str]:
    """Names of no known GPU, and words that are no name of the vocabulary and stand in nothing that was found."""
    text = question.text
    known = {at for mention in vocabulary.find(text) for at in range(mention.start, mention.end)}
    found = [hit.passage.embedded for hit in answer.hits]
    for claim in answer.claims:
        if claim.kind is not ClaimKind.ABSENCE:  # it repeats what was not found
            found += [claim.text, *(citation.quote for citation in claim.citations)]
    read = {_stem(word) for one in found for word in words(one)} | {_stem(word) for word in vocabulary.question_words}
    taken = {word for name in question.unknown_products for word in words(name)}
    unread = [
        word
        for at, word in enumerate(words(text))
        if at not in known and _stem(word) not in read and word not in taken and not _NUMBER.fullmatch(word)
    ]
    return list(dict.fromkeys([*question.unknown_products, *unread]))


def _stem(word: str) -> str:
    return _ENDING.sub("", word) if len(word) > 4 else word
