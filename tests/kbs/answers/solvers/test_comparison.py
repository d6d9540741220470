"""GPUs beside each other: which has how much more, what variants leave open, and what is not compared."""

from __future__ import annotations

from decimal import Decimal

import pytest

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.comparison import comparison
from kbs.answers.solvers.part import Part
from kbs.answers.solvers.specs import USES
from tests.kbs.answers.small_wiki import cited, read, texts, unsound
from wiki.library import Wikis


def answered(text: str, knowledge: Knowledge) -> Part:
    found = comparison(read(text), knowledge)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        (
            "compare H100 SXM and T4 bandwidth",
            "H100 SXM has 9.38 times the HBM bandwidth of T4: 3 TB/s against 320 GB/s.",
        ),
        (
            "compare T4 and H100 SXM bandwidth",  # the one that has more comes first
            "H100 SXM has 9.38 times the HBM bandwidth of T4: 3 TB/s against 320 GB/s.",
        ),
        ("L2 of H100 SXM vs T4", "H100 SXM has 12.5 times the L2 capacity of T4: 50 MB against 4096 KB."),
        ("L2 of H100 SXM vs H100 PCIe", "L2 capacity is the same: 50 MB."),
        (
            "H100 SXM vs H100 PCIe CUDA cores",
            "H100 SXM has 1.16 times the CUDA cores of H100 PCIe: 13,200 against 11,400.",
        ),
        (
            "does H100 PCIe have more CUDA cores than H100 SXM",
            "No: H100 SXM has 1.16 times the CUDA cores of H100 PCIe: 13,200 against 11,400.",
        ),
        (
            "H100 SXM vs H100 PCIe dense BF16",
            "H100 SXM has 1.29 times the BF16 tensor throughput (dense) of H100 PCIe: 900 TFLOPS against 700 TFLOPS.",
        ),
        ("SM count of H100 vs T4", "SM count: H100 114 SM (H100 PCIe) to 132 SM (H100 SXM); T4 40 SM."),
        ("L2 of H100 vs T4", "H100 has 12.5 times the L2 capacity of T4: 50 MB against 4096 KB."),
        (
            "is H100 SXM faster than H100 PCIe in BF16",
            "Yes: H100 SXM has 1.29 times the BF16 tensor throughput (dense) of H100 PCIe:"
            " 900 TFLOPS against 700 TFLOPS.",
        ),
        (
            "has T4 more bandwidth than H100 PCIe",
            "No: H100 PCIe has 6.25 times the HBM bandwidth of T4: 2 TB/s against 320 GB/s.",
        ),
        (
            "does T4 have less bandwidth than H100 PCIe",
            "Yes: H100 PCIe has 6.25 times the HBM bandwidth of T4: 2 TB/s against 320 GB/s.",
        ),
        ("does H100 SXM have more L2 than H100 PCIe", "No: L2 capacity is the same: 50 MB."),
        (
            "is H100 faster in FP32 than H100 SXM",
            "No: FP32 throughput: H100 50 TFLOPS (H100 PCIe) to 60 TFLOPS (H100 SXM); H100 SXM 60 TFLOPS.",
        ),
        (
            "is H100 slower in FP32 than H100 SXM",
            "It depends on the variant: FP32 throughput: H100 50 TFLOPS (H100 PCIe) to 60 TFLOPS (H100 SXM);"
            " H100 SXM 60 TFLOPS.",
        ),
    ],
)
def test_two_names_in_one_metric(text: str, direct: str, knowledge: Knowledge, pages: Wikis) -> None:
    found = answered(text, knowledge)
    assert texts(found.direct) == [direct]
    assert found.uses == (*USES, "bottleneck")
    assert found.direct[0].kind is ClaimKind.DERIVED
    assert unsound(found, pages) == []


def test_the_ratio_is_a_step_that_rests_on_both_rows(knowledge: Knowledge) -> None:
    found = answered("L2 of H100 SXM vs T4", knowledge)
    [claim] = found.direct
    [step] = claim.derivation
    # K and M of a cache are binary: 50 MB / 4096 KB would be another number.
    assert (step.shown, step.value) == ("50 MiB / 4096 KiB = 12.5", Decimal("12.5"))
    assert claim.note == "H100 SXM / T4"
    assert [line.split(" | ")[1] for line in cited(claim)] == ["50", "4096"]
    assert [(section.title, texts(section.claims)) for section in found.sections] == [
        ("Values", ["H100 SXM L2 capacity: 50 MB", "T4 L2 capacity: 4096 KB"])
    ]


def test_an_overview_has_what_differs_most_first(knowledge: Knowledge, pages: Wikis) -> None:
    found = answered("H100 SXM vs T4", knowledge)
    assert [text.partition(" of T4")[0] for text in texts(found.direct)] == [
        "H100 SXM has 12.5 times the L2 capacity",
        "H100 SXM has 9.38 times the HBM bandwidth",
        "H100 SXM has 7.50 times the FP32 throughput",
        "H100 SXM has 3.30 times the SM count",
        "H100 SXM has 1.33 times the Boost clock",
    ]
    assert (found.uses, found.gaps) == (("product", "architecture"), ())
    assert unsound(found, pages) == []


def test_what_one_side_lacks_is_said(knowledge: Knowledge) -> None:
    found = answered("memory capacity of H100 SXM vs T4", knowledge)
    assert texts(found.direct) == ["H100 SXM Memory capacity: 80 GB"]
    assert (found.sections, found.gaps) == ((), ("T4 Memory capacity: I found no line.",))
    variants = answered("SM count of H100 vs T4", knowledge)
    assert variants.gaps == ("H100 NVL SM count: I found no line.",)


@pytest.mark.parametrize(
    "text",
    [
        "bandwidth of H100 SXM",
        "bandwidth of H100",  # variants of one name
        "compare TDP of H100 SXM and T4",  # no row
        "compare L2 bandwidth of H100 SXM and H100 PCIe",  # a row that says that nothing is published
    ],
)
def test_what_is_no_comparison(text: str, knowledge: Knowledge) -> None:
    assert comparison(read(text), knowledge) is None
