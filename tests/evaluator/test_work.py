"""What references must move and compute: hand counts of KernelBench problems, and the rules one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from evaluator.request import InputsFile, Request
from evaluator.sandbox.fork_server import ForkServer, passed_environment
from evaluator.source.forms import recognise
from evaluator.source.source_file import SourceFile, read_source
from evaluator.work import COUNTING_MODULES, Work, _work, count_work, declared
from kbs.common.errors import UsageError

pytestmark = pytest.mark.processes

LEVEL1 = Path(__file__).parent.parent / "third_party" / "kernelbench" / "level1"
Count = Callable[..., Work]


@pytest.fixture(scope="module")
def counting() -> Iterator[ForkServer]:
    """A fork server that has imported what fake tensors need."""
    with ForkServer("cpu", "", passed_environment(["OMP_NUM_THREADS"]), COUNTING_MODULES) as started:
        yield started


@pytest.fixture(scope="module")
def count(counting: ForkServer) -> Count:
    """Counts the work of a reference, given as a file of KernelBench's or as text."""

    def count(source: str | Path, reference: str | None = None, name: str = "kernel.py", **words: Any) -> Work:
        candidate = read_source(source, "r") if isinstance(source, Path) else SourceFile(name=name, text=source)
        given = None if reference is None else SourceFile(name="ref.py", text=reference)
        if "inputs" in words:
            words["inputs"] = InputsFile(name="inputs.py", content=words["inputs"].encode())
        request = Request(candidate=candidate, reference=given, memory_limit=3 << 30, **words)
        form = recognise(candidate, given, inputs="inputs.py" if request.inputs else None, entry=None, backend=None)
        return count_work(request, form, counting)

    return count


def flop(work: Work, pipe: str | None = None) -> int:
    """Operations of a pipe, or all but those of whole numbers."""
    return sum(row.count for row in work.operations if row.pipe == (pipe or row.pipe) and row.pipe != "integer")


def moved(work: Work) -> tuple[int, int]:
    """(bytes read, bytes written)"""
    return sum(row.bytes for row in work.read), sum(row.bytes for row in work.written)


# --- hand counts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hand:
    """What a person counts for a problem at the sizes of its file."""

    problem: str
    read: int
    written: int
    tensor: int = 0
    vector: int = 0
    dims: dict[str, int] = field(default_factory=dict)


