"""A small wiki of two pages, for tests of what is cited, stored and searched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from wiki.library import Wiki, Wikis

H100 = """\
---
id: hardware/h100-sxm
kind: hardware
title: H100 SXM
vendor: nvidia
architectures: [hopper]
family: h100
confidence: verified
reviewed: 2026-11-21
sources:
  - {id: ds, title: Datasheet, url: "https://example.com/ds", kind: vendor-datasheet, accessed: 2026-11-21}
---

# H100 SXM

The H100 SXM moves 3.35 TB/s through its HBM, and a **memory-bound** kernel on it waits for 13,350 bytes.[^a]

## Specifications

| metric | value | unit | qualifier | confidence | source |
|---|---|---|---|---|---|
| HBM bandwidth | 3.35 | TB/s | | verified | ds p. 2 |
| BF16 tensor throughput | 989.4 | TFLOPS | dense | verified | ds p. 2 |
| BF16 tensor throughput | 1978.9 | TFLOPS | sparse 2:4 | verified | ds p. 2 |
| L2 capacity | 50 | MB | | verified | ds p. 2 |
| Shared memory per SM | 228 | KB | | verified | ds p. 2 |
| Memory capacity | 80 | GB | | verified | ds p. 2 |
| Memory type | HBM3 | | | verified | ds p. 2 |
| L2 bandwidth | unpublished | TB/s | | verified | ds p. 2 |
| TDP | 700 | W | configurable up to | verified | ds p. 2 |
| PCIe bandwidth | 128 | GB/s | bidirectional total | verified | ds p. 2 |
| PCIe bandwidth | 64 | GB/s | per direction | verified | ds p. 2 |
| Maximum cluster size | 8 | blocks | portable | verified | ds p. 2 |
| FP32 to FP64 ratio | 2 | x | | verified | ds p. 2 |

[^a]: ds p. 2.
"""

SOFTMAX = """\
---
id: kernel/softmax
kind: kernel
title: Softmax
operations: [softmax]
bottlenecks: [memory-bound]
languages: [triton]
confidence: verified
reviewed: 2026-11-21
sources:
  - {id: ds, title: Datasheet, url: "https://example.com/ds", kind: vendor-datasheet, accessed: 2026-11-21}
---

# Softmax

A row softmax reads its row once and writes it once when the row stays on the chip.

## Cost

| operation | cost | count | dims | dtype | note |
|---|---|---|---|---|---|
| softmax | vector FLOP | 5 | M N | | five operations |
| softmax | read | 1 | M N | | x, once |
| softmax | write | 1 | M N | | y, once |

## What to look for in a profile

A long_scoreboard stall in `smsp__inst_executed` beside ld.global.nc loads says that warps wait for memory.
"""


@pytest.fixture
def wiki(tmp_path: Path) -> Wiki:
    """The small wiki on disk; a test may edit it."""
    root = tmp_path / "wiki"
    for path, text in (("hardware/h100-sxm.md", H100), ("kernel/softmax.md", SOFTMAX)):
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return Wiki("gpu-wiki", root)


@pytest.fixture
def library(wiki: Wiki) -> Wikis:
    """The small wiki, as the checker needs it."""
    return Wikis([wiki])


@pytest.fixture
def at(library: Wikis) -> Callable[[str], str]:
    """The reference of the first line of the H100 page that holds some words."""

    def find(words: str) -> str:
        lines = library.lines("gpu-wiki", "hardware/h100-sxm.md") or ()
        number = next(n for n, line in enumerate(lines, start=1) if words in line)
        return f"gpu-wiki/hardware/h100-sxm.md:L{number}"

    return find
