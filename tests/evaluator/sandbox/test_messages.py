"""What oracle and candidate are told to load: files, entry points, the compiler and its flags."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from evaluator.request import InputsFile, Request
from evaluator.sandbox import messages
from evaluator.sandbox.messages import (
    DRAWN,
    baseline_message,
    candidate_files,
    candidate_message,
    inputs_message,
    module_name,
    nvcc_flags,
    nvcc_path,
    own_setup,
    reference_files,
    reference_message,
)
from evaluator.source.forms import Backend, Form, Recognised
from evaluator.source.source_file import SourceFile
from kbs.common.errors import ConfigurationError, UsageError

SOLVE = """
__global__ void add(const float* a, const __nv_bfloat16* b, float* c, int n) {}
extern "C" void solve(const float* a, const __nv_bfloat16* b, float* c, unsigned* hits, int n, cudaStream_t stream) {}
"""
CU = SourceFile(name="k.cu", text=SOLVE)
PY = SourceFile(name="k.py", text="def run(x): return x\n")
REF = SourceFile(name="my reference.py", text="def reference(x): return x\n")
SIZES = {"a": "M*N", "b": "N", "c": "M*N", "hits": "1"}


def request(candidate: SourceFile = PY, **words: Any) -> Request:
    """A request on the CPU, unless told otherwise."""
    return Request(candidate=candidate, **words)


def recognised(form: Form = Form.FUNCTION, **changes: Any) -> Recognised:
    """A function held against a reference, with changes."""
    fields: dict[str, Any] = {
        "form": form,
        "backend": Backend.CUDA if form is Form.SOLVE else Backend.TRITON,
        "entry": "run",
        "oracle": "reference",
        "reference_entry": "reference",
        "setup_from": "none",
    }
    return Recognised(**{**fields, **changes})


@pytest.fixture
def nvcc(tmp_path: Path) -> Path:
    """A toolkit."""
    path = tmp_path / "cuda" / "bin" / "nvcc"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """The device that is present."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_candidate_gets_itself_alone() -> None:
    asked = request(reference=REF, inputs=InputsFile(name="in.json", content=b"[[2]]"))
    assert candidate_files(asked) == {"candidate.py": PY.text.encode()}
    assert candidate_files(request(CU)) == {"candidate.cu": CU.text.encode()}
    assert candidate_message(asked, recognised(), {"n": 3}) == {
        "form": "function",
        "role": "candidate",
        "file": "candidate.py",
        "entry": "run",
        "dims": {"n": 3},
        "device": "cpu",
        "maps_cuda": False,
    }


def test_the_name_of_a_candidate_is_its_files_and_seldom_the_same_twice() -> None:
    names = [module_name(random.Random(n)) for n in range(100)]
    assert all(name.isidentifier() for name in names)
    assert len(set(names)) > 60
    assert not set(names) & {"candidate", "kernel"}
    assert list(candidate_files(request(), names[0])) == [f"{names[0]}.py"]
    assert candidate_message(request(), recognised(), {}, names[0])["file"] == f"{names[0]}.py"


def test_an_oracle_gets_the_reference_under_its_own_name_for_it() -> None:
    asked = request(reference=REF)
    assert reference_files(asked, recognised(), {}) == {"reference.py": REF.text.encode()}
    message = reference_message(asked, recognised(), {"n": 3})
    assert (message["file"], message["entry"], message["role"], message["dims"]) == (
        "reference.py",
        "reference",
        "reference",
        {"n": 3},
    )


def test_without_a_reference_the_candidate_is_the_oracle() -> None:
    assert reference_files(request(), recognised(), {}) == {"reference.py": PY.text.encode()}


def test_the_setup_of_a_candidate_runs_in_a_process_of_its_own() -> None:
    asked = request(reference=REF)
    assert reference_message(asked, recognised(Form.SETUP, setup_from="reference"), {})["inputs"] == "reference.py"
    found = recognised(Form.SETUP, setup_from="candidate")
    assert reference_message(asked, found, {})["inputs"] == ""
    assert reference_files(asked, found, {}) == {"reference.py": REF.text.encode()}
    made = inputs_message(asked, found, {"n": 3})
    assert (made["form"], made["role"], made["file"], made["inputs"]) == ("inputs", "inputs", "", "candidate.py")
    assert own_setup(asked, found) == {"inputs": "candidate.py"}


def test_a_file_of_inputs_comes_before_every_setup() -> None:
    file = InputsFile(name="in.json", content=b"{}", beside={"raw.bin": b"123"})
    for setup_from in ("reference", "inputs"):
        asked, found = request(reference=REF, inputs=file), recognised(Form.SETUP, setup_from=setup_from)
        files = reference_files(asked, found, {})
        name = reference_message(asked, found, {})["inputs"]
        assert name.endswith(".json")
        assert files == {name: b"{}", "raw.bin": b"123", "reference.py": REF.text.encode()}


