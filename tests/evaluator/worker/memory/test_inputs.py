"""Files of inputs: every format, and everything that can be wrong with one, as one kind of error that runs no code."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save, save_file

from evaluator.worker.memory.inputs import InputsError, read_inputs
from evaluator.worker.memory.tensors import DTYPES

DIMS = {"M": 3, "N": 5, "Z": 0}
FUZZ = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read_json(folder: Path, content: Any, dims: dict[str, int] | None = None) -> Any:
    """What a JSON file of that content gives."""
    path = folder / "in.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_inputs(path, DIMS if dims is None else dims)


def test_npz(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {
        "a": np.random.rand(3, 5).astype("float32"),
        "b": np.arange(4, dtype="int64"),
        "h": np.ones(2, "float16"),
        "t": np.asfortranarray(np.random.rand(3, 5)),
        "flag": np.array([True, False]),
        "scalar": np.float32(0.5),
        "none": np.zeros((0, 4), "float32"),
    }
    np.savez(tmp_path / "in.npz", **arrays)
    found = read_inputs(tmp_path / "in.npz", {})
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert found[name].is_contiguous()
        assert np.array_equal(found[name].numpy(), np.atleast_1d(array) if name == "scalar" else array)


def test_safetensors_and_pt_keep_every_type(tmp_path: Path) -> None:
    tensors = {name: torch.randint(0, 2, (2, 3)).to(dtype) for name, dtype in DTYPES.items() if name != "complex128"}
    save_file(tensors, tmp_path / "in.safetensors")
    torch.save(tensors, tmp_path / "in.pt")
    torch.save(tensors, tmp_path / "in.pth")
    for name in ("in.safetensors", "in.pt", "in.pth"):
        found = read_inputs(tmp_path / name, {})
        assert {key: tensor.dtype for key, tensor in found.items()} == {k: t.dtype for k, t in tensors.items()}
        assert all(bool((found[key].view(torch.uint8) == t.view(torch.uint8)).all()) for key, t in tensors.items())


@pytest.mark.parametrize("content", [[torch.ones(2), torch.zeros(3)], (torch.ones(2),), {"x": torch.ones(2), "n": 3}])
def test_pt_holds_what_crosses(tmp_path: Path, content: Any) -> None:
    torch.save(content, tmp_path / "in.pt")
    found = read_inputs(tmp_path / "in.pt", {})
    assert type(found) is type(content)
    assert len(found) == len(content)


def test_pt_of_one_tensor_is_one_argument(tmp_path: Path) -> None:
    torch.save(torch.arange(4), tmp_path / "in.pt")
    (found,) = read_inputs(tmp_path / "in.pt", {})
    assert found.tolist() == [0, 1, 2, 3]


def test_a_list_of_shapes(tmp_path: Path) -> None:
    found = read_json(tmp_path, [[2, "M"], ["N"], [], ["Z", 4]])
    assert [list(t.shape) for t in found] == [[2, 3], [5], [], [0, 4]]
    assert all(t.dtype == torch.float32 for t in found)


def test_named_shapes_with_types(tmp_path: Path) -> None:
    content = {
        "x": ["M", "N"],
        "h": {"shape": [4], "dtype": "bfloat16"},
        "i": {"shape": [1000], "dtype": "int64", "high": 7},
        "b": {"shape": [64], "dtype": "bool"},
    }
    found = read_json(tmp_path, content)
    assert {name: str(t.dtype) for name, t in found.items()} == {
        "x": "torch.float32",
        "h": "torch.bfloat16",
        "i": "torch.int64",
        "b": "torch.bool",
    }
    assert sorted(set(found["i"].tolist())) == list(range(7))
    assert set(found["b"].tolist()) == {True, False}


@pytest.mark.parametrize("name", sorted(DTYPES))
def test_shapes_of_every_type_are_drawn_anew(tmp_path: Path, name: str) -> None:
    one, two = (read_json(tmp_path, [{"shape": [64], "dtype": name}])[0] for _ in range(2))
    assert one.dtype == DTYPES[name]
    assert bool((one.view(torch.uint8) != two.view(torch.uint8)).any())


def test_raw_bytes(tmp_path: Path) -> None:
    a, b = np.random.rand(3, 5).astype("float32"), np.arange(3, dtype="int16")
    (tmp_path / "in.bin").write_bytes(b"\xff" + a.tobytes() + b.tobytes())
    tensors = [
        {"name": "a", "shape": ["M", "N"], "dtype": "float32", "offset": 1},
        {"name": "b", "shape": [3], "dtype": "int16", "offset": 61},
        {"name": "none", "shape": ["Z", 7], "dtype": "float32"},
        {"name": "one", "shape": [], "dtype": "uint8"},
    ]
    found = read_json(tmp_path, {"file": "in.bin", "tensors": tensors})
    assert torch.equal(found["a"], torch.from_numpy(a))
    assert torch.equal(found["b"], torch.from_numpy(b))
    assert list(found["none"].shape) == [0, 7]
    assert found["one"].item() == 255


def raw(**changes: Any) -> dict[str, Any]:
    """A description of raw bytes, with changes of its tensor or of itself."""
    tensor = {"name": "a", "shape": [2], "dtype": "float32"}
    whole = {
        "file": "in.bin",
        "tensors": [{**tensor, **{k: v for k, v in changes.items() if k in tensor or k == "offset"}}],
    }
    return {**whole, **{k: v for k, v in changes.items() if k in whole}}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot be read"),
        ("[[1", "cannot be read"),
        ("[" * 50_000, "cannot be read"),
        ("\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "cannot be read"),
        (None, "list of shapes"),
        ([], "list of shapes"),
        ({}, "list of shapes"),
        (3, "list of shapes"),
        ("text", "cannot be read"),
        ('"text"', "list of shapes"),
        ([3], "is no shape"),
        (["M"], "is no shape"),
        ([None], "is no shape"),
        ({"x": 3}, "is no shape"),
        ([{"dtype": "int8"}], "is no shape"),
        ([["Q"]], "is no size"),
        ([[-1]], "is no size"),
        ([[1.5]], "is no size"),
        ([[True]], "is no size"),
        ([[[2]]], "is no size"),
        ([[None]], "is no size"),
        ("[[Infinity]]", "is no size"),
        ([[10**30]], "cannot be read"),
        ([[2**62]], "cannot be read"),
        ([{"shape": [2], "dtype": "float128"}], "no element type"),
        ([{"shape": [2], "dtype": ["int8"]}], "cannot be read"),
        ([{"shape": [2], "dtype": "int8", "high": "x"}], "cannot be read"),
        ([{"shape": [2], "dtype": "int8", "high": 0}], "cannot be read"),
        (raw(file="none.bin"), "cannot be read"),
        (raw(file="../in.bin"), "must be a file beside"),
        (raw(file="/etc/passwd"), "must be a file beside"),
        (raw(file=".."), "must be a file beside"),
        (raw(file=""), "cannot be read"),
        (raw(file="a\0b"), "cannot be read"),
        (raw(tensors=None), "cannot be read"),
        (raw(tensors=[{}]), "cannot be read"),
        (raw(shape=[3]), "needs bytes 0 to 12, and in.bin has 8"),
        (raw(offset=4), "needs bytes 4 to 12"),
        (raw(offset=-4), "needs bytes -4 to 4"),
        (raw(offset="x"), "cannot be read"),
        (raw(shape=[10**20]), "needs bytes"),
        (raw(dtype="object"), "no element type"),
    ],
)
def test_what_is_wrong_with_a_description_is_said(tmp_path: Path, content: Any, said: str) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(8))
    with pytest.raises(InputsError, match=said):
        read_json(tmp_path, content)


@pytest.mark.parametrize("name", ["in.txt", "in", "in.NPZ", "in.npy", "in.bin"])
def test_another_ending_is_refused_with_those_that_are_known(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputsError, match=r"\.npz, \.safetensors, \.pt, \.json or \.py"):
        read_inputs(tmp_path / name, {})


@pytest.mark.parametrize("name", ["in.npz", "in.safetensors", "in.pt", "in.json"])
@pytest.mark.parametrize("content", [b"", b"PK", b"\x93NUMPY", bytes(100), b"\x80\x04N.", None])
def test_a_damaged_or_missing_file_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputsError, match=name):
        read_inputs(tmp_path / name, {})


class Planted:
    """Runs a command when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_no_code_in_a_file_is_run(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    np.savez(tmp_path / "in.npz", a=np.array([Planted(planted)], dtype=object))
    torch.save([Planted(planted)], tmp_path / "in.pt")
    torch.save([Planted(planted)], tmp_path / "in.pth", _use_new_zipfile_serialization=False)
    for name in ("in.npz", "in.pt", "in.pth"):
        with pytest.raises(InputsError):
            read_inputs(tmp_path / name, {})
    assert not planted.exists()


@pytest.mark.parametrize("array", [np.array(["text"]), np.array([1], ">f4"), np.zeros(2, "datetime64[s]")])
def test_arrays_that_are_no_tensors(tmp_path: Path, array: Any) -> None:
    np.savez(tmp_path / "in.npz", a=array)
    with pytest.raises(InputsError):
        read_inputs(tmp_path / "in.npz", {})


def test_a_single_array_is_no_archive(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.save(stream, np.ones(3))
    (tmp_path / "in.npz").write_bytes(stream.getvalue())
    with pytest.raises(InputsError):
        read_inputs(tmp_path / "in.npz", {})


def test_pt_of_something_else(tmp_path: Path) -> None:
    torch.save("text", tmp_path / "in.pt")
    with pytest.raises(InputsError, match="holds a str, not tensors"):
        read_inputs(tmp_path / "in.pt", {})


def archive() -> bytes:
    """A small .npz."""
    stream = io.BytesIO()
    np.savez(stream, a=np.arange(6, dtype="float32").reshape(2, 3), b=np.ones(2))
    return stream.getvalue()


def saved() -> bytes:
    """A small .pt."""
    stream = io.BytesIO()
    torch.save({"a": torch.ones(2, 3)}, stream)
    return stream.getvalue()


WHOLE: dict[str, bytes] = {
    "in.npz": archive(),
    "in.safetensors": save({"a": torch.ones(2, 3), "b": torch.arange(4)}),
    "in.pt": saved(),
    "in.json": json.dumps({"file": "in.bin", "tensors": [{"name": "a", "shape": ["M"], "dtype": "int8"}]}).encode(),
}
Change = Callable[[bytes], bytes]


@st.composite
def damage(draw: st.DrawFn) -> Change:
    """Bytes changed, cut off, put in, or all of them others."""
    kind = draw(st.sampled_from(["change", "cut", "insert", "random"]))
    where, new = draw(st.floats(0, 1)), draw(st.binary(max_size=40))

    def change(data: bytes) -> bytes:
        at = math.floor(where * len(data))
        changes: dict[str, bytes] = {
            "change": data[:at] + new + data[at + len(new) :],
            "cut": data[:at],
            "insert": data[:at] + new + data[at:],
            "random": new,
        }
        return changes[kind]

    return change


@pytest.mark.parametrize("name", list(WHOLE))
@FUZZ
@given(change=damage())
def test_a_changed_file_gives_tensors_or_an_inputs_error(tmp_path: Path, name: str, change: Change) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(16))
    (tmp_path / name).write_bytes(change(WHOLE[name]))
    try:
        found = read_inputs(tmp_path / name, DIMS)
    except InputsError:
        return
    assert isinstance(found, (dict, list, tuple))


@FUZZ
@given(
    content=st.recursive(
        st.none() | st.booleans() | st.integers(-2, 40) | st.floats() | st.sampled_from(["M", "Q", "in.bin", "int8"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["file", "tensors", "name", "shape", "dtype", "offset", "x"]), inner, max_size=4
            )
        ),
        max_leaves=8,
    )
)
def test_any_json_gives_tensors_or_an_inputs_error(tmp_path: Path, content: Any) -> None:
    (tmp_path / "in.bin").write_bytes(bytes(16))
    try:
        found = read_json(tmp_path, content)
    except InputsError:
        return
    tensors = list(found.values()) if isinstance(found, dict) else found
    assert all(isinstance(t, torch.Tensor) for t in tensors)


def test_an_archive_that_lies_about_its_size(tmp_path: Path) -> None:
    """A header that promises more than stands there."""
    stream = io.BytesIO()
    np.save(stream, np.ones(4, "float32"))
    data = stream.getvalue().replace(b"(4,)", b"(9,)")
    with zipfile.ZipFile(tmp_path / "in.npz", "w") as file:
        file.writestr("a.npy", data)
    with pytest.raises(InputsError):
        read_inputs(tmp_path / "in.npz", {})
