"""Cases: fresh inputs for each timed sample, and what stands in for a float64 oracle that there is no room for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from evaluator.correctness import cases as module
from evaluator.correctness.cases import Cases
from evaluator.correctness.reference import Values
from evaluator.receipt.findings import Findings
from evaluator.receipt.plan import SeedSchedule
from evaluator.sandbox.fork_server import ForkServer
from kbs.common.errors import KoptError, UsageError
from tests.evaluator.workers import reference_process

SEEDS = SeedSchedule.given("cases")
Make = Callable[..., Cases]


@pytest.fixture
def make(server: ForkServer) -> Iterator[Make]:
    """Makes the cases of a function `reference(x)` with that body; `made` is the inputs' list."""
    with contextlib.ExitStack() as stack:

        def make(
            body: str = "return x * 2", made: str = "[torch.randn(64)]", arguments: str = "x", *, own: bool = False
        ) -> Cases:
            lines = "".join(f"    {line}\n" for line in body.splitlines())
            files = {"in.py": f"import torch\ndef get_inputs():\n    return {made}\n".encode()}
            text = f"import torch\ndef reference({arguments}):\n{lines}"
            reference = stack.enter_context(
                contextlib.closing(reference_process(server, text, files=files, inputs="in.py"))
            )
            found = Cases(SEEDS, reference, Findings(), tolerance=None, own_reference=own, first_index=0)
            found.prepare(kernelbench=False, outputs=lambda named, _: list(named))
            return found

        yield make


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every draw takes too long."""
    monkeypatch.setattr(module, "SLOW_DRAW", -1.0)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No draw does."""
    monkeypatch.setattr(module, "SLOW_DRAW", float("inf"))


