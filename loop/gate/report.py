"""Runs the rules of the gate and reports what they found."""

from __future__ import annotations

from collections.abc import Iterator

from kbs.common.json_model import FrozenModel
from kbs.common.visible_text import visible
from loop.gate.context import STAGES, GateContext, Stage
from loop.gate.rule import Broken, Rule
from loop.gate.rules import RULES, RULES_BY_ID
from loop.journal.events import Files
from loop.journal.seals import SealState

SHOWN = 12
"""Broken places that are printed per rule; the JSON has all of them."""


class RuleResult(FrozenModel):
    """The result of one rule."""

    rule: str
    title: str
    lapsed: str
    """Why it was not checked; empty if it was."""
    broken: tuple[Broken, ...]


class GateReport(FrozenModel):
    """The report of the gate."""

    version: int
    stage: Stage
    passed: bool
    results: tuple[RuleResult, ...]
    """One result for each rule of the stage, in the order of the rules."""
    notes: tuple[str, ...]
    """Remarks that break no rule."""
    checked: Files
    """Every file that was read, with its hash."""
    seal: SealState = "none"
    """What the seals of the journal are worth."""

    @property
    def rules(self) -> tuple[str, ...]:
        """Ids of the broken rules."""
        return tuple(result.rule for result in self.results if result.broken)

    @property
    def lapsed(self) -> tuple[str, ...]:
        """Ids of the rules that were not checked."""
        return tuple(result.rule for result in self.results if result.lapsed)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Every place in one line: `rule: file:line: what is wrong. how to fix it`."""
        return tuple(
            visible(f"{result.rule}: {place(one)}: {one.message}. {one.fix}")
            for result in self.results
            for one in result.broken
        )

    def lines(self, *, explain: bool = False) -> Iterator[str]:
        """The report as text; with `explain`, each broken rule comes with its explanation."""
        outcome = "passed" if self.passed else f"{len(self.rules)} rules are broken"
        yield f"gate v{self.version} ({self.stage}): {outcome}"
        for result in self.results:
            if not result.broken:
                continue
            yield f"  {result.rule}: {result.title}"
            if explain:
                yield f"    {RULES_BY_ID[result.rule].explain}"
            for one in result.broken[:SHOWN]:
                yield visible(f"    {place(one)}: {one.message}")
                yield visible(f"      {one.fix}")
            if len(result.broken) > SHOWN:
                yield f"    and {len(result.broken) - SHOWN} more places"
        for result in self.results:
            if result.lapsed:
                yield f"  not checked: {result.rule}: {result.lapsed}"
        for note in self.notes:
            yield visible(f"  note: {note}")
        yield f"  seal of the journal: {self.seal}"


def place(broken: Broken) -> str:
    """`v3/kernel.py:12`"""
    return f"{broken.file}:{broken.line}" if broken.line else broken.file


def rules_of(stage: Stage) -> tuple[Rule, ...]:
    """The rules of a stage; a version must keep those of a proposal too."""
    if stage == "final":
        return tuple(rule for rule in RULES if rule.stage == "final" or rule.always)
    reached = STAGES[: STAGES.index(stage) + 1]
    return tuple(rule for rule in RULES if rule.stage in reached)


def run_gate(context: GateContext) -> GateReport:
    """Check every rule of the context's stage."""
    results = []
    for rule in rules_of(context.stage):
        lapsed = rule.lapses(context)
        found = () if lapsed else tuple(rule.check(context))
        results.append(RuleResult(rule=rule.id, title=rule.title, lapsed=lapsed, broken=found))
    return GateReport(
        version=context.version,
        stage=context.stage,
        passed=not any(result.broken for result in results),
        results=tuple(results),
        notes=tuple(context.notes()),
        checked=context.checked(),
        seal=context.sealing.state,
    )
