"""The experience log of the settings in force, and what a receipt says of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from kbs.common.errors import KoptError, UsageError
from kbs.common.ulid import new_ulid
from kbs.experience.experiment import CPU, Experiment, Outcome, Provenance, Speedup, op_name, outcome_of
from kbs.experience.files import first_problem
from kbs.experience.log import Added, ExperienceLog, now_utc
from kopt.services.experience.method_names import method_names
from kopt.services.settings import LoadedSettings, load_settings

if TYPE_CHECKING:
    from evaluator.receipt.receipt import Receipt
    from kbs.experience.entry import Entry
    from kbs.experience.filters import Filter
    from kbs.experience.index import ExperienceIndex
    from kbs.experience.ranking.recommend import Advice


def open_log(settings: LoadedSettings | None = None) -> ExperienceLog:
    """The log. Nothing is made or read yet."""
    loaded = settings or load_settings()
    return ExperienceLog(loaded.log_folder, loaded.home, shipped=loaded.base_log)


def entry_of(id: str) -> Entry:
    """The record that an id, `log/<id>` or the beginning of an id names. Raises `UsageError` (`log_unknown`,
    `log_ambiguous`)."""
    from kbs.experience.log import find

    with open_log().index() as index:
        return find(index, id)


def shipped_of(index: ExperienceIndex, wanted: Filter) -> int:
    """How many of the experiments that a filter lets through ship with kopt."""
    return 0 if wanted.shipped is False else index.count(replace(wanted, shipped=True))


def recommended(
    kernel: str,
    backend: str,
    chip: str,
    bottleneck: str,
    dims: dict[str, int],
    dtype: str,
    limit: int,
    *,
    explain: bool = False,
    settings: LoadedSettings | None = None,
) -> tuple[dict[str, Any], Advice]:
    """(how the words were read, the methods that helped in similar experiments). Raises `UsageError`."""
    from datetime import UTC, datetime

    from kbs.experience.ranking.recommend import recommend
    from kbs.experience.ranking.similarity import Situation
    from kopt.services.experience.filters import read_bottleneck

    asked = Situation.of(kernel, backend, chip, read_bottleneck(bottleneck), dims, dtype)
    with open_log(settings).index() as index:
        advice = recommend(asked, index.trials(), datetime.now(UTC), limit, explain=explain)
        shipped = (f"log/{id}" for id in index.shipped())
        return asdict(asked), replace(advice, shipped=tuple(sorted(advice.named.intersection(shipped))))


def receipt_problem(data: bytes, home: Path) -> str:
    """Why the bytes of a receipt do not count as a measurement; empty where they do.

    A seal of another KOPT_HOME cannot be checked here, and counts: what is shared was measured elsewhere.
    """
    from evaluator.store.seal import load_key, measurement_problem

    try:
        return measurement_problem(data, load_key(home))
    except KoptError as error:
        return error.message


def read_receipt(path: Path, home: Path) -> Receipt:
    """A receipt that counts. Raises `UsageError` (`receipt_unreadable`, `receipt_refused`)."""
    from evaluator.receipt.receipt import parse

    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror or error}",
            code="receipt_unreadable",
            hint="Give the file that `kopt bench --receipt FILE` wrote.",
        ) from error
    wrong = receipt_problem(data, home)
    if wrong:
        raise UsageError(
            f"{path} does not count as a measurement: {wrong}",
            code="receipt_refused",
            hint="Leave --receipt out and give --outcome to add it as reported.",
        )
    return parse(data)


@dataclass(frozen=True)
class AddedExperiment:
    """What became of an experiment that a user added."""

    experiment: Experiment
    result: Added
    notes: list[str]


def add_experiment(fields: Mapping[str, Any], receipt: Path | None) -> AddedExperiment:
    """Add what a user says of an experiment, measured by a receipt if there is one.

    Raises `UsageError` (`experiment_invalid`, and what `read_receipt` raises).
    """
    loaded = load_settings()
    log = open_log(loaded)
    proof = read_receipt(receipt, loaded.home) if receipt else None
    if fields.get("methods"):
        names, said = method_names(loaded), fields["methods"]
        parameters = {name: value for method in said for name, value in names.read(method).parameters}
        fields = {**fields, "methods": tuple(map(names.name, said)), "parameters": parameters}
    try:
        one, notes = experiment_of(proof, fields)
    except ValidationError as error:
        raise UsageError(
            f"invalid experiment: {first_problem(error)}",
            code="experiment_invalid",
            hint="Give at least OPTIMIZATION, --kernel, and --outcome or --receipt; see `kopt log add --help`.",
        ) from error
    result = log.append([one])
    return AddedExperiment(one, result, [*notes, *log.files.notes])


def experiment_of(receipt: Receipt | None, fields: Mapping[str, Any]) -> tuple[Experiment, list[str]]:
    """(the experiment, what should be known of it) of what a user says, and of a receipt.

    What the receipt states overrides what the user says; a speedup or GPU that it does not state is left out. Raises
    `ValidationError` if the fields make no experiment.
    """
    notes: list[str] = []
    measured = _measured(receipt, notes) if receipt else {"provenance": Provenance.REPORTED, "time": now_utc()}
    merged = {**{name: value for name, value in fields.items() if value not in (None, "", (), {})}, **measured}
    for name, value in measured.items():
        said = fields.get(name)
        if said not in (None, "", (), {}) and said != value:
            notes.append(f"{name} is taken from the receipt")
    unproved = [name for name in ("speedup", "gpu") if receipt and name in merged and name not in measured]
    merged = {name: value for name, value in merged.items() if name not in unproved}
    notes += [f"{name} is left out: the receipt has none" for name in unproved]
    merged["op"] = op_name(merged.get("op") or merged.get("kernel") or "")
    return Experiment(id=new_ulid(), **merged), notes


def _measured(receipt: Receipt, notes: list[str]) -> dict[str, Any]:
    ratio, outcome = _ratio_to_parent(receipt), outcome_of(receipt.verdict, receipt.improvement)
    if ratio is None and outcome in (Outcome.SUCCESS, Outcome.REGRESSION):
        outcome = Outcome.UNMEASURED
        notes.append(
            "the receipt compares with no version before it (`kopt bench --against`): it has no speedup of the change"
        )
    machine = receipt.environment
    return {
        "time": receipt.created,
        "kernel": receipt.candidate.name,
        "backend": str(receipt.candidate.backend),
        "dims": dict(receipt.plan.workloads[0]) or dict(receipt.problem.dims),
        "outcome": outcome,
        "receipt": receipt.id,
        "provenance": Provenance.MEASURED,
        "gpu": machine.device_name if machine.device != "cpu" else CPU,
        **({"capability": machine.compute_capability} if machine.compute_capability else {}),
        **({"speedup": ratio} if ratio and outcome is not Outcome.INCORRECT else {}),
    }


def _ratio_to_parent(receipt: Receipt) -> Speedup | None:
    """The time of the version before over the candidate's; None where the receipt does not compare with it."""
    timing, planned = receipt.timing, receipt.plan.timing
    if timing is None or timing.ratio is None or planned is None or receipt.verdict != "accepted":
        return None
    incumbents = [baseline.name for baseline in planned.baselines if baseline.how == "incumbent"]
    if timing.against not in incumbents:
        return None
    return Speedup(median=timing.ratio.median, low=timing.ratio.ci_low, high=timing.ratio.ci_high)
