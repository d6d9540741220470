"""Occupancy: against NVIDIA's own calculator, against sums done by hand, and what the limits must say."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.evidence.spec import Spec
from kbs.evidence.vocabulary import vocabulary
from kbs.hardware.occupancy import NEEDED, WORDS, Occupancy, SmLimits, Usage, excesses, occupancy, sm_limits
from wiki.library import bundled_wiki
from wiki.page import Page
from wiki.reader import read_page

V = vocabulary()
CAPABILITIES = ("7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0")
CASES = 10_000
ROOT = Path(__file__).resolve().parents[3]

# Reads lines "threads registers static dynamic barriers carveout", and prints for each what NVIDIA's calculator says:
# blocks, limiting factors (bits), and the limits by warps, registers, shared memory, blocks, barriers.
DRIVER = """
#include <cstdio>
#include <cstdlib>
#include <cuda_occupancy.h>
int main(int argc, char **argv) {
    if (argc != 13) return 2;
    cudaOccDeviceProp device;
    device.computeMajor = atoi(argv[1]); device.computeMinor = atoi(argv[2]);
    device.maxThreadsPerBlock = atoi(argv[3]); device.maxThreadsPerMultiprocessor = atoi(argv[4]);
    device.regsPerBlock = atoi(argv[5]); device.regsPerMultiprocessor = atoi(argv[6]);
    device.warpSize = atoi(argv[7]); device.sharedMemPerBlock = atol(argv[8]);
    device.sharedMemPerMultiprocessor = atol(argv[9]); device.numSms = atoi(argv[10]);
    device.sharedMemPerBlockOptin = atol(argv[11]); device.reservedSharedMemPerBlock = atol(argv[12]);
    int threads, registers, barriers, carveout; long fixed, added;
    while (scanf("%d %d %ld %ld %d %d", &threads, &registers, &fixed, &added, &barriers, &carveout) == 6) {
        cudaOccFuncAttributes kernel;
        kernel.maxThreadsPerBlock = device.maxThreadsPerBlock; kernel.numRegs = registers;
        kernel.sharedSizeBytes = fixed; kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
        kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN; kernel.maxDynamicSharedSizeBytes = added;
        kernel.numBlockBarriers = barriers;
        cudaOccDeviceState state;
        state.carveoutConfig = carveout;
        cudaOccResult result;
        int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, threads, added);
        if (error) { printf("error %d\\n", error); continue; }
        printf("%d %u %d %d %d %d %d %d %zu\\n", result.activeBlocksPerMultiprocessor, result.limitingFactors,
               result.blockLimitWarps, result.blockLimitRegs, result.blockLimitSharedMem, result.blockLimitBlocks,
               result.blockLimitBarriers, result.allocatedRegistersPerBlock, result.allocatedSharedMemPerBlock);
    }
}
"""
BITS = {1: "warps", 2: "registers", 4: "shared memory", 8: "blocks", 16: "barriers"}
ANY = 2**31 - 1


def page_specs(capability: str) -> list[Spec]:
    """The spec rows of a compute capability's page, as the bundled wiki states them."""
    path = f"hardware/cc-{capability.replace('.', '-')}.md"
    content = bundled_wiki().read(path)
    assert content is not None, path
    page = read_page("gpu-wiki", path, content, "", V)
    assert isinstance(page, Page), page
    return list(page.specs)


def limits_of(capability: str) -> SmLimits:
    """The limits of a compute capability, from its page."""
    found = sm_limits(page_specs(capability), f"cc-{capability.replace('.', '-')}", V)
    assert isinstance(found, SmLimits), found
    return found


