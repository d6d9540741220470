"""Pictures of a run: the same bytes each time, and none without times or matplotlib."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import replace

import pytest

from kopt.services.plots.run import paint
from loop.pages.drawing import Drawing, Point

POINTS = (
    Point(0, None, 100.0, 99.0, 101.0, True, ()),
    Point(1, 0, 90.0, 89.5, 90.5, True, ("vectorized_access",)),
    Point(2, 1, 95.0, 94.0, 96.0, False, ("$evil$",)),
)
RATES = (
    ("hbm_bandwidth", "H200 SXM HBM bandwidth: 4.8 TB/s <- gpu-wiki/hardware/h200-sxm.md:L54", 4.8e12),
    ("fp32_throughput", "H200 SXM FP32 throughput: 67 TFLOPS <- gpu-wiki/hardware/h200-sxm.md:L38", 67e12),
)
DRAWING = Drawing("run", POINTS, 80.0, 88.9, 384_000_000, 100_000_000, RATES)


@pytest.mark.slow
def test_both_pictures_in_both_forms_and_the_same_again() -> None:
    found = paint(DRAWING)
    assert found.keys() == {"timeline.png", "timeline.svg", "roofline.png", "roofline.svg"}
    assert found["timeline.png"].startswith(b"\x89PNG")
    assert found == paint(DRAWING)


@pytest.mark.slow
def test_what_the_pictures_say() -> None:
    found = paint(DRAWING)
    words = " ".join(re.findall(r"<!-- (.*?) -->", found["timeline.svg"].decode()))
    for said in ("v0", "v1", "v2", "floor, by cited peaks: 80.00 µs", "target: 88.90 µs", "vectorized_access"):
        assert said in words, said
    words = " ".join(re.findall(r"<!-- (.*?) -->", found["roofline.svg"].decode()))
    assert "4.8 TB/s" in words
    assert "67 TFLOPS" in words


def test_without_operations_there_is_no_roofline() -> None:
    assert paint(replace(DRAWING, operations=None)).keys() == {"timeline.png", "timeline.svg"}


def test_without_times_nothing_is_drawn() -> None:
    assert paint(replace(DRAWING, points=())) == {}


def test_without_matplotlib_nothing_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert paint(DRAWING) == {}
