"""Recognise the form of a candidate and its reference from their content."""

from __future__ import annotations

import ast
import math
from collections import Counter
from enum import StrEnum
from typing import Literal

from evaluator.source.cuda_signature import exported_functions, solve_parameters
from evaluator.source.python_source import (
    Definitions,
    decorator_names,
    definitions,
    has_triton_kernel,
    needs_arguments,
    parse,
    syntax_error,
    top_level,
)
from evaluator.source.source_file import SourceFile, is_cuda
from kbs.common.errors import UsageError
from kbs.common.json_model import Record
from kbs.questions.python_constants import module_constants

Oracle = Literal["reference", "original kernel"]
SetupFrom = Literal["reference", "inputs", "candidate", "none"]
ORIGINAL: Literal["original kernel"] = "original kernel"


class Form(StrEnum):
    """How a candidate is called."""

    KERNELBENCH = "kernelbench"
    """A class `ModelNew` in place of the reference's `Model`."""
    SETUP = "setup"
    """`run_kernel(**kwargs)`, which writes its outputs in place."""
    SOLVE = "solve"
    """`extern "C" void solve(...)` of a `.cu` file."""
    FUNCTION = "function"
    """A function that returns its result."""


class Backend(StrEnum):
    """What a candidate is written in."""

    TRITON = "triton"
    CUDA = "cuda"
    """A `.cu` file, compiled by nvcc."""
    TORCH = "torch"
    """Python with PyTorch, extensions that it builds by itself among it."""


class Recognised(Record):
    """What a candidate is, and what it is held against."""

    form: Form
    backend: Backend
    entry: str
    """Name of the candidate's class or function."""
    oracle: Oracle
    """Whether right results come from a reference, or from a kernel as it was first."""
    reference_entry: str
    """Name of the oracle's class or function, in the reference file, or in the candidate's where none was given."""
    setup_from: SetupFrom
    """Which file has the `setup` that makes inputs. "none" in the forms kernelbench and function, which have no
    `setup`, and in the form solve where buffers are sized by --ptr-size."""


def defines(source: SourceFile, name: str) -> bool:
    """Whether a file itself defines a class or function of that name. Raises `UsageError` where it is no code."""
    if is_cuda(source):
        return name in exported_functions(source)
    own = definitions(parse(source.name, source.text))
    return name in own.functions or name in own.classes


def dims_of(source: SourceFile) -> dict[str, int]:
    """The dims of a reference that can be replaced: what it binds to integers at its top level."""
    return module_constants(parse(source.name, source.text))


_MAKERS = ("get_inputs", "get_init_inputs")


def argument_sizes(source: SourceFile) -> dict[str, int]:
    """The integers at the top level of a KernelBench reference that nothing but its makers of arguments reads.

    Such a one can be another without the model being another: it reaches a candidate through its arguments. An element
    of a tuple or list stands under `SHAPE[0]`.
    """
    tree = parse(source.name, source.text)
    found = module_constants(tree)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Tuple, ast.List)):
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            items = [item.value for item in node.value.elts if isinstance(item, ast.Constant)]
            if len(items) == len(node.value.elts) and all(type(item) is int for item in items):
                found |= {f"{name}[{n}]": item for name in names for n, item in enumerate(items)}  # type: ignore[misc]  # all int
    makers = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in _MAKERS]
    inside = {id(node) for maker in makers for node in ast.walk(maker)}
    every = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    read = {node.id for node in every if isinstance(node.ctx, ast.Load) and id(node) in inside}
    taken = {node.id for node in every if isinstance(node.ctx, ast.Load) and id(node) not in inside}
    bound = Counter(node.id for node in every if not isinstance(node.ctx, ast.Load))
    free = {name for name in read - taken if bound[name] == 1}
    return {name: size for name, size in found.items() if name.partition("[")[0] in free}


def setup_sizes(source: SourceFile) -> dict[str, int]:
    """The parameters of a file's `setup` that are integers where nobody says otherwise."""
    setup = definitions(parse(source.name, source.text)).functions.get("setup")
    if setup is None:
        return {}
    positional = [*setup.args.posonlyargs, *setup.args.args]
    given = [*zip(positional[::-1], setup.args.defaults[::-1], strict=False)]
    given += [(a, d) for a, d in zip(setup.args.kwonlyargs, setup.args.kw_defaults, strict=True) if d is not None]
    return {a.arg: d.value for a, d in given if isinstance(d, ast.Constant) and type(d.value) is int}


