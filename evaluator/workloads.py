"""The sizes at which a candidate is tried, and whether the problem knows them."""

from __future__ import annotations

import itertools
import math

from evaluator.request import Request
from evaluator.source.cuda_signature import evaluate_size
from evaluator.source.forms import Form, Recognised, argument_sizes, dims_of, setup_sizes
from evaluator.source.source_file import SourceFile, is_cuda
from kbs.common.errors import UsageError

_LEAST_SIZE = 16
"""A smaller number is more often a kernel's width or a count of heads than a size."""
_LONG, _LENGTHENED = 4099, 2
"""A size that is longer than the blocks that kernels read at once, a prime, and how many sizes alone become it."""
_TRIES = 4
"""Sizes that are changed alone."""
_ALIGNED = 128
"""Rows of so many numbers, or a power of two, take a kernel's way without masks."""
_MOST = 2**53
"""Of bytes and operations: whole numbers above are no longer exact in every reader of JSON."""


def check_dims(request: Request, recognised: Recognised) -> None:
    """KernelBench form: sizes replace constants of the reference, so each must be one."""
    if recognised.form is not Form.KERNELBENCH:
        return
    constants = dims_of(request.reference or request.candidate)
    named = {name for dims in (request.dims, *request.workloads) for name in dims}
    unknown = sorted(named - constants.keys())
    if unknown:
        known = ", ".join(constants) or "none"
        raise UsageError(
            f"{unknown[0]} is no whole number that the reference sets by itself on a line at its top level",
            code="dims_do_not_fit",
            hint=f"--dims replaces such constants: {known}.",
        )


def workloads(request: Request) -> tuple[dict[str, int], ...]:
    """The sizes that are tried: those asked for, then with the free ones odd and prime."""
    found = [{**request.dims, **extra} for extra in request.workloads] or [dict(request.dims)]
    unknown = [name for name in request.vary if name not in found[0]]
    if unknown:
        raise UsageError(
            f"--vary names {unknown[0]}, which is not among the dims",
            code="vary_unknown",
            hint="Give its size with --dims.",
        )
    if request.vary:
        found.append({**found[0], **{name: _prime_below(found[0][name]) for name in request.vary}})
    unique: list[dict[str, int]] = []
    for dims in found:
        if dims not in unique:
            unique.append(dims)
    return tuple(unique)


def other_sizes(request: Request, recognised: Recognised, room: float = math.inf) -> list[list[dict[str, int]]]:
    """Lists of workloads with sizes that nobody asked for: of each list one is to be tried, the first that the
    reference takes. Nothing where other sizes were asked for, or nothing says what is a size.

    The first list goes down with sizes and up with small numbers, such as a count of heads or taps; the second the
    other way: to primes. Both change all at once, then the sizes, then the largest alone. The third goes up to powers
    of two; the next lets the smallest size be the largest one, or, where all are equal, the first and the last grow
    alone. Each small number alone follows, then the largest sizes alone at `_LONG`. `room` is by how much a workload
    may grow.
    """
    base = workloads(request)
    if request.vary or len(base) > 1:
        return []
    free = {name: n for name, n in {**_named(request, recognised), **base[0]}.items() if n > 1}
    if recognised.form is Form.KERNELBENCH:
        known = argument_sizes(request.reference or request.candidate) if request.inputs is None else {}
        free = {name: n for name, n in free.items() if name in known}
    small = [name for name, n in free.items() if n < _LEAST_SIZE]
    sizes = sorted((name for name in free if name not in small), key=lambda name: -free[name])
    down = {name: _prime_below(n) if n > 2 else n for name, n in free.items()}
    up = {name: _prime_above(2 * n) for name, n in free.items()}
    fewer, more = {name: down[name] for name in sizes}, {name: up[name] for name in sizes}
    aligned = {name: max(_ALIGNED, 1 << (free[name] - 1).bit_length()) for name in sizes}
    turned = dict(zip(sizes, [down[name] for name in reversed(sizes)], strict=True))
    equal = len({free[name] for name in sizes}) == 1
    ends = [sizes[0], sizes[-1]] if len(sizes) > 1 else []
    apart = [[{name: _prime_above(3 * free[name])}, {name: 4 * free[name]}] for name in ends] if equal else [[turned]]
    alone = {name: [{name: up[name]}, {name: 3 * free[name]}] for name in free}  # it may have to divide, or be divided
    found = [
        [fewer | {name: up[name] for name in small}, fewer, *({name: n} for name, n in [*fewer.items()][:_TRIES])],
        [more | {name: down[name] for name in small}, more, *(each for name in sizes[:_TRIES] for each in alone[name])],
        [aligned, *({name: n} for name, n in [*aligned.items()][:_TRIES])],
        *(apart if ends else []),
        *(alone[name] for name in small[:_TRIES]),
        *([{name: _LONG}] for name in sizes[:_LENGTHENED] if 2 * free[name] < _LONG),
    ]
    return [kept for listed in found if (kept := _fitting(listed, free, base[0], room))]


def _fitting(
    changed: list[dict[str, int]], free: dict[str, int], base: dict[str, int], room: float
) -> list[dict[str, int]]:
    """The workloads with something changed that do not grow beyond `room`, each once."""
    kept: list[dict[str, int]] = []
    for sizes in changed:
        other = any(n != free[name] for name, n in sizes.items())
        if other and sizes not in kept and math.prod(n / free[name] for name, n in sizes.items()) <= room:
            kept.append(sizes)
    return [{**base, **sizes} for sizes in kept]


def _named(request: Request, recognised: Recognised) -> dict[str, int]:
    """Sizes that have a value in the reference or in `setup`."""
    if recognised.form is Form.KERNELBENCH:
        return argument_sizes(request.reference or request.candidate)
    inputs = request.inputs
    if inputs is not None:
        text = inputs.content.decode("utf-8", "replace") if inputs.name.endswith(".py") else ""
        source: SourceFile | None = SourceFile(name=inputs.name, text=text)
    else:
        source = {"reference": request.reference, "candidate": request.candidate}.get(recognised.setup_from)
    return {} if source is None or is_cuda(source) else setup_sizes(source)


def declared(request: Request, dims: dict[str, int]) -> tuple[int | None, int | None]:
    """(bytes, operations) that --bytes and --operations give for a workload; None for what is not given.

    Raises `UsageError`.
    """
    size = evaluate_size(request.bytes, dims, "--bytes 2*M*N*4", _MOST) if request.bytes else None
    work = evaluate_size(request.operations, dims, "--operations 2*M*N*K", _MOST) if request.operations else None
    return size, work


def check_declared(request: Request) -> None:
    """Raises `UsageError` for --bytes and --operations that one of the workloads gives no number."""
    for dims in workloads(request):
        declared(request, dims)


def _prime_below(n: int) -> int:
    """The largest prime below n; 1 where there is none."""
    return next((p for p in range(n - 1, 1, -1) if all(p % divisor for divisor in range(2, math.isqrt(p) + 1))), 1)


def _prime_above(n: int) -> int:
    """The smallest prime above n."""
    return next(p for p in itertools.count(n + 1) if all(p % divisor for divisor in range(2, math.isqrt(p) + 1)))
