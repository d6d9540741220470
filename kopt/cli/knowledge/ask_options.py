"""Options of `kopt ask` that say how it is answered and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from kopt.cli.terminal.completion import dtypes, gpus

if TYPE_CHECKING:
    from kopt.services.engine import Engine
    from kopt.services.knowledge.follow_up import Earlier


@dataclass(frozen=True)
class QuestionOptions:
    """What the question is about, where its words leave that open."""

    panel: ClassVar[str] = "Question"
    gpu: Annotated[
        list[str] | None,
        typer.Option("--gpu", autocompletion=gpus, help="A GPU that the question is about. Repeatable."),
    ] = None
    dtype: Annotated[
        str, typer.Option("--dtype", autocompletion=dtypes, help="Element type, such as fp32 or bf16.")
    ] = ""
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Search only pages of this kind. Repeatable.")] = None
    k: Annotated[int | None, typer.Option("--k", "-k", min=1, max=100, help="Number of passages to consider.")] = None
    follow: Annotated[
        bool, typer.Option("--continue", help="Follow up on the question asked before in this folder.")
    ] = False

    def before(self, engine: Engine) -> tuple[Earlier, ...]:
        """What the question continues. Raises `UsageError` (`no_question_before`)."""
        from kopt.services.knowledge.follow_up import no_question_before, recall

        found = recall(engine.settings.home, engine.settings.workspace) if self.follow else ()
        if self.follow and not found:
            raise no_question_before()
        return found


@dataclass(frozen=True)
class AnswerOptions:
    """Who puts the claims into words."""

    panel: ClassVar[str] = "Answer"
    model: Annotated[
        str, typer.Option("--model", help="openai:NAME or anthropic:NAME orders and joins the claims; none: no model.")
    ] = ""
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Print the claims with ids, sources and quoted lines, for an agent.")
    ] = False
    long: Annotated[
        bool, typer.Option("--long", help="Print all lines and all sources; else at most twelve lines of reasons.")
    ] = False
    explain: Annotated[bool, typer.Option("--explain", help="Show how the question was read, and all scores.")] = False

    def asked_model(self, engine: Engine) -> str:
        """The model that is asked; empty for none. Raises `UsageError` (`evidence_or_model`)."""
        from kbs.common.errors import UsageError

        if self.model and self.evidence:
            raise UsageError(
                "--evidence prints the claims as they are, and no model is asked",
                code="evidence_or_model",
                hint="Leave out --model or --evidence.",
            )
        given = "" if self.evidence else (self.model or engine.settings.values.answer_model).strip()
        return "" if given == "none" else given
