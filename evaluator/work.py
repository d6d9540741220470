"""What a problem needs at the least, counted from its reference: bytes and operations; and what it computes."""

from __future__ import annotations

import ast
import math
from typing import Any, Literal

import torch
from pydantic import Field, ValidationError

from evaluator.correctness.reference import ReferenceProcess
from evaluator.graph import Graph, read_graph
from evaluator.request import Request
from evaluator.sandbox import messages
from evaluator.sandbox.fork_server import ForkServer
from evaluator.source.cuda_signature import output_pointers, solve_parameters
from evaluator.source.forms import Backend, Form, Recognised, dims_of
from evaluator.source.python_source import parse
from evaluator.source.source_file import SourceFile, is_cuda
from evaluator.worker.process.isolation import Limits
from kbs.common.errors import KoptError, UsageError
from kbs.common.json_model import Record

COUNTING_MODULES = ("torch._dynamo",)
"""What a fork server for counting imports: fake tensors need it, and it cannot be imported any more where a CPU stands
in for a GPU."""
_SEED = 0
_MOST = 1 << 80
"""Bytes and operations of a row are fewer; what a worker claims could be any number."""
_MOST_FACTORS = 40
_DECLARED = ("operations", "min_bytes")


class Traffic(Record):
    """A tensor that must be read or written, once."""

    name: str
    """Where it stands among arguments, weights or results."""
    what: Literal["input", "weight", "constant", "output", "read", "write"]
    """`constant`: a tensor that is neither argument nor weight. `read`, `write`: an argument of a kernel whose code was
    not run."""
    shape: tuple[int, ...]
    dtype: str
    """Without `torch.`."""
    bytes: int = Field(ge=0)
    """Distinct bytes of it that the results depend on, or that are written."""
    factors: tuple[int, ...]
    """Their product is `bytes`: sizes, then bytes of an element."""
    exact: bool
    """False where more may be needed, since only values tell: rows that an index chooses, regions that overlap."""


class Operation(Record):
    """Operations of one kind of an operator of PyTorch."""

    name: str
    """Such as `mm`, or `addmm (bias)`."""
    pipe: Literal["tensor", "vector", "integer"]
    """`tensor`: products of matrices; `vector`: floating-point element by element; `integer`: none of floating point.
    """
    dtype: str
    """Without `torch.`."""
    factors: tuple[int, ...]
    """Their product is the number of operations of one call."""
    calls: int = Field(ge=1)

    @property
    def count(self) -> int:
        """Operations of all calls."""
        return math.prod(self.factors) * self.calls


class Work(Record):
    """What one call of the reference does that its results depend on."""

    how: Literal["fake", "real", "none"]
    """The reference ran on `fake` tensors, which have shapes and no memory; on `real` ones on the CPU; or not at all:
    the arguments of a kernel were looked at."""
    why: str
    """Why fake tensors did not do."""
    read: tuple[Traffic, ...]
    written: tuple[Traffic, ...]
    operations: tuple[Operation, ...]
    uncounted: tuple[str, ...]
    """Operators that no rule is known for, with their calls: `sort (1 call)`."""

    @property
    def traced(self) -> bool:
        """Whether operations were counted at all."""
        return self.how != "none"


def declared(reference: SourceFile) -> dict[str, str]:
    """`operations` and `min_bytes` that a Python reference states at its top level: expressions of the dims."""
    if is_cuda(reference):
        return {}
    found: dict[str, str] = {}
    for node in parse(reference.name, reference.text).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            value = node.value.value
            if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
                found |= {name: str(value) for name in names if name in _DECLARED}
    return found


def sizes(request: Request, recognised: Recognised) -> dict[str, int]:
    """The dims by which declared expressions are read: in the KernelBench form the reference's constants too."""
    source = request.reference or request.candidate
    constants = dims_of(source) if recognised.form is Form.KERNELBENCH else {}
    return {**constants, **request.dims}


