"""Pages of a small wiki with round figures, for tests of what solvers and sections say; no figure is a real one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ingest.update import Index
from kbs.answers.knowledge import Knowledge
from kbs.answers.model import Claim
from kbs.answers.solvers.part import Part
from kbs.answers.verify import why_unsound
from kbs.evidence.file_evidence import NoEvidence
from kbs.evidence.vocabulary import vocabulary
from kbs.index.sections import SectionResult
from kbs.questions.question import Question, understand
from tests.conftest import page_text
from wiki.library import Wiki, Wikis

V = vocabulary()
HEAD = "| metric | value | unit | qualifier | confidence | source |\n|---|---|---|---|---|---|\n"


def specs(*rows: str) -> str:
    """A table of specs: `HBM bandwidth | 3 | TB/s |` and a qualifier, or nothing, a row."""
    return HEAD + "".join(f"| {row} | verified | src p. 1 |\n" for row in rows)


def hardware(title: str, table: str, rest: str = "") -> str:
    """The body of a page of a GPU."""
    return f"# {title}\n\nThe {title} is a GPU of this small wiki.\n\n## Specifications\n\n{table}{rest}"


H100_SXM = hardware(
    "H100 SXM",
    specs(
        "Compute capability | 9.0 | |",
        "HBM bandwidth | 3 | TB/s |",
        "FP32 throughput | 60 | TFLOPS |",
        "BF16 tensor throughput | 900 | TFLOPS | dense",
        "BF16 tensor throughput | 1800 | TFLOPS | sparse 2:4",
        "FP8 tensor throughput | 1800 | TFLOPS | dense",
        "L2 capacity | 50 | MB |",
        "L2 bandwidth | unpublished | TB/s |",
        "Memory capacity | 80 | GB |",
        "Memory type | HBM3 | |",
        "SM count | 132 | SM |",
        "Boost clock | 2000 | MHz |",
        "FP4 tensor throughput | none | |",
        "Measured copy bandwidth | 2.5 | TB/s |",
    ),
    """
## Where sources disagree

"""
    + specs("L2 capacity | 60 | MB |")
    + """
## How is the L2 of the H100 SXM split?
<!-- asks: does my data sit in the near partition -->

The L2 of the H100 SXM has two partitions of equal size.[^a]
A partition of the H100 PCIe holds fewer lines than that.[^a]
The near partition answers sooner than the far one does.[^a]

[^a]: src p. 3.
""",
)
H100_PCIE = hardware(
    "H100 PCIe",
    specs(
        "Compute capability | 9.0 | |",
        "HBM bandwidth | 2 | TB/s |",
        "FP32 throughput | 50 | TFLOPS |",
        "BF16 tensor throughput | 700 | TFLOPS | dense",
        "L2 capacity | 50 | MB |",
        "SM count | 114 | SM |",
    ),
)
T4 = hardware(
    "T4",
    specs(
        "Compute capability | 7.5 | |",
        "HBM bandwidth | 320 | GB/s |",
        "FP32 throughput | 8 | TFLOPS |",
        "L2 capacity | 4096 | KB |",
        "SM count | 40 | SM |",
        "Measured latency | 600 | cycles | DRAM",
        "Boost clock | 1.5 | GHz |",
    ),
)
CC_9_0 = hardware(
    "CC 9.0",
    specs(
        "Architecture | Hopper | |",
        "Warp size | 32 | threads |",
        "Maximum blocks per SM | 32 | blocks |",
        "Maximum warps per SM | 64 | warps |",
        "Maximum threads per SM | 2048 | threads |",
        "Maximum threads per block | 1024 | threads |",
        "Register file per SM | 256 | KB |",
        "Maximum registers per thread | 255 | registers |",
        "Shared memory per SM | 228 | KB |",
        "Shared memory per block | 227 | KB |",
        "Maximum registers per block | 65536 | registers |",
        "Register allocation unit | 256 | registers |",
        "Register allocation granularity | warp | |",
        "Warp allocation granularity | 4 | warps |",
        "Shared memory per block without opt-in | 48 | KB |",
        "Reserved shared memory per block | 1 | KB |",
        "Shared memory allocation unit | 128 | B |",
        "Shared memory carve-outs | 0, 8, 16, 32, 64, 100, 132, 164, 196, 228 | KB |",
        "Maximum barriers per SM | 64 | barriers |",
        "Unified L1 and shared capacity | 256 | KB |",
        "Clusters, TMA and distributed shared memory | yes | |",
        "Measured latency | 30 | cycles | L1",
        "Measured latency | 200 | cycles | L2",
        "Measured latency | 500 | cycles | DRAM",
        "FP32 units per SM | 100 | units |",
        "Tensor cores per SM | 4 | units |",
    ),
)
SOFTMAX = """\
# Softmax

