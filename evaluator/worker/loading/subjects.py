"""The code under examination, one class a form: how it is loaded, given inputs, and called."""

from __future__ import annotations

import ast
import copy
import ctypes
import importlib
import importlib.util
import os
import random
import subprocess
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evaluator.worker.memory.inputs import read_inputs
from evaluator.worker.memory.shared_memory import filler


class MissingError(Exception):
    """The file lacks a name that its form needs."""


class CompileError(Exception):
    """The compiler refused the source; the text is the compiler's."""


def seed_everything(seed: int) -> None:
    """Seed every generator that input code usually draws from."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def load_module(path: Path, constants: dict[str, int] | None = None) -> types.ModuleType:
    """Execute a file as a module, which has the file's name, as an import gives it; `constants` replace module-level
    integers in its text first, see `with_constants`."""
    name = path.stem
    if constants:
        path.write_text(with_constants(path.read_text("utf-8"), constants), "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise MissingError(f"{path.name} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def with_constants(text: str, constants: dict[str, int]) -> str:
    """A module with other integers at its top level: `N` names one, `SHAPE[0]` an element of a tuple or list."""
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        else:
            continue
        if name in constants:
            node.value = ast.Constant(constants[name])
        elif isinstance(node.value, (ast.Tuple, ast.List)):
            for n in range(len(node.value.elts)):
                if f"{name}[{n}]" in constants:
                    node.value.elts[n] = ast.Constant(constants[f"{name}[{n}]"])
    return ast.unparse(ast.fix_missing_locations(tree))


def named(module: types.ModuleType, *names: str) -> Any:
    """The first of these names that the module has."""
    for name in names:
        if hasattr(module, name):
            return getattr(module, name)
    raise MissingError(f"{Path(module.__file__ or '').name} has no {' or '.join(names)}")


def _listed(name: str, made: object) -> list[Any]:
    """What a function of inputs returned; a single tensor would fall apart into its rows."""
    if not isinstance(made, (list, tuple)):
        raise MissingError(f"{name} must return a list, not a {type(made).__name__}")
    return list(made)


class Subject(ABC):
    """What reference and candidate have in common: made from a load message, then called with values."""

    def __init__(self, message: dict[str, Any], folder: Path, device: torch.device) -> None:
        self.message = message
        self.folder = folder
        self.device = device
        self.gradients = False
        """Whether the next calls run with gradients enabled, as they do where nobody turns them off."""
        self.evaluates = False
        """Whether the next calls of a model find it in the mode that `eval()` leaves."""
        self.dims: dict[str, int] = message["dims"]
        self.load_source()
        self.made_by: types.ModuleType | None = None
        inputs = str(message.get("inputs", ""))
        if inputs.endswith(".py"):
            own = getattr(self, "module", None)
            self.made_by = own if inputs == message["file"] else load_module(folder / inputs)

    @abstractmethod
    def load_source(self) -> None:
        """Execute the file, or compile it."""

    def make_inputs(self, seed: int) -> tuple[Any, list[str]]:
        """(arguments, names of those that are outputs) of one fresh draw, from the file that the message names.

        A Python file has `setup(**dims)`, which returns {"inputs": {...}, "outputs": [...]}, or `get_inputs()`.
        """
        if self.made_by is None:
            return self._with_dims(
                self.seeded(seed, lambda: read_inputs(self.folder / self.message["inputs"], self.dims))
            )
        setup = getattr(self.made_by, "setup", None)
        if setup is None:
            make = named(self.made_by, "get_inputs", "setup")
            return self._with_dims(self.seeded(seed, make))
        made = self.seeded(seed, lambda: setup(**self.dims))
        if not isinstance(made, dict) or not isinstance(made.get("inputs"), dict):
            raise MissingError('setup must return {"inputs": {...}, "outputs": [...]}')
        outputs = made.get("outputs") or []
        outputs = [outputs] if isinstance(outputs, str) else list(outputs)
        unknown = [name for name in outputs if name not in made["inputs"]]
        if unknown:
            raise MissingError(f"setup names the outputs {unknown}, which are not among its inputs")
        return made["inputs"], outputs

    def _with_dims(self, made: Any) -> tuple[Any, list[str]]:
        """Sizes are arguments too, where arguments have names and the kernel asks for them."""
        if not isinstance(made, dict):
            return _listed("get_inputs", made), []
        wanted = self.message.get("parameters") or ()
        sizes = {p["name"]: self.dims[p["name"]] for p in wanted if p["name"] in self.dims and p["name"] not in made}
        return {**made, **sizes}, []

    def call(self, values: Any) -> Any:
        """Run once."""
        raise NotImplementedError("inputs alone were loaded: there is nothing to call")

    def before_call(self) -> None:  # noqa: B027  # most have nothing to do
        """What is done before each call of a candidate."""

    def at(self, dtype: torch.dtype | None) -> Callable[[Any], Any]:
        """The same computation with parameters of another floating type."""
        del dtype
        return self.call

    def seeded(self, seed: int, make: Callable[[], Any]) -> Any:
        """Make inputs under a seed, on the device where the code does not say otherwise."""
        seed_everything(seed)
        if self.device.type == "cpu":
            return make()
        try:
            with torch.device(self.device):
                return make()
        except (RuntimeError, TypeError):  # code that names the CPU's generator, or mixes devices
            seed_everything(seed)
            return make()


class KernelBench(Subject):
    """`Model` or `ModelNew`, with `get_inputs` and `get_init_inputs` in the reference."""

    model: torch.nn.Module

    def load_source(self) -> None:
        """Execute the file; sizes replace the constants of the reference."""
        role = self.message["role"]
        constants = None if role == "candidate" else self.dims
        self.module = load_module(self.folder / self.message["file"], constants)

    def make_inputs(self, seed: int) -> tuple[Any, list[str]]:
        """What `get_inputs` returns, or the file of inputs holds."""
        if self.message.get("inputs"):
            return super().make_inputs(seed)
        return _listed("get_inputs", self.seeded(seed, named(self.module, "get_inputs"))), []

    def init_inputs(self, seed: int) -> list[Any]:
        """What `get_init_inputs` returns; none if the file has no such function."""
        make = getattr(self.module, "get_init_inputs", list)
        return _listed("get_init_inputs", self.seeded(seed, make))

    def build(self, arguments: list[Any], seed: int) -> dict[str, torch.Tensor]:
        """Construct the model; its state, parameters and buffers, by name."""
        seed_everything(seed)
        classes = ["ModelNew", "Model"] if self.message["role"] == "candidate" else ["Model", "ModelNew"]
        if self.message.get("entry"):
            classes.insert(0, self.message["entry"])
        self.model = named(self.module, *classes)(*arguments).to(self.device)
        if self.message.get("how") == "compile":
            self.model.compile()
        return dict(self.model.state_dict())

    def load(self, state: dict[str, torch.Tensor]) -> None:
        """Set parameters and buffers."""
        with torch.no_grad():
            own = self.model.state_dict()
            for name, value in state.items():
                own[name].copy_(value)

    def call(self, values: Any) -> Any:
        """The model's result."""
        return self._run(self.model, values)

    def at(self, dtype: torch.dtype | None) -> Callable[[Any], Any]:
        """A copy of the model with floating parameters of `dtype`."""
        return self.call if dtype is None else partial(self._run, copy.deepcopy(self.model).to(dtype))

    def _run(self, model: torch.nn.Module, values: Any) -> Any:
        modes = [(part, part.training) for part in model.modules()] if self.evaluates else []
        for part, _ in modes:
            part.training = False
        try:
            with torch.set_grad_enabled(self.gradients):
                return model(*values)
        finally:
            for part, mode in modes:
                part.training = mode