@pytest.mark.parametrize("name", ["reference.py", "candidate.py", "drawn.json", "output.txt", "tmp"])
def test_a_file_of_inputs_takes_the_place_of_no_other(name: str) -> None:
    file = InputsFile(name=name, content=b"mine", beside={"reference.py": b"data"})
    asked, found = request(reference=REF, inputs=file), recognised(Form.SETUP, setup_from="candidate")
    files = reference_files(asked, found, {})
    assert files["reference.py"] == REF.text.encode()
    assert files[reference_message(asked, found, {})["inputs"]] == b"mine"


@pytest.mark.parametrize(
    "name", ["/etc/cron.d/x.py", "../../.bashrc", "..", "", "a/../../b.py", "x\0.py", "é" * 300 + ".py"]
)
def test_a_strangers_receipt_chooses_no_path(tmp_path: Path, name: str) -> None:
    """Its files are written before anything is isolated."""
    beside = {"../" + name.replace("\0", "")[-80:]: b""}
    file = InputsFile.model_construct(name=name, content=b"", beside=beside)  # as if nothing had looked at the name
    for written in reference_files(request(reference=REF, inputs=file), recognised(), {}):
        if written not in ("", ".."):  # a folder, which cannot be written
            assert (tmp_path / written).resolve().parent == tmp_path
            (tmp_path / written).write_bytes(b"x")


# --- CUDA on the CPU --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, False),
        ({"candidate": SourceFile(name="k.py", text="x.cuda()")}, True),
        ({"reference": SourceFile(name="r.py", text='device="cuda"')}, True),
        ({"inputs": InputsFile(name="in.py", content=b"torch.ones(2, device='cuda')")}, True),
        ({"inputs": InputsFile(name="in.npz", content=b"cuda")}, False),
        ({"candidate": SourceFile(name="k.py", text="x.cuda()"), "device": "cuda:0"}, False),
    ],
)
def test_cuda_is_mapped_where_a_source_names_it(words: dict[str, Any], expected: bool) -> None:
    assert messages.maps_cuda(request(**{"candidate": PY, **words})) is expected


# --- solve ------------------------------------------------------------------------------------------------------------


def test_parameters_are_told_as_ctypes(nvcc: Path, hopper: None) -> None:
    asked = request(CU, device="cuda:0", cuda_home=nvcc.parent.parent)
    message = candidate_message(asked, recognised(Form.SOLVE), {"n": 3})
    assert [(p["name"], p["pointer"], p["ctype"]) for p in message["parameters"]] == [
        ("a", True, "c_float"),
        ("b", True, "c_uint16"),
        ("c", True, "c_float"),
        ("hits", True, "c_uint"),
        ("n", False, "c_int"),
        ("stream", False, "c_void_p"),
    ]
    assert (message["form"], message["file"], message["nvcc"]) == ("solve", "candidate.cu", str(nvcc))


def test_a_python_reference_of_a_solve_is_a_setup(nvcc: Path, hopper: None) -> None:
    asked = request(CU, reference=REF, device="cuda:0", cuda_home=nvcc.parent.parent)
    assert reference_message(asked, recognised(Form.SOLVE), {})["form"] == "setup"
    alone = request(CU, device="cuda:0", cuda_home=nvcc.parent.parent)
    assert reference_message(alone, recognised(Form.SOLVE), {})["form"] == "solve"


def test_buffers_that_no_setup_makes_are_drawn(nvcc: Path, hopper: None) -> None:
    asked = request(CU, reference=REF, ptr_sizes=SIZES, device="cuda:0", cuda_home=nvcc.parent.parent)
    found = recognised(Form.SOLVE)
    drawn = json.loads(reference_files(asked, found, {"M": 4, "N": 6})[DRAWN])
    assert drawn == {
        "a": {"shape": [24], "dtype": "float32"},
        "b": {"shape": [6], "dtype": "bfloat16"},
        "c": {"shape": [24], "dtype": "float32"},
        "hits": {"shape": [1], "dtype": "uint32"},
    }
    assert reference_message(asked, found, {"M": 4, "N": 6})["inputs"] == DRAWN
    from_setup = recognised(Form.SOLVE, setup_from="reference")
    assert DRAWN not in reference_files(asked, from_setup, {})
    assert reference_message(asked, from_setup, {})["inputs"] == "reference.py"


def test_a_buffer_without_a_length_is_asked_for() -> None:
    asked = request(CU, reference=REF, ptr_sizes={"a": "M*N", "hits": "1"})
    with pytest.raises(UsageError, match="how long the buffers b, c are") as raised:
        reference_files(asked, recognised(Form.SOLVE), {"M": 4, "N": 6})
    assert raised.value.code == "ptr_size_missing"
    assert "--ptr-size b=M*N" in raised.value.hint


@pytest.mark.parametrize("type_", ["void", "Particle", "cudaTextureObject_t"])
def test_a_buffer_of_unknown_elements_is_told(type_: str) -> None:
    source = SourceFile(name="k.cu", text=f'extern "C" void solve({type_}* p, int n) {{}}')
    with pytest.raises(UsageError, match=f"elements of p, a pointer to {type_}, are") as raised:
        reference_files(request(source, ptr_sizes={"p": "8"}), recognised(Form.SOLVE), {})
    assert raised.value.code == "ptr_type_unknown"


