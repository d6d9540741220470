"""Chooses the family that a version proposes, and its configurations: measured where there is a GPU, else by the model.

What is measured is a signal, which ranks and accepts nothing. Every family gets a first look, the cheapest by its model
first; then the best of them gets more configurations, until a turn brings nothing or the seconds are used up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from loop.search.study import Candidate, Outcome, Study, digest, ordered, read_config
from loop.search.variant import Config, Variant

Measure = Callable[[str], Outcome]
"""The text of a kernel → what a quick measurement says of it, within a limit of time."""
LOOK = 2
"""Configurations of each family that the first look takes."""
TURN = 4
"""Configurations of the best family that are measured at a time."""
_IDLE = 2
"""After so many turns that brought nothing, the family is left."""
_GAIN = 0.99
"""A turn brought something if the best time fell below this part of the one before."""


@dataclass
class Families:
    """The families that may be proposed now, and what is known of them."""

    study: Study
    generated: Sequence[Variant]
    """Whole kernels for the problem: what is known of them holds whatever the parent is."""
    rewritten: Sequence[Variant]
    """Changes of the parent."""
    parent: str
    """The parent's text."""
    past: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Family → sentences of the log that name a configuration which did well."""
    tried: Collection[str] = ()
    """Families that this run proposed before: they come last, wherever time does not say otherwise."""
    told: Callable[[str], None] = lambda _: None
    """Called with a line for each measurement."""

    def key(self, variant: Variant) -> str:
        """The name of the family's study."""
        return variant.name if variant in self.generated else f"{variant.name} {digest(self.parent)[:12]}"

    def _past(self, variant: Variant) -> list[Config]:
        read = (read_config(text, variant) for text in self.past.get(variant.name, ()))
        return [config for config in read if config is not None]

    @property
    def order(self) -> list[Variant]:
        """Those that can work: untried ones first, of these what did well in the past, then by their cheapest cost."""
        found = []
        for place, variant in enumerate((*self.generated, *self.rewritten)):
            configs = ordered(variant)
            if configs:
                rank = (variant.name in self.tried, not self._past(variant), variant.cost(configs[0]), place)
                found.append((rank, variant))
        return [variant for _, variant in sorted(found, key=lambda one: one[0])]

    def measured(self, measure: Measure, seconds: float, without: Collection[str], parent_us: float | None) -> None:
        """Measure configurations for so many seconds. `without`: hashes of kernels that are not to be proposed."""
        until = self.study.seconds() + seconds
        best = parent_us or float("inf")
        for variant in self.order:
            if self.study.trials(self.key(variant)) == 0:
                if self.study.seconds() >= until:
                    return
                self._turn(variant, LOOK, measure, until)
        idle = dict[str, int]()
        while self.study.seconds() < until:
            leader = next(
                (one for one in self._ranked(without) if idle.get(one.variant.name, 0) < _IDLE), None
            )  # fmt: skip
            if leader is None:
                return
            before = self._best(leader.variant)
            if not self._turn(leader.variant, TURN, measure, until):
                idle[leader.variant.name] = _IDLE
            after = self._best(leader.variant)
            if after > min(before, best) * _GAIN:
                idle[leader.variant.name] = idle.get(leader.variant.name, 0) + 1

    def _turn(self, variant: Variant, count: int, measure: Measure, until: float) -> bool:
        """Measure some configurations of a family; False where it has none left."""
        key = self.key(variant)
        asked = self.study.ask(variant, key, count, self._past(variant))
        for one in asked:
            if self.study.seconds() >= until:
                self.study.let_go(key, one)
                continue
            outcome = measure(one.text)
            self.study.tell(key, one, outcome)
            shown = outcome.why or f"{outcome.us:.4g} µs"
            self.told(f"{variant.name}, {one.shown}: {shown}")
        return bool(asked)

    def _results(self, variant: Variant, without: Collection[str]) -> Iterable[tuple[float, Candidate]]:
        return (one for one in self.study.results(self.key(variant), variant) if one[1].hash not in without)

    def _best(self, variant: Variant) -> float:
        return next((us for us, _ in self._results(variant, ())), float("inf"))

    def _ranked(self, without: Collection[str]) -> list[Candidate]:
        """The best configuration of each family, the fastest first."""
        firsts = [next(iter(self._results(one, without)), None) for one in (*self.generated, *self.rewritten)]
        return [one for _, one in sorted((one for one in firsts if one is not None), key=lambda one: one[0])]

    def chosen(self, count: int, without: Collection[str], *, timed: bool) -> list[Candidate]:
        """At most so many configurations of one family, the most promising first; none where all were proposed.

        `timed`: by what was measured. Where nothing is timed, the order of the families and their models decide.
        """
        if timed:
            for leader in self._ranked(without):
                return [one for _, one in self._results(leader.variant, without)][:count]
            return []
        for variant in self.order:
            found: list[Candidate] = []
            for config in ordered(variant, self._past(variant)):
                try:
                    text = variant.render(config)
                except ValueError:  # no kernel can be made of it
                    continue
                if digest(text) not in without and all(text != one.text for one in found):
                    found.append(Candidate(variant, config, text, -1))
                if len(found) == count:
                    break
            if found:
                return found
        return []