def headers() -> list[Path]:
    """Every `cuda_occupancy.h` at hand that knows all these capabilities: Triton's, and the toolkit's."""
    triton = importlib.util.find_spec("triton")
    places = [Path(triton.origin).parent / "backends" / "nvidia" / "include"] if triton and triton.origin else []
    nvcc = shutil.which("nvcc")
    homes = [
        os.environ.get("CUDA_HOME", ""),
        str(Path(nvcc).resolve().parent.parent) if nvcc else "",
        "/usr/local/cuda",
    ]
    places += [Path(home) / "include" for home in homes if home]
    found = [place / "cuda_occupancy.h" for place in places if (place / "cuda_occupancy.h").is_file()]
    return [
        file for file in dict.fromkeys(found) if "define __CUDA_OCC_MAJOR__ 12" in file.read_text("utf-8", "replace")
    ]


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, list[tuple[int, ...]]], list[list[int]]]:
    """NVIDIA's calculator, compiled here: (capability, cases) → its numbers for each case."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    if not headers():
        pytest.skip("needs cuda_occupancy.h of CUDA 12.8 or later, which Triton's package has")
    folder = tmp_path_factory.mktemp("occupancy")
    (folder / "driver.cpp").write_text(DRIVER, "utf-8")
    program = folder / "driver"
    command = ["g++", "-O1", "-w", "-I", str(headers()[0].parent), "-o", str(program), str(folder / "driver.cpp")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)

    def ask(capability: str, cases: list[tuple[int, ...]]) -> list[list[int]]:
        # What cudaGetDeviceProperties reports of a device of this capability, independent of the pages under test.
        small = capability in ("8.6", "8.9", "12.0")
        shared = {"7.0": 96, "7.5": 64, "8.0": 164}.get(capability, 100 if small else 228)
        reserved = 0 if capability.startswith("7.") else 1
        threads = 1536 if small else 1024 if capability == "7.5" else 2048
        device = [*capability.split("."), 1024, threads, 65536, 65536, 32, 48 << 10, shared << 10, 100]
        words = [str(word) for word in [*device, (shared - reserved) << 10, reserved << 10]]
        lines = "\n".join(" ".join(map(str, case)) for case in cases) + "\n"
        done = subprocess.run(
            [str(program), *words], input=lines, capture_output=True, text=True, check=True, timeout=120
        )
        answers = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        assert len(answers) == len(cases)
        return answers

    return ask


def edges(limit: int, *more: int) -> list[int]:
    """Values at which a result changes: powers of two, multiples of the units, and their neighbours."""
    around = [value + step for value in (*(2**power for power in range(18)), limit, *more) for step in (-1, 0, 1)]
    return [value for value in around if 0 <= value <= limit]


def random_cases(seed: int, shared: int, barriers: int, carveouts: list[int]) -> list[tuple[int, ...]]:
    """(threads, registers, static, dynamic, barriers, carve-out), half of each value near where results change."""
    rng = random.Random(seed)

    def draw(limit: int, least: int = 0) -> int:
        return rng.choice([v for v in edges(limit) if v >= least]) if rng.random() < 0.5 else rng.randint(least, limit)

    cases: list[tuple[int, ...]] = []
    for _ in range(CASES):
        total = draw(shared)
        fixed = min(rng.choice([0, 0, total, rng.randint(0, total)]), 48 << 10)
        cases.append((draw(1024, 1), draw(255), fixed, total - fixed, rng.randint(1, barriers), rng.choice(carveouts)))
    return cases


def as_nvidia(found: Occupancy) -> list[int]:
    """A result in the words of NVIDIA's calculator."""
    by = {limit.resource: ANY if limit.blocks is None else limit.blocks for limit in found.limits}
    # Its bits name what limits before barriers are looked at, and barriers beside that.
    first = min(blocks for resource, blocks in by.items() if resource != "barriers")
    bits = sum(bit for bit, resource in BITS.items() if bit != 16 and by[resource] == first)
    bits += 16 * (by.get("barriers", ANY) <= first)
    shown = [by[name] for name in ("warps", "registers", "shared memory", "blocks")]
    taken = [found.registers_per_block, found.shared_memory_per_block]
    return [found.blocks, bits, *shown, by.get("barriers", ANY), *taken]


@pytest.mark.processes
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_equal_to_nvidia(capability: str, nvidia: Callable[[str, list[tuple[int, ...]]], list[list[int]]]) -> None:
    """10,000 random kernels: blocks, limiting factors, every single limit, and what is allocated."""
    limits = limits_of(capability)
    cases = random_cases(int(capability.replace(".", "")), limits.shared_memory_per_block, 16, [-1])
    for case, theirs in zip(cases, nvidia(capability, cases), strict=True):
        threads, registers, fixed, added, barriers, _ = case
        found = occupancy(Usage(threads, registers, fixed + added, barriers), limits)
        assert as_nvidia(found) == theirs, case
        named = {limit.resource for limit in found.limits if limit.blocks == found.blocks}
        assert set(found.limiters) == named, case


@pytest.mark.processes
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_equal_to_nvidia_with_a_preferred_carve_out(
    capability: str, nvidia: Callable[[str, list[tuple[int, ...]]], list[list[int]]]
) -> None:
    limits = limits_of(capability)
    cases = random_cases(7, limits.shared_memory_per_block, 1, list(range(101)))
    for case, theirs in zip(cases, nvidia(capability, cases), strict=True):
        threads, registers, fixed, added, barriers, carveout = case
        found = occupancy(Usage(threads, registers, fixed + added, barriers), limits, carveout)
        assert as_nvidia(found) == theirs, case


@pytest.mark.processes
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_what_is_beyond_the_hardware_runs_nowhere(
    capability: str, nvidia: Callable[[str, list[tuple[int, ...]]], list[list[int]]]
) -> None:
    """Where `excesses` finds a value, NVIDIA's calculator admits no block; one step below it does."""
    limits = limits_of(capability)
    top = limits.shared_memory_per_block
    over = [Usage(1025, 32, 0), Usage(128, 257, 0), Usage(128, 32, top + 1)]
    within = [Usage(1024, 32, 0), Usage(128, 255, 0), Usage(128, 32, top)]
    cases: list[tuple[int, ...]] = [
        (usage.threads, usage.registers, 0, usage.shared_memory, 1, -1) for usage in [*over, *within]
    ]
    answers = nvidia(capability, cases)
    assert all(excesses(usage, limits) for usage in over)
    assert not any(excesses(usage, limits) for usage in within)
    assert [answer[0] for answer in answers[:3]] == [0, 0, 0]
    assert all(answer[0] > 0 for answer in answers[3:])


