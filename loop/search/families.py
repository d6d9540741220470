"""Chooses the family that a version proposes, and its configurations: measured where there is a GPU, else by the model.

What is measured is a signal, which ranks and accepts nothing. Every family gets a first look, the cheapest by its model
first; then the best of them gets more configurations, until a turn brings nothing or the seconds are used up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from loop.search.study import Candidate, Outcome, Study, digest, ordered, read_config
from loop.search.variant import Config, Variant

Measure = Callable[[Iterable[str]], Iterator[tuple[int, Outcome]]]
"""The texts of kernels → (place, what a quick measurement says), in the order in which they are done.

A text is taken when a device is free for it, and not before: whoever gives the texts can stop at any of them.
"""
LOOK = 2
"""Configurations of each family that the first look takes."""
TURN = 4
"""Configurations of the best family that are measured at a time."""
_IDLE = 2
"""After so many turns that brought nothing, the family is left."""
_AHEAD = 1.1
"""How much faster than the parent a whole kernel is where the parent's rewrites are left for later."""
_GAIN = 0.99
"""A turn brought something if the best time fell below this part of the one before."""


def one_by_one(measure: Callable[[str], Outcome]) -> Measure:
    """Measure on one device."""
    return lambda texts: ((place, measure(text)) for place, text in enumerate(texts))


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
    width: int = 1
    """Kernels that are measured at a time."""

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
        fresh = [variant for variant in self.order if self.study.trials(self.key(variant)) == 0]
        fresh.sort(key=lambda variant: variant not in self.generated)
        rest = (
            variant
            for variant in fresh
            if self.study.seconds() < until and (variant in self.generated or not self._overtaken(parent_us))
        )
        self._look(((variant, one) for variant in rest for one in self._asked(variant, LOOK)), measure, until)
        idle = dict[str, int]()
        while self.study.seconds() < until:
            leader = next(
                (one for one in self._ranked(without) if idle.get(one.variant.name, 0) < _IDLE), None
            )  # fmt: skip
            if leader is None:
                return
            before = self._best(leader.variant)
            asked = self._asked(leader.variant, max(TURN, 2 * self.width))
            self._look(((leader.variant, one) for one in asked), measure, until)
            if not asked:
                idle[leader.variant.name] = _IDLE
            after = self._best(leader.variant)
            if after > min(before, best) * _GAIN:
                idle[leader.variant.name] = idle.get(leader.variant.name, 0) + 1

    def _overtaken(self, parent_us: float | None) -> bool:
        """Whether a whole kernel is so much faster than the parent that changes of the parent are not worth a look:
        they come again once that kernel is the parent."""
        return parent_us is not None and any(self._best(one) < parent_us / _AHEAD for one in self.generated)

    def _asked(self, variant: Variant, count: int) -> list[Candidate]:
        return self.study.ask(variant, self.key(variant), count, self._past(variant))

    def _look(self, asked: Iterable[tuple[Variant, Candidate]], measure: Measure, until: float) -> None:
        """Measure configurations as long as there are seconds left; the others may be asked for again."""
        given = list[tuple[Variant, Candidate]]()

        def texts() -> Iterator[str]:
            for variant, one in asked:
                if self.study.seconds() >= until:
                    self.study.let_go(self.key(variant), one)
                    continue
                given.append((variant, one))
                yield one.text

        for place, outcome in measure(texts()):
            variant, one = given[place]
            self.study.tell(self.key(variant), one, outcome)
            shown = outcome.why or f"{outcome.us:.4g} µs"
            self.told(f"{variant.name}, {one.shown}: {shown}")

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
