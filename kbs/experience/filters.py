"""The filters that list, search, stats and export share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import Outcome, Provenance


@dataclass(frozen=True)
class Filter:
    """All that is given must hold; names are those that records have (`kbs.experience.experiment` brings words to
    them)."""

    op: str = ""
    kernel: str = ""
    backend: str = ""
    gpu: str = ""
    """A product, or a family, which means all of its products."""
    gpus: tuple[str, ...] = ()
    """Any of them, as they are; none named means all."""
    bottleneck: str = ""
    """The class before the change."""
    dtype: str = ""
    method: str = ""
    outcomes: tuple[Outcome, ...] = ()
    """Any of them; none named means all."""
    provenance: Provenance | None = None
    run: str = ""
    since: str = ""
    """A time in UTC, or its beginning such as 2026-11: experiments from then on."""
    until: str = ""
    """Experiments up to and within it."""
    shipped: bool | None = None
    """True: only records that ship with kopt; False: none of them."""
    masked: bool | None = False
    """None: masked ones too; True: only those."""

    def where(self) -> tuple[str, list[object]]:
        """The condition on the index's table `entries`, and its values."""
        terms: list[str] = ["1"]
        values: list[object] = []

        def among(column: str, chosen: Sequence[object]) -> None:
            terms.append(f"{column} IN ({', '.join('?' * len(chosen))})")
            values.extend(chosen)

        for column in ("op", "kernel", "backend", "bottleneck", "dtype", "run"):
            if getattr(self, column):
                among(column, [getattr(self, column)])
        if self.gpu:
            among("gpu", [self.gpu, *vocabulary().family_members(self.gpu)])
        if self.gpus:
            among("gpu", self.gpus)
        if self.outcomes:
            among("outcome", [one.value for one in self.outcomes])
        if self.provenance:
            among("provenance", [self.provenance.value])
        if self.method:
            terms.append("EXISTS (SELECT 1 FROM json_each(methods) AS m WHERE m.value = ?)")
            values.append(self.method)
        if self.since:
            terms.append("time >= ?")
            values.append(self.since)
        if self.until:
            terms.append("time < ?")
            values.append(f"{self.until}\x7f")
        if self.shipped is not None:
            among("shipped", [int(self.shipped)])
        if self.masked is not None:
            among("masked", [int(self.masked)])
        return " AND ".join(terms), values
