"""What of a Python program does something: dead branches, values that nobody reads, functions that nobody calls, and
arithmetic that changes nothing are taken out, so that they are no change of a kernel."""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Any

_ROUNDS = 8
_ACTS = ("store", "atomic", "inline_asm", "print", "assert", "barrier", "wait", "static", "associative", "extern")
"""Parts of names in `tl` whose calls do more than compute."""
_HARMLESS_CALLS = frozenset({"range", "len", "int", "float", "bool", "min", "max", "abs", "tuple", "list"})
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}  # fmt: skip
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def essential(tree: ast.Module, keep: Set[str] = frozenset()) -> ast.Module:
    """The program without what does nothing. `keep`: functions and values that others may ask for.
    The tree is changed."""
    size = sum(1 for _ in ast.walk(tree))
    for _ in range(_ROUNDS):
        tree.body = list(_called(tree, keep))
        tree = _Reduced(_module_constants(tree), _launch_constants(tree)).visit(tree)
        for node in ast.walk(tree):
            if isinstance(node, _Function):
                _drop_unread(node)
        before, size = size, sum(1 for _ in ast.walk(tree))
        if size == before:
            break
    return tree


def names(tree: ast.Module) -> set[str]:
    """Names of the functions and values of a module."""
    functions = {node.name for node in tree.body if isinstance(node, _Function)}
    return functions | {name for node in tree.body if (name := _only_target(node))}


