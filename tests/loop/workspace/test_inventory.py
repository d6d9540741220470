"""A workspace is read by content; what could be two things is an error that lists them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluator.source.forms import Form
from kbs.common.errors import ConfigurationError, UsageError
from loop.workspace.inventory import take

TRITON = """import triton
import triton.language as tl


@triton.jit
def _k(x):
    pass


class ModelNew:
    def forward(self, x):
        return x
"""
MODEL = "class Model:\n    def forward(self, x):\n        return x\n\n\ndef get_inputs():\n    return []\n"
FUNCTION = "import triton\n\n\n@triton.jit\ndef _k(x):\n    pass\n\n\ndef scale(x):\n    return x\n"
PLAIN = "def scale(x):\n    return x\n"
INPUTS = "def get_inputs():\n    return []\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def test_names_do_not_matter(tmp_path: Path) -> None:
    found = take(
        write(tmp_path, reference_dot_py=TRITON, kernel_dot_py=MODEL, notes_dot_md="forbid: x", x_dot_py="a = 1")
    )
    assert found.kernel.name == "reference.py"
    assert found.reference.name == "kernel.py"
    assert found.inputs is None
    assert found.hints is None
    assert found.recognised.form is Form.KERNELBENCH


def test_hints_are_found_in_any_case(tmp_path: Path) -> None:
    found = take(write(tmp_path, a_dot_py=TRITON, b_dot_py=MODEL, Hints_dot_md="no ncu"))
    assert found.hints is not None
    assert found.hints.name == "Hints.md"


def test_a_function_gets_its_inputs_from_the_one_file_that_makes_them(tmp_path: Path) -> None:
    found = take(write(tmp_path, a_dot_py=FUNCTION, b_dot_py=PLAIN, data_dot_py=INPUTS))
    assert (found.kernel.name, found.reference.name) == ("a.py", "b.py")
    assert found.inputs is not None
    assert found.inputs.name == "data.py"


def test_shapes_in_json_are_inputs_and_other_json_is_not(tmp_path: Path) -> None:
    workspace = write(tmp_path, a_dot_py=FUNCTION, b_dot_py=PLAIN, s_dot_json='[[4, "N"]]', t_dot_json='{"a": 1}')
    found = take(workspace)
    assert found.inputs is not None
    assert found.inputs.name == "s.json"


def test_two_kernels_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        take(write(tmp_path, a_dot_py=TRITON, b_dot_py=TRITON, ref_dot_py=MODEL))
    assert caught.value.code == "kernel_ambiguous"
    assert "a.py (class ModelNew)" in caught.value.message
    assert "b.py (class ModelNew)" in caught.value.message
    found = take(tmp_path, kernel=tmp_path / "b.py")
    assert found.kernel.name == "b.py"
    assert found.passed_over == ("a.py: class ModelNew",)


def test_two_references_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        take(write(tmp_path, a_dot_py=TRITON, r1_dot_py=MODEL, deep__r2_dot_py=MODEL))
    assert caught.value.code == "reference_ambiguous"
    assert "deep/r2.py" in caught.value.message


def test_two_inputs_are_listed(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        take(write(tmp_path, a_dot_py=FUNCTION, b_dot_py=PLAIN, s_dot_json="[[4]]", t_dot_json="[[8]]"))
    assert caught.value.code == "inputs_ambiguous"
    assert "s.json" in caught.value.message
    assert "t.json" in caught.value.message


def test_a_kernel_in_plain_pytorch_yields_to_one_in_triton(tmp_path: Path) -> None:
    plain = "class ModelNew:\n    def forward(self, x):\n        return x\n"
    assert take(write(tmp_path, a_dot_py=plain, b_dot_py=TRITON, r_dot_py=MODEL)).kernel.name == "b.py"


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"a_dot_py": TRITON}, "reference_not_found"),
        ({"a_dot_py": FUNCTION, "b_dot_py": "def other(x):\n    return x\n"}, "reference_not_found"),
        ({}, "kernel_not_found"),
    ],
)
def test_what_is_missing_is_said(tmp_path: Path, files: dict[str, str], code: str) -> None:
    with pytest.raises(UsageError) as caught:
        take(write(tmp_path, **files))
    assert caught.value.code == code


def test_earlier_runs_are_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py=TRITON, r_dot_py=MODEL, runs__old__v0__kernel_dot_py=TRITON)
    assert take(tmp_path).kernel.name == "a.py"


def test_a_run_beside_the_kernel_is_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py=TRITON, b_dot_py=MODEL, mine__v0__kernel_dot_py=TRITON, mine__run_dot_json="{}")
    with pytest.raises(UsageError):
        take(tmp_path)
    write(tmp_path, mine__journal_dot_jsonl="")
    assert take(tmp_path).kernel == tmp_path / "a.py"


def test_broken_files_are_passed_over_and_named_where_nothing_else_is_there(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py="def broken(:\n")
    (tmp_path / "b.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError) as caught:
        take(tmp_path)
    assert "a.py" in caught.value.message
    assert "b.py" in caught.value.message


def test_inputs_made_by_the_kernel_itself_are_refused(tmp_path: Path) -> None:
    kernel = "import triton\n\n\ndef setup(**d):\n    return {}\n\n\ndef run_kernel(**k):\n    pass\n"
    reference = "def reference(**k):\n    pass\n"
    with pytest.raises(UsageError) as caught:
        take(write(tmp_path, a_dot_py=kernel, r_dot_py=reference))
    assert caught.value.code == "setup_in_kernel"


def test_data_and_texts_that_lie_about_are_named_as_what_they_are(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py=TRITON, b_dot_py=MODEL, HINTS_dot_md="no ncu", papers__p_dot_md="x", old_dot_log="x")
    write(tmp_path, t_dot_csv="a,b\n1,2\n", n_dot_csv='"ID","Process ID","Kernel Name"\n', r_dot_json="{")
    write(tmp_path, k_dot_json='{"kind": "kopt-receipt"}', e_dot_json='{"traceEvents": []}', s_dot_json="[[4]]")
    for name in ("x.npz", "p.ncu-rep", "y.npy"):
        (tmp_path / name).write_bytes(b"\0")
    own = "a run takes its own profiles"
    wanted = {
        "papers/p.md": "text: searched only as notes, in a folder that --knowledge names",
        "old.log": "a log",
        "t.csv": "a table",
        "n.csv": f"a report of Nsight Compute, as CSV: {own}",
        "p.ncu-rep": f"a report of Nsight Compute: {own}",
        "r.json": "data that is no JSON",
        "k.json": "a receipt of kopt: a run writes its own",
        "e.json": f"a trace of a profiler: {own}",
        "s.json": "JSON data",
        "x.npz": "tensors: inputs only where --inputs names them",
        "y.npy": "tensors: inputs only where --inputs names them",
    }
    found = take(tmp_path)
    assert dict(line.split(": ", 1) for line in found.strays) == wanted
    assert found.not_used == (*found.passed_over, *found.strays)


def test_of_many_data_files_the_rest_is_counted(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py=TRITON, b_dot_py=MODEL, **{f"d{n}_dot_csv": "" for n in range(25)})
    assert take(tmp_path).strays[-1] == "5 more files of data or text"


def test_notes_of_the_run_are_not_looked_into(tmp_path: Path) -> None:
    write(tmp_path, a_dot_py=TRITON, b_dot_py=MODEL, papers__example_dot_py=TRITON, papers__p_dot_md="x")
    found = take(tmp_path, knowledge=(tmp_path / "papers",))
    assert (found.kernel.name, found.strays) == ("a.py", ())


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        take(tmp_path / "nowhere")
    assert caught.value.code == "workspace_unreadable"


def test_other_languages_of_kernels_are_named(tmp_path: Path) -> None:
    tile = "import tilelang\n\n\ndef scale(x):\n    return x\n"
    found = take(write(tmp_path, a_dot_py=tile, b_dot_py=PLAIN, data_dot_py=INPUTS))
    assert found.kernel.name == "a.py"
    assert found.why["kernel"] == "a kernel in TileLang"
    with pytest.raises(ConfigurationError) as caught:
        take(write(tmp_path / "hip", k_dot_hip='extern "C" void solve(float *x) {}', r_dot_py=MODEL))
    assert caught.value.code == "language_missing"
    assert "k.hip is written in HIP C++" in caught.value.message
