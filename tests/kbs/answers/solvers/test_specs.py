"""Values of hardware: by lookup, each with its line; what is not published or not known is said to be so."""

from __future__ import annotations

import pytest

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.part import Part
from kbs.answers.solvers.specs import SUPPORT, USES, dtype_rates, specs
from tests.kbs.answers.small_wiki import cited, read, texts, unsound
from wiki.library import Wikis

ROW = "| verified | src p. 1 |"


def answered(text: str, knowledge: Knowledge) -> Part:
    found = specs(read(text), knowledge)
    assert found is not None
    return found


def titled(part: Part) -> dict[str, list[str]]:
    return {section.title: texts(section.claims) for section in part.sections}


@pytest.mark.parametrize(
    ("text", "direct", "others"),
    [
        ("what is the bandwidth of H100 SXM", ["H100 SXM HBM bandwidth: 3 TB/s"], {}),
        (
            "L2 capacity of H100 SXM",
            ["H100 SXM L2 capacity: 50 MB"],
            {"Where sources disagree": ["H100 SXM L2 capacity: 60 MB"]},
        ),
        ("sparse BF16 throughput of H100 SXM", ["H100 SXM BF16 tensor throughput (sparse 2:4): 1800 TFLOPS"], {}),
        (
            "BF16 throughput of H100 SXM",
            [
                "H100 SXM BF16 tensor throughput (dense): 900 TFLOPS",
                "H100 SXM BF16 tensor throughput (sparse 2:4): 1800 TFLOPS",
            ],
            {},
        ),
        ("how many warps per SM on H100 PCIe", ["CC 9.0 Maximum warps per SM: 64 warps"], {}),  # of its capability
        (
            "L2 capacity of H100 SXM and H100 PCIe",
            ["H100 SXM and H100 PCIe L2 capacity: 50 MB."],
            {
                "Values": ["H100 SXM L2 capacity: 50 MB", "H100 PCIe L2 capacity: 50 MB"],
                "Where sources disagree": ["H100 SXM L2 capacity: 60 MB"],
            },
        ),
        ("memory type of H100 SXM", ["H100 SXM Memory type: HBM3"], {}),
    ],
)
def test_values(text: str, direct: list[str], others: dict[str, list[str]], knowledge: Knowledge, pages: Wikis) -> None:
    found = answered(text, knowledge)
    assert (texts(found.direct), titled(found)) == (direct, others)
    assert (found.uses, found.refusal, found.gaps) == (USES, "", ())
    assert unsound(found, pages) == []


def test_a_value_cites_its_own_row(knowledge: Knowledge) -> None:
    [claim] = answered("what is the bandwidth of H100 SXM", knowledge).direct
    assert cited(claim) == [f"| HBM bandwidth | 3 | TB/s | {ROW}"]
    assert (claim.kind, claim.subject, claim.note) == (ClaimKind.SPEC, "h100-sxm", "verified: A source, p. 1")
    [both] = answered("L2 capacity of H100 SXM and H100 PCIe", knowledge).direct
    assert cited(both) == [f"| L2 capacity | 50 | MB | {ROW}"] * 2
    assert [one.path for one in both.citations] == ["hardware/h100-sxm.md", "hardware/h100-pcie.md"]


@pytest.mark.parametrize(
    ("text", "direct", "uses"),
    [
        ("does H100 SXM support FP4", "No: H100 SXM has no FP4 tensor throughput.", USES),
        ("does H100 SXM support FP8", "Yes: H100 SXM FP8 tensor throughput: 1800 TFLOPS (dense).", USES),
        (
            "does H100 SXM support TMA",
            "Yes: CC 9.0 Clusters, TMA and distributed shared memory: yes.",
            (*USES, SUPPORT),
        ),
        ("does H100 SXM have HBM3 as its memory type", "Yes: H100 SXM Memory type: HBM3.", USES),
        ("does the H100 SXM have much bandwidth", "H100 SXM HBM bandwidth: 3 TB/s", USES),  # how much is much?
    ],
)
def test_yes_or_no(text: str, direct: str, uses: tuple[str, ...], knowledge: Knowledge, pages: Wikis) -> None:
    found = answered(text, knowledge)
    assert (texts(found.direct), found.uses) == ([direct], uses)
    assert unsound(found, pages) == []


