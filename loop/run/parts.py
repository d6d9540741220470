"""What the steps of a run get from the rest of `loop`: step 0, hints, evidence, pages, the log and the gate."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

from evaluator.receipt.receipt import Receipt
from evaluator.store.seal import load_key
from kbs.common.files import read_if_there
from kbs.evidence.vocabulary import Product, Vocabulary
from kbs.experience.log import ExperienceLog
from loop import pages
from loop.gate.context import GateContext, Stage
from loop.gate.report import GateReport, run_gate
from loop.journal import seeds
from loop.journal.events import HintsRead, Recorded
from loop.journal.folder import KERNELS, RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import RunState
from loop.pages.artifacts import VersionFiles
from loop.planning.hints import parse_hints
from loop.planning.methods import REWRITE, Methods, read_methods
from loop.planning.step0 import EnvNote
from loop.proposals import evidence
from loop.proposals import experience as past
from loop.proposals.proposal import Proposal
from loop.tools import Search, Tools
from wiki.library import Wikis


class Bench(Tools, Protocol):
    """Tools with what step 0 and the pictures need; `kopt.services.runs.tools.Workbench` implements it."""

    def environment(self) -> EnvNote:
        """The machine and its programs."""

    def pictures(self, drawing: pages.Drawing) -> dict[str, bytes]:
        """Pictures of a run by name; nothing where none can be drawn."""


@dataclass
class Parts:
    """What each method returns is to be written or recorded; none of them writes below the run's folder.

    Each may raise `KoptError`.
    """

    folder: RunFolder
    record: RunRecord
    tools: Bench
    wikis: Wikis
    terms: Vocabulary
    home: Path
    """KOPT_HOME."""
    log: ExperienceLog
    """The experience log."""

    @cached_property
    def methods(self) -> Methods:
        """The registry."""
        return read_methods(self.wikis)

    def step0(self) -> dict[str, bytes]:
        """Files of step 0, by path: env.json, roofline.json, env_check.md, README.md."""
        return pages.step0_files(self.record, self.tools.environment(), self.tools.targets())

    def hints(self) -> HintsRead:
        """HINTS.md as it is now. Raises `UsageError` (`hints_contradict`)."""
        data = read_if_there(self.folder.hints)
        if data is None:
            return HintsRead(file=None, directives=(), passed_on=())
        found = parse_hints(data.decode("utf-8", "replace"), (*self.methods.ids, REWRITE))
        return HintsRead(
            file=hashlib.sha256(data).hexdigest(),
            directives=tuple(one.canonical for one in found.directives),
            passed_on=tuple(one.written for one in found.passed_on),
        )

    def look_up(self, state: RunState, parent: int) -> tuple[Search, ...]:
        """Evidence for a version that changes `parent`: first from the experience log, then on the kernel and its
        bottleneck, and after a stall on methods that were not tried."""
        files = VersionFiles(self.folder, self.record, parent)
        reference = self.folder.root / self.record.reference.name
        kernels = (self.folder.version(parent) / name for name in KERNELS.values())
        found = (read_if_there(path) for path in (reference, *kernels))
        texts = [data.decode("utf-8", "replace") for data in found if data is not None]
        gpu = self._product.name if self._product else ""
        name = past.operation(self.folder, parent)
        asked = evidence.queries(name, texts, gpu, files.diagnosis, self.terms)
        stall = state.stalls[-1] if state.stalls else None
        if stall is not None and state.current is not None and stall.version == state.current.number:
            asked += evidence.after_stall(stall.untried, gpu)
        return (past.look_up(self.log, self.folder, state, parent), *evidence.look_up(self.tools, asked))

    def look_further(self, state: RunState, proposal: Proposal, known: tuple[Search, ...]) -> tuple[Search, ...]:
        """Evidence for the queries of a proposal that were not asked yet."""
        return evidence.further(self.tools, proposal, known, lambda text: past.look_for(self.log, state, text))

    def log_version(self, version: int) -> Recorded:
        """Record a closed version in the experience log, unless it is there already."""
        return past.record(self.log, self.folder, version, load_key(self.home))

    def of_attempt(self, receipt: Receipt) -> dict[str, bytes]:
        """Files beside the receipt of an attempt, by name."""
        return {"correctness.md": pages.correctness(receipt)}

    def of_version(self, version: int) -> dict[str, bytes]:
        """Rendered files of a version, by name."""
        return pages.version_files(self.folder, self.record, version)

    def of_run(self, state: RunState) -> dict[str, bytes]:
        """Rendered files at the top of the folder, by name."""
        return pages.run_files(self.folder, self.record, state)

    def of_end(self, state: RunState) -> dict[str, bytes]:
        """Reports and pictures, by path."""
        return pages.final_files(self.folder, self.record, state, self.tools.pictures)

    def untried(self, state: RunState) -> tuple[str, ...]:
        """Methods that run on this architecture, that no directive forbids, and that no version used."""
        used = {method for version in state.versions for method in version.methods}
        forbidden = parse_hints("\n".join(state.directives), (*self.methods.ids, REWRITE)).values("forbid")
        architecture = self._product.architecture if self._product else ""
        return tuple(
            method.id
            for method in self.methods.offered
            if method.id not in (*used, *forbidden) and method.runs_on(architecture)
        )

    @property
    def _product(self) -> Product | None:
        """The GPU that specs and targets are about."""
        return self.terms.products.get(self.record.gpu)

    def gate(
        self,
        state: RunState,
        version: int,
        stage: Stage,
        proposal: Proposal | None = None,
        unwritten: Mapping[str, bytes] | None = None,
    ) -> GateReport:
        """The report of the gate on a version, on a proposal for it, or on the end of the run.

        `unwritten`: files by path that are taken as if they were on the disk already.
        """
        context = GateContext(
            self.folder, self.record, state, self.wikis, self.terms, version, stage, proposal,
            self.tools.machine_code if proposal is not None else None, unwritten or {},
            key=load_key(self.home), began_sealed=seeds.sealed(self.home, self.record.id),
            last_commit=seeds.last_commit(self.home, self.record.id),
        )  # fmt: skip
        return run_gate(context)
