"""Every artifact is there."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import BaseModel, ValidationError

from evaluator.profiling.ncu_csv import read_table
from kbs.common.errors import KoptError
from loop.gate.context import GateContext
from loop.gate.rendering import render_version
from loop.gate.rule import Broken, rule
from loop.proposals.proposal import Proposal
from loop.tools import DiagnosisNote, MachineNote, Search

_MODELS: dict[str, type[BaseModel]] = {
    "proposal.json": Proposal,
    "diagnosis.json": DiagnosisNote,
    "machine.json": MachineNote,
}


@rule("artifact", "Every artifact of the version is there, is not empty, and parses.", "version")
def artifact(context: GateContext) -> Iterator[Broken]:
    """A version is its kernel, proposal, receipt, diagnosis, machine code, searches, raw profile where the run
    takes any, and all that is rendered from them. A file that is missing or damaged is made again by `kopt run
    resume`, or restored from the run's git repository."""
    names = ["receipt.json", "diagnosis.json", "machine.json"]
    names += ["proposal.json", "searches.jsonl"] if context.version else []
    state = context.opened
    if state is not None and state.profiled is not None and state.profiled.grade == "full":
        names.append("profile.csv")
    names += [name for name in render_version(context) if name not in names]
    mend = "Restore the file from the run's git repository, or let `kopt run resume` make it again."
    if context.kernel_name(context.version) is None:
        yield Broken(file=context.kernel_file, line=0, message="it is missing, empty or no file", mend=mend)
    for name in names:
        path = context.in_version(name)
        data = context.bytes_of(path)
        if data is None or not data.strip():
            yield Broken(file=path, line=0, message="it is missing, empty or no file", mend=mend)
            continue
        why = _unreadable(name, data)
        if why:
            yield Broken(file=path, line=why[0], message=why[1], mend=mend)


def _unreadable(name: str, data: bytes) -> tuple[int, str] | None:
    """Line and reason."""
    try:
        text = data.decode("utf-8")
        if name in _MODELS:
            _MODELS[name].model_validate_json(data)
        elif name == "searches.jsonl":
            for number, line in enumerate(text.splitlines(), start=1):
                try:
                    Search.model_validate_json(line)
                except ValidationError as error:
                    return number, f"it is no search: {error.errors()[0]['msg']}"
        elif name == "profile.csv":
            read_table(data, name)
        elif name.endswith(".json"):
            json.loads(data)
    except UnicodeDecodeError as error:
        return 0, f"it is no UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        return error.lineno, f"it is no JSON: {error.msg}"
    except ValidationError as error:
        first = error.errors()[0]
        return 0, f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except KoptError as error:
        return 0, error.message
    return None