HAND = [
    # Two 4096 x 4096 float32 matrices in, one out; 4096^3 multiplications and as many additions.
    Hand("1_Square_matrix_multiplication_", 2 * 4096 * 4096 * 4, 4096 * 4096 * 4, tensor=2 * 4096**3, dims={"N": 4096}),
    # A (8205, 2949), B (2949, 5921), C (8205, 5921).
    Hand(
        "8_Matmul_with_irregular_shapes_",
        (8205 * 2949 + 2949 * 5921) * 4,
        8205 * 5921 * 4,
        tensor=2 * 8205 * 5921 * 2949,
    ),
    # A (2048, 1048576) times a vector: no tensor core does that; one multiplication and one addition an element of A.
    Hand("4_Matrix_vector_multiplication_", (2048 * 1048576 + 1048576) * 4, 2048 * 4, vector=2 * 2048 * 1048576),
    # One maximum an element of (4096, 393216).
    Hand("19_ReLU", 4096 * 393216 * 4, 4096 * 393216 * 4, vector=4096 * 393216),
    # Maximum, subtraction, exponential, addition, multiplication by the reciprocal.
    Hand("23_Softmax", 4096 * 393216 * 4, 4096 * 393216 * 4, vector=5 * 4096 * 393216),
    # (64, 64, 512, 512) with 64 weights and 64 biases; the running mean and variance are brought up to date besides,
    # and no result depends on them. Mean, subtraction, square, addition, times 1/sigma, times weight, plus bias.
    Hand(
        "33_BatchNorm",
        (64 * 64 * 512 * 512 + 64 + 64) * 4,
        64 * 64 * 512 * 512 * 4,
        vector=7 * 64 * 64 * 512 * 512,
    ),
    # x / sqrt(mean(x^2, dim=1) + eps): a square, an addition and a division an element of (112, 64, 512, 512); an
    # addition and a root for each of the 112 x 512 x 512 means.
    Hand(
        "36_RMSNorm_",
        112 * 64 * 512 * 512 * 4,
        112 * 64 * 512 * 512 * 4,
        vector=3 * 112 * 64 * 512 * 512 + 2 * 112 * 512 * 512,
    ),
    # (16, 64, 256, 256), normalized over the last three with a weight and a bias for each of 64 x 256 x 256.
    Hand(
        "40_LayerNorm",
        (16 + 2) * 64 * 256 * 256 * 4,
        16 * 64 * 256 * 256 * 4,
        vector=7 * 16 * 64 * 256 * 256,
    ),
    # (32, 64, 512, 512), windows of 4 x 4 at stride 1 with padding 1: 512 + 2 - 3 = 511 places a side.
    Hand("42_Max_Pooling_2D", 32 * 64 * 512 * 512 * 4, 32 * 64 * 511 * 511 * 4, vector=4 * 4 * 32 * 64 * 511 * 511),
    # (128, 4096, 4095) summed over the middle: one addition an element.
    Hand("47_Sum_reduction_over_a_dimension", 128 * 4096 * 4095 * 4, 128 * 4095 * 4, vector=128 * 4096 * 4095),
    # The place of the maximum, as int64: one comparison an element.
    Hand("51_Argmax_over_a_dimension", 128 * 4096 * 4095 * 4, 128 * 4095 * 8, vector=128 * 4096 * 4095),
    # 128 filters of 16 x 3 x 3 over (16, 16, 1024, 1024): 1022 places a side, 2 x 16 x 9 operations each.
    Hand(
        "63_conv_standard_2D__square_input__square_kernel",
        (16 * 16 * 1024 * 1024 + 128 * 16 * 3 * 3) * 4,
        16 * 128 * 1022 * 1022 * 4,
        tensor=2 * 16 * 3 * 3 * 16 * 128 * 1022 * 1022,
    ),
    # Each of 64 channels alone: 3 x 3 multiplications and additions for each of 510 x 510 places.
    Hand(
        "82_conv_depthwise_2D_square_input_square_kernel",
        (16 * 64 * 512 * 512 + 64 * 3 * 3) * 4,
        16 * 64 * 510 * 510 * 4,
        tensor=2 * 3 * 3 * 16 * 64 * 510 * 510,
    ),
    # One addition an element.
    Hand("89_cumsum", 32768 * 32768 * 4, 32768 * 32768 * 4, vector=32768 * 32768),
    # A mask of one byte an element besides; a multiplication and an addition.
    Hand("93_masked_cumsum", 32768 * 32768 * (4 + 1), 32768 * 32768 * 4, vector=2 * 32768 * 32768),
    # Subtraction, square, addition; one number comes out.
    Hand("94_MSELoss", 2 * 32768 * 32768 * 4, 4, vector=3 * 32768 * 32768),
    # Logits (32768, 4096) and 32768 classes as int64; log-softmax is five an element, then one addition a row.
    Hand("95_CrossEntropyLoss", 32768 * 4096 * 4 + 32768 * 8, 4, vector=5 * 32768 * 4096 + 32768),
    # Q, K, V and the result are (32, 32, 512, 1024): Q K' and P V are 2 x 512 x 512 x 1024 each, softmax five a score.
    Hand(
        "97_ScaledDotProductAttention",
        3 * 32 * 32 * 512 * 1024 * 4,
        32 * 32 * 512 * 1024 * 4,
        tensor=2 * 2 * 32 * 32 * 512 * 512 * 1024,
        vector=5 * 32 * 32 * 512 * 512,
    ),
]


@pytest.mark.parametrize("hand", HAND, ids=lambda hand: hand.problem)
def test_kernelbench_problems_are_as_counted_by_hand(hand: Hand, count: Count) -> None:
    work = count(LEVEL1 / f"{hand.problem}.py", dims=hand.dims)
    assert moved(work) == (hand.read, hand.written)
    assert (flop(work, "tensor"), flop(work, "vector")) == (hand.tensor, hand.vector)
    assert work.how == "fake", "sizes that no memory would hold"
    assert work.uncounted == ()
    assert all(row.exact for row in (*work.read, *work.written))


def test_sizes_of_dims_are_counted(count: Count) -> None:
    work = count(LEVEL1 / "1_Square_matrix_multiplication_.py", dims={"N": 1 << 20})
    assert moved(work) == (2 * 4 << 40, 4 << 40)
    assert flop(work) == 2 << 60


# --- rules ------------------------------------------------------------------------------------------------------------

MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}
    def forward(self, {arguments}):
        {body}
def get_inputs():
    return [{inputs}]