# --- the compiler -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capability", "arch"),
    [
        ((7, 5), "sm_75"),
        ((8, 0), "sm_80"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((10, 3), "sm_103a"),
        ((12, 0), "sm_120a"),
    ],
)
def test_the_architecture_is_that_of_the_device(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], arch: str
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: asked.append(device) or capability)
    target = f"-gencode=arch={arch.replace('sm', 'compute')},code={arch}"
    assert nvcc_flags(request(CU, device="cuda:1")) == (target, "-O3", "-std=c++17")
    assert asked == ["cuda:1"]


def test_headers_and_further_words_follow(hopper: None) -> None:
    asked = request(
        CU,
        include=(Path("mine/include"), Path("/opt/other")),
        nvcc_flags=("-lineinfo", "-O1"),
        environment={"CUTLASS_PATH": "/opt/cutlass"},
    )
    assert nvcc_flags(asked)[3:] == (
        "-Imine/include",
        "-I/opt/other",
        "-I/opt/cutlass/include",
        "-I/opt/cutlass/tools/util/include",
        "-lineinfo",
        "-O1",
    )


def test_nvcc_is_looked_for_where_it_was_named_first(tmp_path: Path, nvcc: Path) -> None:
    home, empty = nvcc.parent.parent, str(tmp_path)
    found = [
        request(CU, cuda_home=home),
        request(CU, environment={"CUDA_HOME": str(home)}),
        request(CU, environment={"CUDA_PATH": str(home)}),
        request(CU, environment={"PATH": f"{empty}:{nvcc.parent}"}),
        request(CU, cuda_home=Path(empty), environment={"PATH": str(nvcc.parent)}),
        request(CU, cuda_home=home, environment={"CUDA_HOME": empty, "PATH": empty}),
    ]
    assert [nvcc_path(asked) for asked in found] == [nvcc] * len(found)


def test_without_nvcc_it_is_said_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as raised:
        nvcc_path(request(CU, environment={"PATH": str(tmp_path)}))
    assert raised.value.code == "no_nvcc"
    assert "--cuda-home" in raised.value.hint


def test_what_the_workers_may_read(tmp_path: Path, nvcc: Path) -> None:
    """The compiler that is run must be readable, wherever it was found."""
    home = str(nvcc.parent.parent)
    assert messages.readable(request(PY, environment={"CUDA_HOME": home}), recognised()) == ()
    by_path = request(CU, include=(Path("/inc"),), environment={"PATH": str(nvcc.parent)})
    assert messages.readable(by_path, recognised(Form.SOLVE)) == ("/inc", home)
    named = {"CUDA_HOME": "/a", "CUDA_PATH": "/b", "CUTLASS_PATH": "/c"}
    torch_file = recognised(backend=Backend.TORCH)
    assert messages.readable(request(PY, environment=named), torch_file) == ("/a", "/b", "/c")
    link = tmp_path / "bin" / "nvcc"
    link.parent.mkdir()
    link.symlink_to(nvcc)
    linked = request(CU, environment={"PATH": str(link.parent)})
    assert messages.readable(linked, recognised(Form.SOLVE)) == (home,)


# --- baselines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [Form.KERNELBENCH, Form.FUNCTION, Form.SETUP])
@pytest.mark.parametrize("how", ["eager", "compile"])
def test_a_baseline_is_the_reference(form: Form, how: str) -> None:
    asked = request(reference=REF, dims={"M": 2}, device="cpu")
    found = recognised(form, setup_from="reference" if form is Form.SETUP else "none")
    told = baseline_message(asked, found, {"M": 2}, how)
    oracle = reference_message(asked, found, {"M": 2})
    assert told == {**oracle, "role": "baseline", "inputs": "", "how": how}
    assert (told["form"], told["file"], told["entry"]) == (form.value, "reference.py", "reference")


def test_a_baseline_makes_no_inputs() -> None:
    asked = request(reference=REF, inputs=InputsFile(name="in.json", content=b"[[4]]"))
    assert reference_message(asked, recognised(), {})["inputs"] == "inputs_in.json"
    assert baseline_message(asked, recognised(), {}, "eager")["inputs"] == ""


def test_a_librarys_function_is_a_baseline_of_its_own_form() -> None:
    told = baseline_message(request(reference=REF), recognised(Form.KERNELBENCH), {"n": 3}, "torch:nn.functional.relu")
    assert (told["form"], told["entry"], told["role"]) == ("library", "torch:nn.functional.relu", "baseline")
    assert (told["dims"], told["device"], told["inputs"]) == ({"n": 3}, "cpu", "")


def test_the_baseline_of_a_cuda_kernel_is_its_python_reference(nvcc: Path, hopper: None) -> None:
    asked = request(CU, reference=REF, device="cuda:0", cuda_home=nvcc.parent.parent)
    found = recognised(Form.SOLVE, setup_from="reference")
    told = baseline_message(asked, found, {"M": 2}, "eager")
    assert (told["form"], told["file"], told["entry"]) == ("setup", "reference.py", "reference")
