"""`kopt schema`: the JSON Schema of what a command prints under `data`."""

from __future__ import annotations

import importlib
import json as json_module
import sys
from difflib import get_close_matches
from typing import Annotated, Any

import typer

from kopt.cli.output import whole_pipe

COMMANDS = {
    "ask": "answering.answers.AskData",
    "search": "answering.answers.SearchData",
    "show": "answering.citations.ShowData",
    "spec": "answering.citations.SpecData",
    "cite": "answering.citations.CiteData",
    "eval": "kopt.services.evaluation.service.Evaluation",
    "ingest": "wiki.IngestData",
    "wiki new": "wiki.NewPageData",
    "wiki lint": "wiki.LintData",
    "wiki gaps": "wiki.GapsData",
    "wiki stats": "wiki.StatsData",
    "wiki alike": "wiki.AlikeData",
    "wiki show": "answering.citations.ShowData",
    "wiki refs": "wiki.RefsData",
    "wiki history": "wiki.HistoryData",
    "wiki publish": "wiki.PublishData",
    "wiki trust": "wiki.TrustData",
    "wiki distrust": "wiki.TrustData",
    "wiki propose": "wiki.ProposeData",
    "wiki accept": "wiki.AcceptData",
    "wiki reject": "wiki.RejectData",
    "wiki sync": "wiki.WikiSyncData",
    "bench": "bench.BenchData",
    "bench external": "bench.ExternalData",
    "bench verify": "bench.VerifyData",
    "bench replay": "bench.ReplayData",
    "bench export": "bench.BenchExportData",
    "bench ceilings": "bench.CeilingsData",
    "bench noise": "bench.NoiseData",
    "log add": "experiments.AddData",
    "log list": "experiments.LogListData",
    "log show": "experiments.LogShowData",
    "log search": "experiments.LogListData",
    "log recommend": "experiments.RecommendData",
    "log stats": "experiments.LogStatsData",
    "log merge": "experiments.MergeData",
    "log sync": "experiments.SyncData",
    "log mask": "experiments.MaskData",
    "log unmask": "experiments.MaskData",
    "log export": "experiments.ExportData",
    "log import": "experiments.ImportData",
    "sass": "machine_code.SassData",
    "occupancy": "machine_code.OccupancyData",
    "profile": "profiles.ProfileData",
    "diagnose": "profiles.DiagnoseData",
    "roofline": "rooflines.RooflineData",
    "run plan": "runs.RunPlanData",
    "run start": "runs.RunStartData",
    "run next": "runs.RunNextData",
    "run submit": "runs.RunSubmitData",
    "run gate": "runs.RunGateData",
    "run verify": "loop.run.verification.Verification",
    "run watch": "runs.RunWatchData",
    "run status": "runs.RunData",
    "run resume": "runs.RunData",
    "run extend": "runs.RunData",
    "run mask": "runs.RunData",
    "run stop": "runs.RunData",
    "run final": "runs.RunData",
    "run apply": "runs.RunApplyData",
    "run report": "runs.RunReportData",
    "run list": "runs.RunListData",
    "run show": "runs.RunShowData",
    "mcp": "installation.McpData",
    "web": "installation.WebData",
    "skill install": "installation.SkillData",
    "doctor": "installation.DoctorData",
}
"""Command → what it prints: a module of `kopt.services.results` and its model, or a type of the domain with its whole
name; it is imported when asked for."""
DOCUMENTS = {
    "receipt": "evaluator.receipt.receipt.Receipt",
    "external-receipt": "evaluator.external.record.ExternalReceipt",
    "run-request": "loop.proposals.request.NextRequest",
    "run-proposal": "loop.proposals.proposal.Proposal",
}
"""Documents that no command prints under `data`, and programs read or write."""


def schema(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="A command, such as ask or wiki lint, or receipt; without it all are listed."),
    ] = None,
) -> None:
    """Print the JSON Schema of a command's `data`, or of a document.

    Documents: `receipt`, `external-receipt` (of a command of the user's), `run-request` and `run-proposal` (what a
    proposer is told and answers).
    """
    from kbs.common.errors import ExitCode
    from kbs.common.json_model import document_schema, json_schema
    from kopt.cli.output import fail

    name = " ".join(command or ())
    with whole_pipe():
        if not name:
            sys.stdout.write("\n".join([*COMMANDS, *DOCUMENTS]) + "\n")
        elif name in DOCUMENTS:
            sys.stdout.write(json_module.dumps(document_schema(_imported(DOCUMENTS[name])), indent=2) + "\n")
        elif name in COMMANDS:
            sys.stdout.write(json_module.dumps(json_schema(printed_type(name)), indent=2) + "\n")
        else:
            near = get_close_matches(name, [*COMMANDS, *DOCUMENTS], n=3)
            hint = f"Did you mean {', '.join(near)}?" if near else "`kopt schema` lists what has one."
            fail("schema", False, ExitCode.USAGE, "command_unknown", f"{name!r} prints no JSON", hint)


def printed_type(command: str) -> Any:
    """The type of what a command of `COMMANDS` prints under `data`."""
    from pydantic import Field

    if command == "bench":
        return Annotated[
            _result(COMMANDS["bench"]) | _result(COMMANDS["bench external"]), Field(discriminator="evidence")
        ]
    if command == "show":
        return _result(COMMANDS["show"]) | _result(COMMANDS["log show"])
    return _result(COMMANDS[command])


def _result(name: str) -> Any:
    return _imported(name if name.startswith(("kopt.", "loop.")) else f"kopt.services.results.{name}")


def _imported(place: str) -> Any:
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)
