"""What the gate checks: the files of a run's folder, and what they are compared with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ValidationError

from evaluator.external.record import ExternalReceipt, parse_external
from evaluator.profiling.profile import Launch, Profile, read_profile
from evaluator.receipt.receipt import Receipt, parse
from kbs.common.errors import KoptError, UsageError
from kbs.evidence.vocabulary import Vocabulary
from loop import pages
from loop.journal import journal as journals
from loop.journal.events import Files
from loop.journal.folder import JOURNAL, KERNELS, MAIN, RunFolder
from loop.journal.record import RunRecord
from loop.journal.seals import Sealer, Sealing
from loop.journal.state import RunState
from loop.journal.version_state import VersionState
from loop.planning.hints import Hints, parse_hints
from loop.planning.methods import Methods, read_methods
from loop.proposals.change import Change, compare, same_machine_code
from loop.proposals.proposal import Proposal
from loop.tools import DiagnosisNote, MachineNote, Search
from wiki.library import Wikis

Stage = Literal["proposal", "version", "final"]
STAGES: tuple[Stage, ...] = ("proposal", "version", "final")
"""In their order: what must hold for a proposal must hold for its version too."""
MachineCode = Callable[[str, str, tuple[str, ...]], MachineNote]
"""`Tools.machine_code`: a kernel's text, its file's name, methods."""
Content = TypeVar("Content")
MAX_FILE_BYTES = 64 * 1024 * 1024
"""kopt writes no larger file into a run."""


@lru_cache(maxsize=64)
def _parsed(data: bytes) -> Receipt:
    """A receipt; nobody changes one, and each version's is read again at each later one."""
    return parse(data)


