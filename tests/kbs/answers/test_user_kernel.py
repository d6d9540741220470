"""The check of claims about the user's own kernel: a figure, a sum or a threshold that is wrong falls."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from kbs.answers.model import Claim, ClaimKind, Step
from kbs.answers.user_kernel import why_not_user_kernel
from kbs.answers.verify import why_unsound
from kbs.evidence.arithmetic import quantities
from kbs.evidence.citation import Citation
from kbs.evidence.file_evidence import FileEvidence, NoEvidence
from kbs.evidence.table_rows import ThresholdRow
from kbs.evidence.vocabulary import vocabulary
from kbs.hardware.thresholds import Judgement, Reading, judge

TIME = FileEvidence("profile", "r.csv", "ab" * 32, "gpu__time_duration.sum[1]", "gpu__time_duration.sum", "128.5 us",
               Decimal("128.5"), "us", "gpu__time_duration.sum")  # fmt: skip
READ = FileEvidence("profile", "r.csv", "ab" * 32, "dram__bytes_read.sum[1]", "dram__bytes_read.sum", "268.4 Mbyte",
               Decimal(268_400_000), "B", "dram__bytes_read.sum")  # fmt: skip
ROW = FileEvidence("count", "ref.py", "cd" * 32, "read input 0", "read input 0", "4,096 × 16 × 4 B")


class Files:
    """Files that state what the evidence say."""

    def __init__(self, *known: FileEvidence) -> None:
        self.known = known

    def why_not(self, item: FileEvidence) -> str:
        """Where it is not one of them."""
        return "" if item in self.known else f"{item.name} is not there"


def step(shown: str, value: str) -> Step:
    """A line of arithmetic."""
    return Step("rate", shown.partition(" = ")[0], Decimal(value), "B/s", shown)


def claim(
    text: str, *evidence: FileEvidence, steps: tuple[Step, ...] = (), judgements: tuple[Judgement, ...] = ()
) -> Claim:
    """A claim about a profile."""
    return Claim(text, ClaimKind.MEASURED, (), steps, evidence=evidence, judgements=judgements)


GOOD = claim("It reads 2,089 GB/s.", TIME, READ,
             steps=(step("268400000 B / 128.5 us = 2,089 GB/s", "2088715953307"),))  # fmt: skip


def test_a_sound_claim_stands() -> None:
    assert why_not_user_kernel(GOOD, Files(TIME, READ)) == ""


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (replace(GOOD, evidence=()), "names nothing"),
        (replace(GOOD, evidence=(TIME, replace(READ, states="268.5 Mbyte"))), "is not there"),
        (replace(GOOD, derivation=(step("268400000 B / 128.5 us = 2,189 GB/s", "2089e9"),)), "arithmetic is wrong"),
        (replace(GOOD, derivation=(step("278400000 B / 128.5 us = 2,167 GB/s", "2167e9"),)), "nothing states"),
        (replace(GOOD, derivation=(step("268400000 B / 128.7 us = 2,085 GB/s", "2085e9"),)), "nothing states"),
        (replace(GOOD, text="It reads 2,090 GB/s."), "2,090 stands neither"),
    ],
)
def test_what_is_wrong_falls(changed: Claim, why: str) -> None:
    assert why in why_unsound(changed, None, vocabulary(), Files(TIME, READ))  # type: ignore[arg-type]  # nothing of a wiki is cited


def test_without_files_nothing_of_a_kernel_is_said() -> None:
    assert "no file was given" in why_not_user_kernel(GOOD, NoEvidence())


def test_what_a_step_came_to_may_be_used_by_the_next() -> None:
    steps = (
        step("4,096 × 16 × 4 B = 262,144 B", "262144"),
        step("262,144 B / 128.5 us = 2.040 GB/s", "2040031128"),
        step("2040031128 B/s / 0.9 = 2.267 GB/s", "2266701253"),
    )
    assert why_not_user_kernel(claim("So.", ROW, TIME, steps=steps), Files(ROW, TIME)) == ""
    assert "nothing states" in why_not_user_kernel(claim("So.", ROW, TIME, steps=steps[1:]), Files(ROW, TIME))


def test_a_threshold_is_held_against_the_figures_again() -> None:
    citation = Citation("w", "p.md", 1, 1, "", "", "| launch-overhead | gpu__time_duration.sum | < | 200 | us |")
    row = ThresholdRow("launch-overhead", "gpu__time_duration.sum", "<", "200", "us", "src", citation)
    made = judge(row, lambda _: Reading("gpu__time_duration.sum", Decimal("128.5"), "us", "128.5 us"))
    assert isinstance(made, Judgement)
    assert why_not_user_kernel(claim("It is short.", TIME, judgements=(made,)), Files(TIME)) == ""
    for wrong in (replace(made, holds=False), replace(made, value=Decimal(1))):
        assert "do not bear this out" in why_not_user_kernel(claim("x", TIME, judgements=(wrong,)), Files(TIME))
    assert "do not bear this out" in why_not_user_kernel(claim("x", READ, judgements=(made,)), Files(READ))


def test_numbers_of_a_text_with_their_units() -> None:
    found = [value for value, _ in quantities("268.5 MB / 128.5 us, 4,096 × 2 and sm_90a")]
    assert found == [Decimal("268.5e6"), Decimal("128.5e-6"), Decimal(4096), Decimal(2)]
    assert quantities("0.90")[0][1] == Decimal("0.005")
