"""Reads a reference's graph into segments: what each kernel computes, over which axes it reduces, what lies in memory.

What it cannot read is said, and nothing is guessed: the reference is then left to rewrites and to other proposers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluator.graph import Graph, Node, Spec, View
from loop.search.generators.lines.operators import COMPARE, FILLS, compute_type, expression, literal
from loop.search.generators.segment import Memory, Product, Segment, UnreadableError, Value, is_float

PRODUCTS = ("mm", "bmm", "addmm")
_LEAST = 16
"""Elements of a side of a product; the matrix units take no fewer."""
_MULTIPLIED = ("float32", "float16", "bfloat16")
_IDENTITY = ("clone", "alias", "contiguous", "detach", "dropout", "lift_fresh")


@dataclass(frozen=True)
class Output:
    """What the call returns: a look at a buffer."""

    buffer: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class Buffer:
    """Memory that the host makes."""

    name: str
    spec: Spec


@dataclass
class Problem:
    """A whole reference: its segments in order, and what they read, make and return."""

    graph: Graph
    segments: list[Segment] = field(default_factory=list)
    buffers: dict[str, Buffer] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)

    @property
    def sources(self) -> dict[str, int]:
        """Name in host and kernels → number of the source, of those that are read."""
        used = {one.memory.name for part in self.segments for one in part.loads if one.memory is not None}
        used |= {one.name for part in self.segments if part.product for one in (part.product.left, part.product.right)}
        return {f"x{n}": n for n in range(len(self.graph.sources)) if f"x{n}" in used}


@dataclass(frozen=True)
class _Known:
    """Where a node's result is: a value of a segment, and the axes of its dimensions."""

    segment: int
    value: str
    spec: Spec
    axes: tuple[int | None, ...]
    """Of each dimension; None where its size is one."""


def read_problem(graph: Graph) -> Problem:
    """The segments of a graph. Raises `UnreadableError`, which says what has no generator."""
    return _Reader(graph).problem()


