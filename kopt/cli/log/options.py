"""Options that choose experiments, and how their words are read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kbs.experience.filters import Filter

OpOption = Annotated[str, typer.Option("--op", help="Operation, by a name of the vocabulary.")]
KernelOption = Annotated[str, typer.Option("--kernel", help="Name of the kernel, as it was recorded.")]
BackendOption = Annotated[str, typer.Option("--backend", help="Language: triton, cuda.")]
ChipOption = Annotated[
    str, typer.Option("--chip", "--gpu", help="GPU: a product, or a family for all of its products.")
]
BottleneckOption = Annotated[str, typer.Option("--bottleneck", help="Class before the change, such as memory.")]
DtypeOption = Annotated[str, typer.Option("--dtype", help="Element type, such as fp32 or bf16.")]
MethodOption = Annotated[str, typer.Option("--method", help="Method that was applied.")]
OutcomeOption = Annotated[
    list[str] | None,
    typer.Option("--outcome", help="success, neutral, regression, incorrect, rejected, failed. May be repeated."),
]
ProvenanceOption = Annotated[str, typer.Option("--provenance", help="measured or reported.")]
RunOption = Annotated[str, typer.Option("--run", help="Id of a run.")]
SinceOption = Annotated[str, typer.Option("--since", help="From then on, in UTC: 2026, 2026-11, 2026-11-21 …")]
UntilOption = Annotated[str, typer.Option("--until", help="Up to the end of it.")]
MaskedOption = Annotated[bool, typer.Option("--masked", help="Only masked ones.")]
AllOption = Annotated[bool, typer.Option("--all", help="Masked ones too.")]
_TIME = re.compile(r"[0-9]{4}(?:-[0-9]{2}(?:-[0-9]{2}(?:T[0-9]{2}(?::[0-9]{2}(?::[0-9]{2}Z?)?)?)?)?)?")


@dataclass(frozen=True)
class FilterWords:
    """Which experiments are meant: options, each named as its field."""

    op: OpOption = ""
    kernel: KernelOption = ""
    backend: BackendOption = ""
    chip: ChipOption = ""
    bottleneck: BottleneckOption = ""
    dtype: DtypeOption = ""
    method: MethodOption = ""
    outcome: OutcomeOption = None
    provenance: ProvenanceOption = ""
    run: RunOption = ""
    since: SinceOption = ""
    until: UntilOption = ""

    def read(self, masked: bool | None = False) -> Filter:
        """The filter in names of the vocabulary. `masked`: only those that are, only those that are not, or None for
        both. Raises `UsageError` for a word that is no name where only names fit."""
        from kbs.evidence.vocabulary import vocabulary
        from kbs.experience.experiment import (
            Outcome,
            Provenance,
            backend_name,
            dtype_name,
            gpu_name,
            method_name,
            op_name,
        )
        from kbs.experience.filters import Filter

        if self.op and not op_name(self.op):
            raise _wrong("op", self.op, vocabulary().operations)
        for name, value in (("since", self.since), ("until", self.until)):
            if value and not _is_time(value):
                raise _wrong(name, value, ("2026", "2026-11", "2026-11-21", "2026-11-21T14:25"))
        return Filter(
            op=op_name(self.op) if self.op else "",
            kernel=self.kernel,
            backend=backend_name(self.backend),
            gpu=gpu_name(self.chip),
            bottleneck=read_bottleneck(self.bottleneck),
            dtype=dtype_name(self.dtype),
            method=method_name(self.method),
            outcomes=tuple(_one_of("outcome", one, Outcome) for one in self.outcome or ()),
            provenance=_one_of("provenance", self.provenance, Provenance) if self.provenance else None,
            run=self.run,
            since=self.since,
            until=self.until,
            masked=masked,
        )


def _is_time(words: str) -> bool:
    """Whether it is a time, or the beginning of one: a day that no calendar has would silently let nothing through."""
    if not _TIME.fullmatch(words):
        return False
    begun = words.removesuffix("Z")
    try:
        datetime.fromisoformat(begun + "0001-01-01T00:00:00"[len(begun) :])
    except ValueError:
        return False
    return True


def read_bottleneck(words: str) -> str:
    """Id of a bottleneck class. Raises `UsageError` (`bottleneck_unknown`)."""
    from kbs.evidence.vocabulary import vocabulary
    from kbs.experience.experiment import bottleneck_name

    try:
        return bottleneck_name(words)
    except ValueError:
        raise _wrong("bottleneck", words, vocabulary().bottlenecks) from None


def _one_of(option: str, word: str, kind: Any) -> Any:
    try:
        return kind(word.strip().lower())
    except ValueError:
        raise _wrong(option, word, [one.value for one in kind]) from None


def _wrong(option: str, word: str, known: Any) -> Exception:
    from kbs.common.errors import UsageError

    return UsageError(
        f"--{option} {word[:60]!r} is not known", code=f"{option}_unknown", hint=f"It is one of: {', '.join(known)}."
    )