def _called(tree: ast.Module, keep: Set[str]) -> Iterator[ast.stmt]:
    """The statements of a module without functions and constants that nothing else names."""
    uses = [Counter(_named(one)) for one in tree.body]
    total = Counter(name for own in uses for name in own.elements())
    strings = "\n".join(
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    for one, own in zip(tree.body, uses, strict=True):
        function = isinstance(one, _Function) and one.name not in keep and one.name not in strings
        target = _only_target(one)
        constant = target and target not in keep and is_pure(getattr(one, "value", None) or one)
        if constant and total[target] == own[target] and target not in strings:
            continue
        if not function or total[one.name] > own[one.name]:  # type: ignore[attr-defined]  # it is a function
            yield one


def _named(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr


def _module_constants(tree: ast.Module) -> dict[str, object]:
    """Name → value of each constant that the module sets once."""
    stored = Counter(
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    found: dict[str, object] = {}
    for one in tree.body:
        target = one.targets[0] if isinstance(one, ast.Assign) and len(one.targets) == 1 else None
        target = one.target if isinstance(one, ast.AnnAssign) else target
        value = getattr(one, "value", None)
        if isinstance(value, ast.Call) and len(value.args) == 1 and ast.unparse(value.func).endswith("constexpr"):
            value = value.args[0]
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and stored[target.id] == 1:
            found[target.id] = value.value
    return found


def _launch_constants(tree: ast.Module) -> dict[str, dict[str, object]]:
    """Function → `tl.constexpr` parameter → the one number that every launch in the module gives it."""
    found: dict[str, dict[str, object]] = {}
    launches = [
        (ast.unparse(node.func.value), node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)
    ]
    for function in tree.body:
        if not isinstance(function, _Function) or any("(" in ast.unparse(one) for one in function.decorator_list):
            continue  # who is tuned gets its numbers elsewhere
        names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
        constant = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg) and one.annotation
                    and ast.unparse(one.annotation).endswith("constexpr")}  # fmt: skip
        given: dict[str, list[object]] = {}
        own = [launch for name, launch in launches if name == function.name]
        for launch in own:
            pairs = [*zip(names, launch.args, strict=False), *((one.arg or "", one.value) for one in launch.keywords)]
            for name, value in pairs:
                given.setdefault(name, []).append(value.value if isinstance(value, ast.Constant) else None)
        called = sum(isinstance(one, ast.Name) and one.id == function.name for one in ast.walk(tree))
        if own and called == len(own):
            found[function.name] = {
                name: values[0] for name, values in given.items()
                if name in constant and len(values) == len(own) and len({repr(one) for one in values}) == 1
                and values[0] is not None
            }  # fmt: skip
    return found


def _turns(node: ast.expr) -> list[ast.expr]:
    """The bounds (start, end, step) of a range; none of what is no range."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func).rpartition(".")[2] not in ("range", "static_range"):
        return []
    given = list(node.args)
    return [ast.Constant(0), *given, ast.Constant(1)] if len(given) == 1 else [*given, ast.Constant(1)][:3]


class _Reduced(ast.NodeTransformer):
    """Computes what is constant, and leaves out what cannot be reached."""

    def __init__(self, constants: dict[str, object], launched: dict[str, dict[str, object]] | None = None) -> None:
        self.constants = constants
        self.launched = launched or {}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outer, stored = self.constants, {
            one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }  # fmt: skip
        own = {name: value for name, value in self.launched.get(node.name, {}).items() if name not in stored}
        self.constants = {**outer, **own}
        made = self.generic_visit(node)
        self.constants = outer
        return made

    def _truth(self, node: ast.expr) -> bool | None:
        """Whether a condition always holds, or never; None if that is not known."""
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.Name):
            return bool(self.constants[node.id]) if node.id in self.constants else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._truth(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            parts = [self._truth(one) for one in node.values]
            decided = isinstance(node.op, ast.Or)
            return decided if decided in parts else None if None in parts else not decided
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
            sides = [self._value(node.left), self._value(node.comparators[0])]
            if None not in sides and type(sides[0]) is type(sides[1]):
                return bool(_COMPARED[type(node.ops[0])](*sides))
        return None

    def _value(self, node: ast.expr) -> object:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float | str):
            return node.value
        return self.constants.get(node.id) if isinstance(node, ast.Name) else None

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                made = _reached(block)
                setattr(node, name, made or ([ast.Pass()] if name == "body" else []))
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        truth = self._truth(node.test)
        if truth is None:
            empty = all(isinstance(one, ast.Pass) for one in (*node.body, *node.orelse)) and is_pure(node.test)
            return [] if empty else node
        return [one for one in (node.body if truth else node.orelse) if not isinstance(one, ast.Pass)]

    def visit_While(self, node: ast.While) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return [] if self._truth(node.test) is False else node

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        empty = all(isinstance(one, ast.Pass) for one in node.body) and not node.orelse and is_pure(node.iter)
        if empty or ast.unparse(node.iter) in ("range(0)", "()", "[]"):
            return []
        first = self._only_turn(node.iter)
        leaves = any(isinstance(one, ast.Break | ast.Continue) for one in ast.walk(node))
        if first is None or leaves or node.orelse:
            return node
        return [ast.copy_location(ast.Assign([node.target], first), node), *node.body]

    def _only_turn(self, node: ast.expr) -> ast.expr | None:
        """The value that the one turn of a loop has; None if it may have another number of turns."""
        if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == 1:
            return node.elts[0]
        bounds = _turns(node)
        numbers = [self._value(one) for one in bounds]
        if len(numbers) == 3 and all(type(one) is int for one in numbers):
            return bounds[0] if len(range(*numbers)) == 1 else None  # type: ignore[call-overload]  # they are ints
        ends = bounds[1] if len(bounds) == 3 else None
        if isinstance(ends, ast.BinOp) and isinstance(ends.op, ast.Add) and self._value(ends.right) == 1:
            return bounds[0] if ast.dump(ends.left) == ast.dump(bounds[0]) else None
        return None

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        truth = self._truth(node.test)
        return node if truth is None else node.body if truth else node.orelse

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        left, right = _number(node.left), _number(node.right)
        if left is not None and right is not None and isinstance(node.op, ast.Add | ast.Sub | ast.Mult):
            made = {ast.Add: left + right, ast.Sub: left - right, ast.Mult: left * right}[type(node.op)]
            return ast.copy_location(ast.Constant(made), node) if abs(made) < 2**62 else node
        if isinstance(node.op, ast.Add) and left == 0:
            return node.right
        if isinstance(node.op, ast.Mult) and left == 1:
            return node.right
        nothing = 0 if isinstance(node.op, ast.Add | ast.Sub | ast.LShift | ast.RShift) else 1
        kept = isinstance(node.op, ast.Add | ast.Sub | ast.LShift | ast.RShift | ast.Mult | ast.Div)
        return node.left if kept and right == nothing else node


def _number(node: ast.expr) -> int | float | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _reached(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Statements up to the first that leaves the block."""
    made: list[ast.stmt] = []
    for one in block:
        made.append(one)
        if isinstance(one, ast.Return | ast.Raise | ast.Break | ast.Continue):
            break
    return made


def is_pure(node: ast.AST) -> bool:
    """Whether an expression does nothing but have a value."""
    for one in ast.walk(node):
        if isinstance(one, ast.Call):
            called = ast.unparse(one.func)
            ours = called in _HARMLESS_CALLS or called.endswith((".to", ".cast"))
            if not ours and (not called.startswith("tl.") or any(word in called for word in _ACTS)):
                return False
        elif isinstance(one, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr):
            return False
    return True


def _drop_unread(function: _Function) -> None:
    """Take assignments out whose names nobody reads, and read a name in place of its copies."""
    shared = {name for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    stored = Counter(
        node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    )
    given = {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}
    copies = {
        target.id: node.value.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)
        for target in node.targets
        if len(node.targets) == 1 and isinstance(target, ast.Name)
        and stored[target.id] == 1 and target.id not in given | shared
        and stored[node.value.id] == (node.value.id not in given) and node.value.id not in shared
    }  # fmt: skip
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in copies:
            node.id = copies[node.id]
    read = Counter[str]()
    for statement in _statements(function):
        own = _only_target(statement)
        read.update(name for name in _loads(statement) if name != own)
    _Unread({name for name in stored if not read[name]} - shared).visit(function)


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Statements without others inside, and the expressions of those that have some."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) or (isinstance(child, ast.stmt) and not getattr(child, "body", None)):
            yield child
        else:
            yield from _statements(child)


def _only_target(statement: ast.AST) -> str:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _loads(statement: ast.AST) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


class _Unread(ast.NodeTransformer):
    """Takes out assignments to names that nobody reads."""

    def __init__(self, names: Set[str]) -> None:
        self.names = names

    def _kept(self, node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> ast.AST | None:
        drop = _only_target(node) in self.names and node.value is not None and is_pure(node.value)
        return None if drop else node

    visit_Assign = visit_AugAssign = visit_AnnAssign = _kept  # noqa: N815  # the names are those of `ast`

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if is_pure(node.value) else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    visit_AsyncFunctionDef = visit_While = visit_If = visit_With = visit_For  # type: ignore[assignment]  # noqa: N815