@dataclass(frozen=True, eq=False)
class GateContext:
    """A version, or the end of a run, as it is on the disk. Every file is read once and kept."""

    folder: RunFolder
    record: RunRecord
    state: RunState
    wikis: Wikis
    terms: Vocabulary
    version: int
    """The version that is checked; at the end, the one that was restored."""
    stage: Stage
    handed_in: Proposal | None = None
    """A proposal that is in no file yet."""
    machine: MachineCode | None = None
    unwritten: Mapping[str, bytes] = field(default_factory=dict)
    """Files by path that are taken as if they were on the disk already."""
    key: bytes | None = field(kw_only=True)
    """The key that seals receipts and journals, `evaluator.store.seal.load_key(KOPT_HOME)`; None if it has none."""
    began_sealed: bool = field(default=False, kw_only=True)
    """Whether this KOPT_HOME began the run with a sealed journal (`loop.journal.seeds.sealed`)."""
    last_commit: str = field(default="", kw_only=True)
    """The last commit of the run's repository, as this KOPT_HOME remembers it; empty if it does not."""
    _read: dict[str, bytes | None] = field(default_factory=dict, repr=False)
    _profiles: dict[int, Profile | None] = field(default_factory=dict, repr=False)

    # --- files -------------------------------------------------------------------------------------------------------

    def bytes_of(self, path: str) -> bytes | None:
        """A file below the run's folder; None if it is missing, not a regular file, larger than kopt writes any, or
        reached through a link: that leads to what is no part of the run."""
        if path in self.unwritten:
            self._read[path] = self.unwritten[path]
        if path not in self._read:
            file = self.folder.root / path
            below = (file, *file.parents[: path.count("/")])
            try:
                outside = any(place.is_symlink() for place in below) or not file.is_file()
                self._read[path] = None if outside or file.stat().st_size > MAX_FILE_BYTES else file.read_bytes()
            except OSError:
                self._read[path] = None
        return self._read[path]

    def read_as(self, path: str, read: Callable[[bytes], Content]) -> Content | None:
        """What `read` makes of a file; None if it is missing, or cannot be read so: a rule of the gate says that."""
        data = self.bytes_of(path)
        try:
            return None if data is None else read(data)
        except (ValidationError, KoptError):
            return None

    def text(self, path: str) -> str | None:
        """A file as UTF-8; None if it is missing or not text."""
        data = self.bytes_of(path)
        try:
            return None if data is None else data.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def hash(self, path: str) -> str | None:
        """SHA-256 of a file; None if there is none."""
        data = self.bytes_of(path)
        return None if data is None else hashlib.sha256(data).hexdigest()

    def listed(self, folder: Path) -> list[str]:
        """Paths of all files below a folder of the run, sorted, without those of git: also of links, and of what is
        neither a file nor a folder."""
        if not folder.is_dir():
            return []
        found = (file for file in folder.rglob("*") if file.is_symlink() or not file.is_dir())
        paths = (self.folder.relative(file) for file in found)
        return sorted(path for path in paths if not path.startswith(".git/"))

    def checked(self) -> Files:
        """Every file that was read for this report, with its hash."""
        found = {path: self.hash(path) for path in sorted(self._read)}
        return {path: hash for path, hash in found.items() if hash is not None}

    def in_version(self, name: str, version: int | None = None) -> str:
        """`v3/kernel.py`"""
        return f"v{self.version if version is None else version}/{name}"

    # --- the version -------------------------------------------------------------------------------------------------

    @cached_property
    def as_handed_in(self) -> Proposal | None:
        """The proposal with its own kernel; None for version 0, and if the file cannot be read."""
        if self.handed_in is not None or self.version == 0:
            return self.handed_in
        return self.read_as(self.in_version("proposal.json"), Proposal.model_validate_json)

    @cached_property
    def proposal(self) -> Proposal | None:
        """The proposal, with the champion's text as its kernel; None for version 0, and if the file cannot be read."""
        found = self.as_handed_in
        text = found.candidates.get(self.champion) if found is not None else None
        return found if found is None or text is None else found.with_kernel(text)

    @property
    def champion(self) -> str:
        """The candidate that the version's accepted attempt stands for."""
        state = self.opened if self.stage != "proposal" else None
        return state.result.branch if state is not None and state.result is not None else MAIN

    @property
    def proposal_file(self) -> str:
        """The proposal's file, as messages name it."""
        return "proposal.json" if self.stage == "proposal" else self.in_version("proposal.json")

    @property
    def reached(self) -> int:
        """The last version whose files a text may cite: the one that is checked; at the end, the last of all."""
        return len(self.state.versions) - 1 if self.stage == "final" else self.version

    @cached_property
    def proposals(self) -> tuple[tuple[str, Proposal], ...]:
        """(file, proposal) of all proposals that are checked: at the end, those of every attempt."""
        if self.stage != "final":
            return ((self.proposal_file, self.proposal),) if self.proposal is not None else ()
        paths = [
            self.in_version(f"attempts/a{attempt.number}/proposal.json", state.number)
            for state in self.state.versions[1:]
            for attempt in state.attempts
        ]
        found = ((path, self.read_as(path, Proposal.model_validate_json)) for path in paths)
        return tuple((path, proposal) for path, proposal in found if proposal is not None)

    @property
    def opened(self) -> VersionState | None:
        """The version's state; None if it was never opened."""
        return self.state.versions[self.version] if self.version < len(self.state.versions) else None

    @property
    def parent(self) -> int | None:
        """The parent that the proposal names; None for version 0."""
        return self.proposal.parent if self.proposal is not None else None

    def kernel_name(self, version: int) -> str | None:
        """`kernel.py` or `kernel.cu`, whichever a version has."""
        return next((n for n in KERNELS.values() if self.bytes_of(self.in_version(n, version)) is not None), None)

    def kernel(self, version: int) -> str | None:
        """The text of a version's kernel."""
        name = self.kernel_name(version)
        return self.text(self.in_version(name, version)) if name else None

    @property
    def kernel_file(self) -> str:
        """The kernel's file, as messages name it."""
        if self.proposal is not None:
            name = KERNELS[self.proposal.language]
        else:
            name = self.kernel_name(self.version) or KERNELS["python"]
        return name if self.stage == "proposal" else self.in_version(name)

    @cached_property
    def change(self) -> Change | None:
        """What differs between the kernel and its parent; None if one of them is missing."""
        before = self.kernel(self.parent) if self.parent is not None else None
        if before is None or self.proposal is None or self.parent is None:
            return None
        language = next((k for k, n in KERNELS.items() if n == self.kernel_name(self.parent)), "python")
        return compare(before, self.proposal.kernel, self.proposal.language, language)

    @cached_property
    def same_machine_code(self) -> bool:
        """Whether kernel and parent are known to have the same machine code."""
        if self.proposal is None or self.parent is None:
            return False
        before, after = self.machine_note(self.parent), self.machine_note(self.version)
        return before is not None and after is not None and same_machine_code(before, after)

    def machine_note(self, version: int) -> MachineNote | None:
        """The note in the version's folder; compiled only if the kernel was not measured yet."""
        path = self.in_version("machine.json", version)
        if self.bytes_of(path) is not None:
            return self.read_as(path, MachineNote.model_validate_json)
        return self._compiled if version == self.version else None

    @cached_property
    def _compiled(self) -> MachineNote | None:
        """The machine code of a proposal that is in no file yet."""
        if self.machine is None or self.handed_in is None:
            return None
        try:
            return self.machine(self.handed_in.kernel, KERNELS[self.handed_in.language], self.handed_in.methods)
        except KoptError:
            return None  # the evaluator says that it does not compile

    # --- what kopt renders ------------------------------------------------------------------------------------------

    @cached_property
    def rendered_version(self) -> dict[str, bytes]:
        """The version's pages by name, rendered again; none if their sources are damaged: `artifact` says so."""
        try:
            return pages.version_files(self.folder, self.record, self.version)
        except KoptError:
            return {}

    @cached_property
    def rendered_end(self) -> dict[str, bytes]:
        """The reports and the run's own pages by path, rendered again as the run was when it was reported; without
        pictures. Raises `KoptError` (`artifact_damaged`)."""
        state = self.state.when_reported()
        top = pages.run_files(self.folder, self.record, state)
        return {**top, **pages.final_files(self.folder, self.record, state)}

    # --- what was measured ------------------------------------------------------------------------------------------

    def receipt(self, path: str) -> Receipt | None:
        """The receipt in a file; None if there is none that can be read."""
        return self.read_as(path, _parsed)

    @cached_property
    def receipts(self) -> dict[str, Receipt]:
        """Every receipt of the run up to this version, by its path; at the end, all."""
        paths = [
            path
            for state in self.state.versions
            if state.number <= self.reached
            for path in self.listed(self.folder.version(state.number))
            if path.rsplit("/", 1)[-1] == "receipt.json"
        ]
        paths += [path for path in self.state.files if path.startswith("final/") and path.endswith("receipt.json")]
        found = {path: self.receipt(path) for path in paths}
        return {path: receipt for path, receipt in found.items() if receipt is not None}

    @cached_property
    def externals(self) -> dict[str, ExternalReceipt]:
        """What the user's own benchmark printed of the versions up to this one, by path; at the end, of all."""
        reached = [state.number for state in self.state.versions if state.number <= self.reached]
        paths = [self.folder.relative(self.folder.external(number)) for number in reached]
        found = {path: self.read_as(path, parse_external) for path in paths if path in self.state.files}
        return {path: one for path, one in found.items() if one is not None}

    def profile(self, version: int) -> Profile | None:
        """The raw profile of a version; None if it has none that can be read."""
        if version not in self._profiles:
            path = self.in_version("profile.csv", version)
            self._profiles[version] = self.read_as(path, lambda data: read_profile(data, "profile.csv"))
        return self._profiles[version]

    def launch(self, version: int) -> Launch | None:
        """The launch of a version's profile that the diagnosis is about."""
        profile = self.profile(version)
        try:
            return profile.choose().launch if profile else None
        except UsageError:
            return None

    def diagnosis(self, version: int) -> DiagnosisNote | None:
        """The diagnosis of a version; None if it has none that can be read."""
        return self.read_as(self.in_version("diagnosis.json", version), DiagnosisNote.model_validate_json)

    @cached_property
    def searches(self) -> tuple[Search, ...]:
        """The searches of this version; lines that cannot be read are left out."""
        return self.searches_of(self.version)

    def searches_of(self, version: int) -> tuple[Search, ...]:
        """The searches of any version."""
        text = self.text(self.in_version("searches.jsonl", version)) or ""
        found: list[Search] = []
        for line in text.splitlines():
            try:
                found.append(Search.model_validate_json(line))
            except ValidationError:
                continue  # the rule `artifact` reports it
        return tuple(found)

    @cached_property
    def sealing(self) -> Sealing:
        """What the seals of the journal are worth."""
        try:
            found = journals.read(self.bytes_of(JOURNAL) or b"")
        except KoptError as error:  # the rule `journal` says where
            return Sealing(state="broken", line=0, detail=error.message)
        return Sealer(self.record.id, self.key, self.began_sealed).check(found.lines)

    # --- what it is compared with -----------------------------------------------------------------------------------

    @cached_property
    def methods(self) -> Methods:
        """The registry."""
        return read_methods(self.wikis)

    @cached_property
    def hints(self) -> Hints:
        """The directives of HINTS.md, as they were read last."""
        read = self.state.hints
        return parse_hints("\n".join(read.directives), (*self.methods.ids, "rewrite")) if read else Hints()

    def unpinned(self, wiki: str, path: str) -> str:
        """Why a page cannot be cited in this run; empty if it is as it was when the run started."""
        pinned = self.record.wikis.get(wiki)
        if pinned is None:
            return f"{wiki} is not a wiki of this run"
        known = self.wikis.all.get(wiki)
        data = known.read(path) if known else None
        if path not in pinned.pages:
            return "" if data is None else f"{wiki}/{path} was written after the run started"
        if data is not None and hashlib.sha256(data).hexdigest() != pinned.pages[path]:
            return f"{wiki}/{path} was changed after the run started"
        return ""

    def notes(self) -> Iterator[str]:
        """What the report mentions although it breaks no rule."""
        if self.proposal is None or self.change is None or self.change.same:
            return
        if self.record.discipline == "single" and len(self.change.parts) > 1:
            yield (
                f"{len(self.change.parts)} places differ from v{self.parent}: {', '.join(self.change.parts[:8])};"
                f" the declared method is {', '.join(self.proposal.methods)}: check that it has no second change"
            )
        if self.stage == "version" and self.same_machine_code:
            yield f"the machine code is the same as that of v{self.parent}: only host code differs"
