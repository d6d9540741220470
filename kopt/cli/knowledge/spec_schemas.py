"""JSON of `kopt spec`: hardware values and the GPUs that have a page."""

from __future__ import annotations

from kbs.evidence.spec import Spec
from kbs.evidence.units import parse_number
from kbs.evidence.vocabulary import Vocabulary
from kopt.cli.data import Data
from kopt.cli.knowledge.citation_schemas import CitationData


class SourceData(Data):
    """Where a page has a value from."""

    id: str
    title: str
    url: str
    kind: str
    accessed: str
    place: str


class SpecRowData(Data):
    """A hardware value."""

    gpu: str
    metric: str
    value: float | int | str | None
    """None where the vendor publishes no value."""
    unit: str
    qualifier: str
    confidence: str
    citation: CitationData
    citation_line: str
    source: SourceData
    recommended: bool
    """False for what another source prints and the page does not recommend."""

    @classmethod
    def of(cls, spec: Spec, vocabulary: Vocabulary) -> SpecRowData:
        """From the internal form."""
        number = None if vocabulary.metrics[spec.metric].text else parse_number(spec.value)
        value: float | int | str | None = spec.value if spec.published else None
        if number is not None:
            value = int(number.value) if number.value == number.value.to_integral_value() else float(number.value)
        return cls(
            gpu=spec.product,
            metric=spec.metric,
            value=value,
            unit=spec.unit,
            qualifier=spec.qualifier,
            confidence=spec.confidence,
            citation=CitationData.of(spec.citation),
            citation_line=spec.citation_line(vocabulary),
            source=SourceData(**spec.source.__dict__),
            recommended=spec.recommended,
        )


class ProductData(Data):
    """A GPU that the wiki has a page about."""

    gpu: str
    name: str
    aliases: list[str]
    families: list[str]
    page: str


class SpecData(Data):
    """`kopt spec`"""

    specs: list[SpecRowData]
    gpus: list[ProductData]
    """With `--list`."""
    gaps: list[str]
