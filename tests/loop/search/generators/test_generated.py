"""Generated kernels in Triton's interpreter, for references of every kind that is read; and what is not read."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evaluator.graph import read_graph
from loop.search.generators import UnreadableError, generated
from loop.search.generators.segment import runs
from loop.search.study import ordered
from loop.search.variant import Target
from tests.loop.search.generators.references import REFERENCES, UNREADABLE

TARGET = Target(capability=90, multiprocessors=132, bandwidth=3e12, l2_bytes=50 << 20)
FAMILIES = {
    "fused-elementwise", "whole-rows", "rows-in-pieces", "split-rows", "cooperative-rows", "cooperative-rows-ahead",
    "cooperative-rows-cached", "matmul-epilogue",
}  # fmt: skip


@pytest.fixture(scope="module")
def errors() -> dict[str, Any]:
    """Reference → family → error, or what was said of it; in a process of its own, since Triton is told when it is
    imported that it interprets."""
    run = Path(__file__).with_name("run_generated.py")
    done = subprocess.run([sys.executable, str(run)], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(600)
def test_every_family_is_right_at_sizes_that_are_no_powers_of_two(errors: dict[str, Any]) -> None:
    assert set(REFERENCES) <= set(errors)
    for name in REFERENCES:
        half = any(word in REFERENCES[name] for word in (".half()", ".bfloat16()"))
        bound = 8e-3 if half else 1e-4 if name == "layernorm-far" else 1e-6
        assert errors[name], f"{name}: no family fits"
        assert max(errors[name].values()) < bound, (name, errors[name])
    assert {family for name in REFERENCES for family in errors[name]} == FAMILIES


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(600)
def test_what_is_not_read_is_said(errors: dict[str, Any]) -> None:
    assert all(isinstance(errors[name], str) and errors[name] for name in UNREADABLE)
    assert "reshaped" in errors["reshaped"]


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.timeout(600)
def test_no_kernel_has_a_number_that_the_gate_would_refuse(errors: dict[str, Any]) -> None:
    assert sum(one["texts"] for one in errors["the gate"].values()) > 400
    assert {name: one["refused"] for name, one in errors["the gate"].items() if one["refused"]} == {}


def tensor(shape: list[int], **of: int) -> dict[str, Any]:
    """A contiguous tensor of a graph."""
    stride = [math.prod(shape[n + 1 :]) for n in range(len(shape))]
    return {"shape": shape, "stride": stride, "offset": 0, "dtype": "float32", **of}


def softmax(rows: int, columns: int, **changes: Any) -> dict[str, Any]:
    """The graph of a softmax over rows, as a worker writes it down."""
    argument = {"tensor": tensor([rows, columns], source=0), "dim": 1}
    node = {"op": "_softmax", "args": {"self": {"tensor": argument["tensor"]}, "dim": 1}}
    whole = {
        "sources": [{"what": "input", "name": "0", **tensor([rows, columns])}],
        "nodes": [{**node, "results": [tensor([rows, columns])]}],
        "outputs": [{"tensor": tensor([rows, columns], node=0)}],
        "single": True,
    }
    return {**whole, **changes}


def test_a_graph_that_points_nowhere_is_refused() -> None:
    assert read_graph(softmax(4, 8)).nodes[0].tensors["self"].source == 0
    for wrong in (tensor([4, 8], node=1), tensor([4, 8], source=1), tensor([4, 8]), tensor([4, 8], node=0, source=0)):
        with pytest.raises(TypeError):
            read_graph(softmax(4, 8, outputs=[{"tensor": wrong}]))
    with pytest.raises(TypeError):
        read_graph(softmax(4, 8, outputs=[3]))


def test_the_length_of_a_row_decides_which_families_there_are() -> None:
    def names(columns: int) -> set[str]:
        return {one.name for one in generated(read_graph(softmax(4096, columns)), "x", TARGET) if ordered(one)}

    assert names(1000) == {"whole-rows", "rows-in-pieces"}
    shared = {"cooperative-rows", "cooperative-rows-ahead", "cooperative-rows-cached"}
    assert names(393216) == {"rows-in-pieces", "split-rows"} | shared


def test_programs_that_wait_for_each_other_are_resident_and_wait_for_a_bounded_time() -> None:
    found = {one.name: one for one in generated(read_graph(softmax(4096, 393216)), "x", TARGET)}
    variant = found["cooperative-rows"]
    for config in ordered(variant):
        span, warps, waves = (int(config[name]) for name in ("span", "num_warps", "waves"))
        assert 32 * warps * waves <= TARGET.threads
        assert -(-393216 // span) <= waves * TARGET.multiprocessors, "the programs of a row run at once"
    text = variant.render(ordered(variant)[0])
    assert "look < looks" in text
    assert "processors(device)" in text, "how many run at once is asked of the device"
    assert "else:" in text, "a program that waited long enough does the row alone"
    assert variant.cost({"span": 2048, "num_warps": 2, "waves": 1}) == math.inf, "192 programs of a row, 132 at once"


def test_a_kernel_names_no_operator_that_is_unknown() -> None:
    graph = softmax(4, 8)
    graph["nodes"][0]["op"] = "_softmax_of_the_future"
    with pytest.raises(UnreadableError, match="_softmax_of_the_future"):
        generated(read_graph(graph), "x", TARGET)


def test_axes_that_lie_behind_one_another_in_memory_are_one() -> None:
    assert runs((2, 3, 4), (12, 4, 1)) == [(24, 1)]
    assert runs((2, 3, 4), (1, 8, 2)) == [(2, 1), (12, 2)]
    assert runs((5, 1, 7), (0, 9, 1)) == [(5, 0), (7, 1)]
