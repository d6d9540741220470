"""Launches, numbers and names in Triton's interpreter as the compiler has them.

What a kernel is given (floats, truth values, counters of loops) has the methods of Triton's scalars; a grid is worked
out from what the host passed; what a launch or a warm-up returns can be asked; and functions of `triton.language` that
a file imported by name are those of the interpreter.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Callable
from functools import reduce, wraps
from typing import Any

import numpy as np

from evaluator.worker.loading import libdevice

_COUNTED, _LOGICAL, _NEGATED, _EXTREME = (
    f"_{word}_of_kernels" for word in ("counted", "logical", "negated", "extreme")
)
"""Names that the text of a kernel gets for what Python would do otherwise than the compiler."""


class Launches:
    """What the interpreter does with a launch."""

    run = True
    """Whether its programs run; a row of calls whose results nobody reads is made without them, for it takes long."""
    made: int | None = None
    """How many there were that have programs; None where nothing counts them."""


LAUNCHES = Launches()
_REGISTERS = 32
_SHARED = 1024


# --- numbers ----------------------------------------------------------------------------------------------------------


def _scalars(interpreter: Any) -> None:
    """Floats and truth values of a launch become scalars, as integers do."""
    import triton.language as tl

    convert = interpreter._implicit_cvt

    def scalar(value: Any, kind: Any, dtype: Any) -> Any:
        return tl.tensor(interpreter.TensorHandle(np.array([value], dtype), kind), kind)

    def implicit_cvt(arg: Any) -> Any:
        if isinstance(arg, bool):
            return scalar(arg, tl.int1, np.bool_)
        if isinstance(arg, float):
            with np.errstate(over="ignore"):
                return scalar(arg, tl.float32, np.float32)
        return convert(arg)

    interpreter._implicit_cvt = implicit_cvt
    if not hasattr(tl.dtype, "value"):
        tl.dtype.value = property(lambda self: self)  # an argument of a device function is a constexpr


def _loops(interpreter: Any) -> None:
    """The counter of a `for` is an integer that also has what a scalar of Triton has."""

    class Counter(int):
        """It stays one under arithmetic with integers."""

        @property
        def value(self) -> int:
            return int(self)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(interpreter.interpreter_semantic.to_tensor(int(self)), name)

    def kept(name: str) -> Callable[..., Any]:
        plain = getattr(int, name)

        def operation(self: Any, other: Any) -> Any:
            found = plain(self, other)
            return Counter(found) if type(found) is int else found

        return operation

    for name in ("add", "sub", "mul", "floordiv", "mod"):
        for prefix in ("__", "__r"):
            setattr(Counter, f"{prefix}{name}__", kept(f"{prefix}{name}__"))

    def counted(values: Any) -> Any:
        return map(Counter, values) if isinstance(values, range) else values

    setattr(interpreter, _COUNTED, counted)  # the interpreter lends its own names to the kernel's module


def _constants(_: Any) -> None:
    """A constant of the file leaves what is done with it and a block to the block, as the compiler does."""
    import triton.language as tl

    def left(plain: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, other: NotImplemented if isinstance(other, tl.tensor) else plain(self, other)

    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift", *_COMPARED):
        setattr(tl.constexpr, f"__{name}__", left(getattr(tl.constexpr, f"__{name}__")))


_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


# --- the text of a kernel ---------------------------------------------------------------------------------------------


def _texts(interpreter: Any) -> None:
    """`for`, `and`, `or`, `not`, `min` and `max` as the compiler reads them: the words by element of a block."""
    import triton.language as tl

    def is_block(value: Any) -> bool:
        return isinstance(value, tl.tensor) and value.type.is_block()

    def logical(word: str, first: Any, *others: Callable[[], Any]) -> Any:
        found = first
        for other in others:
            if is_block(found):
                found = getattr(found, f"logical_{word}")(other())
            elif bool(found) is (word == "or"):
                return found
            else:
                value = other()
                found = getattr(value, f"logical_{word}")(found) if is_block(value) else value
        return found

    def negated(value: Any) -> Any:
        return value.__not__() if is_block(value) else not value

    def extreme(function: Any, *args: Any) -> Any:
        """What a call of `min` or `max` gives; the kernel's module may have its own functions of these names."""
        of_blocks = {min: "minimum", max: "maximum"}.get(function, "")
        if not of_blocks or len(args) < 2 or not any(map(is_block, args)):
            return function(*args)
        return reduce(getattr(tl, of_blocks), args)

    def called(name: str, *args: ast.expr) -> ast.Call:
        return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(args), keywords=[])

    def later(value: ast.expr) -> ast.Lambda:
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        return ast.Lambda(args=nothing, body=value)

    class Transformer(interpreter.ASTTransformer):  # type: ignore[misc]  # triton has no types
        """Puts calls of the above in their places."""

        def visit_Assign(self, node: ast.Assign) -> ast.Assign:  # noqa: N802 - by the name of the node
            node.value = self.visit(node.value)
            changed: ast.Assign = super().visit_Assign(node)
            return changed

        def visit_For(self, node: ast.For) -> ast.For:  # noqa: N802 - by the name of the node
            self.generic_visit(node)
            node.iter = called(_COUNTED, node.iter)
            return node

        def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:  # noqa: N802 - by the name of the node
            self.generic_visit(node)
            word = ast.Constant("and" if isinstance(node.op, ast.And) else "or")
            return called(_LOGICAL, word, node.values[0], *map(later, node.values[1:]))

        def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:  # noqa: N802 - by the name of the node
            self.generic_visit(node)
            return called(_NEGATED, node.operand) if isinstance(node.op, ast.Not) else node

        def visit_Call(self, node: ast.Call) -> ast.expr:  # noqa: N802 - by the name of the node
            self.generic_visit(node)
            named = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
            return called(_EXTREME, node.func, *node.args) if named and not node.keywords else node

    setattr(interpreter, _EXTREME, extreme)
    setattr(interpreter, _LOGICAL, logical)
    setattr(interpreter, _NEGATED, negated)
    interpreter.FunctionRewriter.ast_transformer = Transformer()


