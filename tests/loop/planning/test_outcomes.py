"""What came of a method."""

from __future__ import annotations

import pytest

from evaluator.receipt.verdict import Verdict
from loop.planning.decisions import Interval
from loop.planning.outcomes import MethodState, not_accepted, outcome
from loop.tools import MachineNote

FASTER, SAME = (1.2, 1.15, 1.25), (1.0, 0.99, 1.01)


def note(said: str) -> MachineNote:
    return MachineNote(target="sm_90a", functions={}, methods={"tensor_core": said}, opcodes={}, why="")


@pytest.mark.parametrize(
    ("after", "before", "ratio", "found"),
    [
        ("present 8 (HGMMA 8)", "absent", FASTER, "effective"),
        ("present 8 (HGMMA 8)", "absent", SAME, "ineffective"),
        ("present 8 (HGMMA 8)", "absent", (1.02, 1.005, 1.04), "ineffective"),
        ("present 8 (HGMMA 8)", "absent", None, "unverifiable"),
        ("present 8 (HGMMA 8)", "present 4 (HGMMA 4)", FASTER, "effective"),
        ("present 8 (HGMMA 8)", "present 8 (HGMMA 8)", FASTER, "unverifiable"),
        ("present 8 (HGMMA 8)", "unverifiable: it has no kernel of its own", FASTER, "effective"),
        ("absent", "absent", FASTER, "implementation_failed"),
        ("unverifiable: no signature for sm_90 is known", "absent", FASTER, "unverifiable"),
    ],
)
def test_a_method_ends_in_one_of_four_states(
    after: str, before: str, ratio: Interval | None, found: MethodState
) -> None:
    made = outcome("tensor_core", note(after), note(before), ratio, 0.01)
    assert (made.found, made.signature, made.ratio) == (found, after, ratio)
    assert made.why


def test_without_machine_code_nothing_is_passed_off_as_found() -> None:
    assert outcome("tensor_core", None, None, FASTER, 0.01).found == "unverifiable"
    bare = MachineNote(target="", functions={}, why="no GPU is named")
    made = outcome("tensor_core", bare, bare, FASTER, 0.01)
    assert (made.found, made.why) == ("unverifiable", "no GPU is named")


def test_a_method_without_a_right_kernel_failed_unless_nothing_is_said_of_it() -> None:
    made = not_accepted("tensor_core", Verdict.INCORRECT, "y is wrong")
    assert made.found == "implementation_failed"
    assert "y is wrong" in made.why
    assert not_accepted("tensor_core", Verdict.NOT_SUPPORTED_HERE, "").found == "unverifiable"
