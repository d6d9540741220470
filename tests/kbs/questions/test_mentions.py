"""What a question says in other words than the vocabulary has."""

from __future__ import annotations

import pytest

from kbs.evidence.units import binary_unit
from kbs.evidence.vocabulary import vocabulary
from kbs.questions.forms import Form
from kbs.questions.mentions import meant, of_each
from kbs.questions.question import understand

V = vocabulary()


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("H100 SXM and PCIe", [("h100-sxm",), ("h100-pcie",)]),
        ("H100 PCIe or SXM", [("h100-pcie",), ("h100-sxm",)]),
        ("A100 SXM 80GB vs 40GB", [("a100-sxm-80gb",), ("a100-sxm-40gb",)]),
        ("H100 SXM and H200", [("h100-sxm",), ("h200-sxm",)]),
        ("H100 SXM and the cache", [("h100-sxm",)]),
        ("H100 SXM and", [("h100-sxm",)]),
        ("warps per SM on sm_89", [("cc-8-9",)]),
        ("sm_80 or sm_90a", [("cc-8-0",), ("cc-9-0",)]),
        ("the H100 SXM (sm_90)", [("h100-sxm",)]),
        ("sm_37 and mma_sm_90x", []),
    ],
)
def test_products(text: str, products: list[tuple[str, ...]]) -> None:
    assert list(understand(text, V).named) == products


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("how many registers can a thread use", "registers per thread"),
        ("how many blocks can an SM of an A100 run", "blocks per SM"),
        ("how much shared memory may each block have", "shared memory per block"),
        ("what is the shared memory of a block", "shared memory per block"),
        ("registers of a thread", "registers per thread"),
        ("threads for each block", "threads per block"),
        ("threads resident on an SM", "threads per sm"),
        ("how many thread blocks can be active at once per multiprocessor", "blocks per sm"),
        ("threads resident", ""),
        ("how many blocks are there", ""),
        ("why is it slow", ""),
    ],
)
def test_of_each(text: str, said: str) -> None:
    assert of_each(text) == said


@pytest.mark.parametrize(
    ("text", "form"),
    [("how many registers can a thread use on H100", Form.VALUE), ("registers a thread on H100", Form.TOPIC)],
)
def test_limits_of_a_thread(text: str, form: Form) -> None:
    read = understand(text, V)
    assert (read.metrics, read.form) == (("max_registers_per_thread",), form)
    assert read.left("product", "metric") == ()
    assert "registers" in read.left("product")


@pytest.mark.parametrize(
    ("text", "metrics"),
    [
        ("how much shared memory can a block use on H100", ("shared_memory_per_block",)),
        ("shared memory of a block on H100", ("shared_memory_per_block",)),
        ("how much shared memory can an SM hold", ("shared_memory_per_sm",)),
        ("shared memory per SM, and what can a block have of it", ("shared_memory_per_sm",)),
        ("L2 capacity and registers a thread", ("l2_capacity", "max_registers_per_thread")),
    ],
)
def test_a_limit_is_asked_for_and_not_a_part_of_its_name(text: str, metrics: tuple[str, ...]) -> None:
    assert understand(text, V).metrics == metrics


@pytest.mark.parametrize(
    ("text", "operation"),
    [
        ("how do I reduce register spilling", ""),
        ("reduce launch overhead", ""),
        ("how do I reduce over rows", "sum"),
        ("why is my reduce slow", "sum"),
        ("a row reduce on H100", "sum"),
    ],
)
def test_reduce_as_a_verb(text: str, operation: str) -> None:
    assert understand(text, V).operation == operation


@pytest.mark.parametrize(
    ("text", "identifiers", "kept"),
    [
        ("l2_hit_rate of my kernel", ("l2_hit_rate",), []),
        ("l2_hit_rate and L2", ("l2_hit_rate",), ["l2_capacity"]),
        ("L2 hit rate of my kernel", (), ["l2_capacity"]),
        ("dram_bandwidth of L2", ("dram_bandwidth",), ["hbm_bandwidth", "l2_capacity"]),  # the whole of it is a metric
        ("TDP of CC 8.9", (), ["tdp"]),
    ],
)
def test_metrics_inside_of_other_names_are_not_meant(text: str, identifiers: tuple[str, ...], kept: list[str]) -> None:
    assert [m.id for m in meant(V.find(text), text, identifiers) if m.kind == "metric"] == kept


