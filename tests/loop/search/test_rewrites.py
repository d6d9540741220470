"""Each rewrite on kernels that it applies to, before and after in the interpreter, and on kernels that it leaves."""

from __future__ import annotations

import ast
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from loop.proposals import knobs, method_kinds
from loop.proposals.change import compare
from loop.proposals.programs import shape
from loop.search.rewrites import REWRITES, rewrites
from loop.search.variant import Config, Value, Variant
from tests.conftest import ROOT
from tests.loop.search.rewrite_kernels import ADD, KERNELS, SOFTMAX

APPLIES = {
    "warps": {"add", "meta", "softmax", "rms", "logsum", "matmul", "unmasked", "fixed-grid", "early"},
    "blocks": {"add", "meta", "rms", "matmul"},
    "stages": {"rms", "logsum", "matmul"},
    "registers": {"add", "meta", "softmax", "rms", "logsum", "matmul", "unmasked", "fixed-grid", "early"},
    "load-eviction": {"add", "meta", "softmax", "rms", "logsum", "matmul", "fixed-grid", "early"},
    "load-cache": {"add", "meta", "softmax", "rms", "logsum", "matmul", "unmasked", "fixed-grid", "early"},
    "store-cache": {"add", "meta", "softmax", "rms", "logsum", "matmul", "fixed-grid", "early"},
    "store-eviction": {"add", "meta", "softmax", "rms", "logsum", "matmul", "fixed-grid", "early"},
    "contiguous-offsets": {"add", "meta", "logsum", "matmul", "unmasked", "fixed-grid"},
    "loop-stages": {"rms", "logsum", "matmul"},
    "loop-unroll": {"rms", "logsum", "matmul"},
    "static-loop": {"logsum"},
    "exp2": {"softmax", "logsum", "early"},
    "log2": {"logsum"},
    "rsqrt": {"rms"},
    "reciprocal": {"softmax", "early"},
    "persistent": {"add", "meta", "softmax", "rms", "logsum", "unmasked", "fixed-grid"},
    "parts-per-program": {"add", "meta", "softmax", "rms", "logsum", "unmasked", "fixed-grid"},
    "grouped-order": {"matmul"},
}
"""Rewrite → the kernels that it applies to; it must leave the others alone. The waiting and the tuned one are in none:
other launches could make programs wait for ever, and an autotuner has settings of its own."""
LEFT_ALONE = {"waiting", "tuned"}


def test_every_rewrite_has_kernels_on_both_sides() -> None:
    assert set(APPLIES) == {one.name for one in REWRITES}
    assert len(REWRITES) >= 15
    assert all(kernels and LEFT_ALONE.isdisjoint(kernels) for kernels in APPLIES.values())


@pytest.mark.parametrize("kernel", KERNELS)
def test_it_applies_where_it_can_and_nowhere_else(kernel: str) -> None:
    found = {one.name.removeprefix("rewrite-") for one in rewrites(KERNELS[kernel])}
    assert found == {name for name, kernels in APPLIES.items() if kernel in kernels}


def test_texts_that_are_no_triton_kernel_have_none() -> None:
    assert rewrites("") == rewrites("def f(:") == rewrites("import torch\n") == rewrites("__global__ void k() {}") == ()


def test_every_text_passes_the_discipline_of_one_method() -> None:
    for name, text in KERNELS.items():
        for one in rewrites(text):
            for config in _configs(one.space):
                try:
                    changed = one.render(config)
                except ValueError:
                    continue  # the sizes as they are
                ast.parse(changed)
                assert not compare(text, changed, "python", "python").same, (name, one.name, config)
                own = method_kinds.owned(one.methods, "python")
                kinds = {differs.kind for differs in knobs.differing(text, changed, "python")}
                assert kinds <= own, (name, one.name, config)
                assert kinds & method_kinds.needed(one.methods, "python"), (name, one.name, config)
                assert list(method_kinds.signs(text, changed, one.methods)) == [], (name, one.name)
                assert shape.another(one.methods, text, changed, "python", kinds) == "", (name, one.name, config)


def test_comments_and_layout_stay() -> None:
    for one in rewrites(ADD):
        changed = one.render(one.default)
        assert "# which block" in changed
        assert '"""Adds."""' in changed
    warps = next(one for one in rewrites(SOFTMAX) if one.name == "rewrite-warps")
    assert warps.render({"num_warps": 8}) == SOFTMAX.replace("num_warps=4", "num_warps=8")
    assert 4 not in warps.space["num_warps"], "what the launch has already is no change"


def test_the_first_value_promises_most() -> None:
    one = next(one for one in rewrites(SOFTMAX, 100.0) if one.name == "rewrite-warps")
    costs = [one.cost({"num_warps": value}) for value in one.space["num_warps"]]
    assert costs == sorted(costs)
    assert all(90 < cost < 100 for cost in costs)


@pytest.mark.processes
def test_what_is_computed_stays(tmp_path: Path) -> None:
    """Every rewrite of every kernel, each with its first, second and last configuration, in the interpreter."""
    count = 0
    for name, text in KERNELS.items():
        if name in LEFT_ALONE:
            continue
        (tmp_path / f"{name}.before.py").write_text(text, "utf-8")
        for one in rewrites(text):
            configs = [config for config in _configs(one.space) if _renders(one, config)]
            for number, config in enumerate([*configs[:2], configs[-1]]):
                (tmp_path / f"{name}.{one.name}.{number}.py").write_text(one.render(config), "utf-8")
                count += 1
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "loop" / "search" / "run_kernels.py"), str(tmp_path)],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    worst = json.loads(done.stdout)
    assert len(worst) == count + len(KERNELS) - len(LEFT_ALONE)
    assert {name: error for name, error in worst.items() if not error < 1e-5} == {}


def _renders(variant: Variant, config: Config) -> bool:
    try:
        return bool(variant.render(config))
    except ValueError:
        return False


def _configs(space: Mapping[str, tuple[Value, ...]]) -> Iterator[dict[str, Value]]:
    return (dict(zip(space, values, strict=True)) for values in itertools.product(*space.values()))
