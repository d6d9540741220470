"""Follow-ups: what was asked before in this folder, and a question read in its light.

KOPT_HOME keeps the texts and options of the last questions of each folder for a day, and no answers.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import Field, ValidationError

from kbs.common.errors import KoptError, UsageError
from kbs.common.files import read_if_there, write_whole
from kbs.common.json_model import FrozenModel
from kbs.evidence.vocabulary import Vocabulary, words
from kbs.questions.inherit import UNCUED, inherit
from kbs.questions.question import Question, Told, understand

FILE = "asked.json"
KEPT_SECONDS = 24 * 3600
_CHAIN = 6
"""Questions that a follow-up may go back to."""
_FOLDERS = 20
_MOST = 4000
"""Characters of a question that is remembered."""
_BEGINS = re.compile(r"\s*(?:and|also|what about|how about)\b", re.IGNORECASE)


class Earlier(FrozenModel):
    """A question that was asked, with its options."""

    text: str = Field(max_length=_MOST)
    gpus: tuple[str, ...] = ()
    dtype: str = ""
    dims: dict[str, int] = Field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    files: bool = False
    """Whether it was about the user's own files, which a follow-up does not take."""


class _Folder(FrozenModel):
    time: float
    chain: tuple[Earlier, ...] = Field(min_length=1, max_length=_CHAIN)
    """A question, and the follow-ups to it."""


class _Asked(FrozenModel):
    folders: dict[str, _Folder]


def recall(home: Path, workspace: Path) -> tuple[Earlier, ...]:
    """The last question of this folder, after those that it followed; empty where there is none of the last day."""
    found = _read(home).folders.get(str(workspace))
    return found.chain if found and 0 <= time.time() - found.time <= KEPT_SECONDS else ()


def remember(home: Path, workspace: Path, before: Sequence[Earlier], asked: Earlier) -> None:
    """Keep a question for the follow-ups to it. Where it cannot be kept, they say that there is none.

    Raises ValueError for a folder whose name is no Unicode.
    """
    now = time.time()
    folders = {place: one for place, one in _read(home).folders.items() if 0 <= now - one.time <= KEPT_SECONDS}
    folders.pop(str(workspace), None)
    newest = sorted(folders, key=lambda place: folders[place].time)[-(_FOLDERS - 1) :]
    kept = {place: folders[place] for place in newest}
    kept[str(workspace)] = _Folder(time=now, chain=(*before, asked)[-_CHAIN:])
    with suppress(KoptError):
        write_whole(home / FILE, _Asked(folders=kept).model_dump_json(indent=1).encode(), private=True)


def _read(home: Path) -> _Asked:
    try:
        return _Asked.model_validate_json(read_if_there(home / FILE) or b"")
    except ValidationError:
        return _Asked(folders={})


def no_question_before() -> UsageError:
    """The error of a follow-up to nothing."""
    return UsageError(
        "there is no question of the last 24 hours in this folder that this one could continue",
        code="no_question_before",
        hint="Ask it as a whole question, without --continue.",
    )


def read(
    text: str,
    terms: Vocabulary,
    before: Sequence[Earlier],
    *,
    gpus: tuple[str, ...] = (),
    dtype: str = "",
    dims: Mapping[str, int] | None = None,
    told: Told | None = None,
    known: Callable[[str], bool] = lambda _: False,
) -> tuple[Question, list[str]]:
    """A question as `understand` reads it, with what it leaves open taken from those before; and what that was."""
    question = understand(text, terms, gpus=gpus, dtype=dtype, dims=dims, told=told, known=known)
    if not before:
        return question, []
    *older, last = before
    named = next((mention.id for mention in terms.find(last.dtype, "dtype")), "")
    earlier, _ = read(last.text, terms, older, gpus=last.gpus, dtype=named, dims=last.dims, known=known)
    if earlier.operation and not question.operation:
        # Sizes and the words that ask for a sum are read by the operation that they are about.
        about = replace(told or Told(), operation=earlier.operation)
        aided = understand(text, terms, gpus=gpus, dtype=dtype, dims=dims, told=about, known=known)
        form = question.form if aided.form in UNCUED else aided.form
        question = replace(question, dims=aided.dims, form=form)
    return inherit(question, earlier)


def reads_like_one(question: Question, terms: Vocabulary) -> bool:
    """Whether a question begins as a follow-up does, or has no content of its own."""
    text = question.text
    named = any(mention.kind != "intent" for mention in terms.find(text)) or question.unknown_products
    return bool(_BEGINS.match(text)) or not (named or set(words(text)) - terms.question_words)


def hint(question: Question, terms: Vocabulary, before: Sequence[Earlier], *, abstained: bool) -> list[str]:
    """What to tell a user whose question reads like a follow-up and was asked as a whole one."""
    if not reads_like_one(question, terms):
        return []
    if before:
        return [f"this reads like a follow-up: --continue takes what it leaves open from “{before[-1].text}”"]
    return ["this reads like a follow-up, and nothing was asked before it: ask a whole question"] if abstained else []
