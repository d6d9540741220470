"""Reference and candidate as they are loaded: sizes put into their text, names that are missing, setups gone wrong."""

from __future__ import annotations

import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evaluator.worker.loading import subjects
from evaluator.worker.loading.subjects import (
    CompileError,
    Function,
    KernelBench,
    MissingError,
    Setup,
    Solve,
    make_subject,
)
from evaluator.worker.memory.inputs import InputsError

CPU = torch.device("cpu")
Make = Callable[..., Any]
MODEL = """
import torch
class Model(torch.nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(width))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
    def forward(self, x):
        return x * self.weight
"""


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Makes a subject of a text; words that are no field of the message are files (`in__py`)."""
    before = dict(sys.modules)

    def make(text: str, form: str = "function", **words: Any) -> Any:
        files = {name.replace("__", "."): words.pop(name) for name in list(words) if "__" in name}
        for name, content in {"it.py": text, **files}.items():
            (tmp_path / name).write_text(content)
        message = {"form": form, "role": "reference", "file": "it.py", "entry": "", "dims": {}, "inputs": "", **words}
        return make_subject(message, tmp_path, CPU)

    yield make
    for name in set(sys.modules) - set(before):
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


# --- sizes in the text ------------------------------------------------------------------------------------------------


def constants(text: str, **values: int) -> dict[str, Any]:
    """What stands in a module after its constants were replaced."""
    space: dict[str, Any] = {}
    exec(subjects.with_constants(text, values), space)
    return {name: value for name, value in space.items() if not name.startswith("__")}


def test_constants_are_replaced_and_what_derives_from_them_is_computed_anew() -> None:
    text = "M = 4\nN: int = 8\nBOTH = M * N\nname = f'{M}x{N}'\ndef rows(m=M): return m\n"
    found = constants(text, M=16, N=3)
    assert (found["M"], found["N"], found["BOTH"], found["name"], found["rows"]()) == (16, 3, 48, "16x3", 16)


def test_a_computed_constant_can_be_replaced_itself() -> None:
    assert constants("M = 4\nK = M * 2\nL = K + 1\n", K=100) == {"M": 4, "K": 100, "L": 101}


def test_the_last_value_counts_and_all_of_one_name_are_replaced() -> None:
    assert constants("M = 4\nA = M\nM = 8\nB = M\n", M=5) == {"M": 5, "A": 5, "B": 5}


def test_what_is_not_at_the_top_is_left_alone() -> None:
    text = "M = 4\ndef f():\n    M = 9\n    return M\nclass C:\n    M = 7\nx, y = 1, 2\nz = {}\nz['M'] = 3\nf.M = 2\n"
    found = constants(text, M=5, x=6)
    assert (found["M"], found["f"](), found["C"].M, found["x"], found["z"], found["f"].M) == (5, 9, 7, 1, {"M": 3}, 2)


def test_a_file_keeps_its_docstring_and_its_future_imports() -> None:
    text = '"""Doc."""\nfrom __future__ import annotations\nM = 4\ndef f(x: Undefined): return M\n'
    space: dict[str, Any] = {}
    exec(subjects.with_constants(text, {"M": 6}), space)
    assert (space["__doc__"], space["f"](0)) == ("Doc.", 6)


@given(st.dictionaries(st.sampled_from(["M", "N", "K", "other"]), st.integers(0, 2**40)))
def test_any_sizes_stand_where_they_are_asked_for(values: dict[str, int]) -> None:
    found = constants("M = 1\nN = 2\nK = M + N\n", **values)
    assert found["M"] == values.get("M", 1)
    assert found["N"] == values.get("N", 2)
    assert found["K"] == values.get("K", found["M"] + found["N"])
    assert "other" not in found


def test_only_the_references_sizes_are_replaced(make: Make) -> None:
    text = "M = 4\ndef get_inputs(): return [M]\n" + MODEL
    assert make(text, "kernelbench", dims={"M": 9}).make_inputs(1) == ([9], [])
    assert make(text, "kernelbench", dims={"M": 9}, role="candidate").make_inputs(1) == ([4], [])


# --- names ------------------------------------------------------------------------------------------------------------


def test_the_first_name_that_is_there_is_taken() -> None:
    module = types.ModuleType("m")
    module.__file__ = "/folder/it.py"
    module.second = 2  # type: ignore[attr-defined]  # a made-up module
    assert subjects.named(module, "first", "second") == 2
    with pytest.raises(MissingError, match=r"^it\.py has no first or third$"):
        subjects.named(module, "first", "third")


@pytest.mark.parametrize(
    ("text", "form", "use", "said"),
    [
        ("x = 1\n", "function", None, "it.py has no f"),
        ("x = 1\n", "setup", None, "it.py has no f"),
        ("x = 1\n", "kernelbench", lambda s: s.build([], 1), "it.py has no f or Model or ModelNew"),
        (MODEL, "kernelbench", lambda s: s.make_inputs(1), "it.py has no get_inputs"),
    ],
)
def test_a_missing_name_is_told(make: Make, text: str, form: str, use: Any, said: str) -> None:
    with pytest.raises(MissingError, match=f"^{said}$"):
        use(make(text, form, entry="f")) if use else make(text, form, entry="f")


def test_a_candidates_class_may_have_either_name(make: Make) -> None:
    new = MODEL.replace("class Model", "class ModelNew").replace("x * self", "x + self")
    x = torch.ones(2)
    for text, role, result in (
        (MODEL, "candidate", 1.0),
        (new, "candidate", 2.0),
        (MODEL + new, "candidate", 2.0),
        (MODEL + new, "reference", 1.0),
        (new, "reference", 2.0),
    ):
        subject = make(text, "kernelbench", role=role)
        subject.build([], 1)
        assert subject.call([x]).tolist() == [result, result]


def test_the_entry_comes_first(make: Make) -> None:
    subject = make(MODEL + "class Mine(Model):\n    def forward(self, x): return x - 1\n", "kernelbench", entry="Mine")
    subject.build([], 1)
    assert subject.call([torch.ones(1)]).tolist() == [0.0]


def test_a_syntax_error_and_a_missing_import_pass_through(make: Make) -> None:
    with pytest.raises(SyntaxError, match="invalid syntax"):
        make("def f(:\n", entry="f")
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        make("import nowhere_at_all\n", entry="f")


# --- inputs -----------------------------------------------------------------------------------------------------------

SETUP = "import torch\ndef reference(x, y): y.copy_(x * 2)\ndef setup(n=3):\n    {body}\n"


def setup(make: Make, body: str, **words: Any) -> Any:
    """A setup with that body, in the reference's own file."""
    return make(SETUP.format(body=body), "setup", entry="reference", inputs="it.py", **words)


