"""The structured files of a run's folder that pages are rendered from. A missing file is None."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from evaluator.external.record import ExternalReceipt, parse_external
from evaluator.profiling.profile import Chosen, Counter, Profile, read_profile
from evaluator.receipt.receipt import Receipt, parse
from evaluator.receipt.timing_text import duration
from evaluator.receipt.verdict import Verdict
from kbs.common.errors import KoptError, UsageError
from kbs.hardware.profile_metrics import profile_metrics
from loop.journal.folder import KERNELS, RunFolder
from loop.journal.record import RunRecord
from loop.planning.budget import Budget, budget_of
from loop.planning.decisions import Interval, ratio_of
from loop.planning.outcomes import MethodOutcome, outcome
from loop.planning.step0 import ENVIRONMENT, ROOFLINE, EnvNote
from loop.proposals.evidence import NAME as SEARCHES
from loop.proposals.evidence import read as read_searches
from loop.proposals.proposal import Proposal
from loop.tools import DiagnosisNote, MachineNote, Search, Targets

NOT_THERE = "N/A"
Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True)
class VersionFiles:
    """The structured files of one version. Raises `KoptError` (`artifact_damaged`) for a file that cannot be read."""

    folder: RunFolder
    record: RunRecord
    number: int

    def _path(self, name: str) -> Path:
        return self.folder.version(self.number) / name

    @cached_property
    def proposal(self) -> Proposal | None:
        """The accepted proposal; None for version 0."""
        return _model(self._path("proposal.json"), Proposal)

    def attempted(self, number: int) -> Proposal | None:
        """The proposal of an attempt, accepted or not; None if nobody proposed it."""
        return _model(self.folder.attempt(self.number, number) / "proposal.json", Proposal)

    @cached_property
    def receipt(self) -> Receipt | None:
        """The receipt of the accepted attempt."""
        data = _bytes(self._path("receipt.json"))
        return None if data is None else parse(data)

    @cached_property
    def external(self) -> ExternalReceipt | None:
        """What the user's own benchmark printed of it."""
        data = _bytes(self.folder.external(self.number))
        return None if data is None else parse_external(data)

    @cached_property
    def diagnosis(self) -> DiagnosisNote | None:
        """The diagnosis of what bounds it."""
        return _model(self._path("diagnosis.json"), DiagnosisNote)

    @cached_property
    def machine(self) -> MachineNote | None:
        """What its machine code shows."""
        return _model(self._path("machine.json"), MachineNote)

    @cached_property
    def searches(self) -> tuple[Search, ...]:
        """The searches for it."""
        return read_searches(self._path(SEARCHES))

    @cached_property
    def csv(self) -> bytes | None:
        """profile.csv; None if it is missing or empty."""
        return _bytes(self._path("profile.csv")) or None

    @cached_property
    def profile(self) -> Profile | None:
        """Its profile."""
        if self.csv is None:
            return None
        try:
            return read_profile(self.csv, "profile.csv")
        except UsageError as error:
            raise _damaged(self._path("profile.csv"), error.message) from error

    @cached_property
    def chosen(self) -> Chosen | None:
        """The launch of the profile that the pages are about."""
        return None if self.profile is None else self.profile.choose()

    @property
    def profile_id(self) -> str:
        """SHA-256 of profile.csv, as citations name it; empty if there is none."""
        return "" if self.csv is None else hashlib.sha256(self.csv).hexdigest()

    @cached_property
    def kernel(self) -> tuple[str, bytes] | None:
        """(name, bytes) of its kernel."""
        for name in KERNELS.values():
            data = _bytes(self._path(name))
            if data is not None:
                return name, data
        return None

    @property
    def median_us(self) -> float | None:
        """Its own median time, of the first workload, in microseconds."""
        timing = self.receipt.timing if self.receipt else None
        summary = timing.workloads[0].candidate.summary if timing else None
        return None if summary is None else summary.median_us

    @cached_property
    def parent(self) -> VersionFiles | None:
        """The version that was changed."""
        return None if self.proposal is None else VersionFiles(self.folder, self.record, self.proposal.parent)

    @cached_property
    def outcomes(self) -> tuple[MethodOutcome, ...]:
        """What came of its methods; empty if it is version 0, or was not accepted."""
        if self.proposal is None or self.receipt is None:
            return ()
        before, noise = self.parent.machine if self.parent else None, self.record.minimum_effect
        # The ratio of the whole version is that of its only method; of several, each has that of leaving it out.
        alone = len(self.proposal.methods) == 1
        return tuple(
            outcome(method, self.machine, before, ratio_of(self.receipt) if alone else self.left_out(method), noise)
            for method in self.proposal.methods
        )

    @cached_property
    def ablations(self) -> dict[str, Receipt]:
        """Method → the receipt of the kernel without it."""
        found = {}
        for one in self.proposal.ablations if self.proposal else ():
            data = _bytes(self.folder.ablation(self.number, one.method) / "receipt.json")
            if data is not None:
                found[one.method] = parse(data)
        return found

    def left_out(self, method: str) -> Interval | None:
        """Time without a method over time with it: median, lower and upper bound; None where it was not compared, or
        the kernel without it is not right."""
        receipt = self.ablations.get(method)
        if receipt is None or receipt.verdict is not Verdict.ACCEPTED:
            return None
        ratio = ratio_of(receipt)  # of the whole kernel's time over that of the one without the method
        return None if ratio is None else (1 / ratio[0], 1 / ratio[2], 1 / ratio[1])

    @property
    def budget(self) -> Budget:
        """What the next version may change of it."""
        launch = self.chosen.launch if self.chosen else None
        moved = None if launch is None or launch.dram_bytes is None else int(launch.dram_bytes)
        return budget_of(self.number, self.median_us, targets(self.folder), moved)

    def metric(self, id: str) -> str:
        """A metric as the profile shows it, by our id or the name in Nsight Compute; `time` is the median time. Empty
        if it has none."""
        if is_time(id) and self.median_us is not None:
            return duration(self.median_us)
        found = self._counter(id)
        return found.shown if found else ""

    def number_of(self, id: str) -> float | None:
        """A metric as a number in the vocabulary's unit; None if it has none."""
        if is_time(id) and self.median_us is not None:
            return self.median_us
        found = self._counter(id)
        return None if found is None or found.value is None else float(found.value)

    def _counter(self, id: str) -> Counter | None:
        launch = self.chosen.launch if self.chosen else None
        if launch is None:
            return None
        return launch.metric(id) if id in profile_metrics().all else launch.counter(id)


def is_time(metric: str) -> bool:
    """Whether a name means the kernel's time, which receipts have."""
    return metric.strip().casefold() in ("time", "median", "median_us", "duration", "runtime", "latency")


def targets(folder: RunFolder) -> Targets | None:
    """roofline.json of the run; None before step 0."""
    return _model(folder.root / ROOFLINE, Targets)


def environment(folder: RunFolder) -> EnvNote | None:
    """env.json; None before step 0."""
    return _model(folder.root / ENVIRONMENT, EnvNote)


def _model(path: Path, model: type[Model]) -> Model | None:
    data = _bytes(path)
    if data is None:
        return None
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise _damaged(path, f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise _damaged(path, error.strerror or str(error)) from error


def _damaged(path: Path, why: str) -> KoptError:
    hint = "Restore the file from the run's git repository."
    return KoptError(f"{path} cannot be read: {why}", code="artifact_damaged", hint=hint)
