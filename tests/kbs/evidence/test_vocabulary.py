"""The controlled vocabulary: names found in texts, families, near names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kbs.evidence.units import parse_unit
from kbs.evidence.vocabulary import Mention, Product, Term, vocabulary, words

V = vocabulary()
SPACES = ["product", "metric", "qualifier", "operation", "dtype", "symptom", "technique", "bottleneck", "language"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The H100-SXM's HBM_bandwidth.", ["the", "h100", "sxm", "hbm", "bandwidth"]),
        ("A100 80 GB", ["a100", "80gb"]),
        ("A100 80GB", ["a100", "80gb"]),
        ("sparse 2:4", ["sparse", "2:4"]),
        ("CC 9.0.", ["cc", "9.0"]),
        ("", []),
        ("–—…", []),
    ],
)
def test_words(text: str, found: list[str]) -> None:
    assert words(text) == found


@pytest.mark.parametrize(
    ("space", "name", "ids"),
    [
        ("product", "H100 SXM", ["h100-sxm"]),
        ("product", "h100_sxm5", ["h100-sxm"]),
        ("product", "H100", ["h100-sxm", "h100-pcie", "h100-nvl"]),
        ("product", "A100 80 GB", ["a100-sxm-80gb", "a100-pcie-80gb"]),
        ("product", "A100 SXM", ["a100-sxm-40gb", "a100-sxm-80gb"]),
        ("product", "H150", []),
        ("product", "H100 SXM please", []),
        ("product", "", []),
        ("metric", "memory bandwidth", ["hbm_bandwidth"]),
        ("metric", "L2", ["l2_capacity"]),
        ("metric", "smem per sm", ["shared_memory_per_sm"]),
        ("dtype", "bfloat16", ["bf16"]),
    ],
)
def test_resolve(space: str, name: str, ids: list[str]) -> None:
    assert V.resolve(space, name) == ids


@pytest.mark.parametrize(("said", "id"), [("IEEE Binary64", "fp64"), ("binary32", "fp32"), ("a binary16 sum", "fp16")])
def test_element_types_by_their_names_in_ieee_754(said: str, id: str) -> None:
    assert [m.id for m in V.find(said, "dtype")] == [id]


@pytest.mark.parametrize("space", SPACES)
def test_every_name_resolves_to_its_own_term(space: str) -> None:
    spaces: dict[str, Mapping[str, Term]] = {
        "product": V.products,
        "metric": V.metrics,
        "qualifier": V.qualifiers,
        "operation": V.operations,
        "dtype": V.dtypes,
        "symptom": V.symptoms,
        "technique": V.techniques,
        "bottleneck": V.bottlenecks,
        "language": V.languages,
    }
    for term in spaces[space].values():
        for alias in (term.id, term.name, *term.aliases):
            found = V.resolve(space, alias)
            assert term.id in found, alias
            # A word may leave metrics open ("shared memory": of an SM or of a block), but no other name does.
            assert space == "metric" or found == [term.id], alias


def test_the_longest_name_wins() -> None:
    found = V.find("H100 SXM against the H100", "product")
    assert found == [Mention("product", "h100-sxm", 0, 2), Mention("family", "h100", 4, 5)]
    assert [m.id for m in V.find("fp64 tensor throughput", "metric")] == ["fp64_tensor_throughput"]


def test_names_are_whole_words() -> None:
    assert V.find("the h1000 and xh100", "product") == []


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("a H150 and an MI999X", ["H150", "MI999X"]),
        ("RTX 4090 Ti", ["RTX 4090 Ti"]),
        ("the 4096 rows of fp16", []),
        ("T9 and L7", ["T9", "L7"]),
        ("t1 = time.time(); f(); T2 = time.time(); t2 - t1", []),
        ("sm_90a", []),
    ],
)
def test_words_that_look_like_a_gpu(text: str, forms: list[str]) -> None:
    assert V.product_like(text) == forms


@pytest.mark.parametrize(
    ("text", "capabilities", "unknown"),
    [
        ("sm_80 and SM90", ["cc-8-0", "cc-9-0"], []),
        ("sm_37", [], ["sm_37"]),
        ("SM0:90% SM1:90% .... SM80:0%, SM17:0%", [], []),  # the SMs of one GPU
        ("sm 0 and SM17 wait", [], []),
    ],
)
def test_numbered_sms_are_no_targets(text: str, capabilities: list[str], unknown: list[str]) -> None:
    assert V.capabilities(text) == capabilities
    assert V.unknown_targets(text) == unknown


@pytest.mark.parametrize(
    ("said", "id"),
    [
        ("A6000 ada", "rtx-6000-ada"),
        ("RTX A5000 (Ada)", "rtx-5000-ada"),
        ("4500 Ada Lovelace Generation", "rtx-4500-ada"),
        ("RTX Ada 2000", "rtx-2000-ada"),
        ("6000 pro blackwell", "rtx-pro-6000"),
        ("rtx 4500 pro", "rtx-pro-4500"),
        ("A4000 Blackwell", "rtx-pro-4000"),
        ("Blackwell RTX PRO 5000", "rtx-pro-5000"),
        ("A6000", "a6000"),
        ("Quadro RTX 6000", "quadro-rtx-6000"),
    ],
)
def test_a_card_for_workstations_is_of_the_generation_that_is_said(said: str, id: str) -> None:
    assert V.resolve("product", said) == [id]
    assert [m.id for m in V.find(V.spelled_out(f"is the {said} fast"), "product")] == [id]


def test_a_generation_that_is_asked_for_or_follows_elsewhere_names_no_other_card() -> None:
    for text in (
        "is the A6000 Ada or Ampere",
        "the A6000, Ada cards",
        "A6000 and Ada",
        "6000 adaptive",
        "rows of 6000",
    ):
        assert V.spelled_out(text) == text
    assert V.product_like(V.spelled_out("A3000 Ada beside RTX 3500 Blackwell")) == ["RTX 3000 Ada", "RTX PRO 3500"]


def test_super_is_a_word_of_its_own() -> None:
    assert V.find(V.spelled_out("2080super fp16"), "product")[0].id == "rtx-2080-super"
    assert V.spelled_out("my 1660super") == "my GTX 1660 super"
    assert V.spelled_out("supervise 20801super") == "supervise 20801super"


@pytest.mark.parametrize(
    ("text", "vendors"),
    [
        ("MFMA and VALU in rocprofv3", {"amd"}),
        ("hipGetDeviceProperties on gfx90a", {"amd"}),
        ("sm__throughput.avg of ncu", {"nvidia"}),
        ("the counterpart of nsight for MFMA", {"amd", "nvidia"}),
        ("hippocampus and a hinge", set()),
        ("a warp waits for memory", set()),
    ],
)
def test_words_of_one_vendor_alone(text: str, vendors: set[str]) -> None:
    assert V.vendors_in(text) == vendors


def test_nearest_names() -> None:
    assert V.nearest_products("H100 SXN", V.products)[0] == "h100-sxm"
    assert len(V.nearest_products("H100", V.products, count=2)) == 2
    assert V.nearest_products("qqqqqqqq", V.products) == []
    assert V.nearest_metrics("hbm bandwith")[0] == "hbm_bandwidth"
    assert V.nearest_metrics("qqqqqqqq") == []


def test_preferred_products_come_first_if_any_is_near() -> None:
    assert V.nearest_products("H100 SXN", ["h100-pcie"]) == ["h100-pcie"]
    assert "h100-sxm" in V.nearest_products("H100 SXN", ["mi300x"])


def test_products_of_a_teams_own_pages() -> None:
    ours = Product("acme-x1", "ACME X1", ("acme x1 pro",), "acme", "hopper", ("acme-x",))
    more = V.with_products([ours])
    assert more.resolve("product", "Acme X1 Pro") == ["acme-x1"]
    assert more.resolve("product", "acme-x") == ["acme-x1"]
    assert V.resolve("product", "Acme X1 Pro") == []
    assert V.with_products([]) is V
    known = V.with_products([replace(V.products["h100-sxm"], name="Another")])
    assert known.products["h100-sxm"].name == "H100 SXM"


def test_the_data_refers_only_to_what_it_defines() -> None:
    for product in V.products.values():
        assert product.vendor in V.vendors
        assert product.architecture in V.architectures
    for dtype in V.dtypes.values():
        assert {dtype.vector, dtype.tensor} - {""} <= V.metrics.keys()
        assert dtype.bytes > 0
    for metric in V.metrics.values():
        assert metric.text == (metric.unit == "")
        assert metric.text or parse_unit(metric.unit, capacity=metric.capacity), metric
        assert metric.text or (metric.range and metric.range[0] < metric.range[1]), metric
    for group in V.metric_groups.values():
        assert set(group.metrics) <= V.metrics.keys()
    for symptom in V.symptoms.values():
        assert symptom.bottleneck in V.bottlenecks
    for operation in V.operations.values():
        assert operation.dtype in V.dtypes
        assert all(size > 0 for size in operation.dims.values())


def test_a_unit_has_one_spelling_owner_and_a_prefix_changes_no_meaning() -> None:
    spellings = [spelling for unit in V.units.values() for spelling in unit.aliases]
    assert len(spellings) == len(set(spellings))
    for unit in V.units.values():
        for spelling in unit.aliases:
            found = parse_unit(spelling)
            assert found is not None
            assert (found.dimension, found.scale) == (unit.dimension, unit.scale)