def test_a_setup_makes_named_inputs_and_says_which_are_outputs(make: Make) -> None:
    body = 'return {"inputs": {"x": torch.randn(n), "y": torch.empty(n), "s": 0.5}, "outputs": ["y"]}'
    values, outputs = setup(make, body, dims={"n": 5}).make_inputs(1)
    assert [values["x"].shape, values["s"], outputs] == [torch.Size([5]), 0.5, ["y"]]


@pytest.mark.parametrize("outputs", ['["out"]', '("out",)', '"out"', '{"out": 1}'])
def test_outputs_are_names(make: Make, outputs: str) -> None:
    body = f'return {{"inputs": {{"x": torch.ones(n), "out": torch.ones(n)}}, "outputs": {outputs}}}'
    assert setup(make, body).make_inputs(1)[1] == ["out"]


@pytest.mark.parametrize("rest", ["", ', "outputs": []', ', "outputs": None'])
def test_a_setup_may_name_no_outputs(make: Make, rest: str) -> None:
    assert setup(make, f'return {{"inputs": {{"x": 1}}{rest}}}').make_inputs(1) == ({"x": 1}, [])


@pytest.mark.parametrize("answer", ["None", "[]", "torch.ones(2)", "{}", '{"inputs": [1]}', '{"inputs": None}', "1, 2"])
def test_a_setup_that_answers_otherwise_is_told_what_to_return(make: Make, answer: str) -> None:
    with pytest.raises(MissingError, match=r'setup must return {"inputs": {\.\.\.}, "outputs": \[\.\.\.\]}'):
        setup(make, f"return {answer}").make_inputs(1)