def recognise(
    candidate: SourceFile,
    reference: SourceFile | None,
    *,
    inputs: str | None,
    entry: str | None,
    backend: str | None,
) -> Recognised:
    """The form of `candidate`, its entry, and the oracle.

    `inputs` is the name given with --inputs, `entry` with --entry, `backend` with --backend.

    UsageError `syntax_error`; `no_kernel`, which says for each form what is missing; `two_kernels`, which lists them;
    `reference_form`, which says what the reference lacks; `inputs_missing`; `no_solve`; `solve_signature`;
    `backend_unknown`.
    """
    chosen = _backend(backend)
    if is_cuda(candidate):
        return _solve_form(candidate, reference, inputs, entry, chosen)
    tree = parse(candidate.name, candidate.text)
    if chosen is Backend.CUDA:
        raise UsageError(
            f"{candidate.name} is Python, and the backend cuda compiles .cu files",
            code="backend_unknown",
            hint="Leave --backend out; a Python file that builds an extension has the backend torch.",
        )
    own = definitions(tree)
    other = _reference_definitions(reference)
    form, name = _entry(candidate.name, own, other, entry)
    chosen = chosen or (Backend.TRITON if has_triton_kernel(tree) else Backend.TORCH)
    build = {Form.KERNELBENCH: _kernelbench, Form.SETUP: _setup, Form.FUNCTION: _function}[form]
    oracle, reference_entry, setup_from = build(candidate.name, own, reference, other, name, inputs)
    return Recognised(
        form=form,
        backend=chosen,
        entry=name,
        oracle=oracle,
        reference_entry=reference_entry,
        setup_from=setup_from,
    )


_Reference = tuple[Oracle, str, SetupFrom]


def _backend(name: str | None) -> Backend | None:
    if name is None:
        return None
    try:
        return Backend(name)
    except ValueError:
        known = ", ".join(Backend)
        raise UsageError(
            f"unknown backend {name!r}", code="backend_unknown", hint=f"The backends are {known}."
        ) from None


def _reference_definitions(reference: SourceFile | None) -> Definitions | None:
    if reference is None or is_cuda(reference):
        return None
    return definitions(parse(reference.name, reference.text))


def _entry(file: str, own: Definitions, other: Definitions | None, entry: str | None) -> tuple[Form, str]:
    """The form of a Python candidate and the name to call."""
    if entry is not None:
        return _named_entry(file, own, entry)
    model = next((name for name in ("ModelNew", "Model") if own.has_class(name)), None)
    fitting = [(Form.KERNELBENCH, model)] if model else []
    if own.callable("run_kernel"):
        fitting.append((Form.SETUP, "run_kernel"))
    if len(fitting) == 2 and other is not None:  # the reference says which is meant
        wanted = Form.KERNELBENCH if other.has_class("Model") or other.has_class("ModelNew") else Form.SETUP
        fitting = [pair for pair in fitting if pair[0] is wanted]
    if len(fitting) == 1:
        return fitting[0][0], str(fitting[0][1])
    if len(fitting) == 2:
        raise _two_kernels(file, [f"{name} ({form} form)" for form, name in fitting])
    public = _public_functions(own)
    if other is not None:
        public = [name for name in public if name in other.functions] or public
    public = [name for name in public if not _helps(name, own)] or public
    if len(public) == 1:
        return Form.FUNCTION, public[0]
    if public:
        raise _two_kernels(file, public)
    if "reference" in own.functions:  # a reference that is compared with itself, or with another
        return Form.FUNCTION, "reference"
    raise _no_kernel(file, own)


def _named_entry(file: str, own: Definitions, entry: str) -> tuple[Form, str]:
    if entry in own.classes or (entry in ("ModelNew", "Model") and own.has_class(entry)):
        return Form.KERNELBENCH, entry
    if own.callable(entry):
        return (Form.SETUP if entry == "run_kernel" else Form.FUNCTION), entry
    known = ", ".join([*own.classes, *own.functions]) or "none"
    raise UsageError(
        f"{file} has no {entry}; its classes and functions are: {known}",
        code="no_kernel",
        hint="Name one of them with --entry, or leave it out.",
    )


