"""What an evaluation concludes: whether a candidate is to be believed, and whether it is faster."""

from __future__ import annotations

from enum import StrEnum


class Verdict(StrEnum):
    """Whether the candidate is correct and the measurement honest. Every verdict is a result, none an error."""

    ACCEPTED = "accepted"
    """Correct, and nothing speaks against the measurement."""
    INCORRECT = "incorrect"
    """Some output is missing, malformed or outside its bound."""
    CHEATING = "cheating"
    """It did what no honest kernel does: at least one hazard of severity `reject`."""
    COMPILE_ERROR = "compile_error"
    """The compiler refused the source, or it could not be loaded."""
    CRASHED = "crashed"
    """Its process ended, or raised, before it had given a complete result."""
    TIMEOUT = "timeout"
    """It gave no complete result within the time limit."""
    NOT_SUPPORTED_HERE = "not_supported_here"
    """Triton's interpreter, which stands in for a GPU, cannot run it; nothing is said of the candidate."""
    TASK_REFUSED = "task_refused"
    """The problem itself can be passed by zeros, a constant or the copied input, so that passing it says nothing."""


class Improvement(StrEnum):
    """How the candidate's time compares with the baseline's; told apart from the verdict."""

    FASTER = "faster"
    """The lower end of the interval of the ratio is above 1 % and above the noise floor."""
    SAME = "same"
    """Neither faster nor slower than noise allows to say."""
    SLOWER = "slower"
    """The upper end of the interval is below the baseline by more than the noise floor."""
    UNSTABLE = "unstable"
    """Noise is too large to say, or the device time or the freshness of the inputs could not be confirmed."""
    NOT_COMPARED = "not_compared"
    """Its time was taken, and there is no baseline to compare with: plan `signal`, or no reference."""
    NOT_TIMED = "not_timed"
    """No time was taken: on the CPU, or because the candidate was not accepted."""
