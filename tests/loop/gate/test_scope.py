"""What a figure is of, claims without one, quotations that are cut, and references that hide a number."""

from __future__ import annotations

from decimal import Decimal

import pytest

from loop.gate.claims import Shown, bare_claims, cut_away
from loop.gate.numbers.references import blanked
from loop.gate.numbers.scope import of_all, of_other_program, same_conditions
from tests.loop.gate.test_accounting import launch, loose

LINES = {
    "sparse": "| BF16 tensor throughput | 1979 | TFLOPS | sparse 2:4 | source-reported |",
    "dense": "| BF16 tensor throughput | 989.5 | TFLOPS | dense | inferred |",
    "read": "| L2 bandwidth | 9.68 | TB/s | read | source-reported |",
    "clock": "| Boost clock | 1980 | MHz | FP32 and FP64 rows | inferred |",
    "plain": "| HBM bandwidth | 4.8 | TB/s | | source-reported |",
}


@pytest.mark.parametrize(
    ("line", "clause", "same"),
    [
        ("sparse", "Dense BF16 products run at", False),
        ("sparse", "BF16 products run at", False),
        ("sparse", "Sparse BF16 products run at", True),
        ("dense", "BF16 products run at", True),
        ("dense", "With sparsity it is", False),
        ("dense", "FP8 products run at", False),
        ("read", "Writes to L2 reach", False),
        ("read", "Reads that hit L2 reach", True),
        ("read", "Loads and stores reach", True),
        ("read", "The L2 bandwidth is", True),
        ("plain", "The kernel writes at", True),
        ("clock", "The tensor cores tick at", False),
        ("clock", "FP32 arithmetic ticks at", True),
        ("clock", "It ticks at", True),
    ],
)
def test_a_line_holds_under_its_own_conditions(line: str, clause: str, same: bool) -> None:
    assert same_conditions(LINES[line], clause, clause, "") is same


def test_a_figure_of_the_whole_is_none_of_each_multiprocessor() -> None:
    assert not same_conditions("| L2 capacity | 50 | MB |", "L2 has", "L2 has", " of L2 per SM")
    assert same_conditions("| Shared memory per SM | 228 | KB |", "It has", "It has", " per SM")


@pytest.mark.parametrize(
    ("clause", "all_of_them"),
    [
        ("Every Hopper GPU has an HBM bandwidth of 4.8 TB/s", True),
        ("All cards of this kind move 4.8 TB/s", True),
        ("Hopper GPUs move 4.8 TB/s", True),
        ("This GPU moves 4.8 TB/s", False),
        ("The H200 SXM moves 4.8 TB/s", False),
    ],
)
def test_a_line_on_a_product_is_none_on_its_family(clause: str, all_of_them: bool) -> None:
    assert of_all(clause) is all_of_them
    cited = "H200 SXM HBM bandwidth: 4.8 TB/s"
    assert bool(loose(f"{clause}.", cited=cited, product="h200-sxm")) is all_of_them


@pytest.mark.parametrize(
    ("before", "other"),
    [
        ("torch.softmax takes ", True), ("cuDNN needs ", True), ("The library's kernel takes ", True),
        ("The parent takes ", False), ("Like torch.softmax, this kernel takes ", False), ("It takes ", False),
    ],
)  # fmt: skip
def test_a_time_is_that_of_what_was_measured(before: str, other: bool) -> None:
    assert of_other_program(before) is other
    assert bool(loose(f"{before}128.5 us.")) is other


CLAIMS = {
    "With eight warps this is the fastest RMSNorm that exists.": "",
    "It is the best kernel ever written.": "",
    "It runs ahead of cuDNN and of Liger.": "",
    "This beats torch.compile.": "",
    "Loads are most of the time.": "",
    "The profile shows that barriers dominate the runtime.": "",
    "This is state of the art.": "",
}
NO_CLAIMS = (
    "It may be faster than torch.compile.", "It takes 128.5 us, faster than torch.compile at 130.1 us.",
    "Shuffles are faster than shared memory.", "Registers may spill.", "No registers spill.", "Are there spills?",
    "The fastest of the branches is kept.", "It names the stall that the profile shows first.",
    "Which value is best is known on the GPU alone.",
    "It should keep most of the time free.", "A warp reads 128 bytes at once.",
)  # fmt: skip


@pytest.mark.parametrize("said", CLAIMS)
def test_a_claim_needs_its_figure(said: str) -> None:
    assert len(list(bare_claims(f"\n{said}", Shown([launch()], "", False)))) == 1
    assert next(bare_claims(f"\n{said}", Shown([launch()], "", False)))[0] == 2


@pytest.mark.parametrize("said", NO_CLAIMS)
def test_what_may_be_or_has_a_figure_is_no_bare_claim(said: str) -> None:
    assert not list(bare_claims(said, Shown([launch()], "", False)))


def test_a_share_is_measured_somewhere_and_a_comparison_quoted() -> None:
    assert not list(bare_claims("Loads are most of the time.", Shown([], "", True)))
    assert not list(bare_claims("This is ahead of cuDNN.", Shown([], "It is ahead of cuDNN here.", False)))


def test_what_the_profile_does_not_count_is_not_there() -> None:
    said = "The profile shows that registers spill to local memory."
    assert [why for _, _, why in bare_claims(said, Shown([], "", True))] == ["there is no profile"]
    (found,) = bare_claims(said, Shown([launch()], "", True))
    assert "spill" in found[2]


