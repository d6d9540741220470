"""What is kept of questions, for how long, and what becomes of a file that is damaged or cannot be written."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import pytest

from kbs.evidence.vocabulary import vocabulary
from kbs.questions.forms import Form
from kbs.questions.question import understand
from kopt.services.knowledge import follow_up
from kopt.services.knowledge.follow_up import FILE, Earlier, recall, remember

FIRST = Earlier(text="why is my softmax slow on H100 SXM", gpus=("h100-sxm",), dtype="fp16", dims={"M": 8})
HERE = Path("/work")


def test_a_question_is_kept_for_its_folder_with_its_options(tmp_path: Path) -> None:
    remember(tmp_path, HERE, (), FIRST)
    remember(tmp_path, Path("/elsewhere"), (), Earlier(text="other"))
    assert recall(tmp_path, HERE) == (FIRST,)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    second = Earlier(text="and on A100?")
    remember(tmp_path, HERE, recall(tmp_path, HERE), second)
    assert recall(tmp_path, HERE) == (FIRST, second)
    assert recall(tmp_path, tmp_path) == ()


@pytest.mark.parametrize(("age", "kept"), [(3600, True), (24 * 3600 - 60, True), (24 * 3600 + 60, False), (-60, False)])
def test_it_is_kept_for_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: float, kept: bool) -> None:
    remember(tmp_path, HERE, (), FIRST)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + age)
    assert bool(recall(tmp_path, HERE)) == kept


def test_what_is_kept_is_bounded(tmp_path: Path) -> None:
    for n in range(30):
        remember(tmp_path, Path(f"/folder-{n}"), (FIRST,) * n, FIRST)
    folders = json.loads((tmp_path / FILE).read_bytes())["folders"]
    assert len(folders) == 20
    assert "/folder-29" in folders
    assert max(len(one["chain"]) for one in folders.values()) == 6


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"folders": {"/work": {}}}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_file_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert recall(tmp_path, HERE) == ()
    remember(tmp_path, HERE, (), FIRST)
    assert recall(tmp_path, HERE) == (FIRST,)


def test_a_home_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    remember(tmp_path / "missing", HERE, (), FIRST)
    assert recall(tmp_path / "missing", HERE) == ()


def test_a_chain_is_read_from_its_beginning() -> None:
    chain = (FIRST, Earlier(text="and for layernorm?"), Earlier(text="and on H200?", dtype="bf16"))
    question, taken = follow_up.read("how fast can it be at 4096x8192?", vocabulary(), chain)
    assert (question.operation, question.products, question.dtype) == ("layernorm", ("h200-sxm",), "bf16")
    assert dict(question.dims) == {"M": 4096, "N": 8192}
    assert question.form is Form.CALCULATION
    assert taken == ["GPU h200-sxm", "operation layernorm", "dtype bf16"]


@pytest.mark.parametrize(
    ("text", "like_one"),
    [
        ("and on A100?", True),
        ("What about TMA", True),
        ("how about bf16?", True),
        ("why?", True),
        ("how much is it", True),
        ("why is my softmax slow", False),
        ("androgynous numbers", False),
        ("what is the best pizza in Naples?", False),
        ("H999", False),
    ],
)
def test_what_reads_like_a_follow_up(text: str, like_one: bool) -> None:
    question = understand(text, vocabulary())
    assert follow_up.reads_like_one(question, vocabulary()) == like_one
    hint = follow_up.hint(question, vocabulary(), (FIRST,), abstained=False)
    assert bool(hint) == like_one
    assert all("--continue" in one and FIRST.text in one for one in hint)
