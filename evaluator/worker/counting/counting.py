"""What one call of a reference must read, write and compute: its operators are watched, and what its results depend on
is added up.

Where it can, the reference runs on fake tensors, which have shapes and no memory: the largest problem costs nothing.
"""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from evaluator.worker.counting.operation_rules import Operations, operations, plain_name, trains
from evaluator.worker.counting.regions import Region, distinct
from evaluator.worker.loading.subjects import Inputs, KernelBench, MissingError, Setup
from evaluator.worker.memory.tensors import spec_of
from evaluator.worker.memory.values import UnsupportedValueError, flatten, names_of

MAX_ROWS = 500
"""Rows of one kind in an answer."""
_SHAPE_ONLY = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like", "new_")
"""Operators, or what their names begin with, that look at the shape of their argument alone."""
_FILLS = frozenset({"copy_", "fill", "zero", "normal", "uniform", "random", "exponential", "bernoulli"})
"""Operators that write their argument without reading it."""
_GATHERS = frozenset({"embedding", "index_select", "gather", "index"})
"""Operators that read as many elements of their first tensor as they return."""


@dataclass
class Step:
    """One operator that ran."""

    reads: list[tuple[int, Region, int]] = field(default_factory=list)
    """(storage, region, at most so many of its bytes)."""
    writes: list[tuple[int, Region]] = field(default_factory=list)
    computes: list[Operations] | None = field(default_factory=list)
    """None where no rule says."""
    name: str = ""
    leaves: bool = False
    """Whether what it makes is no tensor: a number that Python goes on with."""


class Tracer(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch does not annotate it
    """Writes down every operator while it is active."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch does not annotate it
        self.steps: list[Step] = []
        self.made: set[int] = set()
        """Storages that an operator made."""
        self._known: dict[int, tuple[StorageWeakRef, int]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # otherwise torch._dynamo is imported at the first operator, for more than a second

    def storage(self, tensor: torch.Tensor) -> int:
        """A number for the tensor's storage; a weak reference keeps its address from being used again."""
        if tensor.layout is not torch.strided:
            raise UnsupportedValueError(f"tensors of the layout {tensor.layout} cannot be counted")
        reference = StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]  # torch does not annotate
        return self._known.setdefault(reference.cdata, (reference, len(self._known)))[1]

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operator and write it down."""
        kwargs = kwargs or {}
        if function.namespace == "prim":
            return function(*args, **kwargs)
        name = plain_name(function)
        read, written = _arguments(function, args, kwargs)
        before = [(self.storage(t), region_of(t), t.nbytes) for t in read]
        result = function(*args, **kwargs)
        results = _tensors(result)
        given = {storage for storage, _, _ in before}
        if not written and results and all(self.storage(t) in given for t in results):
            return result  # a view: nothing moves
        step = Step(name=name, leaves=not results and not written)
        if name in _GATHERS:
            before[:1] = [(*before[0][:2], sum(t.nbytes for t in results))]
        if not name.startswith(_SHAPE_ONLY) and name != "lift_fresh":
            step.reads = before
        if name not in _FILLS and "out" not in kwargs:
            step.reads = [*step.reads, *((self.storage(t), region_of(t), t.nbytes) for t in written)]
        mine = {self.storage(t) for t in written}
        step.writes = [(self.storage(t), region_of(t)) for t in written]
        for tensor in results:
            key = self.storage(tensor)
            if key not in given | mine:
                self.made.add(key)
                if not name.startswith(("empty", "new_empty")):
                    step.writes.append((key, region_of(tensor)))
        step.computes = operations(function, args, kwargs, result)
        self.steps.append(step)
        return result


def region_of(tensor: torch.Tensor) -> Region:
    """The bytes of a tensor within its storage."""
    return Region.of(int(tensor.storage_offset()), tensor.shape, tensor.stride(), tensor.element_size())


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _arguments(function: Any, args: Any, kwargs: Any) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """(tensors that are read, tensors that are written) of an operator's arguments, by its schema."""
    read: list[torch.Tensor] = []
    written: list[torch.Tensor] = []
    batch_norm = "batch_norm" in function._schema.name and trains(plain_name(function), args)
    for n, argument in enumerate(function._schema.arguments):
        value = args[n] if n < len(args) else kwargs.get(argument.name)
        if batch_norm and argument.name.startswith("running"):
            continue  # the batch's own mean and variance are used; these are only brought up to date
        alias = argument.alias_info
        (written if alias is not None and alias.is_write else read).extend(_tensors(value))
    return read, written