"""


def model(body: str, inputs: str = "torch.rand(64, 128)", init: str = "pass", arguments: str = "x") -> str:
    """A reference in the KernelBench form."""
    lines = "\n        ".join(body.split("\n"))
    return MODEL.format(init=init, arguments=arguments, body=lines, inputs=inputs)


N = 64 * 128
HEADS = "attention = torch.nn.functional.scaled_dot_product_attention\nh = x.reshape(1, 2, 64, 64)\n"
CAUSAL = 64 * 65 // 2
"""Scores of 64 queries and keys on and below the diagonal."""
ROWS = [
    # (body, bytes read, bytes written, operations)
    ("return x + 1", 4 * N, 4 * N, N),
    ("y = x * 2\nunused = x.exp()\nreturn y", 4 * N, 4 * N, N),
    ("return x[:, ::2] * 2", 2 * N, 2 * N, N // 2),
    ("a, b = x.chunk(2, 1)\nreturn a * torch.sigmoid(b)", 4 * N, 2 * N, 4 * (N // 2)),
    ("return x[:4].clone()", 4 * 4 * 128, 4 * 4 * 128, 0),
    ("return torch.stack([x, x])", 4 * N, 8 * N, 0),
    ("return x.half() + 1", 4 * N, 2 * N, N),
    ("return torch.zeros_like(x) + 1", 0, 4 * N, N),
    ("y = torch.empty_like(x)\ny.copy_(x)\ny.mul_(3)\nreturn y", 4 * N, 4 * N, N),
    ("return torch.relu_(x)", 4 * N, 4 * N, N),
    ("return (x * torch.tensor(3.0)).sum()", 4 * N, 4, 2 * N),
    ("return x.mean(1).expand(128, 64)", 4 * N, 4 * 64, N),
    ("return x.std(1)", 4 * N, 4 * 64, 4 * N),
    ("return torch.nn.functional.gelu(x)", 4 * N, 4 * N, 5 * N),
    ("return torch.nn.functional.gelu(x, approximate='tanh')", 4 * N, 4 * N, 9 * N),
    ("return x.clamp(0, 1)", 4 * N, 4 * N, 2 * N),
    ("return x.clamp(min=0)", 4 * N, 4 * N, N),
    ("return torch.add(x, x, alpha=2)", 4 * N, 4 * N, 2 * N),
    ("return torch.where(x > 0, x, 0)", 4 * N, 4 * N, N),
    ("return x.tril()", 4 * N, 4 * N, 0),
    ("return torch.nn.functional.avg_pool1d(x, 4)", 4 * N, N, N),
    ("return x @ x.T", 4 * N, 4 * 64 * 64, 2 * 64 * 64 * 128),
    ("return torch.addmm(x[0, :64], x, x.T)", 4 * N, 4 * 64 * 64, 2 * 64 * 64 * 128 + 64 * 64),
    ("return torch.cat([x, x.exp()], 1)", 4 * N, 8 * N, N),
    ("return torch.logsumexp(x, 1)", 4 * N, 4 * 64, 4 * N),
    (HEADS + "return attention(h, h, h)", 4 * N, 4 * N, (4 * 64 + 5) * 2 * 64 * 64),
    (HEADS + "return attention(h, h, h, is_causal=True)", 4 * N, 4 * N, (4 * 64 + 5) * 2 * CAUSAL),
    (HEADS + "return attention(h, h[:, :, :16], h[:, :, :16], is_causal=True)", 4 * N, 4 * N,
     (4 * 64 + 5) * 2 * (16 * 17 // 2 + 48 * 16)),
    (HEADS + "return attention(h[:, :, :16], h, h, is_causal=True)", 4 * N, N, (4 * 64 + 5) * 2 * (16 * 17 // 2)),
]  # fmt: skip


@pytest.mark.parametrize(("body", "read", "written", "operations"), ROWS, ids=[row[0] for row in ROWS])
def test_rules(body: str, read: int, written: int, operations: int, count: Count) -> None:
    work = count(model(body))
    assert (*moved(work), flop(work)) == (read, written, operations)
    assert (work.how, work.uncounted) == ("fake", ())


def test_a_view_of_an_input_moves_nothing(count: Count) -> None:
    with pytest.raises(UsageError) as caught:
        count(model("return x.T"))
    assert caught.value.code == "work_uncountable"


def test_weights_are_read_once_and_only_those_that_count(count: Count) -> None:
    init = "self.a = torch.nn.Linear(128, 32); self.b = torch.nn.Linear(128, 999)"
    work = count(model("return self.a(x) + self.a(x)", init=init))
    assert [(row.what, row.name, row.bytes) for row in work.read] == [
        ("input", "0", 4 * N),
        ("weight", "a.weight", 4 * 32 * 128),
        ("weight", "a.bias", 4 * 32),
    ]
    assert flop(work, "tensor") == 2 * (2 * 64 * 32 * 128)
    assert flop(work, "vector") == 2 * 64 * 32 + 64 * 32


def test_moving_a_model_keeps_it_fake(count: Count) -> None:
    init = "self.l = torch.nn.Linear(1 << 17, 1 << 17).half().to('cuda')"
    work = count(model("return self.l(x)", "torch.rand(8, 1 << 17, dtype=torch.half, device='cuda')", init))
    assert work.how == "fake"
    assert [row.dtype for row in work.read] == ["float16"] * 3
    assert flop(work, "tensor") == 2 * 8 << 34


def test_rows_that_an_index_chooses_are_no_more_than_are_returned(count: Count) -> None:
    init = "self.e = torch.nn.Embedding(1000, 64)"
    work = count(model("return self.e(i)", "torch.randint(0, 1000, (8,))", init, "i"))
    rows = {row.name: row for row in work.read}
    assert (rows["e.weight"].bytes, rows["e.weight"].exact) == (8 * 64 * 4, False)
    assert (rows["0"].bytes, rows["0"].dtype, rows["0"].exact) == (8 * 8, "int64", True)


def test_numbers_of_whole_type_are_kept_apart(count: Count) -> None:
    work = count(model("return x * 2 + x", "torch.ones(10, dtype=torch.int32)"))
    assert [(row.pipe, row.count) for row in work.operations] == [("integer", 10), ("integer", 10)]


def test_what_depends_on_values_runs_on_the_cpu(count: Count) -> None:
    work = count(model("return x * 2 if x.sum().item() > 0 else x"))
    assert work.how == "real"
    assert "DataDependent" in work.why
    assert (*moved(work), flop(work)) == (4 * N, 4 * N, 2 * N), "the sum too: Python went on with it"


def test_what_no_rule_counts_is_named(count: Count) -> None:
    work = count(model("return x.sort()[0] + 1"))
    assert work.uncounted == ("sort (1 call)",)
    assert flop(work) == N


def test_what_no_operator_writes_cannot_be_counted(count: Count) -> None:
    bodies = (
        "y = torch.empty_like(x)\nreturn y",
        "import numpy as np\ny = torch.empty(4)\ny.numpy()[:] = 1\nreturn y",
    )
    for body in bodies:
        with pytest.raises(UsageError) as caught:
            count(model(body))
        assert caught.value.code == "work_uncountable"
        assert "--operations" in caught.value.hint


def test_errors_of_the_reference_are_its_own(count: Count) -> None:
    with pytest.raises(UsageError) as caught:
        count(model("raise ValueError('mine')"))
    assert (caught.value.code, "mine" in caught.value.message) == ("reference_failed", True)


def test_products_are_as_many_as_pytorch_counts(count: Count) -> None:
    init = "self.c = torch.nn.ConvTranspose2d(8, 6, 3, stride=2, groups=2); self.l = torch.nn.Linear(12, 5, bias=False)"
    body = "y = self.c(x)\nreturn self.l(y.reshape(-1, 12)[:100]) @ torch.ones(5, 7), y"
    work = count(model(body, "torch.rand(2, 8, 9, 11)", init))
    torch.manual_seed(0)
    conv, linear = torch.nn.ConvTranspose2d(8, 6, 3, stride=2, groups=2), torch.nn.Linear(12, 5, bias=False)
    with FlopCounterMode(display=False) as counter:
        made = conv(torch.rand(2, 8, 9, 11))
        linear(made.reshape(-1, 12)[:100]) @ torch.ones(5, 7)
    assert flop(work, "tensor") == counter.get_total_flops()


# --- the other forms --------------------------------------------------------------------------------------------------

SETUP = """
import torch
def setup(M=4, N=8):
    x = torch.ones(M, N, device="cuda")
    return {"inputs": {"x": x, "alpha": 0.5, "y": torch.empty(M, N, device="cuda")}, "outputs": ["y"]}