A row softmax reads its row once and writes it once when the row stays on the chip.

## Cost

| operation | cost | count | dims | dtype | note |
|---|---|---|---|---|---|
| softmax | vector FLOP | 5 | M N | | five operations |
| softmax | read | 1 | M N | | x, once |
| softmax | write | 1 | M N | | y, once |

## What to try

| technique | bottleneck | because | source |
|---|---|---|---|
| [online-softmax](../technique/online-softmax.md) | memory-bound | One pass over the row replaces two. | src p. 4 |
| [tma](../technique/tma.md) | memory-bound | The engine copies whole tiles. | src p. 4 |
| [kernel-fusion](../technique/kernel-fusion.md) | launch-bound | One launch replaces two. | src p. 4 |

## Measured

| operation | gpu | dtype | shape | metric | value | unit | what | source |
|---|---|---|---|---|---|---|---|---|
| softmax | H100 SXM | fp32 | 4096 x 4096 | memory throughput | 2.7 | TB/s | one block a row | src p. 5 |
| softmax | T4 | fp32 | 1024 x 1024 | memory throughput | 250 | GB/s | one warp a row | src p. 5 |

## Why does a softmax of short rows wait?
<!-- asks: softmax with tiny rows is idle -->

A softmax of short rows waits because a block has too few bytes under way.[^a]
On the T4 the same softmax keeps the memory busy all the time.[^a]
How rows are read in one pass stands on [the page of it](../technique/online-softmax.md).[^a]
Several rows in each block put more bytes under way.[^a]

[^a]: src p. 6.
"""
ONLINE_SOFTMAX = """\
# Online softmax

Online softmax reads each row once and keeps a running maximum and sum.[^a]

[^a]: src p. 7.
"""
TMA = """\
# Tensor Memory Accelerator

The Tensor Memory Accelerator copies tiles between global and shared memory on Hopper boards.[^a]

[^a]: src p. 8.
"""
FUSION = """\
# Kernel fusion

Kernel fusion puts two kernels into one and saves a launch.[^a]

[^a]: src p. 9.
"""
PADDING = """\
# Bank conflict avoidance

A padded tile puts the rows of a column into different banks.[^a]

[^a]: src p. 9.
"""
BANKS = """\
# Bank conflicts in a profile

Bank conflicts show as wavefronts beyond the ideal number.[^a]
The metric l1tex__data_bank_conflicts_pipe_lsu.sum counts those conflicts.[^a]

| symptom | metric | test | value | unit | source |
|---|---|---|---|---|---|
| bank-conflicts | l1tex__data_bank_conflicts_pipe_lsu.sum | > | 10 | % | src p. 10 |
| bank-conflicts | l1tex__data_bank_conflicts_pipe_lsu.sum | > | 10 | % | src p. 11 |
| bank-conflicts | l1tex__data_bank_conflicts_pipe_lsu.sum | > | 20 | % | src p. 12 |

[^a]: src p. 13.
"""
SPILLS = """\
# Spills in a profile

Registers that spill show as loads and stores of local memory.[^a]

## Which counters tell of spills?

| counter | meaning |
|---|---|
| ptxas.spill_stores | bytes that are stored for each thread |

A kernel spills where ptxas.spill_stores is above zero.[^a]
ptxas.spill_stores counts the bytes of all stores.[^a]
Its partner ptxas.spill_loads counts the bytes of all loads.[^a]
No ptxas.spill_stores is printed for a kernel that spills nothing.[^a]
The fifth line has ptxas.spill_stores too.[^a]
Even so, the sixth line has ptxas.spill_stores.[^a]
And at last the seventh line has ptxas.spill_stores.[^a]