def count(subject: Any, seed: int, named: Sequence[str]) -> dict[str, Any]:
    """Reads, writes and operations of one call; of inputs alone, without a call, where the subject is nothing else.

    `named` are outputs besides those that `setup` names. Raises what the reference raises where neither fake nor real
    tensors get it to its end.
    """
    if isinstance(subject, Inputs):
        return on_fake(subject, seed, lambda values, outputs: _uncalled(values, [*outputs, *named]))
    try:
        return on_fake(subject, seed, lambda *made: {**_traced(subject, *made), "run": "fake", "why": ""})
    except Exception as error:  # values decide what is done, or an operator has no fake form
        why = f"{type(error).__name__}: {error}".partition("\n")[0][:300]
    return {**_traced(subject, *_made(subject, seed)), "run": "real", "why": why}


def on_fake(subject: Any, seed: int, use: Any) -> dict[str, Any]:
    """Make everything of fake tensors and use it."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    with mode, _modules_take_new_parameters():
        values, outputs = _made(subject, seed)
        fake = tree_map_only(torch.Tensor, mode.from_tensor, values)
        found: dict[str, Any] = use(fake, outputs)
        return found


@contextlib.contextmanager
def _modules_take_new_parameters() -> Iterator[None]:
    """`module.to(...)` puts new parameters in place of the old ones: PyTorch would change the old ones' memory, which
    fake tensors do not have."""

    def apply(module: Any, change: Any, recurse: bool = True) -> Any:
        for child in module.children() if recurse else ():
            child._apply(change)
        with torch.no_grad():
            for name, old in list(module._parameters.items()):
                if old is not None and (new := change(old)) is not old:
                    module._parameters[name] = torch.nn.Parameter(new, old.requires_grad)
            for name, old in list(module._buffers.items()):
                if old is not None:
                    module._buffers[name] = change(old)
        return module

    kept = torch.nn.Module._apply
    torch.nn.Module._apply = apply  # type: ignore[method-assign]  # until the trace is made
    try:
        yield
    finally:
        torch.nn.Module._apply = kept  # type: ignore[method-assign]  # as it was


def _made(subject: Any, seed: int) -> tuple[Any, list[str]]:
    """(arguments, names of the outputs among them); the model stands ready in the subject."""
    if isinstance(subject, KernelBench):
        subject.build(subject.init_inputs(seed), seed)
    values, outputs = subject.make_inputs(seed)
    return values, list(outputs)


def _uncalled(values: Any, outputs: list[str]) -> dict[str, Any]:
    """Traffic by the arguments alone: what is no output is read, whole, and the outputs are written."""
    if not outputs:
        raise MissingError("nothing says which arguments are outputs, and the kernel's own code is not counted")
    tensors, names = named_tensors(values)
    rows: dict[str, list[dict[str, Any]]] = {"reads": [], "writes": []}
    seen: set[int] = set()
    tracer = Tracer()
    for n, tensor in enumerate(tensors):
        key = tracer.storage(tensor)
        if key not in seen:
            kind = "writes" if names[n] in outputs else "reads"
            rows[kind].append(_row(names[n], kind[:-1], tensor, [(region_of(tensor), tensor.nbytes)]))
        seen.add(key)
    return {**rows, "operations": [], "unknown": [], "opaque": [], "run": "none", "why": ""}


def named_tensors(values: Any) -> tuple[list[torch.Tensor], dict[int, str]]:
    tensors: list[torch.Tensor] = []
    return tensors, names_of(flatten(values, tensors))


def _traced(subject: Any, values: Any, outputs: list[str]) -> dict[str, Any]:
    tracer = Tracer()
    given, names = named_tensors(values)
    known: dict[int, tuple[str, str, torch.Tensor]] = {}
    for n, tensor in enumerate(given):
        known.setdefault(tracer.storage(tensor), ("input", names[n], tensor))
    if isinstance(subject, KernelBench):
        for name, tensor in subject.model.state_dict().items():
            known.setdefault(tracer.storage(tensor), ("weight", name, tensor))
    with tracer:
        returned = subject.call(values)
    written = {key for step in tracer.steps for key, _ in step.writes}
    results: dict[int, list[tuple[str, torch.Tensor]]] = {}
    made = [(f"result {n}", tensor) for n, tensor in enumerate(_tensors(returned))]
    if isinstance(subject, Setup):
        arguments = [(names[n], tensor) for n, tensor in enumerate(given)]
        made = [(name, t) for name, t in arguments if name in outputs or tracer.storage(t) in written]
    for name, tensor in made:
        results.setdefault(tracer.storage(tensor), []).append((name, tensor))
    live = _live(tracer.steps, set(results))
    # Somebody must have written a result that is new, or is named an output.
    unwritten = [(key, found[0][0]) for key, found in results.items() if key not in written]
    opaque = [name for key, name in unwritten if outputs or key in tracer.made]
    writes: list[dict[str, Any]] = []
    for key, found in results.items():
        if key in tracer.made:
            regions = [region_of(t) for _, t in found]
        else:
            regions = [region for step in live for of, region in step.writes if of == key]
        if key in written:
            writes.append(_row(found[0][0], "output", found[0][1], [(r, r.bytes) for r in regions]))
    return {"reads": _reads(live, tracer, known), "writes": writes, "opaque": opaque, **_operations(live)}


def _live(steps: Sequence[Step], wanted: set[int]) -> list[Step]:
    """The steps that the wanted storages depend on, and those whose numbers Python went on with."""
    found = []
    for step in reversed(steps):
        if step.leaves or any(key in wanted for key, _ in step.writes):
            wanted |= {key for key, _, _ in step.reads}
            found.append(step)
    return found[::-1]


def _reads(steps: Iterable[Step], tracer: Tracer, known: dict[int, Any]) -> list[dict[str, Any]]:
    """Rows of the storages that were there before the call, with the bytes that were read of them."""
    regions: dict[int, list[tuple[Region, int]]] = {}
    overwritten: dict[int, list[Region]] = {}
    for step in steps:
        for key, region, most in step.reads:
            if key not in tracer.made and not any(_covers(w, region) for w in overwritten.get(key, ())):
                regions.setdefault(key, []).append((region, most))
        for key, region in step.writes:
            overwritten.setdefault(key, []).append(region)
    rows = []
    for key, (what, name, tensor) in known.items():
        if key in regions:
            rows.append(_row(name, what, tensor, regions.pop(key)))
    for n, found in enumerate(regions.values()):
        size, exact = _bytes(found)
        spec = {"name": f"constant {n}", "shape": [size], "dtype": "uint8"}
        rows.append({**spec, "what": "constant", "bytes": size, "factors": [size], "exact": exact})
    return rows


def _covers(whole: Region, part: Region) -> bool:
    """Whether a region without gaps, or the same one, covers another."""
    gapless = whole.bytes == whole.end - whole.start
    return whole == part or (gapless and whole.start <= part.start and whole.end >= part.end)


def _bytes(found: Sequence[tuple[Region, int]]) -> tuple[int, bool]:
    """Distinct bytes of regions, of some of which no more than a part was read."""
    whole = [region for region, most in found if most >= region.bytes]
    size, exact = distinct(whole)
    parts = [(region, most) for region, most in found if most < region.bytes and region not in whole]
    if parts:
        every, _ = distinct([region for region, _ in found])
        return min(every, size + sum(most for _, most in parts)), False
    return size, exact


def _row(name: str, what: str, tensor: torch.Tensor, found: Sequence[tuple[Region, int]]) -> dict[str, Any]:
    size, exact = _bytes(found)
    factors = [n for n, step in zip(tensor.shape, tensor.stride(), strict=True) if n != 1 and step]
    factors = [*factors, tensor.element_size()]
    spec = {key: value for key, value in spec_of(tensor).items() if key != "stride"}
    short = factors if math.prod(factors) == size else [size]
    return {"name": name, "what": what, **spec, "bytes": size, "factors": short, "exact": exact}


def _operations(steps: Iterable[Step]) -> dict[str, Any]:
    """Rows of equal operations, and the operators that no rule is known for."""
    steps = list(steps)
    rows = Counter(row for step in steps for row in step.computes or ())
    unknown = Counter(step.name for step in steps if step.computes is None)
    if len(rows) > MAX_ROWS:
        raise UnsupportedValueError(f"the reference runs more than {MAX_ROWS} different operators; declare its work")
    return {
        "operations": [{**vars(row), "factors": list(row.factors), "calls": calls} for row, calls in rows.items()],
        "unknown": [{"name": name, "calls": calls} for name, calls in unknown.items()],
    }