def test_outputs_that_are_no_inputs_are_named(make: Make) -> None:
    with pytest.raises(MissingError, match=r"outputs \['z'\], which are not among its inputs"):
        setup(make, 'return {"inputs": {"x": 1}, "outputs": ["x", "z"]}').make_inputs(1)


def test_dims_that_a_setup_does_not_take(make: Make) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'q'"):
        setup(make, 'return {"inputs": {"x": 1}}', dims={"q": 3}).make_inputs(1)


def test_a_setup_in_another_file_is_not_the_references(make: Make) -> None:
    text = "def reference(x): pass\ndef setup(): raise KeyError\n"
    other = 'def setup(n=1): return {"inputs": {"x": n}}\n'
    assert make(text, "setup", entry="reference", inputs="in.py", in__py=other, dims={"n": 7}).make_inputs(1) == (
        {"x": 7},
        [],
    )


@pytest.mark.parametrize("form", ["function", "kernelbench"])
def test_get_inputs_of_another_file(make: Make, form: str) -> None:
    text = MODEL + "def f(x): return x\n"
    files = {"inputs": "in.py", "in__py": "def get_inputs(): return (1, [2])\n"}
    assert make(text, form, entry="f", **files).make_inputs(1) == ([1, [2]], [])
    with pytest.raises(MissingError, match=r"in\.py has no get_inputs or setup"):
        make(text, form, entry="f", inputs="in.py", in__py="x = 1\n").make_inputs(1)


@pytest.mark.parametrize("answer", ["torch.ones(2, 3)", "{'x': 1}", "None", "3", "(n for n in range(2))"])
@pytest.mark.parametrize("name", ["get_inputs", "get_init_inputs"])
def test_inputs_that_are_no_list_do_not_fall_apart(make: Make, name: str, answer: str) -> None:
    subject = make(f"{MODEL}\ndef {name}(): return {answer}\n", "kernelbench")
    with pytest.raises(MissingError, match=f"{name} must return a list, not a "):
        subject.make_inputs(1) if name == "get_inputs" else subject.init_inputs(1)


def test_a_model_without_init_inputs_takes_none(make: Make) -> None:
    assert make(MODEL, "kernelbench").init_inputs(1) == []


def test_sizes_are_arguments_where_a_kernel_asks_for_them(make: Make, tmp_path: Path) -> None:
    parameters = [{"name": name, "pointer": name == "x", "ctype": "c_int"} for name in ("x", "n", "k", "m")]
    words = {"inputs": "in.json", "in__json": '{"x": ["n"], "m": ["k"]}', "parameters": parameters}
    values, outputs = make("def f(**kw): pass\n", entry="f", dims={"n": 4, "k": 2, "other": 9}, **words).make_inputs(1)
    assert {name: getattr(value, "shape", value) for name, value in values.items()} == {
        "x": torch.Size([4]),
        "m": torch.Size([2]),
        "n": 4,
        "k": 2,
    }
    assert outputs == []


def test_a_damaged_file_of_inputs_is_an_inputs_error(make: Make) -> None:
    with pytest.raises(InputsError):
        make("def f(x): pass\n", entry="f", inputs="in.json", in__json="[").make_inputs(1)


DRAWS = """
import random, numpy, torch
def get_inputs():
    return [torch.rand(3), torch.nn.Linear(2, 2).weight.detach(), random.random(), numpy.random.rand(2).tolist()]
"""


def test_a_seed_decides_every_draw(make: Make) -> None:
    subject = make(MODEL + DRAWS, "kernelbench")
    one, again, other = (subject.make_inputs(seed)[0] for seed in (2**62 + 1, 2**62 + 1, 2**62 + 2))
    assert str(one) == str(again)
    assert all(str(a) != str(b) for a, b in zip(one, other, strict=True))