_NOT_KERNELS = {"setup", "reference", "get_inputs", "get_init_inputs", "main"}


def _public_functions(own: Definitions) -> list[str]:
    """Functions that may be what is meant: not private, no part of a protocol, no test, no Triton kernel."""
    return [
        name
        for name, function in own.functions.items()
        if not name.startswith(("_", "test_", "bench"))
        and name not in _NOT_KERNELS
        and not any(written.rpartition(".")[2] in ("jit", "kernel") for written in decorator_names(function))
    ]


def _helps(name: str, own: Definitions) -> bool:
    """Whether another function of the file calls a function: then it is a helper."""
    return any(
        isinstance(node, ast.Name) and node.id == name
        for other, function in own.functions.items()
        if other != name
        for node in ast.walk(function)
    )


def _two_kernels(file: str, names: list[str]) -> UsageError:
    listed = ", ".join(names[:20]) + (" …" if len(names) > 20 else "")
    return UsageError(
        f"{file} has {len(names)} functions or classes that could be the kernel: {listed}",
        code="two_kernels",
        hint="Choose one with --entry NAME, or start the names of helpers with an underscore.",
    )


def _no_kernel(file: str, own: Definitions) -> UsageError:
    jit = [name for name, function in own.functions.items() if not name.startswith("_") and function.decorator_list]
    launched = f" ({', '.join(jit[:5])} is a kernel, which a Python function must launch)" if jit else ""
    missing = {
        Form.KERNELBENCH: "a class ModelNew, or Model",
        Form.SETUP: "a function run_kernel that writes its outputs in place"
        + ("" if own.callable("setup") else ", and setup here or in the reference"),
        Form.SOLVE: 'a .cu file with extern "C" void solve(...)',
        Form.FUNCTION: f"a public function{launched}",
    }
    listed = "\n".join(f"    {form}: {what}" for form, what in missing.items())
    return UsageError(
        f"{file} has no kernel that can be called; what is missing for each form:\n{listed}",
        code="no_kernel",
        hint="Add what one of the forms needs, or name a function with --entry NAME.",
    )


def _reference_form(reference: SourceFile, form: Form, missing: list[str]) -> UsageError:
    return UsageError(
        f"{reference.name} is not a reference for the {form} form of the candidate; it lacks {', '.join(missing)}",
        code="reference_form",
        hint="Add it, or give another file with --ref.",
    )


def _kernelbench(
    file: str, own: Definitions, reference: SourceFile | None, other: Definitions | None, name: str, inputs: str | None
) -> _Reference:
    holder, defined = (reference.name, other) if reference is not None else (file, own)
    defined = defined or Definitions({}, {}, frozenset())
    model = next((m for m in ("Model", "ModelNew", *([name] if reference is None else [])) if defined.has_class(m)), "")
    missing = [] if model else ["a class Model"]
    if inputs is None and not defined.callable("get_inputs"):
        missing.append("a function get_inputs")
    plain = model in defined.classes and not needs_arguments(defined.classes[model])
    if not plain and not defined.callable("get_init_inputs"):
        missing.append("a function get_init_inputs")
    if missing and reference is not None:
        raise _reference_form(reference, Form.KERNELBENCH, missing)
    if missing:
        raise UsageError(
            f"{holder} lacks {', '.join(missing)}, and no other file was given as the reference",
            code="inputs_missing",
            hint="Add it, or give a file that has it with --ref REF.py.",
        )
    return ("reference" if reference is not None and model == "Model" else ORIGINAL), model, "none"


def _setup(
    file: str, own: Definitions, reference: SourceFile | None, other: Definitions | None, name: str, inputs: str | None
) -> _Reference:
    oracle, reference_entry = _writing_oracle(Form.SETUP, reference, other, name)
    if other is not None and other.callable("setup"):
        return oracle, reference_entry, "reference"
    if inputs is not None:
        return oracle, reference_entry, "inputs"
    if own.callable("setup"):
        return oracle, reference_entry, "candidate"
    where = f"neither {reference.name} nor {file} has a" if reference is not None else f"{file} has no"
    raise UsageError(
        f"{where} function setup",
        code="inputs_missing",
        hint='Add setup(**dims), which returns {"inputs": {...}, "outputs": [...]}, or give --inputs FILE.',
    )