class _Reader:
    """Reads one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.found = Problem(graph)
        self.known: dict[tuple[int, int], _Known] = {}
        self.stored: dict[tuple[int, str], Memory] = {}
        self.numbers: dict[int, bool | int | float] = {}
        """Nodes that fill a tensor with one number."""
        self.logs: dict[str, tuple[str, str, str]] = {}
        """Logarithm of a softmax → what it is made of: the value, its largest and the sum of a row."""
        self.count = 0
        self.needed = self._needed()

    def problem(self) -> Problem:
        """Read it."""
        if not self.graph.outputs:
            raise UnreadableError("it returns no tensor")
        for place, node in enumerate(self.graph.nodes):
            if place in self.needed:
                self._node(place, node)
        for view in self.graph.outputs:
            if view.node is None:
                raise UnreadableError("it returns an argument as it is")
            one = self.known.get((view.node, view.result))
            if one is None:
                raise UnreadableError(f"it returns another result of {self.graph.nodes[view.node].op}")
            memory = self._kept(one)
            if view.dtype != one.spec.dtype:
                raise UnreadableError("it returns the bytes of a result as another type")
            self.found.outputs.append(Output(memory.name, view.shape, view.stride, view.offset))
        self.found.segments = [one for one in self.found.segments if one.stores]
        return self.found

    def _needed(self) -> set[int]:
        """Nodes that the outputs depend on."""
        open_, found = [one.node for one in self.graph.outputs], set[int]()
        while open_:
            place = open_.pop()
            if place is None or place in found:
                continue
            found.add(place)
            open_ += [view.node for view in self.graph.nodes[place].tensors.values()]
        return found

    # --- nodes ------------------------------------------------------------------------------------------------------

    def _node(self, place: int, node: Node) -> None:
        special = getattr(self, f"_op_{node.op.strip('_')}", None)
        if special is not None:
            special(place, node)
        elif node.op in FILLS:
            said = FILLS[node.op]
            number = node.args.get(said) if isinstance(said, str) else said
            if not isinstance(number, (bool, int, float)):
                raise UnreadableError(f"the number of {node.op}")
            self.numbers[place] = number
        else:
            self._pointwise(place, node)

    def _pointwise(self, place: int, node: Node) -> None:
        numbers = {
            name: self.numbers[view.node or 0] for name, view in node.tensors.items() if view.node in self.numbers
        }
        views = {name: view for name, view in node.tensors.items() if name not in numbers}
        op = node.op
        if op == "_to_copy" or op in _IDENTITY:
            op = "clone"
        result = node.results[0]
        segment, args, axes = self._aligned(list(views.values()), result.shape)
        names = dict(zip(views, args, strict=True))
        floating = is_float(result.dtype) or any(is_float(view.dtype) for view in views.values())
        order: list[str | float | int | bool] = []

        def text(name: str) -> str:
            given = names[name] if name in names else numbers.get(name, node.args.get(name))
            if not isinstance(given, (str, int, float)):
                raise UnreadableError(f"the argument {name} of {node.op}")
            if isinstance(given, str) and given in order:
                return f"{{{order.index(given)}}}"
            order.append(given)
            return f"{{{len(order) - 1}}}"

        plain = {name: value for name, value in node.args.items() if name not in views}
        form = expression(op, plain, text, floating)
        dtype = "bool" if op in COMPARE else compute_type(result.dtype)
        over = (
            frozenset[int]().union(*(self._segment(segment).values[arg].axes for arg in args)) if args else frozenset()
        )
        name = self._add(segment, Value(self._name(), f"={form}", tuple(order), over, dtype))
        self.known[place, 0] = _Known(segment, name, result, axes)

    def _aligned(
        self, views: Sequence[View], shape: Sequence[int], at: int | None = None
    ) -> tuple[int, list[str], tuple[int | None, ...]]:
        """(segment, values of the views in it, axes of the dimensions of a shape that they are broadcast to)."""
        places = [self.known[view.node, view.result].segment for view in views if view.node is not None]
        segment = max(places, default=0) if at is None else at
        if not self.found.segments:
            self.found.segments.append(Segment(self._domain()))
        axes = self._axes(views, shape, segment)
        return segment, [self._value(view, shape, axes, segment) for view in views], axes

    def _domain(self) -> tuple[int, ...]:
        """The shape of a product of matrices; else the largest one that an operator reads or makes."""
        for place in sorted(self.needed):
            if self.graph.nodes[place].op in PRODUCTS:
                return self.graph.nodes[place].results[0].shape
        shapes = [
            view.shape
            for place in sorted(self.needed)
            for node in (self.graph.nodes[place],)
            for view in (*node.results, *node.tensors.values())
        ]
        return max(shapes, key=lambda shape: (math.prod(shape), len(shape)))

    def _segment(self, place: int) -> Segment:
        return self.found.segments[place]

    def _axes(self, views: Sequence[View], shape: Sequence[int], place: int) -> tuple[int | None, ...]:
        """The axis of each dimension: as the values have it that are computed, else aligned at the right."""
        sizes = self._segment(place).sizes
        found: list[int | None] = [None] * len(shape)
        for view in views:
            if view.node is None:
                continue
            known = self.known[view.node, view.result]
            if known.segment != place and (known.segment, known.value) in self.stored:
                continue
            for dimension, axis in self._dimensions(view, known, len(shape)):
                if found[dimension] not in (None, axis):
                    raise UnreadableError("an operator joins values of different axes")
                found[dimension] = axis
        for dimension, size in enumerate(shape):
            if size > 1 and found[dimension] is None:
                axis = len(sizes) - len(shape) + dimension
                if axis < 0 or sizes[axis] != size or axis in found:
                    raise UnreadableError(f"a tensor of shape {tuple(shape)} in a problem of {sizes}")
                found[dimension] = axis
        return tuple(axis if size > 1 else None for axis, size in zip(found, shape, strict=True))

    def _dimensions(self, view: View, known: _Known, rank: int) -> list[tuple[int, int]]:
        """(dimension of the shape that a view is broadcast to, axis) of those that it varies over."""
        if view.offset or (view.count < known.spec.count and 0 not in view.stride):
            raise UnreadableError("an operator takes a part of what another one made")
        own = {
            (size, stride): axis
            for size, stride, axis in zip(known.spec.shape, known.spec.stride, known.axes, strict=True)
            if size > 1 and axis is not None
        }
        found = []
        for dimension, (size, stride) in enumerate(zip(view.shape, view.stride, strict=True)):
            if size > 1 and stride:
                if (size, stride) not in own:
                    raise UnreadableError("the result of an operator is reshaped before another one takes it")
                found.append((rank - len(view.shape) + dimension, own[size, stride]))
        if len(found) != len(own):
            raise UnreadableError("the result of an operator is reshaped before another one takes it")
        return found

    def _value(self, view: View, shape: Sequence[int], axes: Sequence[int | None], place: int) -> str:
        """The value of a view in a segment: computed there, or loaded."""
        segment = self._segment(place)
        if view.node is not None:
            known = self.known[view.node, view.result]
            if known.segment == place:
                return known.value
            memory = self._kept(known)
            return self._load(memory.name, view, shape, axes, segment)
        origin = self.graph.sources[view.source or 0]
        if origin.what == "constant":
            raise UnreadableError("it uses a tensor that is neither argument nor weight")
        return self._load(f"x{view.source}", view, shape, axes, segment)

    def _load(self, name: str, view: View, shape: Sequence[int], axes: Sequence[int | None], segment: Segment) -> str:
        strides = [0] * len(segment.sizes)
        over = set[int]()
        for dimension, (size, stride) in enumerate(zip(view.shape, view.stride, strict=True)):
            axis = axes[len(shape) - len(view.shape) + dimension]
            if size > 1 and stride:
                if axis is None:
                    raise UnreadableError("a tensor is broadcast in a way that is not read")
                strides[axis] = stride
                over.add(axis)
        memory = Memory(name, view.dtype, tuple(strides), view.offset)
        for one in segment.loads:
            if one.memory == memory:
                return one.name
        return self._add(
            self.found.segments.index(segment),
            Value(self._name(), "load", (), frozenset(over), compute_type(view.dtype), memory),
        )

    def _kept(self, known: _Known) -> Memory:
        """A value in a buffer, stored by its segment."""
        key = (known.segment, known.value)
        segment = self._segment(known.segment)
        if key not in self.stored:
            strides = [0] * len(segment.sizes)
            for size, stride, axis in zip(known.spec.shape, known.spec.stride, known.axes, strict=True):
                if size > 1 and axis is not None:
                    strides[axis] = stride
            name = f"y{len(self.found.buffers)}"
            memory = Memory(name, known.spec.dtype, tuple(strides))
            self.found.buffers[name] = Buffer(name, known.spec)
            segment.stores.append((known.value, memory))
            self.stored[key] = memory
        return self.stored[key]

    def _add(self, place: int, value: Value) -> str:
        self._segment(place).values[value.name] = value
        return value.name

    def _name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def _formula(self, place: int, form: str, *args: str | float, dtype: str = "float32") -> str:
        """A value by an expression: `{0} - {1}`."""
        values = self._segment(place).values
        over = frozenset[int]().union(*(values[arg].axes for arg in args if isinstance(arg, str)))
        return self._add(place, Value(self._name(), f"={form}", args, over, dtype))

    # --- reductions -------------------------------------------------------------------------------------------------

    def _reducing(self, view: View, dims: Any) -> tuple[int, str, tuple[int | None, ...], frozenset[int], set[int]]:
        """(segment, value, axes of the view's dimensions, axes that are reduced, dimensions that are)."""
        rank = len(view.shape)
        if dims is None or dims == []:
            chosen = set(range(rank))
        else:
            chosen = {int(one) % rank for one in (dims if isinstance(dims, list) else [dims])} if rank else set()
        segment, (value,), axes = self._aligned([view], view.shape)
        over = frozenset(axis for n in chosen if (axis := axes[n]) is not None)
        own = self._segment(segment)
        if not over:
            raise UnreadableError("a reduction over axes of size one")
        used = own.reduced | frozenset()
        if (used and used != over) or own.product:
            return self._moved(view, over, axes, chosen)
        if not own.values[value].axes >= over:
            raise UnreadableError("a reduction over axes along which nothing varies")
        own.reduced = over
        return segment, value, axes, over, chosen

    def _moved(
        self, view: View, over: frozenset[int], axes: tuple[int | None, ...], chosen: set[int]
    ) -> tuple[int, str, tuple[int | None, ...], frozenset[int], set[int]]:
        """The same in a segment of its own, behind the others: over other axes than those before."""
        if view.node is None:
            raise UnreadableError("it reduces arguments over different axes")
        known = self.known[view.node, view.result]
        memory = self._kept(known)
        shape = known.spec.shape
        place = len(self.found.segments)
        kept = [n for n in range(len(shape)) if shape[n] > 1]
        fresh = Segment(tuple(shape[n] for n in kept))
        self.found.segments.append(fresh)
        numbers: dict[int | None, int] = {known.axes[n]: place_ for place_, n in enumerate(kept)}
        own = tuple(numbers.get(axis) if axis is not None else None for axis in known.axes)
        strides = tuple(known.spec.stride[n] for n in kept)
        value = self._add(
            place,
            Value(
                self._name(), "load", (), frozenset(range(len(kept))), compute_type(memory.dtype),
                Memory(memory.name, memory.dtype, strides),
            ),
        )  # fmt: skip
        self.known[view.node, view.result] = _Known(place, value, known.spec, own)
        moved = tuple(numbers.get(axis) if axis is not None else None for axis in axes)
        fresh.reduced = frozenset(numbers[axis] for axis in over)
        return place, value, moved, fresh.reduced, chosen

    def _reduce(self, place: int, kind: str, value: str, dtype: str, over: frozenset[int], parts: int = 1) -> list[str]:
        values = self._segment(place).values
        for one in values.values():
            if one.op == kind and one.args == (value,):
                name = one.name
                break
        else:
            name = self._add(place, Value(self._name(), kind, (value,), values[value].axes - over, dtype))
        return [
            self._add(place, Value(self._name(), "part", (name, n), values[name].axes, dtype)) for n in range(parts)
        ]

    def _reduced(
        self, at: tuple[int, int], node: Node, segment: int, value: str, axes: Sequence[int | None], dims: set[int]
    ) -> None:
        """Say that a value is a node's result, which lacks the reduced dimensions, or has them with size one."""
        spec = node.results[at[1]]
        if len(spec.shape) == len(axes):
            kept = tuple(None if n in dims else axis for n, axis in enumerate(axes))
        else:
            kept = tuple(axis for n, axis in enumerate(axes) if n not in dims)
        self.known[at] = _Known(segment, value, spec, kept)

    def _size(self, place: int) -> int:
        segment = self._segment(place)
        return segment.group(segment.reduced)

    def _plain(self, place: int, node: Node, kind: str, before: str = "", after: str = "") -> None:
        view = _tensor(node, "self")
        segment, value, axes, over, dims = self._reducing(view, node.args.get("dim"))
        dtype = compute_type(node.results[0].dtype)
        if before:
            value = self._formula(segment, before, value, dtype=dtype)
        (found,) = self._reduce(segment, kind, value, dtype, over)
        if after:
            found = self._formula(segment, after.replace("SIZE", repr(float(self._size(segment)))), found, dtype=dtype)
        self._reduced((place, 0), node, segment, found, axes, dims)

    def _op_sum(self, place: int, node: Node) -> None:
        self._plain(place, node, "sum")

    def _op_mean(self, place: int, node: Node) -> None:
        self._plain(place, node, "sum", after="({0} / SIZE)")

    def _op_amax(self, place: int, node: Node) -> None:
        self._plain(place, node, "max")

    def _op_amin(self, place: int, node: Node) -> None:
        self._plain(place, node, "min")

    def _op_prod(self, place: int, node: Node) -> None:
        self._plain(place, node, "prod")

    def _op_argmax(self, place: int, node: Node) -> None:
        self._indexed(place, node, "argmax", None, 0)

    def _op_argmin(self, place: int, node: Node) -> None:
        self._indexed(place, node, "argmin", None, 0)

    def _op_max(self, place: int, node: Node) -> None:
        self._extreme(place, node, "max")

    def _op_min(self, place: int, node: Node) -> None:
        self._extreme(place, node, "min")

    def _extreme(self, place: int, node: Node, kind: str) -> None:
        if len(node.results) == 2:
            self._indexed(place, node, f"arg{kind}", 0, 1)
        else:
            self._plain(place, node, kind)

    def _indexed(self, place: int, node: Node, kind: str, value_at: int | None, index_at: int) -> None:
        view = _tensor(node, "self")
        segment, value, axes, over, dims = self._reducing(view, node.args.get("dim"))
        dtype = self._segment(segment).values[value].dtype
        best, index = self._reduce(segment, kind, value, dtype, over, 2)
        own = self._segment(segment).values
        own[index] = Value(index, "part", own[index].args, own[index].axes, "int64")
        if value_at is not None:
            self._reduced((place, value_at), node, segment, best, axes, dims)
        self._reduced((place, index_at), node, segment, index, axes, dims)

    def _op_linalg_vector_norm(self, place: int, node: Node) -> None:
        self._norm(place, node, node.args.get("ord"))

    def _op_norm(self, place: int, node: Node) -> None:
        self._norm(place, node, node.args.get("p"))

    def _norm(self, place: int, node: Node, order: object) -> None:
        if order in (2, 2.0, None):
            self._plain(place, node, "sum", "({0} * {0})", "tl.sqrt({0})")
        elif order in (1, 1.0):
            self._plain(place, node, "sum", "tl.abs({0})")
        elif order == math.inf:
            self._plain(place, node, "max", "tl.abs({0})")
        else:
            raise UnreadableError(f"a norm of order {order}")

    # --- several results at once ------------------------------------------------------------------------------------

    def _softmax_sums(self, node: Node) -> tuple[int, str, str, str, tuple[int | None, ...], set[int]]:
        view = _tensor(node, "self")
        segment, value, axes, over, dims = self._reducing(view, node.args.get("dim"))
        top, total = self._reduce(segment, "softmax_sums", value, "float32", over, 2)
        return segment, value, top, total, axes, dims

    def _op_softmax(self, place: int, node: Node) -> None:
        segment, value, top, total, axes, _ = self._softmax_sums(node)
        made = self._formula(segment, "(tl.exp({0} - {1}) / {2})", value, top, total)
        self.known[place, 0] = _Known(segment, made, node.results[0], axes)

    def _op_log_softmax(self, place: int, node: Node) -> None:
        segment, value, top, total, axes, _ = self._softmax_sums(node)
        made = self._formula(segment, "({0} - ({1} + tl.log({2})))", value, top, total)
        self.known[place, 0] = _Known(segment, made, node.results[0], axes)
        self.logs[made] = (value, top, total)

    def _op_logsumexp(self, place: int, node: Node) -> None:
        segment, _, top, total, axes, dims = self._softmax_sums(node)
        made = self._formula(segment, "({0} + tl.log({1}))", top, total)
        self._reduced((place, 0), node, segment, made, axes, dims)

    def _moments(self, view: View, dims: Any) -> tuple[int, str, str, str, tuple[int | None, ...], set[int]]:
        segment, value, axes, over, chosen = self._reducing(view, dims)
        mean, squares = self._reduce(segment, "moments", value, "float32", over, 2)
        return segment, value, mean, squares, axes, chosen

    def _op_native_layer_norm(self, place: int, node: Node) -> None:
        view = _tensor(node, "input")
        last = len(_listed(node.args["normalized_shape"]))
        rank = len(view.shape)
        segment, value, mean, squares, axes, _ = self._moments(view, list(range(rank - last, rank)))
        scale = f"(1.0 / tl.sqrt({{0}} / {float(self._size(segment))} + {node.args['eps']}))"
        made = self._formula(segment, "(({0} - {1}) * {2})", value, mean, self._formula(segment, scale, squares))
        for name, form in (("weight", "({0} * {1})"), ("bias", "({0} + {1})")):
            other = node.tensor(name)
            if other is not None:
                made = self._formula(segment, form, made, self._value(other, view.shape, axes, segment))
        self.known[place, 0] = _Known(segment, made, node.results[0], axes)

    def _op_fused_rms_norm(self, place: int, node: Node) -> None:
        view = _tensor(node, "input")
        rank, last = len(view.shape), len(_listed(node.args["normalized_shape"]))
        segment, value, axes, over, _ = self._reducing(view, list(range(rank - last, rank)))
        square = self._formula(segment, "({0} * {0})", value)
        (total,) = self._reduce(segment, "sum", square, "float32", over)
        eps = node.args.get("eps") or 1.1920928955078125e-07
        scale = self._formula(segment, f"(1.0 / tl.sqrt({{0}} / {float(self._size(segment))} + {eps}))", total)
        made = self._formula(segment, "({0} * {1})", value, scale)
        other = node.tensor("weight")
        if other is not None:
            made = self._formula(segment, "({0} * {1})", made, self._value(other, view.shape, axes, segment))
        self.known[place, 0] = _Known(segment, made, node.results[0], axes)

    def _spread(self, place: int, node: Node, forms: Sequence[str]) -> None:
        segment, _, mean, squares, axes, dims = self._moments(_tensor(node, "self"), node.args.get("dim"))
        correction = node.args.get("correction", 1)
        less = 1.0 if correction is None else float(correction)  # type: ignore[arg-type]  # a number by its schema
        count = max(self._size(segment) - less, 0.0)
        for number, form in enumerate(forms):
            made = self._formula(segment, form.replace("COUNT", repr(count)), squares, mean)
            self._reduced((place, number), node, segment, made, axes, dims)

    def _op_var(self, place: int, node: Node) -> None:
        self._spread(place, node, ["({0} / COUNT)"])

    def _op_std(self, place: int, node: Node) -> None:
        self._spread(place, node, ["tl.sqrt({0} / COUNT)"])

    def _op_var_mean(self, place: int, node: Node) -> None:
        self._spread(place, node, ["({0} / COUNT)", "{1}"])

    def _op_std_mean(self, place: int, node: Node) -> None:
        self._spread(place, node, ["tl.sqrt({0} / COUNT)", "{1}"])

    def _op_nll_loss_forward(self, place: int, node: Node) -> None:
        """The chosen log-probability of each row, and their mean over the rows that count."""
        view, target = _tensor(node, "self"), _tensor(node, "target")
        if node.tensor("weight") is not None or len(view.shape) != 2:
            raise UnreadableError("a loss with class weights, or over more than one row of classes")
        segment, value, axes, over, _ = self._reducing(view, [1])
        chosen = self._value(target, (view.shape[0],), (axes[0],), segment)
        index = self._add(segment, Value(self._name(), "index", (axes[1] or 0,), over, "int32"))
        logs = self.logs.get(value)
        picked = self._formula(segment, "tl.where({0} == {1}, {2}, 0.0)", index, chosen, logs[0] if logs else value)
        (loss,) = self._reduce(segment, "sum", picked, "float32", over)
        if logs:  # the number is picked before the logarithm: all reductions of the row in one pass
            loss = self._formula(segment, "({0} + tl.log({1}) - {2})", logs[1], logs[2], loss)
        else:
            loss = self._formula(segment, "(-{0})", loss)
        ignored = node.args.get("ignore_index", -100)
        counts = self._formula(segment, f"tl.where({{0}} != {ignored}, 1.0, 0.0)", chosen)
        loss = self._formula(segment, "({0} * {1})", loss, counts)
        spec = Spec(shape=(view.shape[0],), stride=(1,), offset=0, dtype="float32")
        if node.args.get("reduction") == 0:
            self.known[place, 0] = _Known(segment, loss, node.results[0], (axes[0],))
            return
        self.known[-1 - place, 0] = _Known(segment, loss, spec, (axes[0],))
        self.known[-1 - place, 1] = _Known(segment, counts, spec, (axes[0],))
        sums: list[tuple[int, str]] = []
        for number in (0, 1):
            if number and node.args.get("reduction") == 2:
                break
            look = View(**spec.model_dump(), node=0).model_copy(update={"node": -1 - place, "result": number})
            if number:
                part = sums[0][0]
                kept = self._kept(self.known[-1 - place, 1])
                loaded = self._add(
                    part, Value(self._name(), "load", (), frozenset({0}), "float32", Memory(kept.name, "float32", (1,)))
                )
                sums.append((part, self._reduce(part, "sum", loaded, "float32", frozenset({0}))[0]))
                continue
            where, one, _, also, _ = self._moved(look, frozenset({axes[0] or 0}), (axes[0],), {0})
            sums.append((where, self._reduce(where, "sum", one, "float32", also)[0]))
        made = sums[0][1]
        if len(sums) == 2:
            made = self._formula(sums[0][0], "({0} / {1})", made, sums[1][1])
        self.known[place, 0] = _Known(sums[0][0], made, node.results[0], ())

    # --- products of matrices ---------------------------------------------------------------------------------------

    def _op_mm(self, place: int, node: Node) -> None:
        self._product(place, node, _tensor(node, "self"), _tensor(node, "mat2"))

    def _op_bmm(self, place: int, node: Node) -> None:
        self._product(place, node, _tensor(node, "self"), _tensor(node, "mat2"))

    def _op_addmm(self, place: int, node: Node) -> None:
        if node.args.get("beta", 1) != 1 or node.args.get("alpha", 1) != 1:
            raise UnreadableError("addmm with a beta or an alpha")
        self._product(place, node, _tensor(node, "mat1"), _tensor(node, "mat2"), _tensor(node, "self"))

    def _product(self, place: int, node: Node, left: View, right: View, added: View | None = None) -> None:
        shape = node.results[0].shape
        if self.found.segments or left.source is None or right.source is None:
            raise UnreadableError("a product of matrices that other operators made, or a second product")
        if min(shape[-2:]) < _LEAST or left.shape[-1] < _LEAST or left.dtype not in _MULTIPLIED:
            raise UnreadableError("a product with a side of few elements, or of another type")
        segment = Segment(shape)
        self.found.segments.append(segment)
        batch = shape[0] if len(shape) == 3 else 1
        name = self._add(0, Value(self._name(), "product", (), frozenset(range(len(shape))), "float32"))

        def operand(view: View) -> Memory:
            strides = view.stride if len(view.stride) == 3 else (0, *view.stride)
            return Memory(f"x{view.source}", view.dtype, strides, view.offset)

        segment.product = Product(
            batch, shape[-2], shape[-1], left.shape[-1], operand(left), operand(right), name, left.dtype
        )
        axes = tuple(axis if size > 1 else None for axis, size in enumerate(shape))
        if added is not None:
            name = self._formula(0, "({0} + {1})", name, self._value(added, shape, axes, 0))
        self.known[place, 0] = _Known(0, name, node.results[0], axes)

    # --- scans and masks --------------------------------------------------------------------------------------------

    def _op_cumsum(self, place: int, node: Node) -> None:
        self._scan(place, node, "cumsum")

    def _op_cumprod(self, place: int, node: Node) -> None:
        self._scan(place, node, "cumprod")

    def _scan(self, place: int, node: Node, kind: str) -> None:
        segment, value, axes, over, _ = self._reducing(_tensor(node, "self"), node.args.get("dim"))
        dtype = compute_type(node.results[0].dtype)
        made = self._add(segment, Value(self._name(), kind, (value,), self._segment(segment).values[value].axes, dtype))
        if len(over) > 1:
            raise UnreadableError("a scan over several axes")
        self.known[place, 0] = _Known(segment, made, node.results[0], axes)

    def _op_triu(self, place: int, node: Node) -> None:
        self._triangle(place, node, ">=")

    def _op_tril(self, place: int, node: Node) -> None:
        self._triangle(place, node, "<=")

    def _triangle(self, place: int, node: Node, sign: str) -> None:
        view = _tensor(node, "self")
        segment, (value,), axes = self._aligned([view], view.shape)
        row, column = axes[-2], axes[-1]
        if row is None or column is None:
            raise UnreadableError("a triangle of one row")
        dtype = self._segment(segment).values[value].dtype
        rows = self._add(segment, Value(self._name(), "index", (row,), frozenset({row}), "int32"))
        columns = self._add(segment, Value(self._name(), "index", (column,), frozenset({column}), "int32"))
        shift = node.args.get("diagonal", 0)
        form = f"tl.where({{0}} - {{1}} {sign} {shift}, {{2}}, {literal(0.0 if is_float(dtype) else 0)})"
        made = self._formula(segment, form, columns, rows, value, dtype=dtype)
        self.known[place, 0] = _Known(segment, made, node.results[0], axes)


def _tensor(node: Node, name: str) -> View:
    view = node.tensor(name)
    if view is None:
        raise UnreadableError(f"the argument {name} of {node.op}")
    return view


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]
