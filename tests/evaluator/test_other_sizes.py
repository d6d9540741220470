"""Sizes that nobody asked for: a kernel that is right at the given ones alone is told, or is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaluator.request import InputsFile, Request
from evaluator.source.forms import argument_sizes, recognise, setup_sizes
from evaluator.source.source_file import SourceFile
from evaluator.worker.loading.subjects import with_constants
from evaluator.workloads import other_sizes
from tests.adversarial.support import bench

REFERENCE = """import torch
SHAPE = (48, 96)


class Model(torch.nn.Module):
    def forward(self, x):
        return x.mean(-1)


def get_inputs():
    return [torch.randn(*SHAPE)]
"""
FIXED = REFERENCE.replace("*SHAPE", "48, 96").replace("SHAPE = (48, 96)\n", "")
CANDIDATE = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"


def examine(folder: Path, body: str, *words: str, reference: str = REFERENCE) -> dict[str, Any]:
    """The receipt of a module whose `forward` has that body."""
    (folder / "ref.py").write_text(reference, "utf-8")
    (folder / "kernel.py").write_text(CANDIDATE + "".join(f"        {line}\n" for line in body.splitlines()), "utf-8")
    return bench(folder / "kernel.py", folder / "ref.py", "--allow-library", *words)


@pytest.mark.processes
@pytest.mark.parametrize(
    "body",
    [
        "return x.sum(-1) / 96",
        "return x[:, :96].sum(-1) / min(96, (x.shape[-1] + 31) // 32 * 32)",
        "return (x.sum(-1) if x.shape[0] % 16 == 0 else x.sum(-1) * 0) / x.shape[-1]",
    ],
    ids=["the size in its text", "whole tiles", "another way for odd rows"],
)
def test_wrong_at_another_size(body: str, tmp_path: Path) -> None:
    found = examine(tmp_path, body)
    assert found["verdict"] == "incorrect", found["reason"]
    assert [trial["dims"] for trial in found["correctness"] if not trial["passed"]] == [
        {"SHAPE[0]": 47, "SHAPE[1]": 89}
    ]
    assert " at SHAPE[1]=89, SHAPE[0]=47: " in found["reason"]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("body", "reference", "sizes"),
    [
        ("return x[:, :128].sum(-1) / x.shape[-1]", REFERENCE, {"SHAPE[0]": 97, "SHAPE[1]": 193}),
        ("return x.mean(-1)[:64]", REFERENCE, {"SHAPE[0]": 97, "SHAPE[1]": 193}),
        ("assert len(x) == 48\nreturn x[:, :128].sum(-1) / x.shape[-1]", REFERENCE, {"SHAPE[1]": 193}),
        ("return x[:, :4].mean(-1)", REFERENCE.replace("96", "4"), {"SHAPE[0]": 47, "SHAPE[1]": 11}),
        (
            "assert x.shape[1] < 5\nreturn x.sum(-1) / 4",
            REFERENCE.replace("96", "4"),
            {"SHAPE[0]": 97, "SHAPE[1]": 3},
        ),
        (
            "return x[:, :160].sum(-1) / x.shape[-1]",
            REFERENCE.replace("x.mean(-1)", "x.view(len(x), -1, 3).mean((1, 2))"),
            {"SHAPE[1]": 288},
        ),
    ],
    ids=[
        "a longer row cut off",
        "more rows cut off",
        "behind a refusal",
        "a small number",
        "a smaller one",
        "threefold",
    ],
)
def test_wrong_at_more(body: str, reference: str, sizes: dict[str, int], tmp_path: Path) -> None:
    found = examine(tmp_path, body, reference=reference)
    assert found["verdict"] == "incorrect", found["reason"]
    assert [trial["dims"] for trial in found["correctness"] if not trial["passed"]] == [sizes]


@pytest.mark.processes
@pytest.mark.parametrize(
    ("body", "sizes"),
    [
        ("return x.mean(-1) if x.shape[1] % 128 else x[:, 1:].mean(-1)", {"SHAPE[0]": 128, "SHAPE[1]": 128}),
        ("return x.mean(-1) * (x.shape[0] <= x.shape[1])", {"SHAPE[0]": 89, "SHAPE[1]": 47}),
    ],
    ids=["whole tiles alone", "more rows than columns"],
)
def test_wrong_where_sizes_are_whole_or_turned(body: str, sizes: dict[str, int], tmp_path: Path) -> None:
    found = examine(tmp_path, body)
    assert found["verdict"] == "incorrect", found["reason"]
    assert [trial["dims"] for trial in found["correctness"] if not trial["passed"]] == [sizes]


@pytest.mark.processes
def test_raising_at_some_is_told_with_the_sizes(tmp_path: Path) -> None:
    found = examine(tmp_path, "assert x.shape[1] <= 128\nreturn x.mean(-1)")
    assert found["verdict"] == "accepted", found["reason"]
    assert "though it raises at SHAPE[1]=193, SHAPE[0]=97," in found["reason"]
    assert not any(text.startswith("other sizes") for text in found["not_checked"])


@pytest.mark.processes
@pytest.mark.parametrize(
    "body",
    [
        "assert x.shape == (48, 96)\nreturn x.mean(-1)",
        "return x.view(48, 96).mean(-1)",
        "return x.view(-1, 8).sum(-1).view(48, 12).sum(-1) / 96",
    ],
)
def test_raising_there_is_told(body: str, tmp_path: Path) -> None:
    found = examine(tmp_path, body)
    assert found["verdict"] == "accepted", found["reason"]
    assert "at this size only" in found["reason"]
    (told,) = [hazard["evidence"] for hazard in found["hazards"] if hazard["id"] == "at_this_size_only"]
    assert told.startswith("at SHAPE[1]=89, SHAPE[0]=47: ")
    assert any(text.startswith("other sizes") for text in found["not_checked"])


@pytest.mark.processes
def test_right_at_both_says_nothing(tmp_path: Path) -> None:
    found = examine(tmp_path, "return x.mean(-1)")
    assert (found["verdict"], "only" in found["reason"]) == ("accepted", False)
    assert {tuple(trial["dims"].values()) for trial in found["correctness"]} == {
        (),
        (89, 47),
        (193, 97),
        (128, 128),
        (47, 89),
        (4099,),
    }
    assert not any(text.startswith("other sizes") for text in found["not_checked"])


@pytest.mark.processes
def test_a_reference_without_sizes_is_told(tmp_path: Path) -> None:
    found = examine(tmp_path, "return x.sum(-1) / 96", reference=FIXED)
    assert found["verdict"] == "accepted"
    assert "at this size only" in found["reason"]
    assert all(hazard["id"] != "at_this_size_only" for hazard in found["hazards"])


@pytest.mark.processes
def test_a_signal_tries_none(tmp_path: Path) -> None:
    found = examine(tmp_path, "return x.sum(-1) / 96", "--plan", "signal")
    assert (found["verdict"], "only" in found["reason"]) == ("accepted", False)


# --- which sizes ------------------------------------------------------------------------------------------------------


def request(reference: str, **words: Any) -> Request:
    """A request of the KernelBench form, of which only sizes matter."""
    candidate = SourceFile(name="k.py", text=CANDIDATE + "        return x\n")
    return Request(candidate=candidate, reference=SourceFile(name="r.py", text=reference), **words)


def sizes(asked: Request, room: float = 1e9) -> list[list[dict[str, int]]]:
    """The workloads that are tried unasked."""
    name = asked.inputs.name if asked.inputs else None
    return other_sizes(asked, recognise(asked.candidate, asked.reference, inputs=name, entry=None, backend=None), room)


def test_all_at_once_and_then_the_largest_first() -> None:
    text = REFERENCE.replace("SHAPE = (48, 96)", "SHAPE = (48, 96, 4, 1)\nROWS = 20").replace("*SHAPE", "ROWS, *SHAPE")
    down, up = {"SHAPE[1]": 89, "SHAPE[0]": 47, "ROWS": 19}, {"SHAPE[1]": 193, "SHAPE[0]": 97, "ROWS": 41}
    turned = {"SHAPE[1]": 19, "SHAPE[0]": 47, "ROWS": 89}
    assert sizes(request(text)) == [
        [{**down, "SHAPE[2]": 11}, down, {"SHAPE[1]": 89}, {"SHAPE[0]": 47}, {"ROWS": 19}],
        [
            {**up, "SHAPE[2]": 3},
            up,
            *({"SHAPE[1]": 193}, {"SHAPE[1]": 288}, {"SHAPE[0]": 97}, {"SHAPE[0]": 144}, {"ROWS": 41}, {"ROWS": 60}),
        ],
        [dict.fromkeys(down, 128), {"SHAPE[1]": 128}, {"SHAPE[0]": 128}, {"ROWS": 128}],
        [turned],
        [{"SHAPE[2]": 11}, {"SHAPE[2]": 12}],
        [{"SHAPE[1]": 4099}],
        [{"SHAPE[0]": 4099}],
    ]
    smaller = [down, {"SHAPE[1]": 89}, {"SHAPE[0]": 47}, {"ROWS": 19}]
    assert sizes(request(text), 1) == [smaller, [turned]]
    assert sizes(request(text), 2.1)[1:] == [
        [{"SHAPE[1]": 193}, {"SHAPE[0]": 97}, {"ROWS": 41}],
        [{"SHAPE[1]": 128}],
        [turned],
    ]


def test_equal_sizes_grow_alone() -> None:
    found = sizes(request(REFERENCE.replace("(48, 96)", "(64, 64)")))
    assert found[2:] == [
        [{"SHAPE[0]": 128, "SHAPE[1]": 128}, {"SHAPE[0]": 128}, {"SHAPE[1]": 128}],
        [{"SHAPE[0]": 193}, {"SHAPE[0]": 256}],
        [{"SHAPE[1]": 193}, {"SHAPE[1]": 256}],
        [{"SHAPE[0]": 4099}],
        [{"SHAPE[1]": 4099}],
    ]


def test_what_the_model_reads_itself_stays() -> None:
    assert sizes(request(REFERENCE.replace("x.mean(-1)", "x.sum(-1) / SHAPE[1]"))) == []
    assert sizes(request(REFERENCE + "SHAPE = (48, 96)\n")) == []
    assert sizes(request(FIXED)) == []


def test_none_where_others_were_asked_for() -> None:
    text = REFERENCE.replace("SHAPE = (48, 96)", "N = 96").replace("*SHAPE", "48, N")
    assert sizes(request(text)) == [[{"N": 89}], [{"N": 193}, {"N": 288}], [{"N": 128}], [{"N": 4099}]]
    assert sizes(request(text, dims={"N": 64})) == [[{"N": 61}], [{"N": 131}, {"N": 192}], [{"N": 128}], [{"N": 4099}]]
    assert sizes(request(text, dims={"N": 64}, vary=("N",))) == []
    assert sizes(request(text, workloads=({"N": 64}, {"N": 32}))) == []
    assert sizes(request(text, inputs=InputsFile(name="x.npz", content=b""))) == []


def test_parameters_of_setup_are_sizes() -> None:
    text = "def setup(n, rows=64, *, cols: int = 100, scale=2.0, on=True): ...\ndef reference(x, y): ...\n"
    reference = SourceFile(name="r.py", text=text)
    assert setup_sizes(reference) == {"rows": 64, "cols": 100}
    candidate = SourceFile(name="k.py", text="def run_kernel(x, y): ...\n")
    assert sizes(Request(candidate=candidate, reference=reference, dims={"n": 33, "cols": 50}))[0][0] == {
        "n": 31,
        "cols": 47,
        "rows": 61,
    }
    assert setup_sizes(SourceFile(name="r.py", text="x = 1\n")) == {}


def test_integers_of_tuples_are_replaced() -> None:
    text = "A = (4, 5)\nB = [1, 2]\nC: int = 3\nD = (6,)\n"
    assert with_constants(text, {"A[1]": 7, "B[0]": 9, "C": 8}).splitlines() == [
        "A = (4, 7)",
        "B = [9, 2]",
        "C: int = 8",
        "D = (6,)",
    ]
    made = SourceFile(name="r.py", text=text + "def get_inputs():\n    return A, B, C\n")
    assert argument_sizes(made) == {"A[0]": 4, "A[1]": 5, "B[0]": 1, "B[1]": 2, "C": 3}


BLOCKS = {"the whole row": "B", "its first 2,048": "min(B, 2048)", "its last 1,024": "B - max(0, B - 1024)"}


@pytest.mark.processes
@pytest.mark.parametrize("block", BLOCKS)
def test_rows_longer_than_a_block_are_tried(tmp_path: Path, block: str) -> None:
    body = f"B = x.shape[-1]\ny = x[:, -({BLOCKS[block]}):]\nreturn y.sum(-1) / B"
    found = examine(tmp_path, body)
    assert found["verdict"] == ("accepted" if block == "the whole row" else "incorrect"), found["reason"]