"""
TRITON = "import triton\n@triton.jit\ndef k(x):\n    pass\ndef run_kernel(x, alpha, y):\n    k[(1,)](x)\n"
CUDA = 'extern "C" void solve(const float* a, const float* b, float* c, int n) {}\n'


def test_setup_form(count: Count) -> None:
    reference = SETUP + "def reference(x, alpha, y):\n    y.copy_(x * alpha)\n"
    work = count(TRITON, reference, dims={"M": 1 << 20, "N": 1 << 10})
    assert (*moved(work), flop(work)) == (4 << 30, 4 << 30, 1 << 30)
    assert [row.name for row in (*work.read, *work.written)] == ["x", "y"]
    assert work.how == "fake"


def test_an_output_that_is_added_to_is_read_too(count: Count) -> None:
    reference = SETUP + "def reference(x, alpha, y):\n    y += x * alpha\n"
    assert moved(count(TRITON, reference)) == (2 * 4 * 32, 4 * 32)


def test_part_of_an_output(count: Count) -> None:
    reference = SETUP + "def reference(x, alpha, y):\n    y[:, :2] = x[:, 6:]\n"
    assert moved(count(TRITON, reference)) == (4 * 8, 4 * 8)


def test_an_output_that_is_not_written_cannot_be_counted(count: Count) -> None:
    with pytest.raises(UsageError, match="writes y"):
        count(TRITON, SETUP + "def reference(x, alpha, y):\n    x * alpha\n")


def test_solve_form(count: Count) -> None:
    sizes = {"a": "n", "b": "n", "c": "n"}
    reference = "def reference(a, b, c, n):\n    c[:] = a + b\n"
    work = count(CUDA, reference, name="k.cu", dims={"n": 1 << 30}, ptr_sizes=sizes)
    assert (*moved(work), flop(work)) == (8 << 30, 4 << 30, 1 << 30)
    alone = count(CUDA, name="k.cu", dims={"n": 1 << 30}, ptr_sizes=sizes)
    assert (*moved(alone), alone.how, alone.operations) == (8 << 30, 4 << 30, "none", ())


def test_function_form(count: Count) -> None:
    inputs = "import torch\ndef get_inputs():\n    return [torch.ones(9, 5), torch.ones(5)]\n"
    work = count("def add(a, b):\n    return a\n", "def add(a, b):\n    return a + b\n", inputs=inputs)
    assert (*moved(work), flop(work)) == (4 * (45 + 5), 4 * 45, 45)


def test_a_kernel_alone_is_not_run(count: Count) -> None:
    work = count(SETUP + TRITON)
    assert (*moved(work), work.how, work.traced) == (4 * 32, 4 * 32, "none", False)
    with pytest.raises(UsageError) as caught:
        count(model("k[(1,)](x)\nreturn x") + "import triton\n@triton.jit\ndef k(x):\n    pass\n")
    assert caught.value.code == "work_uncountable"


ROW = {"name": "x", "what": "input", "shape": [4], "dtype": "float32", "bytes": 16, "factors": [4, 4], "exact": True}
SUM = {"name": "sum", "pipe": "vector", "dtype": "float32", "factors": [4], "calls": 1}


@pytest.mark.parametrize(
    "changes",
    [
        {"reads": [{**ROW, "bytes": 17}]},
        {"reads": [{**ROW, "bytes": 1 << 90, "factors": [1 << 90]}]},
        {"reads": [{**ROW, "bytes": 0, "factors": [0]}]},
        {"operations": [{**SUM, "factors": [1 << 79, 1 << 79]}]},
        {"operations": [{**SUM, "factors": [2] * 10**6}]},
        {"operations": [{**SUM, "calls": 0}]},
        {"operations": [{**SUM, "calls": 1 << 99}]},
    ],
)
def test_a_count_that_no_problem_has_is_refused(changes: dict[str, Any]) -> None:
    honest = {"run": "fake", "why": "", "reads": [ROW], "writes": [], "operations": [SUM], "unknown": [], "opaque": []}
    assert flop(_work(honest)) == 4
    with pytest.raises(UsageError) as caught:
        _work({**honest, **changes})
    assert caught.value.code == "work_uncountable"


def test_what_a_reference_declares() -> None:
    text = "operations = '2*M'\nmin_bytes = 12\nother = 'x'\ndef f():\n    operations = 'no'\n"
    assert declared(SourceFile(name="r.py", text=text)) == {"operations": "2*M", "min_bytes": "12"}
    assert declared(SourceFile(name="r.cu", text="operations")) == {}
