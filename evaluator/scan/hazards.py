"""Hazards: what can make a measurement untrustworthy, with their severities, meanings, and a collector."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import StrEnum

from kbs.common.json_model import Record


class Severity(StrEnum):
    """What a hazard does to the verdict."""

    REJECT = "reject"
    """The verdict is `cheating`."""
    NOTE = "note"
    """It is reported and changes nothing."""


class Hazard(Record):
    """One thing that was found in a candidate's text or behaviour."""

    id: str
    """A key of HAZARDS."""
    severity: Severity
    """Whether it is held against the candidate or only reported."""
    evidence: str
    """What was seen, in words; a name from the text stands first where there is one."""
    line: int = 0
    """Line of the candidate's file, from 1; 0 where it was not found in the text."""


HAZARDS: dict[str, str] = {
    # What was done to the evaluator or to the libraries that it measures with.
    "patched": "A function or class of torch, triton, numpy or the standard library was replaced, or set to be.",
    "hides_operations": "The candidate disables or bypasses the monitoring of library operations.",
    "imports_evaluator": "The candidate imports or opens a module of the evaluator, or the reference.",
    "scans_memory": "The candidate reads memory that is not its own: the garbage collector, /proc, ptrace.",
    "reads_frames": "The candidate reads or traces the call stack of the code that called it.",
    "reads_modules": "The candidate reaches into modules that it did not import: sys.modules, __main__, __globals__.",
    "detects_benchmark": "The candidate checks whether it is being measured: arguments, environment, tracers.",
    "replays_rng": "The candidate reads the state or seed of the random numbers from which inputs are drawn.",
    "instructions": "The file contains text addressed to a language model instead of a reader or compiler.",
    "hidden_text": "The file contains invisible characters: direction overrides, tags, zero-width letters.",
    # How the process ended or what it left behind.
    "exits_early": "The candidate can end its process, or run code when it ends, before its result is complete.",
    "signals_processes": "The candidate sends signals, or handles them.",
    "threads_left": "Threads of the candidate were still running after its call had returned.",
    "processes_left": "Processes that the candidate started were still running after its call had returned.",
    # What was computed, and with what.
    "library_call": "The candidate calls the library that it should replace.",
    "input_changed": "The candidate changed an input that the reference leaves alone.",
    "output_type": "A returned output is not exactly a torch.Tensor.",
    "output_aliases_input": "A returned output shares memory with an input where the reference's does not.",
    "guard_overwritten": "The candidate wrote outside an output buffer.",
    "output_unwritten": "The candidate did not write some elements of an output.",
    "nondeterministic": "Repeated calls with the same inputs gave results that are not bitwise equal.",
    "result_reused": "The memory of a returned result was written again in the next call.",
    "weights_cached": "The candidate's results do not follow weights that change between calls.",
    "at_this_value_only": "The candidate raises where an argument that never varied has another value.",
    "at_this_size_only": "The candidate raises, or ends, at other sizes than those that were given.",
    "special_values": "The candidate handles NaN or infinities otherwise than the reference, which passes them on.",
    "low_precision_text": "The text names TF32, 8-bit floats or casts to 16 bits.",
    "tensor_subclass": "The candidate defines its own tensor subclass, which can delay work until it is read.",
    "persisting_l2": "The candidate reserves part of the L2 cache beyond its call.",
    # What was done to the clock.
    "outside_window": "The candidate ran work on the device outside the timed window.",
    "slower_than_claimed": "Many calls took longer by kopt's own clock than the candidate's process reported.",
    "impossible_time": "The time is shorter than moving the problem's bytes takes at the cited peak bandwidth.",
    "slows_baseline": "The baseline was slower next to the candidate than alone.",
    "device_time_unconfirmed": "No independent clock confirms the time that the candidate's process reported.",
    "host_bound": "In every call the host was slower than the device or waited for it.",
    # What limits the measurement.
    "noncontiguous_inputs": "The candidate was not tested with non-contiguous inputs, or fails on them.",
    "fixed_inputs": "The inputs cannot be redrawn, so a result could be cached instead of computed.",
    # What a reader may want to look at.
    "dynamic_code": "The candidate generates code or names at run time, so its text does not show what it does.",
    "starts_processes": "The candidate starts other programs.",
    "uses_threads": "The candidate starts threads.",
    "network": "The candidate uses the network.",
    "writes_files": "The candidate writes files.",
    "file_descriptors": "The candidate uses file descriptors by number.",
    "loads_libraries": "The candidate loads shared libraries itself.",
    "raw_memory": "The candidate reads or writes host memory by address.",
}
"""What each hazard means, by id."""


class Found:
    """One hazard of a kind and name, where it stands first."""

    def __init__(self, lines: Sequence[str] = ()) -> None:
        self._lines = lines
        self._hazards: dict[tuple[str, str, Severity], Hazard] = {}

    def add(self, id_: str, severity: Severity, what: str, line: int) -> None:
        """`what` was found in `line` (from 1), which is quoted where the lines are known."""
        quoted = self._lines[line - 1].strip()[:100] if 0 < line <= len(self._lines) else ""
        evidence = f"{what}: {quoted}" if quoted else what
        hazard = Hazard(id=id_, severity=severity, evidence=evidence, line=line)
        before = self._hazards.setdefault((id_, what, severity), hazard)
        if line < before.line:
            self._hazards[id_, what, severity] = hazard

    def at(self, node: ast.AST, id_: str, severity: Severity, what: str) -> None:
        """The same, where a node of a syntax tree stands."""
        self.add(id_, severity, what, getattr(node, "lineno", 0))

    @property
    def hazards(self) -> list[Hazard]:
        """What was found, in the order of lines."""
        return sorted(self._hazards.values(), key=lambda hazard: hazard.line)