# --- calling ----------------------------------------------------------------------------------------------------------


def test_a_model_is_built_under_its_seed_and_its_weights_can_be_set(make: Make) -> None:
    subject = make(MODEL.replace("torch.ones(width)", "torch.randn(width)"), "kernelbench")
    one = subject.build([4], 7)["weight"].clone()
    assert torch.equal(subject.build([4], 7)["weight"], one)
    assert not torch.equal(subject.build([4], 8)["weight"], one)
    assert list(subject.build([4], 7)) == ["weight", "count"]
    subject.load({"weight": torch.full((4,), 3.0), "count": torch.tensor(5)})
    assert subject.call([torch.ones(4)]).tolist() == [3.0] * 4
    assert subject.model.state_dict()["count"].item() == 5
    assert not subject.call([torch.ones(4)]).requires_grad


def test_the_double_of_a_model_leaves_the_model_as_it_is(make: Make) -> None:
    subject = make(MODEL, "kernelbench")
    subject.build([2], 1)
    double = subject.at(torch.float64)
    assert double([torch.ones(2, dtype=torch.float64)]).dtype == torch.float64
    assert subject.call([torch.ones(2)]).dtype == torch.float32
    assert subject.at(None) == subject.call


def test_a_function_takes_arguments_by_place_or_by_name(make: Make) -> None:
    subject = make("def f(a, b): return a - b\n", entry="f")
    assert subject.call([5, 3]) == 2
    assert subject.call({"b": 5, "a": 3}) == -2
    assert subject.at(torch.float64) == subject.call


def test_forms_have_their_classes(make: Make) -> None:
    text = "def f(): pass\n" + MODEL
    for form, kind in (("function", Function), ("setup", Setup), ("kernelbench", KernelBench)):
        assert type(make(text, form, entry="f")) is kind


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """The host's C++ compiler in the place of nvcc."""
    script = tmp_path / "nvcc"
    script.write_text(
        '#!/bin/sh\nwords=""\nfor w in "$@"; do [ "$w" = -Xcompiler ] || words="$words $w"; done\n'
        "exec g++ -x c++ $words\n"
    )
    script.chmod(0o755)
    if subprocess.run(["g++", "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no g++")
    return str(script)


SOLVE = """
#include <stdint.h>
extern "C" void solve(const float* x, float* y, int n, double scale, uint8_t add, void* stream) {
    for (int i = 0; i < n; ++i) y[i] = x[i] * scale + add + (stream == nullptr ? 0 : 1000);
}
"""
PARAMETERS = [
    {"name": "x", "pointer": True, "ctype": "c_float"},
    {"name": "y", "pointer": True, "ctype": "c_float"},
    {"name": "n", "pointer": False, "ctype": "c_int"},
    {"name": "scale", "pointer": False, "ctype": "c_double"},
    {"name": "add", "pointer": False, "ctype": "c_ubyte"},
    {"name": "stream", "pointer": False, "ctype": "c_void_p"},
]


def solve(folder: Path, text: str, compiler: str) -> Solve:
    """A compiled `solve`."""
    (folder / "it.cu").write_text(text)
    message = {"form": "solve", "role": "candidate", "file": "it.cu", "dims": {}, "nvcc": compiler, "flags": ["-O1"]}
    made = make_subject({**message, "parameters": PARAMETERS}, folder, CPU)
    assert isinstance(made, Solve)
    return made


@pytest.mark.processes
def test_solve_gets_pointers_and_numbers_in_their_order(tmp_path: Path, compiler: str) -> None:
    subject = solve(tmp_path, SOLVE, compiler)
    x, y = torch.arange(5.0), torch.full((5,), -1.0)
    subject.call({"add": 3, "n": 4, "y": y, "scale": 0.5, "x": x})
    assert y.tolist() == [3.0, 3.5, 4.0, 4.5, -1.0]
    with pytest.raises(MissingError, match="nothing says what the parameter scale is"):
        subject.call({"x": x, "y": y, "n": 4})


@pytest.mark.processes
def test_what_the_compiler_refuses_is_in_its_own_words(tmp_path: Path, compiler: str) -> None:
    with pytest.raises(CompileError, match=r"it\.cu:3.*undeclared_name"):
        solve(tmp_path, SOLVE.replace("x[i] *", "undeclared_name *").replace("#include <stdint.h>\n", ""), compiler)


# --- a library's function ---------------------------------------------------------------------------------------------


def library(make: Make, entry: str) -> Any:
    """A baseline that is a function of a library."""
    return make("raise RuntimeError('the reference is not run')\n", "library", entry=entry, role="baseline", how=entry)


def test_a_librarys_function_is_called_as_the_reference_is(make: Make) -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    relu = library(make, "torch:nn.functional.relu")
    assert relu.build([3, "any"], 7) == {}
    by_place, by_name = relu.call([x]), relu.call({"input": x, "inplace": False})
    assert by_place.tolist() == by_name.tolist() == [0.0, 2.0]
    assert not by_place.requires_grad
    assert library(make, "torch.nn.functional:relu").call([x]).tolist() == [0.0, 2.0]


def test_a_library_beside_the_kernel_is_found(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "somebodys_kernels.py").write_text("class Fast:\n    @staticmethod\n    def add(a, b): return a + b\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert library(make, "somebodys_kernels:Fast.add").call([1, 2]) == 3


@pytest.mark.parametrize("entry", ["no_such_library_anywhere:f", "torch.no_such_module:f"])
def test_a_library_that_is_not_installed(make: Make, entry: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=entry.partition(":")[0]):
        library(make, entry)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("torch:no_such_function", "torch has no no_such_function"),
        ("torch:nn.functional.no_such", "torch.nn.functional has no no_such"),
        ("torch:Tensor.no_such", "Tensor has no no_such"),
    ],
)
def test_a_library_without_that_name(make: Make, entry: str, said: str) -> None:
    with pytest.raises(MissingError) as raised:
        library(make, entry)
    assert str(raised.value) == said