@pytest.mark.parametrize(
    ("capability", "usage", "blocks", "limiters"),
    [
        # The worked examples of profiling/occupancy-limits.
        ("9.0", Usage(256, 72, 48 << 10), 3, ("registers",)),
        ("9.0", Usage(256, 64, 48 << 10), 4, ("registers", "shared memory")),
        ("9.0", Usage(256, 80, 48 << 10), 3, ("registers",)),
        ("9.0", Usage(128, 0, 12 << 10), 16, ("warps",)),
        ("7.5", Usage(256, 32, 0), 4, ("warps",)),
        ("8.0", Usage(32, 16, 0), 32, ("blocks",)),
        ("8.6", Usage(32, 16, 0), 16, ("blocks",)),
        ("12.0", Usage(1024, 40, 0), 1, ("warps", "registers")),
        # 20 warps of 96 registers: a block is checked as 20 x 3,072, and 20 warps of 20 fit an SM.
        ("8.0", Usage(640, 96, 0), 1, ("registers",)),
        # 5 warps are checked as 8: 8 x 8,192 fits 65,536, and 4 x floor(16,384 / 8,192) = 8 warps hold one block.
        ("8.0", Usage(160, 255, 0), 1, ("registers",)),
        # 9 warps are checked as 12: 12 x 8,192 does not.
        ("8.0", Usage(288, 255, 0), 0, ("registers",)),
        ("9.0", Usage(128, 32, 0, 16), 4, ("barriers",)),
    ],
)
def test_by_hand(capability: str, usage: Usage, blocks: int, limiters: tuple[str, ...]) -> None:
    found = occupancy(usage, limits_of(capability))
    assert (found.blocks, found.limiters) == (blocks, limiters)
    assert found.warps == blocks * -(-usage.threads // 32)


def test_the_smallest_carve_out_holds_the_blocks() -> None:
    found = occupancy(Usage(256, 72, 48 << 10), limits_of("9.0"))
    assert found.shared_memory_per_block == 49 << 10
    assert (found.configuration, found.l1) == (164 << 10, 92 << 10)  # 3 x 49 = 147 KB


LIMITS = {capability: limits_of(capability) for capability in CAPABILITIES}


@given(
    capability=st.sampled_from(CAPABILITIES),
    threads=st.integers(1, 1024),
    registers=st.integers(0, 255),
    shared=st.integers(0, 99 << 10),
    barriers=st.integers(0, 16),
)
def test_what_one_more_block_needs(capability: str, threads: int, registers: int, shared: int, barriers: int) -> None:
    """With every need met one more block fits; with one unit more of a resource it does not."""
    limits = LIMITS[capability]
    usage = Usage(threads, registers, min(shared, limits.shared_memory_per_block), barriers)
    found = occupancy(usage, limits)
    names = {"warps": "threads", "registers": "registers", "shared memory": "shared_memory", "barriers": "barriers"}
    assert {need.resource for need in found.needs} == set(found.limiters)
    # Nothing but the number of block slots cannot be helped.
    assert {need.resource for need in found.needs if need.at_most is None} <= {"blocks"}
    if "blocks" in found.limiters:
        return
    most = {names[need.resource]: need.at_most for need in found.needs if need.at_most is not None}
    met = replace(usage, **most)
    assert occupancy(met, limits).blocks > found.blocks
    for need in found.needs:
        assert need.at_most is not None
        assert need.at_most < need.now
        almost = replace(usage, **{names[need.resource]: need.at_most + 1})
        admitted = {limit.resource: limit.blocks for limit in occupancy(almost, limits).limits}[need.resource]
        assert admitted == found.blocks


@pytest.mark.parametrize("capability", CAPABILITIES)
@pytest.mark.parametrize("metric", [*NEEDED, *WORDS])
def test_a_limit_that_the_page_does_not_state_is_named(capability: str, metric: str) -> None:
    product = f"cc-{capability.replace('.', '-')}"
    rows = [spec for spec in page_specs(capability) if spec.metric != metric]
    found = sm_limits(rows, product, V)
    assert isinstance(found, list)
    assert metric in found


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("register_allocation_granularity", "block"),
        ("shared_memory_carveouts", "0, 8, 16"),
        ("max_blocks_per_sm", "unpublished"),
        ("warp_size", "none"),
    ],
)
def test_a_limit_that_cannot_be_used_is_named(metric: str, value: str) -> None:
    rows = [replace(spec, value=value) if spec.metric == metric else spec for spec in page_specs("9.0")]
    found = sm_limits(rows, "cc-9-0", V)
    assert isinstance(found, list)
    assert metric in found


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_every_limit_knows_its_line(capability: str) -> None:
    limits = limits_of(capability)
    assert set(limits.specs) == {*NEEDED, *WORDS}
    for metric, spec in limits.specs.items():
        line = spec.citation_line(V)
        assert f"hardware/cc-{capability.replace('.', '-')}.md:L" in line
        assert V.metrics[metric].name in line
    found = occupancy(Usage(256, 72, 1024), limits)
    assert {metric for limit in found.limits for metric in limit.metrics} <= set(limits.specs)
