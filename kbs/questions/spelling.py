"""Reads what is spelled otherwise: Chinese terms as English ones, and words with a typing error as what was meant."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import cache
from importlib import resources

from kbs.evidence.vocabulary import Vocabulary, words

_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_MARKS = str.maketrans("，。？！：；（）、“”‘’％＋－／＝", ",.?!:;(),\"\"''%+-/=")
_WORD = re.compile(r"(?<![\w.-])[A-Za-z]{5,24}(?![\w.-])")
_LETTER_O = re.compile(r"(?<![\w.-])(?P<before>[A-Za-z]{1,3}-?)(?P<digits>\d[\dO]*O[\dO]*)(?![\w.-])", re.IGNORECASE)
"""A name like that of a GPU in which the letter O stands for a zero: H1OO."""
_NEAR = 2
"""Errors that a word of eight letters or more may have; a shorter one may have one."""
_LONG = 8
_QUANTITIES = frozenset(("speed", "price", "cost", "time", "date", "release", "year", "number", "ratio", "energy"))
"""Ordinary words that ask for something."""


def in_english(text: str) -> str:
    """`text` with its Chinese terms as English ones. Characters of words that are not known are left out."""
    if not _CHINESE.search(text):
        return text
    terms, form = _terms()
    read = form.sub(lambda match: f" {terms[match.group(0)]} ", text.translate(_MARKS))
    return " ".join(_CHINESE.sub(" ", read).split())


def corrected(
    text: str, vocabulary: Vocabulary, known: Callable[[str], bool] = lambda _: False
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """`text` with typing errors in terms of the vocabulary mended, and (as typed, as read) of each.

    A word is left alone where the vocabulary, ordinary English or the wikis (`known`) have it.
    """
    made: dict[str, str] = {}
    for match in _WORD.finditer(text):
        word = match.group(0)
        if word not in made and not word.isupper():
            meant = _meant(word.lower(), vocabulary, known)
            if meant:
                made[word] = meant
    for match in _LETTER_O.finditer(text):
        word, number = match.group(0), match["before"] + match["digits"].upper().replace("O", "0")
        if vocabulary.resolve("product", number) and not vocabulary.resolve("product", word):
            made[word] = number
    for word, meant in made.items():
        text = re.sub(rf"(?<![\w.-]){re.escape(word)}(?![\w.-])", meant, text)
    return text, tuple(made.items())


def _meant(word: str, vocabulary: Vocabulary, known: Callable[[str], bool]) -> str:
    targets = _targets(vocabulary)
    if any(target.startswith(word) or word.startswith(target) for target in targets):
        return ""  # another form of the word
    if _ordinary_words() & _forms(word) or word in vocabulary.question_words or known(word):
        return ""
    from rapidfuzz import process  # only where a word is known to nobody: a question starts sooner
    from rapidfuzz.distance import OSA

    errors = _NEAR if len(word) >= _LONG else 1
    near = process.extract(word, [t for t in targets if t[0] == word[0]], scorer=OSA.distance, score_cutoff=errors)
    best = [target for target, distance, _ in near if distance == near[0][1]]
    # Of two terms that are as near nobody can say which was meant.
    return best[0] if len(best) == 1 else ""


def _forms(word: str) -> set[str]:
    return {word, *(word.removesuffix(ending) for ending in ("s", "d", "ed", "ing", "ly"))}


def is_talk(word: str, vocabulary: Vocabulary) -> bool:
    """Whether a word is ordinary English that no name of the vocabulary has: "please", "currently", "enabled"."""
    named = _targets(vocabulary) | _QUANTITIES
    return bool(_ordinary_words() & _forms(word)) and not named & {word, f"{word}s", *_forms(word)}


@cache
def _ordinary_words() -> frozenset[str]:
    text = (resources.files("kbs") / "data" / "ordinary_words.txt").read_text("utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


@cache
def _targets(vocabulary: Vocabulary) -> frozenset[str]:
    """The words that names of the vocabulary are made of."""
    return frozenset(word for name in vocabulary.names() for word in words(name) if len(word) > 4 and word.isalpha())


@cache
def _terms() -> tuple[dict[str, str], re.Pattern[str]]:
    terms = tomllib.loads((resources.files("kbs") / "data" / "chinese.toml").read_text("utf-8"))["terms"]
    return terms, re.compile("|".join(sorted(map(re.escape, terms), key=len, reverse=True)))
