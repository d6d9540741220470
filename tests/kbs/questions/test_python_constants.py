"""Sizes that a Python module names, read from its text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbs.questions.python_constants import MAX_BYTES, sizes_named_in

USES = "def get_inputs():\n    return torch.rand(M, N)\n"


def sizes(text: str) -> dict[str, int]:
    """Those that `get_inputs` names."""
    return dict(sizes_named_in(text.encode(), "get_inputs"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("M = 16384\nN: int = 4 * 1024\nK = 7\n" + USES, {"M": 16384, "N": 4096}),
        ("M = 16384\nN = int(os.environ['N'])\n" + USES, {"M": 16384}),
        ("M = 1\nM = 2\nN = 3\n" + USES, {"N": 3}),
        ("M = 1\nM //= 2\nN = 3\n" + USES, {"N": 3}),
        ("M = 1\nif big:\n    M = 2\nN = 3\n" + USES, {"N": 3}),
        ("M = 1\nfor M in range(3): pass\nN = 3\n" + USES, {"N": 3}),
        ("M = 1\nfrom sizes import M\nN = 3\n" + USES, {"N": 3}),
        ("M = 1\nimport sizes as M\nN = 3\n" + USES, {"N": 3}),
        ("M = 1\ndef M(): ...\nN = 3\n" + USES, {"N": 3}),
        ("M = 1\ndel M\nN = 3\n" + USES, {"N": 3}),
        ("M = N = 3\n" + USES, {}),
        ("M = 1\nN = 3\ndef other():\n    global M\n    M = 2\n" + USES, {"N": 3}),
        ("M = 1\nN = 3\ndef get_inputs():\n    M = 5\n    return torch.rand(M, N)\n", {"N": 3}),
        ("M = 1\nN = 3\ndef get_inputs(M=5):\n    return torch.rand(M, N)\n", {"N": 3}),
        ("M = 1\nN = 3\ndef other(M):\n    N = M\n" + USES, {"M": 1, "N": 3}),
        ("M = 1\nN = 3\nclass Model:\n    N = 5\n" + USES, {"M": 1, "N": 3}),
        ("M = 1\nN = 3\n", {}),
        (USES, {}),
        ("", {}),
        ("M = (", {}),
        ("(" * 100_000, {}),
        ("M = 1\0", {}),
    ],
)
def test_a_size_is_what_nothing_else_binds(text: str, found: dict[str, int]) -> None:
    assert sizes(text) == found


@pytest.mark.parametrize("deep", [900, 1500, 2500, 20_000])
@pytest.mark.parametrize("nested", ["1+", "-"])
def test_however_deep_a_text_is_nested(deep: int, nested: str) -> None:
    """Parsed or given up, it ends nothing."""
    assert sizes(f"M = 1\nX = {nested * deep}1\n{USES}") in ({"M": 1}, {})


def test_a_long_text_is_not_parsed() -> None:
    text = "M = 1\nN = 2\n" + USES
    assert sizes(text + "#" * (MAX_BYTES - len(text))) == {"M": 1, "N": 2}
    began = time.process_time()
    assert sizes(text + "x=1\n" * 2_000_000) == {}
    assert time.process_time() - began < 5


@given(st.binary(max_size=200))
def test_any_bytes_have_sizes_or_none(text: bytes) -> None:
    assert all(isinstance(value, int) for _, value in sizes_named_in(text, "get_inputs"))