@pytest.mark.parametrize(
    ("text", "metrics", "stated"),
    [
        ("the bandwidth of NVLink is 160 GB/s", ("nvlink_bandwidth",), ["nvlink_bandwidth"]),
        ("an xGMI link has 64 GB/s, so why is the bandwidth 48 GB/s?", (), []),
        ("PCIe 4.0 x16 carries 32GB/s in one direction", (), []),
        ("128 GB/s bidirectional bandwidth between two of them", (), []),
        ("the bandwidth of an H100 PCIe is 2 TB/s", ("hbm_bandwidth",), ["hbm_bandwidth"]),  # only its name has PCIe
        ("memory bandwidth of 2 TB/s beside 900 GB/s of NVLink", ("hbm_bandwidth", "nvlink_bandwidth"), None),
        ("a bandwidth of 2 TB/s", ("hbm_bandwidth",), ["hbm_bandwidth"]),
    ],
)
def test_a_bandwidth_of_a_link_is_none_of_the_memory(
    text: str, metrics: tuple[str, ...], stated: list[str] | None
) -> None:
    question = understand(text, V)
    assert question.metrics == metrics
    assert stated is None or [premise.metric for premise in question.premises] == stated


def test_the_name_of_a_capability_asks_for_no_metric() -> None:
    assert understand("does CC 8.9 support FP8", V).metrics == ()
    assert understand("compute capability of H100", V).metrics == ("compute_capability",)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("how much faster is H200 than H100 SXM", Form.COMPARISON),
        ("is softmax faster on H200 than on H100 SXM", Form.COMPARISON),
        ("H100 SXM vs PCIe for a 64x64x64 matmul", Form.COMPARISON),
        ("how many bytes can an SM of H100 hold in flight", Form.CALCULATION),
        ("ridge point of H100", Form.CALCULATION),
        ("does the H100 support FP4?", Form.YES_NO),
        ("Is there a way to hide the latency", Form.REMEDY),
        ("My kernel uses 40 registers. Why is it slow?", Form.REASON),
        ("I get 2 TB/s on H100, is that good?", Form.YES_NO),
        ("what is the difference between TMA and cp.async", Form.DIFFERENCE),
        ("what does long scoreboard mean", Form.DEFINITION),
        ("what did we learn about softmax", Form.EXPERIENCE),
        ("bank conflicts", Form.TOPIC),
    ],
)
def test_forms(text: str, form: Form) -> None:
    assert understand(text, V).form is form


def test_resolve_knows_targets() -> None:
    assert V.resolve("product", "sm_89") == ["cc-8-9"]
    assert V.resolve("product", "SM90a") == ["cc-9-0"]
    assert V.resolve("product", "sm_37") == []


@pytest.mark.parametrize(
    ("unit", "binary"), [("MB", "MiB"), ("KB", "KiB"), ("KiB", "KiB"), ("B", "B"), ("blocks", "blocks")]
)
def test_binary_unit(unit: str, binary: str) -> None:
    assert binary_unit(unit) == binary


def test_an_article_before_a_bare_number_is_no_part_of_a_name() -> None:
    assert V.spelled_out("does a 4080 fit") == "does a RTX 4080 fit"
    assert V.spelled_out("on the RTX 4080") == "on the RTX 4080"
    assert V.spelled_out("4080 rows") == "4080 rows"


@pytest.mark.parametrize(
    ("text", "products"),
    [
        ("T4 vs P4", ("t4", "p4")),
        ("how many SMs on an A2?", ("a2",)),
        ("tesla p4 bandwidth", ("p4",)),
        ("is an a2 gpu enough", ("a2",)),
        ("a2 = b2 + c", ()),
        ("the pointer p4 is aligned", ()),
        ("T4 or GCP A2 instances", ("t4",)),
    ],
)
def test_short_names_count_as_they_are_written(text: str, products: tuple[str, ...]) -> None:
    assert understand(text, V).products == products


@pytest.mark.parametrize(
    ("text", "identifiers"),
    [
        ("SM0:90% SM1:90% and 12:30", ()),
        ("ld.global.nc::L1 and sm__x.avg", ("ld.global.nc::L1", "sm__x.avg")),
        ("std::vector in __shared__", ("std::vector", "__shared__")),
        ("see https://example.org/a.b_c/d for it", ()),
    ],
)
def test_identifiers(text: str, identifiers: tuple[str, ...]) -> None:
    assert understand(text, V).identifiers == identifiers


def test_an_address_is_no_part_of_a_question() -> None:
    question = understand("how does 128 KB relate to https://example.org/gpu-arch-specs.html (512 KB)", V)
    assert question.sought.split() == ["how", "does", "128", "KB", "relate", "to", "(512", "KB)"]
    assert "gpu" not in question.left()
