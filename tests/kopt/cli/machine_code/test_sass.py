"""`kopt sass` as a user types it: what it says, the lines that it cites, and all that can be asked wrongly."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kopt.services.results.machine_code import SassData
from loop.planning.methods import Method, Methods, read_methods
from tests.conftest import Run, page_text
from wiki.library import Wiki, Wikis, bundled_wiki

Kopt = Callable[..., Run]
KERNELS = Path(__file__).parents[3] / "evaluator" / "sass" / "kernels.py"
COPY = "has__vectorized_access__copy: *fp32:16, *fp32:16, 1024"
UNALIGNED = "has__vectorized_access__copy: *fp32, *fp32, 1024"

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")


@needs_triton
def test_the_answer_in_words(kopt: Kopt) -> None:
    done = kopt(
        "sass", str(KERNELS), "--gpu", "h100-sxm", "--signature", COPY, "--method", "vectorized_access,tensor_core"
    )
    assert done.code == 0, done.err
    assert "kernels.py for sm_90a, by types from --signature" in done.out
    assert "has__vectorized_access__copy [BLOCK=1024" in done.out
    assert re.search(
        r"vectorized_access +present 4 \(LDG\.E\.128 2, STG\.E\.128 2\)  <- gpu-wiki/method/\S+:L\d+", done.out
    )
    assert re.search(r"tensor_core +absent  <- gpu-wiki/method/tensor_core\.md:L\d+", done.out)
    assert "async_copy" not in done.out


@needs_triton
def test_every_cited_line_is_the_signature(kopt: Kopt) -> None:
    done = kopt("sass", str(KERNELS), "--gpu", "sm_80", "--signature", COPY, "--json")
    data = SassData.model_validate(done.json["data"])
    (function,) = data.functions
    root = bundled_wiki().root
    verdicts = {verdict.method: verdict for verdict in function.methods}
    assert verdicts["tma_descriptor"].verdict == "unverifiable"
    for verdict in verdicts.values():
        if verdict.citation:
            path, line = verdict.citation.removeprefix("gpu-wiki/").split(":L")
            text = (root / path).read_text("utf-8").splitlines()[int(line) - 1]
            assert text.startswith(f"| {verdict.method} |")
            assert "sm_80" in text


@needs_triton
def test_two_versions_are_compared(kopt: Kopt, tmp_path: Path) -> None:
    narrow = tmp_path / "narrow.py"
    narrow.write_text(KERNELS.read_text("utf-8").replace("tl.load(x + at)", "tl.load(x + at * 2)"), "utf-8")
    words = ("sass", str(KERNELS), "--gpu", "sm_90", "--signature", COPY, "--diff", str(narrow))
    done = kopt(*words)
    assert done.code == 0, done.err
    assert "against narrow.py:" in done.out
    assert "LDG.E: 8 -> 0 (-8)" in done.out or "LDG.E.128:" in done.out
    data = SassData.model_validate(kopt(*words, "--json").json["data"])
    assert data.difference is not None
    (pair,) = data.difference.functions
    assert not pair.same_code
    assert [change.method for change in pair.methods] == ["vectorized_access"]


@needs_triton
def test_the_same_file_twice_has_the_same_code(kopt: Kopt) -> None:
    done = kopt("sass", str(KERNELS), "--gpu", "sm_90", "--signature", COPY, "--diff", str(KERNELS))
    assert "the same opcodes, each as often" in done.out


@needs_triton
def test_what_does_not_compile_is_rejected(kopt: Kopt, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text(KERNELS.read_text("utf-8").replace("tl.load(x + at)", "tl.nothing(x)"), "utf-8")
    words = ("sass", str(broken), "--gpu", "sm_90", "--signature", COPY)
    done = kopt(*words)
    assert done.code == 4
    assert "broken.py does not compile for sm_90a" in done.out
    envelope = kopt(*words, "--json").json
    assert envelope["status"] == "rejected"
    assert envelope["errors"][0]["code"] == "compile_error"
    assert envelope["data"]["compiled"] is False


@pytest.mark.parametrize(
    ("words", "code", "name", "says"),
    [
        (("--gpu", "sm_90", "--method", "tensorcore"), 2, "method_unknown", "tensor_core"),
        (("--gpu", "sm_90", "--method", "setmaxregs,tensor_core"), 2, "method_unknown", "setmaxnreg"),
        (("--gpu", "h999"), 2, "gpu_unknown", "--gpu sm_90"),
        (("--gpu", "mi300x"), 2, "gpu_unknown", "not an NVIDIA GPU"),
        (("--gpu", "sm_90", "--signature", "k"), 2, "signature_invalid", "--signature"),
        (("--gpu", "sm_90", "--dims", "M"), 2, "dims_invalid", "--dims"),
    ],
)
def test_what_can_be_asked_wrongly(kopt: Kopt, words: tuple[str, ...], code: int, name: str, says: str) -> None:
    done = kopt("sass", str(KERNELS), *words, "--json")
    assert done.code == code
    (error,) = done.json["errors"]
    assert error["code"] == name
    assert says in error["message"] + error["hint"]


def test_a_file_that_is_not_there(kopt: Kopt, tmp_path: Path) -> None:
    done = kopt("sass", str(tmp_path / "none.py"), "--gpu", "sm_90", "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (2, "file_not_found")


@pytest.mark.skipif(Path("/dev/nvidiactl").exists(), reason="there is a GPU")
def test_without_a_gpu_a_target_must_be_named(kopt: Kopt) -> None:
    done = kopt("sass", str(KERNELS), "--json")
    assert (done.code, done.json["errors"][0]["code"]) == (6, "no_gpu")
    assert "--gpu sm_90" in done.json["errors"][0]["hint"]


def test_no_disassembler_is_a_matter_of_configuration(kopt: Kopt, tmp_path: Path) -> None:
    """A Python whose triton has no programs, and an empty PATH."""
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").write_text("")
    empty = {"PATH": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{Path(__file__).parents[4]}", "CUDA_HOME": ""}
    done = kopt("sass", str(KERNELS), "--gpu", "sm_90", "--signature", COPY, "--json", env=empty, fresh=True)
    assert (done.code, done.json["errors"][0]["code"]) == (5, "no_disassembler")


def method_page(id: str, opcode: str) -> str:
    head = "| method | targets | opcodes | at least | unclear | source |\n|---|---|---|---|---|---|\n"
    return page_text(f"method/{id}", f"# It\n\n{head}| {id} | sm_90 | `{opcode}` | 1 | | src |")


def test_a_later_wiki_says_how_a_method_shows(tmp_path: Path) -> None:
    (tmp_path / "method").mkdir()
    (tmp_path / "method" / "warp_shuffle.md").write_text(method_page("warp_shuffle", "REDUX"), "utf-8")
    (tmp_path / "method" / "own_one.md").write_text(method_page("own_one", "FFMA"), "utf-8")
    found = read_methods(Wikis([bundled_wiki(), Wiki("team", tmp_path)]))
    assert "own_one" in found.ids
    (row,) = [row for row in found.signatures if row.method == "warp_shuffle"]
    assert [p.text for p in row.opcodes] == ["REDUX"]
    assert row.citation.wiki == "team"


def test_methods_of_the_bundled_wiki() -> None:
    found = read_methods(Wikis([bundled_wiki()]))
    assert set(found.chosen(())) >= {
        *("tensor_core", "vectorized_access", "async_copy", "tma_descriptor", "tma_bulk_copy", "ldmatrix_stmatrix"),
        *("warp_shuffle", "mufu_ex2_softmax", "setmaxnreg", "register_spill"),
    }
    assert found.chosen(("tensor_core", "tensor_core")) == ["tensor_core"]


def test_a_method_without_a_signature_can_be_asked_about() -> None:
    assert Methods((Method("fusion", "Fusion", "w/method/fusion.md"),), ()).chosen(("fusion",)) == ["fusion"]
    assert Methods((Method("fusion", "Fusion", "w/method/fusion.md"),), ()).chosen(()) == []
    with pytest.raises(UsageError, match="no method"):
        Methods((Method("fusion", "Fusion", "w/method/fusion.md"),), ()).chosen(("FUSE",))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_a_cu_file(kopt: Kopt, tmp_path: Path) -> None:
    file = tmp_path / "k.cu"
    file.write_text("__global__ void scale(const float4* x, float4* y) { y[threadIdx.x] = x[threadIdx.x]; }\n", "utf-8")
    done = kopt("sass", str(file), "--gpu", "sm_120", "--method", "vectorized_access", "--json")
    data = SassData.model_validate(done.json["data"])
    assert data.target == "sm_120a"
    assert [f.short_name for f in data.functions] == ["scale"]
    assert data.functions[0].methods[0].text == "present 2"