[^a]: src p. 14.
"""
MEMORY_BOUND = """\
# Memory-bound

A memory-bound kernel waits for bytes.[^a]

## What to try

| technique | bottleneck | because | source |
|---|---|---|---|
| [kernel-fusion](../technique/kernel-fusion.md) | memory-bound | The middle result stays on the chip. | src p. 15 |

[^a]: src p. 15.
"""
TERMS = """\
# Terms

## Words of the small wiki

A warp is a group of threads that share one instruction.[^a]
A thread block (block, CTA) is a group of warps on one SM.[^a]

[^a]: src p. 16.

| name | meaning |
|---|---|
| long scoreboard | warps wait for a load from memory |
"""
PAGES: Mapping[str, tuple[str, str]] = {
    "hardware/h100-sxm": ("H100 SXM", "vendor: nvidia\narchitectures: [hopper]\nfamily: h100"),
    "hardware/h100-pcie": ("H100 PCIe", "vendor: nvidia\narchitectures: [hopper]\nfamily: h100"),
    "hardware/t4": ("T4", "vendor: nvidia\narchitectures: [turing]"),
    "hardware/cc-9-0": ("CC 9.0", "vendor: nvidia\narchitectures: [hopper]"),
    "kernel/softmax": ("Softmax", "operations: [softmax]\nbottlenecks: [memory-bound]"),
    "technique/online-softmax": ("Online softmax", "operations: [softmax]"),
    "technique/tma": ("Tensor Memory Accelerator", "architectures: [hopper, blackwell]"),
    "technique/kernel-fusion": ("Kernel fusion", "symptoms: [launch-overhead]"),
    "technique/bank-conflict-avoidance": ("Bank conflict avoidance", "symptoms: [bank-conflicts]"),
    "profiling/banks": ("Bank conflicts in a profile", "symptoms: [bank-conflicts]"),
    "profiling/spills": ("Spills in a profile", "symptoms: [register-spills]\ntechniques: [kernel-fusion, tma]"),
    "bottleneck/memory-bound": ("Memory-bound", "bottlenecks: [memory-bound]"),
    "language/terms": ("Terms", "tags: [terms]\nsymptoms: [stall-long-scoreboard]"),
}
BODIES = dict(
    zip(
        PAGES,
        (H100_SXM, H100_PCIE, T4, CC_9_0, SOFTMAX, ONLINE_SOFTMAX, TMA, FUSION, PADDING, BANKS, SPILLS, MEMORY_BOUND,
         TERMS),
        strict=True,
    )
)  # fmt: skip


@contextmanager
def small_wiki(root: Path) -> Iterator[tuple[Knowledge, Wikis]]:
    """The pages on disk, indexed without vectors: as solvers have them, and as the check of claims has them."""
    for id, (title, more) in PAGES.items():
        file = root / "wiki" / f"{id}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page_text(id, BODIES[id], title=title, more=more), "utf-8")
    wiki = Wiki("w", root / "wiki")
    index = Index(root / "home")
    made = index.update([wiki], V, None)
    assert not made.problems, made.problems
    with index.open() as store:
        yield Knowledge(store, V, lambda _: SectionResult()), Wikis([wiki])


def read(text: str, **more: Any) -> Question:
    """A question as it is read."""
    return understand(text, V, **more)


def texts(claims: Sequence[Claim]) -> list[str]:
    """What claims say."""
    return [claim.text for claim in claims]


def cited(claim: Claim) -> list[str]:
    """The lines that a claim cites, as they are written."""
    return [citation.quote for citation in claim.citations]


def unsound(part: Part, library: Wikis, asked: str = "") -> list[str]:
    """Why claims of a part must not be said; none where all of them stand up to the check."""
    claims = [*part.direct, *(claim for section in part.sections for claim in section.claims)]
    return [why for claim in claims if (why := why_unsound(claim, library, V, NoEvidence(), asked))]
