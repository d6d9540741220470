"""Constants of kernels that nothing explains, and numbers that are written as something else."""

from __future__ import annotations

from decimal import Decimal

import pytest

from loop.gate.constants.hardware import is_chosen
from loop.gate.constants.unexplained import hidden, unexplained
from loop.gate.numbers.figures import Chosen
from tests.conftest import ROOT

SIZES = Chosen.of({Decimal(96), Decimal(1000)}, set())


def values(text: str, name: str = "kernel.py") -> list[Decimal]:
    found = unexplained(text, name, lambda one: is_chosen(one, SIZES) or one in SIZES.exactly)
    return [value for _, _, value in found]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("PASSES = 132\nf(PASSES)", 132), ("f(100 + 32)", 132), ("f(33 * 4)", 132), ("f(0x84)", 132),
        ("x.chunk(108)", 108),
        ("f(n < 0x3C00000)", 0x3C00000), ("f(b * 8193.0)", 8193), ("BLOCK = 132\nf(BLOCK)", 132),
        ("A = 100\nf(A + 32)", 132),
    ],
)  # fmt: skip
def test_a_constant_that_nothing_explains_is_told(text: str, value: int) -> None:
    assert Decimal(value) in values(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("#define PASSES (0x84)", 132),
        ("int programs = 132;", 132),
        ("f<<<148, 256>>>(x);", 148),
        ("x * 8193.0f;", 8193),
    ],
)
def test_a_constant_of_cuda_that_nothing_explains_is_told(text: str, value: int) -> None:
    assert values(text, "kernel.cu") == [Decimal(value)]


@pytest.mark.parametrize(
    "text",
    [
        "BLOCK = 1024", "BLOCK_M = 48", "f[(n,)](x, BLOCK=192, num_warps=4)", "maxnreg = 168", "x = 1.702 * y",
        "f(0xffffffff)", "n = 96 * 1000", "us = 90", "n = 1000 * 4", "limit = 448.0", "lowest = -1e30", "y = x / 14",
        "if torch.cuda.get_device_capability(0)[0] * 10 >= 90:\n    pass", "x = tl.load(p, other=-65504.0)",
        "(n + 255) // 256", "def f(x, rows=96):\n    pass",
    ],
)  # fmt: skip
def test_a_size_a_setting_and_a_factor_are_explained(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "constexpr int TILE = 48;",
        "__launch_bounds__(192)",
        "0xffffffffu",
        "x * 1.702f;",
        "#define BLOCK 256",
        "dim3 t(96);",
        "y = d[34];",
    ],
)
def test_a_setting_of_cuda_is_explained(text: str) -> None:
    assert values(text, "kernel.cu") == []


@pytest.mark.parametrize(
    "text",
    [
        r'n = ord("\x84")', "n = sum(1 << b for b in (7, 2))", 'n = int(os.environ.get("PARTS", "108"))',
        'n = len("x" * 9)',
        'n = int("84", 16)', "n = (1, 2, 3)[2]", 'S = "abc"\nn = len(S)', 'n = int.from_bytes(b"\\x84", "big")',
        'n = os.environ["PARTS"]', "n = eval('132')", "n = sum([1 << 7, 1 << 2][i] for i in range(2))",
    ],
)  # fmt: skip
def test_a_number_that_is_written_as_something_else_is_told(text: str) -> None:
    assert len(list(hidden(text, "kernel.py"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        'x = float("-inf")', "n = len(shape)", "n = sum(x.shape)", "n = x.shape[0]", "n = max(1, 4)",
        "rows, n = x.shape",
        'os.environ.setdefault("A", "1")', 'os.environ["A"] = "9.0"', "n = int(rows)", "p = re.compile('a')",
        "y = tl.sum(x, 0)", "n = min(rows, 4 * props.multi_processor_count)", "grid = (triton.cdiv(n, 64),)",
    ],
)  # fmt: skip
def test_what_is_computed_from_the_inputs_hides_nothing(text: str) -> None:
    assert list(hidden(text, "kernel.py")) == []


def test_cuda_reads_no_number_from_outside() -> None:
    assert [line for line, _ in hidden('int n = atoi(getenv("N"));', "kernel.cu")] == [1, 1]
    assert list(hidden("out[i] = expf(x);", "kernel.cu")) == []


def test_no_honest_kernel_hides_a_number() -> None:
    honest = sorted((ROOT / "tests/adversarial/honest").glob("*.*"))
    assert len(honest) > 20
    assert [path.name for path in honest if list(hidden(path.read_text("utf-8"), path.name))] == []