@pytest.mark.parametrize(
    ("text", "direct", "refusal", "gaps"),
    [
        (
            "L2 bandwidth of H100 SXM",
            "Not known: L2 bandwidth of H100 SXM; its vendor publishes no value.",
            "unpublished",
            ("H100 SXM L2 bandwidth: its vendor publishes no value.",),
        ),
        (
            "TDP of H100 SXM and T4",
            "Not known: TDP of H100 SXM and T4; I found no line about it.",
            "not_in_wiki",
            ("H100 SXM TDP: I found no line.", "T4 TDP: I found no line."),
        ),
        ("measured bandwidth of T4", "Not known: I found no measured copy bandwidth of T4.", "not_in_wiki", ()),
    ],
)
def test_what_is_not_known(
    text: str, direct: str, refusal: str, gaps: tuple[str, ...], knowledge: Knowledge, pages: Wikis
) -> None:
    found = answered(text, knowledge)
    assert (texts(found.direct), found.refusal, found.gaps) == ([direct], refusal, gaps)
    assert found.direct[0].kind is ClaimKind.ABSENCE
    assert unsound(found, pages) == []


def test_what_is_not_published_cites_the_row_that_says_so(knowledge: Knowledge) -> None:
    found = answered("L2 bandwidth of H100 SXM", knowledge)
    assert cited(found.direct[0]) == [f"| L2 bandwidth | unpublished | TB/s | {ROW}"]
    assert titled(found) == {"What the wiki says": ["H100 SXM L2 bandwidth: unpublished"]}


def test_one_of_two_values_is_told_and_the_other_named(knowledge: Knowledge) -> None:
    found = answered("memory capacity of H100 SXM and T4", knowledge)
    assert (texts(found.direct), found.refusal) == (["H100 SXM Memory capacity: 80 GB"], "")
    assert found.gaps == ("T4 Memory capacity: I found no line.",)


def test_what_was_measured_and_the_peak_beside_it(knowledge: Knowledge, pages: Wikis) -> None:
    found = answered("what HBM bandwidth do others get on H100 SXM", knowledge)
    assert texts(found.direct) == ["H100 SXM Measured copy bandwidth: 2.5 TB/s"]
    assert titled(found) == {"The peak": ["H100 SXM HBM bandwidth: 3 TB/s"]}
    assert found.uses == (*USES, "measured", "operation")
    assert unsound(found, pages) == []
    none = answered("what HBM bandwidth do others get on T4", knowledge)
    assert texts(none.direct) == ["Not known: I found no measured copy bandwidth and measured stream bandwidth of T4."]
    assert titled(none) == {"The peak, which is not what was asked": ["T4 HBM bandwidth: 320 GB/s"]}


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        (
            "which GPUs have which L2 capacity",
            ["L2 capacity: 50 MB on H100 SXM and H100 PCIe.", "L2 capacity: 4096 KB on T4."],
        ),
        (
            "HBM bandwidth on Hopper",
            ["HBM bandwidth: 3 TB/s on H100 SXM.", "HBM bandwidth: 2 TB/s on H100 PCIe."],
        ),
        ("TDP of all GPUs", None),
        ("why is the L2 capacity of caches odd", None),  # it asks for more than values
    ],
)
def test_a_metric_of_every_gpu(text: str, direct: list[str] | None, knowledge: Knowledge, pages: Wikis) -> None:
    found = specs(read(text), knowledge)
    assert (None if found is None else texts(found.direct)) == direct
    if found is not None:
        assert found.direct[0].kind is ClaimKind.DERIVED
        assert [len(claim.citations) for claim in found.direct] == [
            claim.text.count(" and ") + 1 for claim in found.direct
        ]
        assert unsound(found, pages) == []


def test_a_gpu_alone_is_its_spec_sheet(knowledge: Knowledge) -> None:
    said = texts(answered("H100 PCIe", knowledge).direct)
    assert said == [
        "CC 9.0 Architecture: Hopper",
        "H100 PCIe Compute capability: 9.0",
        "H100 PCIe SM count: 114 SM",
        "H100 PCIe FP32 throughput: 50 TFLOPS",
        "H100 PCIe BF16 tensor throughput (dense): 700 TFLOPS",
        "H100 PCIe HBM bandwidth: 2 TB/s",
        "H100 PCIe L2 capacity: 50 MB",
        "CC 9.0 Shared memory per SM: 228 KB",
    ]
    assert answered("H100 PCIe", knowledge).gaps == (), "what a sheet lacks was not asked for"