def count_work(request: Request, recognised: Recognised, server: ForkServer) -> Work:
    """Count it in the sandbox, without a GPU.

    A kernel that is its own reference, in Triton or CUDA, is not run: its arguments are what it must move, and its
    operations are not counted. Raises `UsageError`: `work_uncountable` if the reference computes outside PyTorch's
    operators, and what the reference's process raises.
    """
    source = request.reference or request.candidate
    runs = not is_cuda(source) and (recognised.oracle == "reference" or recognised.backend is Backend.TORCH)
    if not runs and recognised.form in (Form.KERNELBENCH, Form.FUNCTION):
        raise _uncountable("the kernel is its own reference, and what it launches cannot be counted")
    outputs = list(request.outputs)
    if recognised.form is Form.SOLVE and not runs:
        outputs = output_pointers(solve_parameters(request.candidate), request.outputs, None)
    try:
        answer = _asked("count", request, recognised, server, runs=runs, outputs=outputs)["count"]
    except KoptError as error:
        raise _advised(error) from error
    if answer is None:
        raise _uncountable("its worker gave no count")
    if answer["opaque"]:
        raise _uncountable(f"no operator of PyTorch writes {answer['opaque'][0]}")
    return _work(answer)


def trace_graph(request: Request, recognised: Recognised, server: ForkServer) -> Graph:
    """What a Python reference computes, operator by operator, without memory and without a GPU.

    Raises `UsageError` `reference_untraceable` where it is no PyTorch code, or values decide what is done, and what the
    reference's process raises.
    """
    if is_cuda(request.reference or request.candidate) or recognised.oracle != "reference":
        raise _untraceable("the kernel is its own reference")
    answer = _asked("trace", request, recognised, server, runs=True)["graph"]
    try:
        return read_graph(answer)
    except (ValidationError, KeyError, TypeError) as error:
        raise _untraceable(f"its worker gave no graph: {str(error)[:200]}") from error


def _untraceable(why: str) -> UsageError:
    return UsageError(
        f"the operators of the reference cannot be read: {why}",
        code="reference_untraceable",
        hint="The search still rewrites the kernel, and tries its settings.",
    )


def _asked(
    what: str, request: Request, recognised: Recognised, server: ForkServer, *, runs: bool, **words: Any
) -> dict[str, Any]:
    """A worker's answer about the reference, which it loads on the CPU."""
    request = request.model_copy(update={"device": "cpu"})
    files = messages.reference_files(request, recognised, request.dims)
    files |= messages.candidate_files(request) if messages.own_setup(request, recognised) else {}
    limits = Limits(request.memory_limit, request.process_limit, 8 << 30, True)
    worker = server.spawn("counted", limits, files)
    reference = ReferenceProcess(worker, torch.device("cpu"), request.load_seconds, request.call_seconds)
    try:
        reference.load(messages.counting_message(request, recognised, request.dims, runs=runs))
        return reference.ask(what, request.call_seconds, seed=_SEED, **words)
    finally:
        reference.close()


def _work(answer: dict[str, Any]) -> Work:
    for row in [*answer["reads"], *answer["writes"], *answer["operations"]]:
        factors = row["factors"] if len(row["factors"]) <= _MOST_FACTORS else [_MOST]
        amount = math.prod(factors) if max(factors, default=0) < _MOST else _MOST
        if amount >= _MOST or amount != row.get("bytes", amount) or not 0 < row.get("calls", 1) < _MOST:
            raise _uncountable(f"the count of {row['name'][:80]} is none that a problem can have")
    if not any(row["bytes"] for row in [*answer["reads"], *answer["writes"]]):
        raise _uncountable("its results need no bytes")
    return Work(
        how=answer["run"],
        why=answer["why"],
        read=tuple(Traffic(**row) for row in answer["reads"] if row["bytes"]),
        written=tuple(Traffic(**row) for row in answer["writes"] if row["bytes"]),
        operations=tuple(Operation(**row) for row in answer["operations"] if math.prod(row["factors"])),
        uncounted=tuple(f"{row['name']} ({row['calls']} call{'s' * (row['calls'] != 1)})" for row in answer["unknown"]),
    )


def _uncountable(why: str) -> UsageError:
    return UsageError(
        f"the work of the reference cannot be counted: {why}",
        code="work_uncountable",
        hint="Say what the problem needs, with --bytes and --operations: --bytes '2*M*N*4' --operations '5*M*N'.",
    )


def _advised(error: KoptError) -> KoptError:
    """The same error with the way round it: to declare what could not be counted."""
    if error.code == "out_of_memory":
        error.hint = "Its values decide what is computed, so that it had to run: give smaller --dims."
    error.hint = f"{error.hint} Or say what the problem needs, with --bytes and --operations."
    return error
