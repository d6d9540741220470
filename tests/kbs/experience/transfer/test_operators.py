"""The operation of a run's records comes from what its reference computes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kbs.evidence.vocabulary import vocabulary
from kbs.experience.transfer.operators import operation_of
from kbs.experience.transfer.run_folder import asked_about


@pytest.mark.parametrize(
    ("counted", "operation"),
    [
        ({"log_softmax": 5}, "softmax"),
        ({"amax": 1, "sub": 1, "exp": 1, "sum": 1, "div": 1}, "softmax"),
        ({"bmm": 4096, "softmax": 5}, "attention"),
        ({"mm": 4096, "relu": 1}, "matmul"),
        ({"log_softmax": 5, "nll_loss_forward": 0}, "cross-entropy"),
        ({"pow": 1, "mean": 1, "rsqrt": 0, "mul": 2, "add": 0}, "rmsnorm"),
        ({"mean": 1, "var": 4, "sub": 1, "sqrt": 0, "div": 1, "mul": 1, "add": 1}, "layernorm"),
        ({"mul": 2, "mean": 1, "add": 0, "sqrt": 0, "div": 1}, "rmsnorm"),
        ({"mul": 3, "mean": 1, "add": 0, "rsqrt": 0}, "rmsnorm"),
        ({"mean": 2, "sub": 1, "mul": 3, "add": 1, "rsqrt": 0}, "layernorm"),
        ({"mean": 2, "sub": 1, "pow": 1, "add": 1, "sqrt": 0, "div": 1, "mul": 1}, "layernorm"),
        ({"mul": 1, "sum": 1, "sqrt": 0, "div": 1}, ""),
        ({"relu": 1, "mul": 1}, ""),
        ({"convolution": 9000, "relu": 1}, ""),
        ({"sort": 0}, ""),
        ({}, ""),
    ],
)
def test_the_operation_that_prevails(counted: dict[str, int], operation: str) -> None:
    assert operation_of(counted) == operation


def test_no_operator_stands_for_two_operations() -> None:
    forms = [form for one in vocabulary().operations.values() for form in one.operators]
    assert len(forms) == len(set(forms))


@pytest.mark.parametrize(
    ("roofline", "operation"),
    [
        ({"operators": {"log_softmax": 5}}, "softmax"),
        ({"operators": {"sort": 0}}, "gelu.py"),
        ({"operators": {}}, "gelu"),
        ({"lines": ["read input 0, float32: 8 × 4 B = 32 B", "mm, FP32: 2 × 8 × 8 = 1,024 FLOP"]}, "matmul"),
        ({"lines": ["addmm (bias), FP32, 2 calls: 8 × 2 = 16 FLOP"]}, "matmul"),
        ({"lines": "mm, FP32: 2 = 2 FLOP"}, "gelu"),
        ({"operators": {"mm": "many"}}, "gelu"),
        (None, "gelu"),
    ],
)
def test_a_files_name_counts_where_nothing_was_counted(tmp_path: Path, roofline: Any, operation: str) -> None:
    record = {
        "kernel": {"origin": "gelu.py"}, "reference": {"origin": "r.py"}, "gpu": "", "device_name": "",
        "problem": {"dims": {}, "workloads": [], "backend": "triton"},
    }  # fmt: skip
    (tmp_path / "roofline.json").write_text(json.dumps(roofline))
    assert asked_about(tmp_path, record, 0).op == operation