class Function(Subject):
    """One function: what it returns is the result."""

    def load_source(self) -> None:
        """Execute the file."""
        self.module = load_module(self.folder / self.message["file"])
        self.function = named(self.module, self.message["entry"])
        if self.message.get("how") == "compile":
            self.function = torch.compile(self.function)

    def call(self, values: Any) -> Any:
        """The function's result; inputs with names are passed by name."""
        with torch.set_grad_enabled(self.gradients):
            return self.function(**values) if isinstance(values, dict) else self.function(*values)


class Setup(Function):
    """`run_kernel(**kwargs)` or `reference(**kwargs)`: arguments are written in place, what is returned is not read."""


class Inputs(Subject):
    """Nothing but inputs: no code of a kernel is loaded, except what makes them."""

    def load_source(self) -> None:
        """Nothing is loaded."""


class Library(Function):
    """A function of an installed library, `module:callable`, called as the reference's `forward` or function is."""

    def load_source(self) -> None:
        """Import it."""
        module, _, name = self.message["entry"].partition(":")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            if getattr(found, part, None) is None:
                raise MissingError(f"{getattr(found, '__name__', found)} has no {part}")
            found = getattr(found, part)
        self.function = found

    def build(self, arguments: list[Any], seed: int) -> dict[str, torch.Tensor]:
        """Nothing is built, and there are no weights."""
        del arguments, seed
        return {}


class Solve(Subject):
    """`extern "C" void solve(...)` of a `.cu` file, compiled for the device that is present."""

    filler: Callable[[], None] | str = ""
    """Fills shared memory; why nothing does, where it is text."""

    def load_source(self) -> None:
        """Compile it, and open the library; and, for a candidate, what fills shared memory before each call."""
        self.function = ctypes.CDLL(str(compiled(self.message, self.folder))).solve
        self.function.restype = None
        if self.message["role"] == "candidate":
            self.filler = filler(self.message["nvcc"], self.message["flags"], self.folder)

    def before_call(self) -> None:
        """Leave nothing of an earlier call in shared memory."""
        if callable(self.filler):
            self.filler()

    def call(self, values: Any) -> Any:
        """Pointers of tensors, and numbers by value, in the order of the signature."""
        words = []
        for parameter in self.message["parameters"]:
            name, ctype = parameter["name"], parameter["ctype"]
            if ctype == "c_void_p" and not parameter["pointer"]:
                words.append(ctypes.c_void_p(None))  # a stream: the default one
            elif name not in values:
                raise MissingError(f"nothing says what the parameter {name} is; give it in setup or with --dims")
            elif parameter["pointer"]:
                words.append(ctypes.c_void_p(values[name].data_ptr()))
            else:
                words.append(getattr(ctypes, ctype)(values[name]))
        self.function(*words)


def compiled(message: dict[str, Any], folder: Path) -> Path:
    """The shared library of a `.cu` file; compiled once for all processes that share a cache."""
    library = Path(os.environ.get("XDG_CACHE_HOME", folder)) / "solve.so"
    if not library.exists():
        made = folder / "made.so"
        words = [message["nvcc"], *message["flags"], "-shared", "-Xcompiler", "-fPIC", "-o", str(made)]
        done = subprocess.run([*words, str(folder / message["file"])], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError((done.stderr or done.stdout)[-8000:])
        library.parent.mkdir(parents=True, exist_ok=True)
        made.replace(library)
    return library


def make_subject(message: dict[str, Any], folder: Path, device: torch.device) -> Subject:
    """The subject that a load message asks for."""
    kinds: dict[str, type[Subject]] = {
        "kernelbench": KernelBench,
        "setup": Setup,
        "solve": Solve,
        "function": Function,
        "inputs": Inputs,
        "library": Library,
    }
    return kinds[message["form"]](message, folder, device)
