"""From the words of `kopt run start` to what is wanted, and a resolved plan as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kopt.services.engine import Engine
    from kopt.services.results.runs import RunPlanData
    from loop.journal.language_model import ModelChoice
    from loop.planning.plan import ResolvedPlan, Wanted


def resolve(engine: Engine, words: dict[str, Any]) -> ResolvedPlan:
    """The plan that the words of the command come to. Raises `KoptError`."""
    from kopt.services.runs.service import Named, plan

    named = Named(
        workspace=words["workspace"],
        kernel=words["kernel"],
        reference=words["ref"],
        inputs=words["inputs"],
        device=words["device"],
        gpu=words["gpu"],
    )
    return plan(engine, named, wanted(engine, words))


def plan_data(plan: ResolvedPlan) -> RunPlanData:
    """A plan as `--json` has it."""
    from kopt.services.results.runs import PlanLineData, RunPlanData

    return RunPlanData(
        folder=str(plan.folder),
        settings=[PlanLineData(name=one.name, value=one.value, source=one.source) for one in plan.settings],
        hints=list(plan.hints.acknowledged),
        not_used=list(plan.inventory.passed_over),
        creates=list(plan.creates),
        notes=list(plan.notes),
        text="\n".join(plan.lines()),
    )


def _model(engine: Engine, words: dict[str, Any]) -> ModelChoice | None:
    """The language model that the words name; None for another proposer. Raises `KoptError`."""
    from decimal import Decimal

    from kbs.common.errors import UsageError

    options = ("model", "max_calls", "max_tokens", "max_cost")
    if words["proposer"] != "llm":
        given = next((name for name in options if words[name] not in (None, "")), None)
        if given is not None:
            raise UsageError(
                f"--{given.replace('_', '-')} is for the proposer `llm`",
                code="model_not_asked",
                hint="Add --proposer llm.",
            )
        return None
    from kopt.services.runs.models import ModelLimits, choose
    from kopt.services.settings import ModelServices

    cost = None if words["max_cost"] is None else Decimal(str(words["max_cost"]))
    limits = ModelLimits(calls=words["max_calls"], tokens=words["max_tokens"], cost=cost)
    return choose(words["model"], engine.settings.values, ModelServices(), limits)


def wanted(engine: Engine, words: dict[str, Any]) -> Wanted:
    """What the words of the command ask for. Raises UsageError."""
    from pydantic import ValidationError

    from evaluator.receipt.document import first_of
    from kbs.common.errors import UsageError
    from kbs.evidence.spec import CONFIDENCES
    from kopt.services.arguments import (
        read_baselines,
        read_dims,
        read_names,
        read_ptr_sizes,
        read_seconds,
        read_tolerance,
    )
    from kopt.services.bench.request import read_workloads
    from loop.planning.plan import Wanted
    from loop.proposers.command import split_command

    if words["proposer"] not in ("agent", "command", "llm"):
        given = "no proposer is named" if words["proposer"] is None else f"{words['proposer']!r} is no proposer"
        raise UsageError(
            given,
            code="proposer_missing" if words["proposer"] is None else "proposer_unknown",
            hint="--proposer agent waits for `kopt run submit`; --proposer command --command 'python p.py' asks p.py; "
            "--proposer llm --model openai:NAME asks a language model.",
        )
    if words["proposer"] != "command" and words["command"]:
        raise UsageError(
            "--command is for the proposer `command`", code="command_not_asked", hint="Add --proposer command."
        )
    if words["least_confidence"] not in CONFIDENCES:
        raise UsageError(
            f"{words['least_confidence']!r} is no confidence",
            code="confidence_unknown",
            hint=f"From the highest: {', '.join(CONFIDENCES)}.",
        )
    same = (
        "proposer", "iterations", "attempts", "target", "minimum_effect", "accept_unmeasured", "partial_restart",
        "least_confidence", "precision", "registers", "shared_memory", "no_ncu", "allow_library", "backend", "entry",
        "bytes", "operations", "restarts", "in_place",
    )  # fmt: skip
    try:
        return Wanted(
            **{name: words[name] for name in same},
            model=_model(engine, words),
            out=None if words["out"] is None else str(words["out"].absolute()),
            command=split_command(words["command"]) if words["command"] else (),
            seconds=read_seconds(words["time"]),
            forbid=tuple(words["forbid"] or ()),
            prefer=tuple(words["prefer"] or ()),
            dims=read_dims(words["dims"]),
            workloads=read_workloads(words["workloads"]),
            vary=read_names(words["vary"]),
            outputs=read_names(words["outputs"]),
            ptr_sizes=read_ptr_sizes(words["ptr_size"] or ()),
            tolerance=read_tolerance(words["tolerance"]),
            baselines=read_baselines(words["baselines"]),
            timing_seconds=words["seconds"],
            call_seconds=words["timeout"],
        )
    except ValidationError as error:
        where, what = first_of(error)
        raise UsageError(
            f"--{where.replace('_', '-')}: {what}", code="limit_invalid", hint="See `kopt run start --help`."
        ) from error