def draws(cases: Cases, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that the oracle is asked to draw from, from now on."""
    seeds: list[int] = []
    original = cases.reference.inputs

    def inputs(seed: int) -> tuple[Values, list[str]]:
        seeds.append(seed)
        return original(seed)

    monkeypatch.setattr(cases.reference, "inputs", inputs)
    return seeds


def drawn(cases: Cases, count: int, first: int = 10) -> list[torch.Tensor]:
    """The first inputs of so many turns, each held against the reference's own result."""
    found = []
    for n in range(count):
        case = cases.another(first + n)
        assert torch.equal(case.native[0], case.values.tensors[0] * 2)
        found.append(case.values.tensors[0])
    return found


def all_differ(tensors: list[torch.Tensor]) -> bool:
    """Whether no two are the same."""
    return len({tuple(t.tolist()) for t in tensors}) == len(tensors)


# --- a turn's inputs --------------------------------------------------------------------------------------------------


def test_every_turn_draws_anew(make: Make, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = make()
    seeds = draws(cases, monkeypatch)
    found = drawn(cases, 3)
    assert seeds == [SEEDS.seed("inputs", n) for n in (10, 11, 12)]
    assert all_differ(found)
    assert (found[0] - found[1]).abs().max() > 0.5
    assert torch.equal(drawn(cases, 1)[0], found[0])


def test_where_drawing_is_slow_the_first_draw_is_moved(make: Make, slow: None, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = make()
    seeds = draws(cases, monkeypatch)
    found = drawn(cases, 4)
    assert seeds == [SEEDS.seed("inputs", 10)]
    assert all_differ(found)
    for moved in found[1:]:
        assert ((moved - found[0]).abs() <= found[0].abs() / 64 * 1.001).all()
        assert ((moved - found[0]).abs() > found[0].abs() / 10_000).sum() > 48  # nearly all of it


def test_whole_numbers_cannot_be_moved_and_are_drawn_however_slowly(
    make: Make, slow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moved a little they would stay the same, and a remembered result would be right."""
    cases = make(made="[torch.randint(0, 1000, (64,))]")
    seeds = draws(cases, monkeypatch)
    assert all_differ(drawn(cases, 3))
    assert len(seeds) == 3


@pytest.mark.parametrize("refuses", ["raise ValueError('other')", "return x * float('nan')"])
def test_a_reference_that_takes_no_moved_inputs_gets_drawn_ones(
    make: Make, slow: None, monkeypatch: pytest.MonkeyPatch, refuses: str
) -> None:
    """Such as one that wants whole numbers."""
    cases = make(f"if (x != x.round()).any():\n    {refuses}\nreturn x * 2", "[torch.randn(64).mul(9).round()]")
    seeds = draws(cases, monkeypatch)
    assert all_differ(drawn(cases, 3))
    assert len(seeds) == 3


def test_fixed_inputs_are_moved_whether_drawing_is_slow_or_not(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit, asked in ((-1.0, 1), (float("inf"), 3)):
        monkeypatch.setattr(module, "SLOW_DRAW", limit)
        cases = make(made="[torch.arange(1.0, 65.0)]")
        assert (cases.fixed, cases.jitters) == (True, True)
        seeds = draws(cases, monkeypatch)
        found = drawn(cases, 3)
        assert all_differ(found)
        assert len(seeds) == asked
        for moved in found:
            assert ((moved / torch.arange(1.0, 65.0) - 1).abs() <= 2.1 / 64).all()


def test_one_of_several_inputs_that_never_varies_is_moved_in_timed_samples(make: Make, quick: None) -> None:
    """What a candidate keeps of a table that it has seen once is not right for long."""
    made = "[torch.randn(64), torch.arange(64.0), torch.arange(64)]"
    cases = make("return x * 2 + table + whole", made=made, arguments="x, table, whole")
    tables = [cases.another(n).values.tensors[1] for n in range(10, 14)]
    assert all_differ(tables)
    assert all(torch.allclose(table, torch.arange(64.0), rtol=2**-6 + 1e-6) for table in tables)
    assert torch.equal(cases.another(20).values.tensors[2], torch.arange(64))
    refuses = "assert table[1] == 1\nreturn x * 2 + table + whole"
    cases = make(refuses, made=made, arguments="x, table, whole")
    assert torch.equal(cases.another(10).values.tensors[1], torch.arange(64.0))


def test_a_near_case_has_inputs_and_results_of_its_own(make: Make) -> None:
    cases = make()
    case = cases.another(10)
    near = cases.near(case)
    assert not torch.equal(near.values.tensors[0], case.values.tensors[0])
    assert torch.equal(near.native[0], near.values.tensors[0] * 2)
    cases = make("assert torch.equal(x, x.round())\nreturn x * 2", made="[torch.randn(64).round()]")
    case = cases.another(10)
    assert cases.near(case) is case


def test_fixed_inputs_that_cannot_be_moved_stay(make: Make, slow: None) -> None:
    cases = make(made="[torch.arange(64)]")
    assert (cases.fixed, cases.jitters) == (True, False)
    assert [t.tolist() for t in drawn(cases, 2)] == [list(range(64))] * 2
    assert [hazard.id for hazard in cases.found.hazards] == ["fixed_inputs"]


# --- float64 ----------------------------------------------------------------------------------------------------------


def test_later_cases_save_the_memory_of_float64(make: Make, quick: None) -> None:
    cases = make("return x / 3")
    first = cases.another(1)
    assert first.reference[0].dtype is torch.float64
    cases.exact = False
    later = cases.another(2)
    assert later.reference[0] is later.native[0]
    assert later.native[0].dtype is torch.float32
    assert cases.compare(later, 0, later.values.tensors[0] / 3).passed
    assert not cases.compare(later, 0, later.values.tensors[0] / 3.01).passed


def skipped(cases: Cases) -> list[tuple[str, str]]:
    """What was not tried, and why."""
    return [(one.what, one.why) for one in cases.found.not_tried]


FULL = "it does not fit into the device's memory; the reference's own result is the oracle"


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        ("torch.OutOfMemoryError('CUDA out of memory.')", FULL),
        ("RuntimeError('DefaultCPUAllocator: can\\'t allocate memory')", FULL),
        ("TypeError('float32 alone')", "the reference does not run in float64; its own result is the oracle"),
    ],
)
def test_a_reference_that_does_not_come_to_float64(make: Make, quick: None, raised: str, why: str) -> None:
    cases = make(f"if x.dtype is torch.float64:\n    raise {raised}\nreturn x * 2")
    assert (cases.exact, skipped(cases)) == (False, [("float64 oracle", why)])
    case = cases.another(1)
    assert case.reference[0] is case.native[0]
    assert cases.compare(case, 0, case.values.tensors[0] * 2).passed


def test_memory_that_this_process_lacks_for_float64(make: Make, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = make()
    original, asked = cases.reference.run, []

    def run(values: Values, precision: str, *words: Any, **more: Any) -> Any:
        asked.append(precision)
        if precision == "double":
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return original(values, precision, *words, **more)

    monkeypatch.setattr(cases.reference, "run", run)
    drawn(cases, 3)
    assert asked == ["native", "double", "native", "native"]  # it is not tried again
    assert (cases.exact, skipped(cases)) == (False, [("float64 oracle", FULL)])


def test_an_oracle_that_is_lost_in_float64_is_no_want_of_memory(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = make()

    def run(values: Values, precision: str, *words: Any, **more: Any) -> Any:
        raise KoptError("the reference did not come to an end", code="reference_failed", hint="")

    case = cases.another(1)
    monkeypatch.setattr(cases.reference, "run", run)
    with pytest.raises(KoptError, match="did not come to an end"):
        cases._exactly(case.values, case.native)
    assert (cases.exact, skipped(cases)) == (True, [])


GB = 10**9


@pytest.mark.parametrize(
    ("total", "read", "written", "exact"),
    [
        (141 * GB, GB, GB, True),
        (16 * GB, GB, GB, False),
        (16 * GB, GB // 2, GB // 2, True),
        (141 * GB, 20 * GB, 0, False),
        (141 * GB, 0, 12 * GB, False),
        (141 * GB, 16 * GB, 0, True),
        (141 * GB, 0, 8 * GB, True),
    ],
)
def test_float64_is_left_out_where_it_cannot_fit(
    make: Make, monkeypatch: pytest.MonkeyPatch, total: int, read: int, written: int, exact: bool
) -> None:
    cases = make()
    cases.reference = SimpleNamespace(device=torch.device("cuda:0"))  # type: ignore[assignment]  # all that is asked of it
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (0, total))
    cases._leave_out_float64(read, written)
    assert cases.exact is exact
    if not exact:
        ((what, why),) = skipped(cases)
        assert what == "float64 oracle"
        assert f"the device has {total // GB}" in why


def test_memory_of_the_host_and_of_an_own_oracle_is_not_counted(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (0, 0))
    cases = make()
    cases._leave_out_float64(GB, GB)
    assert cases.exact
    cases.reference, cases.own_reference = SimpleNamespace(device=torch.device("cuda:0")), True  # type: ignore[assignment]  # all that is asked of it
    cases._leave_out_float64(GB, GB)
    assert cases.exact


def test_a_problem_that_returns_nothing_is_refused(make: Make) -> None:
    with pytest.raises(UsageError) as raised:
        make("pass")
    assert raised.value.code == "reference_form"


RANDOM = (
    "return torch.nn.functional.dropout(x, 0.2)",
    "return torch.softmax(torch.nn.functional.dropout(x @ x.T, 0.2), dim=1)",
    "return x + torch.rand_like(x) * 1e-3",
    "return torch.softmax(torch.nn.functional.dropout(x.float(), 0.5), dim=1)",
)


@pytest.mark.parametrize("body", RANDOM)
def test_a_reference_that_is_random_is_named(make: Make, body: str) -> None:
    """Whatever PyTorch's own error: two runs at one precision tell."""
    with pytest.raises(UsageError) as raised:
        make(body, made="[torch.randn(64, 64)]")
    assert raised.value.code == "reference_random"


def test_a_reference_without_a_wider_one_is_not_random(make: Make) -> None:
    """Its results are held against a second run of its own, and not against one in float64."""
    assert make("return torch.softmax(x, 0)", made="[torch.randn(4096)]", own=True).found.trials == []


def test_a_reference_that_adds_in_another_order_is_not_random(make: Make) -> None:
    body = "order = torch.randperm(len(x))\nreturn x[order].cumsum(0)[-1] + x"
    assert make(body, made="[torch.randn(4096) * 1e3]").found.trials == []
