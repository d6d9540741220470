"""Specs, and when a claim says what one says."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from kbs.evidence.checking import Status, check_text
from kbs.evidence.citation import SpecClaim
from kbs.evidence.spec import Spec, canonical_qualifier, claim_disagrees, same_text
from kbs.evidence.vocabulary import vocabulary
from wiki.library import Wikis, bundled_wiki

V = vocabulary()


@pytest.fixture
def spec(library: Wikis) -> Callable[..., Spec]:
    def find(metric: str, qualifier: str = "") -> Spec:
        specs = library.specs("gpu-wiki", "hardware/h100-sxm.md")
        return next(s for s in specs if (s.metric, s.qualifier) == (metric, qualifier))

    return find


def test_values(spec: Callable[..., Spec]) -> None:
    assert spec("hbm_bandwidth").base(V) == Decimal("3.35e12")
    assert spec("l2_capacity").base(V) == 50 * 2**20
    assert spec("shared_memory_per_sm").base(V) == 228 * 1024
    assert spec("memory_capacity").base(V) == 80 * 10**9
    assert spec("memory_type").base(V) is None
    assert spec("l2_bandwidth").base(V) is None
    assert not spec("l2_bandwidth").published
    assert spec("memory_type").published


def test_statement(spec: Callable[..., Spec]) -> None:
    assert spec("hbm_bandwidth").statement(V) == "H100 SXM HBM bandwidth: 3.35 TB/s"
    dense = "H100 SXM BF16 tensor throughput (dense): 989.4 TFLOPS"
    assert spec("bf16_tensor_throughput", "dense").statement(V) == dense
    assert spec("memory_type").statement(V) == "H100 SXM Memory type: HBM3"
    assert spec("l2_bandwidth").statement(V) == "H100 SXM L2 bandwidth: unpublished"
    line = spec("hbm_bandwidth").citation_line(V)
    assert line == f"H100 SXM HBM bandwidth: 3.35 TB/s <- {spec('hbm_bandwidth').citation.reference}"


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("HBM3", "hbm-3", True),
        ("Gen5", "gen 5", True),
        ("HBM3", "HBM3e", False),
        ("9.0", "90", False),
        ("yes", "no", False),
        ("", "", True),
    ],
)
def test_same_text(a: str, b: str, same: bool) -> None:
    assert same_text(a, b) is same


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("  ", ""),
        ("dense", "dense"),
        ("Without Sparsity", "dense"),
        ("2:4", "sparse 2:4"),
        ("bidirectional", "bidirectional total"),
        ("per-direction", "per direction"),
        ("dense and sparse", None),
        ("at night", None),
    ],
)
def test_canonical_qualifier(text: str, canonical: str | None) -> None:
    assert canonical_qualifier(text, V) == canonical


def test_no_qualifier_has_two_meanings() -> None:
    for term in V.qualifiers.values():
        for alias in (term.id, *term.aliases):
            assert canonical_qualifier(alias, V) == term.id


def test_a_missing_qualifier_counts_where_there_are_several(spec: Callable[..., Spec]) -> None:
    claim = SpecClaim("TDP", "", "700", "W")
    tdp = spec("tdp", "configurable up to")
    assert claim_disagrees(claim, tdp, 1, V) == ""
    assert "the claim none" in claim_disagrees(claim, tdp, 2, V)


def test_every_citation_line_of_the_bundled_wiki_passes_its_own_check() -> None:
    wiki = bundled_wiki()
    library = Wikis([wiki])
    specs = [spec for file in wiki.files() for spec in library.specs(wiki.name, file.path)]
    assert len(specs) > 300
    text = "\n".join(spec.citation_line(V) for spec in specs)
    checked = check_text(text, library, V)
    assert len(checked) == len(specs)
    assert [c for c in checked if c.status is not Status.OK] == []