@pytest.mark.parametrize(
    "text",
    [
        "why is my softmax slow on H100 SXM",
        "which banks does H100 SXM split",
        "how do I fix bank conflicts",
        "does H100 SXM support INT32",  # a spec sheet says nothing of it
        "H100 SXM INT64",
    ],
)
def test_what_asks_for_no_value(text: str, knowledge: Knowledge) -> None:
    assert specs(read(text), knowledge) is None


@pytest.mark.parametrize(
    ("text", "rates"),
    [
        ("how fast is BF16 on T4", ("bf16_tensor_throughput",)),
        ("how fast is FP64 on T4", ("fp64_tensor_throughput", "fp64_throughput")),
        ("how fast is FP32 on T4", ("fp32_throughput",)),
        ("how fast is INT32 on T4", ()),
        ("how fast is BF16", ()),
        ("how fast is a BF16 softmax on T4", ()),
        ("how fast is T4", ()),
    ],
)
def test_the_rates_of_an_element_type(text: str, rates: tuple[str, ...], knowledge: Knowledge) -> None:
    assert dtype_rates(read(text), knowledge) == rates


@pytest.mark.parametrize(
    ("text", "direct"),
    [
        ("how many CUDA cores does H100 SXM have", ["H100 SXM: 132 SMs × 100 = 13,200 CUDA cores."]),
        (
            "how many SMs and tensor cores does H100 PCIe have",
            ["H100 PCIe SM count: 114 SM", "H100 PCIe: 114 SMs × 4 = 456 tensor cores."],
        ),
        ("does H100 SXM have 13200 CUDA cores", ["Yes: H100 SXM: 132 SMs × 100 = 13,200 CUDA cores."]),
        ("H100 SXM does not have 13200 CUDA cores, right", ["No: H100 SXM: 132 SMs × 100 = 13,200 CUDA cores."]),
        ("tensor cores per SM of H100 SXM", ["CC 9.0 Tensor cores per SM: 4 units"]),
        ("how many CUDA cores does CC 9.0 have", ["CC 9.0 FP32 units per SM: 100 units"]),
        ("how many CUDA cores per SM on hopper", ["FP32 units per SM: 100 units on CC 9.0."]),
    ],
)
def test_units_are_counted(text: str, direct: list[str], knowledge: Knowledge, pages: Wikis) -> None:
    found = answered(text, knowledge)
    assert (texts(found.direct), found.refusal) == (direct, "")
    assert unsound(found, pages) == []


def test_a_count_cites_what_it_was_counted_from(knowledge: Knowledge) -> None:
    found = answered("how many CUDA cores does H100 SXM have", knowledge)
    [claim] = found.direct
    assert cited(claim) == [f"| SM count | 132 | SM | {ROW}", f"| FP32 units per SM | 100 | units | {ROW}"]
    assert [step.shown for step in claim.derivation] == ["132 × 100 = 13,200"]
    assert titled(found) == {"Counted from": ["H100 SXM SM count: 132 SM", "CC 9.0 FP32 units per SM: 100 units"]}


@pytest.mark.parametrize("text", ["how many CUDA cores does T4 have", "how many FP64 units does H100 SXM have"])
def test_units_that_no_row_gives_are_not_known(text: str, knowledge: Knowledge) -> None:
    found = answered(text, knowledge)
    assert found.refusal == "no_unit_count"
    assert texts(found.direct)[0].startswith("Not known: ")


def test_a_rate_without_tensor_cores_is_never_one_with_them(knowledge: Knowledge) -> None:
    for text in ("BF16 throughput of H100 SXM without tensor cores", "FP8 of H100 SXM without tensor cores"):
        found = answered(text, knowledge)
        assert found.refusal == "no_plain_rate"
        assert "without tensor cores of H100 SXM" in texts(found.direct)[0]
        shown = [*found.direct, *(claim for section in found.sections for claim in section.claims)]
        assert not any("00 TFLOPS" in line for line in texts(shown))


def test_a_value_that_is_told_before_the_question_is_not_confirmed(knowledge: Knowledge) -> None:
    told = "The H100 SXM has a compute capability of 9.0. There should be support for that, correct?"
    assert specs(read(told), knowledge) is None
    assert texts(answered("the H100 SXM has a compute capability of 9.0, correct?", knowledge).direct) == [
        "Yes: H100 SXM Compute capability: 9.0."
    ]
    assert specs(read("The H100 SXM has 528 tensor cores. Does that suffice?"), knowledge) is None
    assert specs(read("The H100 SXM has a compute capability of 9.0. Is that right?"), knowledge) is not None
