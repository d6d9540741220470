"""Questions whose right answers are known, read from files; `tests/questions/README.md` describes their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from kbs.common.errors import ConfigurationError, UsageError

Kind = Literal["answerable", "wrong-premise", "unanswerable"]
Fact = tuple[str, ...]
"""Regular expressions, one of which must match."""
_TESTS = Path(__file__).resolve().parents[3] / "tests"
SETS = {"development": (_TESTS / "questions", "*.jsonl"), "golden": (_TESTS / "golden", "questions.jsonl")}
"""Name → folder of a checkout and its files. An installed kopt brings none."""


class Question(BaseModel):
    """A question, and what its answer must and must not say."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    question: str
    form: str = ""
    kind: Kind = "answerable"
    in_wiki: bool = True
    by: Literal["section", "solver", "none"] = "none"
    gold: tuple[str, ...] = ()
    """Sections that answer it, each by itself: `page#heading`."""
    first: tuple[Fact, ...] = ()
    must: tuple[Fact, ...] = ()
    must_not: tuple[str, ...] = ()
    sources: bool = False
    """Whether facts may stand in the list of sources, too."""
    file: str = ""
    """Name of the file that it is from."""

    @model_validator(mode="after")
    def _patterns(self) -> Self:
        for pattern in (*self.must_not, *(form for fact in (*self.first, *self.must) for form in fact)):
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return self


def find_set(name: str) -> list[Path]:
    """The files of a set. Raises `ConfigurationError` (`no_questions`) where there is no checkout."""
    folder, pattern = SETS[name]
    files = sorted(folder.glob(pattern))
    if not files:
        raise ConfigurationError(
            f"there is no {name} set in {folder}",
            code="no_questions",
            hint="The sets are in kopt's repository: run it in a checkout, or name your own file with --questions.",
        )
    return files


def read_questions(files: Sequence[Path]) -> list[Question]:
    """All questions of the files. Raises `UsageError` (`questions_unreadable`) naming file and line."""
    found: list[Question] = []
    for path in files:
        try:
            lines = path.read_text("utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from error
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                stated = json.loads(line)
                if isinstance(stated, dict) and "ask" in stated:
                    stated = _golden(stated, number)
                found.append(Question.model_validate(stated).model_copy(update={"file": path.stem}))
            except ValidationError as error:
                problem = error.errors()[0]
                where = ".".join(map(str, problem["loc"]))
                raise _unreadable(path, f"line {number}: {where} {problem['msg']}".replace("  ", " ")) from error
            except (ValueError, TypeError) as error:
                raise _unreadable(path, f"line {number}: {error}") from error
    repeated = {one.id for one in found if sum(other.id == one.id for other in found) > 1}
    if repeated or not found:
        what = f"{min(repeated)} names several questions" if repeated else "they have no question"
        raise _unreadable(files[0], what)
    return found


def _golden(stated: dict[str, Any], number: int) -> dict[str, Any]:
    """A golden question: all its facts are matched as they are written, in any line, sources too."""
    if not stated.get("exit"):
        kind: Kind = "answerable"
    else:
        kind = "wrong-premise" if stated.get("reason") == "wrong_premise" else "unanswerable"
    return {
        "id": f"golden-{number}",
        "question": stated["ask"],
        "kind": kind,
        "must": [[f"(?m-i:{pattern})"] for pattern in stated["must"]],
        "must_not": [f"(?m-i:{pattern})" for pattern in stated.get("must_not", ())],
        "sources": True,
    }


def _unreadable(path: Path, why: str) -> UsageError:
    return UsageError(
        f"the questions in {path} cannot be read: {why}",
        code="questions_unreadable",
        hint="A line is one question as JSON; tests/questions/README.md of kopt's repository has the fields.",
    )
