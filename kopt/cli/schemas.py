"""The JSON that commands print under `data`. `kopt schema COMMAND` publishes these models as JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from kbs.common.json_model import json_schema
from kopt.cli.analysis.profile_schemas import DiagnoseData, ProfileData
from kopt.cli.analysis.roofline_schemas import RooflineData
from kopt.cli.bench.device_schemas import CeilingsData, NoiseData
from kopt.cli.bench.external_schemas import ExternalData
from kopt.cli.bench.schemas import BenchData, ReplayData, VerifyData
from kopt.cli.doctor_schemas import DoctorData
from kopt.cli.knowledge.answer_schemas import AskData, SearchData
from kopt.cli.knowledge.citation_schemas import CiteData, ShowData
from kopt.cli.knowledge.spec_schemas import SpecData
from kopt.cli.log.schemas import (
    AddData,
    ExportData,
    ImportData,
    LogListData,
    LogShowData,
    LogStatsData,
    MaskData,
    MergeData,
    RecommendData,
    SyncData,
)
from kopt.cli.machine_code.occupancy_schemas import OccupancyData
from kopt.cli.machine_code.sass_schemas import SassData
from kopt.cli.run.schemas import (
    RunApplyData,
    RunData,
    RunGateData,
    RunListData,
    RunNextData,
    RunPlanData,
    RunReportData,
    RunShowData,
    RunStartData,
    RunSubmitData,
    SkillData,
)
from kopt.cli.wiki.schemas import IngestData, LintData, ProposeData, StatsData

COMMANDS: dict[str, type] = {
    "ask": AskData,
    "search": SearchData,
    "show": ShowData,
    "spec": SpecData,
    "cite": CiteData,
    "ingest": IngestData,
    "wiki lint": LintData,
    "wiki stats": StatsData,
    "wiki show": ShowData,
    "wiki propose": ProposeData,
    "bench": BenchData,
    "bench external": ExternalData,
    "bench verify": VerifyData,
    "bench replay": ReplayData,
    "bench ceilings": CeilingsData,
    "bench noise": NoiseData,
    "log add": AddData,
    "log list": LogListData,
    "log show": LogShowData,
    "log search": LogListData,
    "log recommend": RecommendData,
    "log stats": LogStatsData,
    "log merge": MergeData,
    "log sync": SyncData,
    "log mask": MaskData,
    "log unmask": MaskData,
    "log export": ExportData,
    "log import": ImportData,
    "sass": SassData,
    "occupancy": OccupancyData,
    "profile": ProfileData,
    "diagnose": DiagnoseData,
    "roofline": RooflineData,
    "run plan": RunPlanData,
    "run start": RunStartData,
    "run next": RunNextData,
    "run submit": RunSubmitData,
    "run gate": RunGateData,
    "run status": RunData,
    "run resume": RunData,
    "run extend": RunData,
    "run mask": RunData,
    "run stop": RunData,
    "run final": RunData,
    "run apply": RunApplyData,
    "run report": RunReportData,
    "run list": RunListData,
    "run show": RunShowData,
    "skill install": SkillData,
    "doctor": DoctorData,
}


def schema_of(command: str) -> dict[str, Any]:
    """The JSON Schema of what a command of `COMMANDS` prints under `data`."""
    if command == "bench":
        return json_schema(Annotated[BenchData | ExternalData, Field(discriminator="evidence")])
    if command == "show":
        return json_schema(ShowData | LogShowData)
    return json_schema(COMMANDS[command])