# --- launches ---------------------------------------------------------------------------------------------------------


class Launched:
    """In place of a compiled kernel: what host code asks of one before it launches it."""

    n_regs = _REGISTERS
    n_spills = 0
    n_max_threads = 1024
    shared = _SHARED

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self.function = function
        self.asm: dict[str, str] = {}
        self.name = function.__name__
        self.metadata = types.SimpleNamespace(
            name=self.name, shared=_SHARED, num_warps=options.get("num_warps", 4),
            num_stages=options.get("num_stages", 3), num_ctas=1,
        )  # fmt: skip

    def _init_handles(self) -> None:
        pass

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: self.function.run(*args, grid=grid, warmup=False, **kwargs)


def _launches(interpreter: Any) -> None:
    executor, function = interpreter.GridExecutor, interpreter.InterpretedFunction
    begin, call, run = executor.__init__, executor.__call__, function.run

    def init(self: Any, fn: Any, *args: Any, **kwargs: Any) -> None:
        begin(self, fn, *args, **kwargs)
        annotated = getattr(fn, "__annotations__", {})
        self.constexprs = [name for name in self.arg_names if "constexpr" in str(annotated.get(name, ""))]

    def launch(self: Any, *args: Any, **kwargs: Any) -> Any:
        grid = self.grid
        if callable(grid):
            known = {name: value for name, value in kwargs.items() if name in self.arg_names}
            grid = grid(inspect.getcallargs(self.fn, *args, **known))
        self.grid = tuple(grid)
        LAUNCHES.made = (LAUNCHES.made or 0) + all(self.grid)
        return call(self, *args, **kwargs) if LAUNCHES.run else None

    def run_and_tell(self: Any, *args: Any, grid: Any, warmup: Any = False, **kwargs: Any) -> Launched:
        run(self, *args, grid=grid, warmup=warmup, **kwargs)
        return Launched(self, kwargs)

    def compiled_attribute(self: Any, name: str) -> Any:
        from triton.runtime.jit import JITFunction

        if name.startswith("_") or "fn" not in vars(self) or name not in _OF_THE_TEXT:
            raise AttributeError(f"Triton's interpreter has no {name} of a kernel", name=name, obj=self)
        return getattr(JITFunction(self.fn), name)

    executor.__init__, executor.__call__ = init, launch
    function.run, function.__getattr__ = run_and_tell, compiled_attribute
    LAUNCHES.made = 0


