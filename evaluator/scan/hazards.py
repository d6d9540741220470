"""Hazards: what can make a measurement untrustworthy, with their severities and meanings."""

from __future__ import annotations

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
    "patched": "A function or class of torch, triton or the standard library that others rely on was replaced.",
    "hides_operations": "The candidate disables or bypasses the monitoring of library operations.",
    "scans_memory": "The candidate searched what is not its own: by the garbage collector, or processes in /proc.",
    "reads_frames": "The candidate took hold of frames of the call stack, which lead to the code that called it.",
    "instructions": "The file contains text addressed to a language model instead of a reader or compiler.",
    "hidden_text": "The file contains invisible characters: direction overrides, tags, zero-width letters.",
    # How the process ended or what it left behind.
    "exits_early": "The candidate raised SystemExit or KeyboardInterrupt in place of a result.",
    "signals_processes": "The candidate sent signals.",
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
    "special_values": "The candidate handles NaN, infinities or labels that stand for none unlike the reference.",
    "low_precision_text": "The text names TF32, 8-bit floats or casts to 16 bits.",
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
    "dynamic_code": "The candidate made code at run time, so its text does not show what it does.",
    "starts_processes": "The candidate started other programs.",
    "network": "The candidate used sockets, which lead nowhere.",
    "writes_files": "The candidate opened files for writing.",
    "loads_libraries": "The candidate loaded shared libraries itself.",
    "raw_memory": "The candidate read host memory by address.",
}
"""What each hazard means, by id."""
