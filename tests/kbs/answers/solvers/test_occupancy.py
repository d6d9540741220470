"""How what a kernel uses fills an SM, in an answer."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbs.answers.knowledge import Knowledge
from kbs.answers.model import ClaimKind
from kbs.answers.solvers.occupancy import THREADS, filling
from kbs.answers.solvers.part import Part
from tests.kbs.answers.small_wiki import cited, read, texts, unsound
from wiki.library import Wikis


def answered(text: str, knowledge: Knowledge) -> Part:
    found = filling(read(text), knowledge)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "starts", "limited", "note"),
    [
        (
            "occupancy with 64 registers and 256 threads on H100 SXM",
            "50 % occupancy on CC 9.0: with 256 threads a block, 64 registers a thread, 4 blocks fit an SM,"
            " 32 of 64 warps (4 × 8 / 64 × 100 = 50), limited by registers: ",
            ["Register file per SM: 256 KB", "Register allocation unit: 256 registers",
             "Register allocation granularity: warp", "Warp allocation granularity: 4 warps",
             "Maximum registers per block: 65536 registers"],
            "one block more fits with at most 48 registers a thread",
        ),
        (
            "occupancy with 100 KB of shared memory and 128 threads on H100 PCIe",
            "12.5 % occupancy on CC 9.0: with 128 threads a block, 102,400 B of shared memory a block, 2 blocks fit an"
            " SM, 8 of 64 warps (2 × 4 / 64 × 100 = 12.5), limited by shared memory: ",
            ["Shared memory per SM: 228 KB", "Reserved shared memory per block: 1 KB",
             "Shared memory allocation unit: 128 B",
             "Shared memory carve-outs: 0, 8, 16, 32, 64, 100, 132, 164, 196, 228 KB"],
            "one block more fits with at most 76,800 bytes of shared memory a block",
        ),
        (
            "how many blocks of 1,024 threads fit on an SM of H100 SXM",
            "100 % occupancy on CC 9.0: with 1,024 threads a block, 2 blocks fit an SM, 64 of 64 warps"
            " (2 × 32 / 64 × 100 = 100), limited by warps: ",
            ["Maximum warps per SM: 64 warps", "Warp size: 32 threads"],
            "one block more fits with at most 672 threads a block",
        ),
    ],
)  # fmt: skip
def test_blocks_of_an_sm(
    text: str, starts: str, limited: list[str], note: str, knowledge: Knowledge, pages: Wikis
) -> None:
    found = answered(text, knowledge)
    [claim] = found.direct
    assert claim.text.startswith(starts)
    assert (claim.kind, claim.note) == (ClaimKind.DERIVED, note)
    [facts] = found.sections
    assert (facts.title, texts(facts.claims)) == ("Limits of the hardware", [f"CC 9.0 {one}" for one in limited])
    assert {line for fact in facts.claims for line in cited(fact)} <= set(cited(claim))
    assert (found.whole, found.gaps, found.refusal) == (True, (), "")
    assert unsound(found, pages) == []


def test_two_boards_of_one_capability_are_one(knowledge: Knowledge) -> None:
    assert len(answered("occupancy with 64 registers and 256 threads on H100 SXM and PCIe", knowledge).direct) == 1


def test_threads_that_nobody_says_are_taken_and_told(knowledge: Knowledge) -> None:
    found = answered("occupancy with 64 registers on H100 SXM", knowledge)
    assert found.direct[0].text.startswith("50 % occupancy on CC 9.0: with 256 threads a block, 64 registers a thread")
    assert found.gaps == (f"The question does not say how many threads a block has, so {THREADS} were taken.",)


@pytest.mark.parametrize(
    ("text", "direct", "row"),
    [
        (
            "occupancy with 300 registers and 64 threads on H100 SXM",
            "CC 9.0 cannot launch such a block: 300 registers a thread, and its limit is 255.",
            "Maximum registers per thread",
        ),
        (
            "occupancy with 2,048 threads on H100 SXM",
            "CC 9.0 cannot launch such a block: 2,048 threads a block, and its limit is 1,024.",
            "Maximum threads per block",
        ),
        (
            "occupancy with 228 KB of shared memory and 64 threads on H100 SXM",
            "CC 9.0 cannot launch such a block: 233,472 bytes of shared memory, and its limit is 232,448.",
            "Shared memory per block",
        ),
    ],
)
def test_what_no_kernel_can_have(text: str, direct: str, row: str, knowledge: Knowledge, pages: Wikis) -> None:
    found = answered(text, knowledge)
    assert texts(found.direct) == [direct]
    assert [line.split(" | ")[0] for line in cited(found.direct[0])] == [f"| {row}"]
    assert (found.sections, found.gaps) == ((), ())
    # 227 KB are 232,448 B, which the row does not say in these words: the step does.
    assert unsound(found, pages) == []


@pytest.mark.parametrize(
    "text",
    [
        "occupancy on H100 SXM",  # nothing is used
        "occupancy with 64 registers",  # of no GPU
        "why is my kernel with 64 registers slow on H100 SXM",
        "occupancy with 64 registers on T4",  # whose limits the wiki has not
    ],
)
def test_what_asks_for_no_filling(text: str, knowledge: Knowledge) -> None:
    assert filling(read(text), knowledge) is None


def test_a_gpu_without_limits_beside_one_that_has_them(knowledge: Knowledge) -> None:
    found = answered("occupancy with 64 registers and 256 threads on T4 and H100 SXM", knowledge)
    assert len(found.direct) == 1
    assert found.gaps == ("T4: I found no line about what an SM of it can hold.",)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.integers(1, 300), st.integers(10, 1100), st.integers(1, 230))
def test_whatever_is_used_the_answer_stands_up_to_its_check(
    knowledge: Knowledge, pages: Wikis, registers: int, threads: int, shared: int
) -> None:
    text = f"occupancy with {registers} registers, {threads} threads and {shared} KB of shared memory on H100 SXM"
    found = answered(text, knowledge)
    assert unsound(found, pages) == []
    launches = registers <= 255 and threads <= 1024 and shared <= 227
    assert ("cannot launch" not in found.direct[0].text) is launches
