"""Data of `kopt cite`, `kopt show` and `kopt spec`: checked citations, cited lines, and hardware values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from pydantic import Field

from kbs.common.json_model import JsonModel
from kbs.evidence.checking import CheckedCitation, Status
from kbs.evidence.citation import Citation
from kbs.evidence.spec import Source, Spec
from kbs.evidence.units import parse_number
from kbs.evidence.vocabulary import Vocabulary

if TYPE_CHECKING:
    from kopt.services.knowledge.citations import PageLines
    from kopt.services.knowledge.specs import Documented, FoundSpecs


class CiteData(JsonModel):
    """`kopt cite`"""

    citations: list[CheckedCitation]
    ok: int
    failed: int

    @classmethod
    def of(cls, checked: list[CheckedCitation]) -> Self:
        """With how many hold."""
        failed = sum(one.status is not Status.OK for one in checked)
        return cls(citations=checked, ok=len(checked) - failed, failed=failed)


class ShowData(JsonModel):
    """`kopt show` and `kopt wiki show`; of `log/<id>`, `kopt show` has the data of `kopt log show`"""

    reference: str
    page: str
    title: str
    lines: list[tuple[int, str]]
    """Line numbers and lines; for `kopt show` the cited ones."""
    hash: str
    revision: str

    @classmethod
    def of(cls, found: PageLines) -> Self:
        """Of lines that were looked up."""
        return cls(
            reference=found.reference,
            page=f"{found.wiki}/{found.path}",
            title=found.title,
            lines=list(found.lines),
            hash=found.hash,
            revision=found.revision,
        )


class SpecRowData(JsonModel):
    """A hardware value: a number where the page writes one, with the citation line that states it."""

    gpu: str
    metric: str
    value: float | int | str | None
    """None where the vendor publishes no value."""
    unit: str
    qualifier: str
    confidence: str
    citation: Citation
    citation_line: str
    source: Source
    recommended: bool
    """False for what another source prints and the page does not recommend."""
    overridden: list[str] = Field(default_factory=list)
    """Citation lines of the values of earlier wikis that it takes the place of, the latest wiki's first."""

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
            citation=spec.citation,
            citation_line=spec.citation_line(vocabulary),
            source=spec.source,
            recommended=spec.recommended,
            overridden=[old.citation_line(vocabulary) for old in spec.overridden],
        )


class ProductData(JsonModel):
    """A GPU that the wiki has a page about."""

    gpu: str
    name: str
    aliases: list[str]
    families: list[str]
    page: str


class SpecData(JsonModel):
    """`kopt spec`"""

    specs: list[SpecRowData]
    gpus: list[ProductData]
    """With `--list`."""
    gaps: list[str]

    @classmethod
    def of(cls, found: FoundSpecs, terms: Vocabulary) -> Self:
        """The values that were found, and what is missing."""
        return cls(specs=[SpecRowData.of(one, terms) for one in found.specs], gpus=[], gaps=found.gaps)

    @classmethod
    def of_gpus(cls, found: Sequence[Documented], terms: Vocabulary) -> Self:
        """The GPUs that the wikis have pages about."""
        gpus = []
        for one in found:
            product = terms.products[one.product]
            gpus.append(
                ProductData(
                    gpu=one.product,
                    name=product.name,
                    aliases=list(product.aliases),
                    families=list(product.families),
                    page=one.page,
                )
            )
        return cls(specs=[], gpus=gpus, gaps=[])
