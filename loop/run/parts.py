"""What the steps of a run ask of the rest of `loop`: step 0, evidence, hints, rendered pages, the gate."""

from __future__ import annotations

from typing import Protocol

from evaluator.receipt.receipt import Receipt
from loop.gate.context import Stage
from loop.gate.report import GateReport
from loop.journal.events import HintsRead, Recorded
from loop.journal.state import RunState
from loop.proposals.proposal import Proposal
from loop.tools import Search


class Parts(Protocol):
    """Each returns what is to be written or recorded, and writes nothing below the run's folder.

    Each may raise `KoptError`.
    """

    def step0(self) -> dict[str, bytes]:
        """Files of step 0, by their paths below the run's folder."""

    def hints(self) -> HintsRead:
        """HINTS.md as it is now."""

    def look_up(self, state: RunState, parent: int) -> tuple[Search, ...]:
        """The evidence for a version that will change `parent`."""

    def look_further(self, state: RunState, proposal: Proposal, known: tuple[Search, ...]) -> tuple[Search, ...]:
        """A proposal's own questions, as far as they are new."""

    def log_version(self, version: int) -> Recorded:
        """Put what came of a closed version into the experience log, if it is not there yet."""

    def of_attempt(self, receipt: Receipt) -> dict[str, bytes]:
        """Files beside an attempt's receipt, by name."""

    def of_version(self, version: int) -> dict[str, bytes]:
        """Rendered files of a version, by name."""

    def of_run(self, state: RunState) -> dict[str, bytes]:
        """Rendered files at the top, by name."""

    def of_end(self, state: RunState) -> dict[str, bytes]:
        """Reports and pictures, by their paths."""

    def untried(self, state: RunState) -> tuple[str, ...]:
        """Methods that apply here and that no version used."""

    def gate(self, state: RunState, version: int, stage: Stage, proposal: Proposal | None = None) -> GateReport:
        """What the gate says."""