def _writing_oracle(
    form: Form, reference: SourceFile | None, other: Definitions | None, name: str
) -> tuple[Oracle, str]:
    """The oracle of the forms whose functions write in place."""
    if reference is None:
        return ORIGINAL, name
    if other is not None and other.callable("reference"):
        return "reference", "reference"
    if other is not None and other.callable("run_kernel"):
        return ORIGINAL, "run_kernel"
    raise _reference_form(reference, form, ["a function reference(**kwargs), which writes the outputs in place"])


def _function(
    file: str, own: Definitions, reference: SourceFile | None, other: Definitions | None, name: str, inputs: str | None
) -> _Reference:
    del own
    reference_entry = name
    if reference is not None:
        same = other is not None and other.callable(name)
        if not same and (other is None or not other.callable("reference")):
            raise _reference_form(reference, Form.FUNCTION, [f"a function {name}, or reference"])
        reference_entry = name if same else "reference"
    if inputs is None:
        hint = "Add --inputs FILE: .npz, .safetensors, .pt, .json with shapes, or .py with get_inputs."
        if reference is not None and other is not None and other.callable("get_inputs"):
            hint = f"Add --inputs {reference.name}, which has get_inputs."
        raise UsageError(
            f"{file} is called as {name}(...), and no inputs were given for it", code="inputs_missing", hint=hint
        )
    return (ORIGINAL if reference is None else "reference"), reference_entry, "none"


def _solve_form(
    candidate: SourceFile, reference: SourceFile | None, inputs: str | None, entry: str | None, backend: Backend | None
) -> Recognised:
    if "\0" in candidate.text:
        line = candidate.text.count("\n", 0, candidate.text.index("\0")) + 1
        raise syntax_error(candidate.name, candidate.text, line, 1, "the line has a NUL byte")
    if backend not in (None, Backend.CUDA):
        raise UsageError(
            f"{candidate.name} is CUDA C++, which the backend {backend} cannot run",
            code="backend_unknown",
            hint="Leave --backend out.",
        )
    name = entry or "solve"
    exported = exported_functions(candidate)
    if not exported and entry is None:
        missing = _no_kernel(candidate.name, definitions(ast.Module([], [])))
        try:
            solve_parameters(candidate, name)
        except UsageError as error:
            raise UsageError(f"{missing.message}\n{error.message}", code="no_kernel", hint=error.hint) from None
    if name not in exported and entry is None:
        raise UsageError(
            f'{candidate.name} has no extern "C" void solve(...), but {", ".join(exported)}',
            code="no_kernel",
            hint="Choose one with --entry NAME.",
        )
    solve_parameters(candidate, name)
    oracle: Oracle
    other = _reference_definitions(reference)
    if reference is not None and is_cuda(reference):
        solve_parameters(reference, name)
        oracle, reference_entry = ORIGINAL, name
    else:
        oracle, reference_entry = _writing_oracle(Form.SOLVE, reference, other, name)
    has_setup = other is not None and other.callable("setup")
    return Recognised(
        form=Form.SOLVE,
        backend=Backend.CUDA,
        entry=name,
        oracle=oracle,
        reference_entry=reference_entry,
        setup_from="reference" if has_setup else "inputs" if inputs is not None else "none",
    )


def declared_tolerance(reference: SourceFile) -> tuple[float, float] | None:
    """(atol, rtol) that a Python reference declares as module-level numbers; one of them alone leaves the other 0."""
    if is_cuda(reference):
        return None
    found: dict[str, float] = {}
    for node in top_level(parse(reference.name, reference.text)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            value = node.value.value
            names = [target.id for target in node.targets if isinstance(target, ast.Name)]
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf:
                found |= {name: float(value) for name in names if name in ("atol", "rtol")}
    return (found.get("atol", 0.0), found.get("rtol", 0.0)) if found else None
