"""A kernel that is handed in as text."""

from __future__ import annotations

import pytest

from kopt.services.runs.handing_in import language_of_text, typed_place

CUDA = '#include <cuda.h>\nextern "C" __global__ void f(float* x) { x[0] = 1.0f; }\n'


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("x = 1\n", "python"),
        (f"SOURCE = '''{CUDA}'''\n", "python"),
        (CUDA, "cuda"),
        ("def broken(:\n", "python"),
        ("\0", "python"),
        ("(" * 5000, "python"),
    ],
)
def test_language_of_a_text(text: str, language: str) -> None:
    assert language_of_text(text) == language


def test_a_broken_place_is_where_it_was_typed() -> None:
    assert typed_place("proposal.json#hypothesis.rationale", "k.py") == "--why"
    assert typed_place("kernel.py", "k.py") == "k.py"
    assert typed_place("proposal.json#unknown", "k.py") == "proposal.json#unknown"