_OF_THE_TEXT = ("params", "signature", "src", "raw_src", "cache_key", "starting_line_number", "module", "constexprs")
"""What a kernel knows of itself before it is compiled."""


# --- names ------------------------------------------------------------------------------------------------------------


def _names(interpreter: Any) -> None:
    """Functions that a file imported by name, and modules that the interpreter does not look into."""
    import triton.language as tl
    from triton.language import core
    from triton.language.extra import cuda
    from triton.language.extra import libdevice as of_any_gpu

    def interpreted(builtin: Any) -> Any:
        """That function as it stands in its module while a kernel runs, where the interpreter has put its own."""
        module = sys.modules.get(getattr(builtin, "__module__", ""))
        name = getattr(builtin, "__name__", "")

        @wraps(builtin)
        def call(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop("_semantic", None)
            now = getattr(module, name, builtin)
            if core.is_builtin(now) or getattr(now, "of_the_interpreter", False):
                return builtin(*args, _semantic=interpreter.interpreter_semantic, **kwargs)
            return now(*args, **kwargs)

        call.__triton_builtin__ = False  # type: ignore[attr-defined]  # set by wraps
        call.of_the_interpreter = True  # type: ignore[attr-defined]  # a mark on a function
        return call

    def is_plain(value: Any) -> bool:
        return isinstance(value, types.FunctionType) and core.is_builtin(value)

    modules = [value for value in vars(cuda).values() if inspect.ismodule(value)]
    for module in (cuda, *modules):
        if not module.__name__.startswith("triton.language.extra."):
            continue
        for name, value in list(vars(module).items()):
            if is_plain(value):
                setattr(module, name, interpreted(value))
    for name, value in vars(cuda.libdevice).items():
        if getattr(value, "of_the_interpreter", False):
            setattr(of_any_gpu, name, value)  # its own are empty until a compiler fills them in

    patch = interpreter._patch_lang
    whole = types.SimpleNamespace(__globals__={"tl": tl, "core": core})

    def patch_lang(fn: Any) -> Any:
        names = fn.__globals__
        for name, value in list(names.items()):
            if is_plain(value) and value.__module__ != names.get("__name__"):
                names[name] = interpreted(value)
        if not core.is_builtin(core.load):  # inside a kernel: all stands already
            return interpreter._LangPatchScope()
        return patch(whole)

    interpreter._patch_lang = patch_lang


def _extern_functions(interpreter: Any) -> None:
    """Methods of the builder that the interpreter refuses: libdevice, and one line of PTX."""

    def create_extern_elementwise(
        self: Any, _library: Any, _path: Any, symbol: str, arguments: list[Any], kind: Any, _pure: Any
    ) -> Any:
        del self
        values = [argument.data for argument in arguments]
        found = libdevice.computed(symbol, values, interpreter._get_np_dtype(kind))
        return interpreter.TensorHandle(found, kind.scalar)

    def create_inline_asm(
        self: Any, text: str, _constraints: str, arguments: list[Any], kinds: Any, _pure: Any, pack: int
    ) -> Any:
        del self
        kinds = list(kinds)
        if len(kinds) != 1 or pack != 1:
            raise NotImplementedError("Triton's interpreter cannot run inline assembly")
        values = [argument.data for argument in arguments]
        found = libdevice.assembled(text, values, interpreter._get_np_dtype(kinds[0]))
        return _One(interpreter.TensorHandle(found, kinds[0].scalar))

    interpreter.InterpreterBuilder.create_extern_elementwise = create_extern_elementwise
    interpreter.InterpreterBuilder.create_inline_asm = create_inline_asm


class _One:
    """An operation with one result."""

    def __init__(self, result: Any) -> None:
        self.result = result

    def get_result(self, _: int) -> Any:
        return self.result


PARTS = (_scalars, _constants, _loops, _texts, _launches, _names, _extern_functions)
"""Each adds its own to `triton.runtime.interpreter`."""