# --- torch.compile ----------------------------------------------------------------------------------------------------


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The graphs that torch.compile made; a backend that runs them as they are needs no compiler."""
    made: list[Any] = []
    original = torch.compile

    def backend(graph: Any, _: Any) -> Any:
        made.append(graph)
        return graph.forward

    monkeypatch.setattr(torch, "compile", lambda model: original(model, backend=backend))
    yield made
    torch._dynamo.reset()


@pytest.mark.slow
def test_a_compiled_model_gives_what_the_model_gives(make: Make, graphs: list[Any]) -> None:
    x = torch.tensor([1.0, -2.0])
    weights = {"weight": torch.tensor([3.0, 5.0]), "count": torch.tensor(1)}
    results = []
    for how in ("eager", "compile"):
        model = make(MODEL, "kernelbench", role="baseline", how=how)
        assert list(model.build([], 1)) == ["weight", "count"]  # as the reference names them
        model.load(weights)
        assert len(graphs) == 0
        results.append(model.call([x]).tolist())
    assert results == [[3.0, -10.0]] * 2
    assert len(graphs) == 1


@pytest.mark.slow
def test_a_compiled_function_gives_what_the_function_gives(make: Make, graphs: list[Any]) -> None:
    text = "import torch\ndef f(x, y=2.0):\n    return torch.relu(x) * y\n"
    x = torch.tensor([1.0, -2.0])
    eager = make(text, entry="f", role="baseline", how="eager")
    assert eager.call([x]).tolist() == [2.0, 0.0]
    assert graphs == []
    compiled = make(text, entry="f", role="baseline", how="compile")
    assert compiled.call([x]).tolist() == [2.0, 0.0]
    assert compiled.call({"x": x, "y": 3.0}).tolist() == [3.0, 0.0]
    assert len(graphs) >= 1