BARE = Shown([], "", measured=False)
TIMED = Shown([launch()], "", measured=True, timed={0, 1, 2}, kept={0, 1})


@pytest.mark.parametrize(
    "said",
    [
        "v2 was the quicker one while it ran.", "v2 failed at row ends. Of the two it was quicker.",
        "This shape is faster than the loop.", "The published kernel loses to this shape.",
        "No hand-written kernel comes nearer to what the chip can do.", "The switch took something off each call.",
        "It gained from fewer warps.", "This card keeps up with it.", "The launch is latency-bound.",
        "The kernel is held back by its stores.", "A launch is spent for the greater part waiting.",
        "The barrier is the bottleneck.", "Its profile has stalls of the scoreboard ahead of all others.",
        "The larger tile took less of what it took before.",
    ],
)  # fmt: skip
def test_a_comparison_of_speeds_or_a_limit_rests_on_a_measurement(said: str) -> None:
    assert list(bare_claims(said, BARE))


@pytest.mark.parametrize(
    "said",
    [
        "It may be faster.", "It should gain from more warps.", "I expect that it is faster.", "Is it faster?",
        "More loads are under way at once.", "Warps beyond the fourth wait at the reductions.", "It is the gain.",
        "What bounds it is unknown, since no counter was read.", "A deeper pipeline loads tiles ahead of their use.",
        "Tiles run nearer to each other in time.", "There is no profile that shows a stall.", "It was 1.2x faster.",
        "A memory-bound kernel wants wide loads.", "It is not bound by arithmetic.", "If it is slower, it is undone.",
    ],
)  # fmt: skip
def test_what_is_expected_or_no_comparison_is_free(said: str) -> None:
    assert not list(bare_claims(said, BARE))


def test_versions_are_compared_as_the_journal_has_them() -> None:
    assert not list(bare_claims("v1 was faster than the parent.", TIMED))
    assert not list(bare_claims("v2 was slower.", TIMED))
    assert not list(bare_claims("v1 is faster than v2.", TIMED))
    assert not list(bare_claims("It is faster now. The kernel is latency-bound.", TIMED))
    assert list(bare_claims("v2 was faster than the parent.", TIMED))
    assert list(bare_claims("v3 was slower.", TIMED))
    assert not list(bare_claims("The loop is faster.", Shown([], "here the loop is faster", measured=False, timed={0})))


STALLS = "A `long_scoreboard` stall is a latency signal and no proof of a bandwidth limit.[^long-sb]"


@pytest.mark.parametrize(
    ("quote", "lines", "word"),
    [
        ("proof of a bandwidth limit", STALLS, "no"),
        ("a latency signal and no proof of a bandwidth limit", STALLS, ""),
        ("A long_scoreboard stall is a latency signal", STALLS, "no"),
        ("vector loads help", "It is not true that vector loads help.", "not"),
        ("vector loads help", "Aligned vector loads help, and a mask does not.", ""),
        ("vector loads help", "Aligned vector loads help only if rows are aligned.", "only if"),
        ("because the block waits", "It removes what it does not need, because the block waits.", ""),
        ("4.8 TB/s", "| HBM bandwidth | 4.8 | TB/s |", ""),
    ],
)
def test_a_quotation_has_what_would_turn_it_round(quote: str, lines: str, word: str) -> None:
    assert cut_away(quote, lines) == word


@pytest.mark.parametrize(
    "text",
    [
        "as https://example.org/h200/l2_bandwidth=7.2TB/s says", "It is in h200-l2-reads-7.2TB-per-s.md for all.",
        "How many GB/s the L2 serves is the number of issue #7200.", "The cache gives l2_gbps_7200, which is enough.",
        "With l44 SMs a tail is left over.",
    ],
)  # fmt: skip
def test_a_name_hides_no_number(text: str) -> None:
    assert loose(text)


@pytest.mark.parametrize(
    "text",
    [
        "See triton issue #4821 and PyTorch PR #139000.", "It is in gpu-wiki/hardware/h200-sxm.md:L59.",
        "See https://example.org/blog/2024/softmax-4821.html for it.", "benchmarks/run_4821.py has it.",
        "log/01M7ZVVVR00003GF6GSY21D2R7 has it, of 2026-11-21.",
    ],
)  # fmt: skip
def test_a_reference_is_no_number(text: str) -> None:
    assert not loose(text)
    assert len(blanked(text)) == len(text)


@pytest.mark.parametrize(
    "said",
    [
        "The HBM bandwidth is somewhere in the region of 4.8 TB/s.", "HBM moves close to 4.8 TB/s.",
        "The HBM bandwidth is 4.8 TB/s. Take that with caution, nobody here tried it.",
        "The HBM bandwidth is 4.8 TB/s. I would not rely on that.",
    ],
)  # fmt: skip
def test_a_hedge_is_told(said: str) -> None:
    assert [one for one in loose(said, cited="H200 SXM HBM bandwidth: 4.8 TB/s") if one.hedge]


def test_figures_of_the_profile_are_taken_in_any_order_and_unit() -> None:
    read = Decimal(268435456)
    assert not loose(f"{read} / 134217728 = 2 reads of the input.")
    assert not loose("The block slots allow 32 blocks on an SM, and registers 32.")
