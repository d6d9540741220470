"""Which problems can be passed without solving them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from evaluator.correctness.degenerate_task import LOWER_PRECISION, TAIL_LEFT_OUT, TaskExaminer, without_tail
from evaluator.correctness.distributions import DISTRIBUTIONS, draw
from evaluator.receipt.findings import TaskCheck

NAMES = tuple(distribution.name for distribution in DISTRIBUTIONS)
Reference = Callable[..., Tensor | tuple[Tensor, ...]]


def outputs_of(result: Tensor | tuple[Tensor, ...]) -> list[Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def exactly(reference: Reference, inputs: Sequence[Tensor]) -> list[Tensor]:
    return outputs_of(reference(*(t.double() if t.is_floating_point() else t for t in inputs)))


def examined(
    reference: Reference,
    *given: Tensor,
    declared: tuple[float, float] | None = None,
    names: tuple[str, ...] = NAMES,
) -> TaskCheck:
    """The task check of a reference on all distributions."""
    examiner = TaskExaminer(declared)
    for n, distribution in enumerate(d for d in DISTRIBUTIONS if d.name in names):
        generator = torch.Generator().manual_seed(n)
        inputs = [draw(distribution, t, generator) for t in given]
        native = outputs_of(reference(*inputs))
        exact = [False] * len(native)
        examiner.add(inputs, exactly(reference, inputs), native, stretched=distribution.stretched, exact=exact)
    return examiner.result()


X = torch.rand(8, 128, generator=torch.Generator().manual_seed(0))
HONEST: dict[str, Reference] = {
    "softmax": lambda x: torch.softmax(x, -1),
    "relu": torch.relu,
    "sum": lambda x: x.sum(-1),
    "sum to a scalar": lambda x: x.sum(),
    "mean to a scalar": lambda x: x.mean(),
    "argmax": lambda x: x.argmax(-1),
    "layer norm": lambda x: functional.layer_norm(x, (128,)),
    "sign": torch.sign,
    "comparison": lambda x: x > 0.5,
    "transpose": lambda x: x.T.contiguous(),
    "two outputs": lambda x: (x.amax(-1), x.argmax(-1)),
    "one of two is constant": lambda x: (torch.softmax(x, -1), torch.ones_like(x)),
    "complex": lambda x: torch.complex(x, -x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", HONEST)
def test_a_problem_that_asks_for_something_is_not_refused(name: str, dtype: torch.dtype) -> None:
    if name == "complex" and dtype == torch.bfloat16:
        found = examined(lambda x: x.cos(), X.to(dtype))
    else:
        found = examined(HONEST[name], X.to(dtype))
    assert found == TaskCheck(refused=False)


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (lambda x: x * 0, "zeros"),
        (lambda x: (x - x.amax(-1, keepdim=True)).amax(-1), "zeros"),
        (lambda x: torch.softmax(x, -1).sum(-1), "ones"),
        (lambda x: torch.softmax(x[:, :1], -1).expand(8, 128) * 3.5, "the constant 3.5"),
        (lambda x: torch.full((len(x),), 7), "the constant 7"),
        (lambda x: x.isnan(), "zeros"),
        (lambda x: x.clone(), "a copy of input 0"),
        (lambda x: x.abs().sqrt().square().copysign(x), "a copy of input 0"),
        (lambda x: (x * 0, x.clone()), "output 1: a copy of input 0"),
    ],
)
def test_a_problem_that_a_constant_or_a_copy_passes_is_refused(reference: Reference, reason: str) -> None:
    found = examined(reference, X)
    assert found.refused
    assert reason in " ".join(found.reasons)
    assert f"all {len(DISTRIBUTIONS)} draws" in found.reasons[0]


def test_an_output_that_is_all_rounding_refuses_the_task() -> None:
    def reference(x: Tensor) -> tuple[Tensor, Tensor]:
        seconds = (1.6e9 + 1e8 * torch.arange(8, dtype=x.dtype) / 7)[:, None]
        return torch.softmax(x, -1), (seconds * torch.linspace(0.1, 1, 32, dtype=x.dtype)).sin()

    found = examined(reference, X)
    assert found.refused
    assert len(found.reasons) == 1
    assert "output 1: zeros" in found.reasons[0]
    assert "PyTorch's own error is as large" in found.reasons[0]


def test_which_input_is_copied() -> None:
    def second(x: Tensor, y: Tensor) -> Tensor:
        return y + 0 * x

    assert "a copy of input 1" in examined(second, X, X.flip(0)).reasons[0]
    assert not examined(second, X, X.flip(0)[:1]).refused, "it has another shape"


def test_relu_is_refused_where_nothing_but_positive_numbers_is_tried() -> None:
    assert examined(torch.relu, X, names=("given",)).refused
    assert not examined(torch.relu, X).refused


def test_one_draw_says_nothing_of_a_single_number() -> None:
    assert not examined(lambda x: x.sum(), X, names=("given",)).refused
    fixed = torch.arange(10)
    assert examined(lambda x: x.sum(), fixed).reasons == ("output 0: the constant 45 passes on all 9 draws of inputs",)


def test_a_loose_declared_tolerance_refuses_the_task() -> None:
    def reference(x: Tensor) -> Tensor:
        return torch.sigmoid(x.clamp(-1, 1) / 10)

    assert not examined(reference, X).refused
    assert "the constant" in examined(reference, X, declared=(0.1, 0.0)).reasons[0]


def test_a_loose_declared_tolerance_lets_no_zeros_through() -> None:
    """No result is wholly wrong, whatever is declared."""

    def reference(x: Tensor) -> Tensor:
        return torch.softmax(x, -1) / 100

    assert not examined(reference, X, declared=(0.1, 0.0)).refused


def test_exact_draws_ask_for_equality() -> None:
    x = torch.full((4, 100), 1 + 2**-20)
    examiner = TaskExaminer()
    examiner.add([], [x.double()], [x], stretched=False, exact=[False])
    assert "ones" in examiner.result().reasons[0]
    examiner.add([], [x.double()], [x], stretched=False, exact=[True])
    assert "ones" not in " ".join(examiner.result().reasons)


@pytest.mark.parametrize("value", [1e6, -1e30])
def test_constants_that_the_output_cannot_hold(value: float) -> None:
    reference = torch.full((70,), value, dtype=torch.float64)
    examiner = TaskExaminer()
    examiner.add([], [reference], [reference.half()], stretched=False, exact=[False])
    assert examiner.result().refused, "infinity is a constant too"


def test_nothing_was_examined() -> None:
    assert TaskExaminer().result() == TaskCheck(refused=False)


def test_lower_precision_and_a_tail_are_told_apart() -> None:
    x = torch.randn(200, 128, generator=torch.Generator().manual_seed(0))
    reference, native = [torch.softmax(x.double(), -1)], [torch.softmax(x, -1)]
    examiner = TaskExaminer()
    examiner.tell_apart(reference, native, [torch.softmax(x.bfloat16(), -1)])
    assert examiner.told_apart == {TAIL_LEFT_OUT: True, LOWER_PRECISION: True}
    loose = TaskExaminer(declared=(1.0, 0.0))
    loose.tell_apart(reference, native, [torch.softmax(x.bfloat16(), -1)])
    assert loose.result().told_apart == {TAIL_LEFT_OUT: True, LOWER_PRECISION: False}, "no row may be wholly wrong"
    unknown = TaskExaminer()
    unknown.tell_apart(reference, native, [])
    assert unknown.told_apart == {TAIL_LEFT_OUT: True}


def test_told_apart_on_one_draw_is_told_apart() -> None:
    zeros, ones = torch.zeros(100), torch.ones(100)
    examiner = TaskExaminer()
    examiner.tell_apart([zeros.double()], [zeros], [zeros])
    assert examiner.told_apart == {TAIL_LEFT_OUT: False, LOWER_PRECISION: False}
    examiner.tell_apart([ones.double()], [ones], [ones])
    examiner.tell_apart([zeros.double()], [zeros], [zeros])
    assert examiner.told_apart == {TAIL_LEFT_OUT: True, LOWER_PRECISION: False}


@pytest.mark.parametrize(
    ("shape", "zeroed"),
    [((200, 7), 14), ((10, 7), 7), ((1000,), 10), ((5,), 1), ((), 1), ((4, 50, 3), 6), ((0, 3), 0)],
)
def test_the_tail_is_the_last_hundredth_of_rows(shape: tuple[int, ...], zeroed: int) -> None:
    values = torch.ones(shape)
    changed = without_tail(values)
    assert changed.shape == values.shape
    assert int((changed == 0).sum()) == zeroed
    assert int((changed.flatten()[: values.numel() - zeroed] == 0).sum()) == 0
    assert int((values == 0).sum()) == 0, "the original stays"
