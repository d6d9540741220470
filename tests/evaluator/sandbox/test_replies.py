"""Answers of workers, which foreign code could have written: whatever stands in one, it is an answer or the end."""

from __future__ import annotations

import contextlib
import json
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.correctness.candidate import CandidateError
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.replies import Reply, checked_reply
from evaluator.sandbox.worker_process import WorkerLostError
from kbs.common.errors import KoptError
from tests.evaluator.workers import kernel, reference_process, shaped, specs, values

X = torch.tensor([1.0, 2.0])
RETURNED = {
    "type": "torch.Tensor",
    "exact": True,
    "shape": [2],
    "dtype": "float32",
    "device": "cpu",
    "alias": None,
    "within": None,
}
ERROR = {"type": "ValueError", "message": "no", "traceback": "", "compile": False, "usage": False, "unsupported": ""}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


class _Worker:
    """Remembers why it was ended."""

    killed: tuple[str, str] | None = None

    def kill(self, kind: str, detail: str) -> None:
        """End it."""
        self.killed = (kind, detail)


def test_an_answer_passes_with_every_field_and_no_other() -> None:
    worker: Any = _Worker()
    found = checked_reply(worker, {"ok": True, "nonce": "12", "seconds": 1, "returned": [RETURNED]})
    assert found["returned"] == [{**RETURNED, "stride": None}]
    assert (found["seconds"], found["operators"], found["mutated"], found["error"]) == (1.0, [], [], None)
    assert set(found) == set(Reply.model_fields)


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"ok": 1},
        {"ok": "true"},
        {"ok": False},
        {"ok": False, "error": "no"},
        {"ok": False, "error": {"type": "ValueError"}},
        {"ok": True, "error": ERROR},
        {"ok": True, "seconds": -1},
        {"ok": True, "seconds": math.nan},
        {"ok": True, "seconds": "1"},
        {"ok": True, "seconds": None},
        {"ok": True, "returned": None},
        {"ok": True, "returned": [{}]},
        {"ok": True, "returned": [{**RETURNED, "shape": [-1]}]},
        {"ok": True, "returned": [{**RETURNED, "shape": [2.0]}]},
        {"ok": True, "returned": [{**RETURNED, "type": "\ud800"}]},
        {"ok": True, "operators": [{"name": "aten::mm", "calls": 1, "bytes": -5}]},
        {"ok": True, "operators": [{"name": "aten::mm", "calls": 1}]},
        {"ok": True, "kernels": [{"name": "k", "calls": 1, "microseconds": math.inf}]},
        {"ok": True, "patched": [["x"]]},
        {"ok": True, "threads": True},
        {"ok": True, "weights": [{"name": "w", "shape": None, "dtype": "float32"}]},
        {"ok": True, "runs": [{"code": "0", "text": ""}]},
        {"ok": True, "mutated": [-1]},
        {"ok": True, "tree": []},
    ],
)
def test_what_is_no_answer_ends_the_worker(reply: dict[str, Any]) -> None:
    worker: Any = _Worker()
    with pytest.raises(WorkerLostError) as lost:
        checked_reply(worker, reply)
    assert lost.value.kind == "protocol"
    assert worker.killed == ("protocol", lost.value.detail)


@pytest.mark.slow
@settings(deadline=None)
@given(
    st.fixed_dictionaries(
        {"ok": st.booleans() | JSON}, optional={name: JSON for name in Reply.model_fields if name != "ok"}
    )
    | st.fixed_dictionaries(
        {"ok": st.just(True)},
        optional={"returned": st.lists(st.fixed_dictionaries(dict.fromkeys(RETURNED, JSON)), max_size=2)},
    )
)
def test_any_answer_is_one_or_the_end(reply: dict[str, Any]) -> None:
    worker: Any = _Worker()
    try:
        found = checked_reply(worker, json.loads(json.dumps(reply)))
    except WorkerLostError:
        assert worker.killed
        return
    assert found["seconds"] >= 0
    assert all(isinstance(entry["exact"], bool) for entry in found["returned"])


FORGER = """
import gc, json, socket, sys, torch
def forge(**reply):
    frame = sys._getframe()
    while "message" not in frame.f_locals:
        frame = frame.f_back
    answer = {"nonce": frame.f_locals["message"]["nonce"], **reply}
    for worker in gc.get_objects():
        if type(worker).__name__ == "Worker" and hasattr(worker, "channel"):
            worker.channel.send(json.dumps(answer).encode())
"""


@pytest.mark.parametrize(
    "reply", ["ok=True, seconds='soon'", "ok=False", "ok=True, returned=[{'type': 'x'}]", "answer=42"]
)
def test_a_forged_answer_is_no_error_of_kopts(server: ForkServer, reply: str) -> None:
    text = f"{FORGER}\ndef run(x):\n    forge({reply})\n    return x * 2\n"
    with contextlib.closing(kernel(server, text)) as candidate, pytest.raises(WorkerLostError) as lost:
        candidate.call(values(X), shaped(specs(X), [], []))
    assert lost.value.kind == "protocol"


def test_a_forged_answer_of_the_right_form_changes_nothing_in_memory(server: ForkServer) -> None:
    text = f"{FORGER}\ndef run(x):\n    forge(ok=True, seconds=0.0, returned=[{RETURNED!r}])\n    return x * 2\n"
    with contextlib.closing(kernel(server, text)) as candidate:
        called = candidate.call(values(X), shaped(specs(X), [], []))
        assert called.unwritten == [2]
        with pytest.raises(WorkerLostError):  # its own answer comes where nobody asked for it
            candidate.call(values(X), shaped(specs(X), [], []))


def test_a_forged_answer_of_an_oracle_is_the_references_failure(server: ForkServer) -> None:
    text = f"{FORGER}\ndef reference(x):\n    forge(ok=True, results=[3])\n    return x\n"
    with contextlib.closing(reference_process(server, text)) as made_by, pytest.raises(KoptError) as raised:
        made_by.run(values(X), "native")
    assert raised.value.code == "reference_failed"


def test_half_a_character_in_an_error_is_replaced(server: ForkServer) -> None:
    """No receipt can hold one."""
    text = "def run(x):\n    raise ValueError('\\ud800 and more')\n"
    with contextlib.closing(kernel(server, text)) as candidate, pytest.raises(CandidateError) as raised:
        candidate.call(values(X), shaped(specs(X), [], []))
    assert raised.value.error["message"] == "? and more"
    raised.value.error["traceback"].encode("utf-8")


def test_weights_of_a_type_that_cannot_cross_are_named(server: ForkServer) -> None:
    text = (
        "import torch\nclass Model(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.register_buffer('scale', torch.ones(2).to(torch.float8_e4m3fnuz))\n"
    )
    with (
        contextlib.closing(reference_process(server, text, form="kernelbench", entry="")) as made_by,
        pytest.raises(KoptError) as raised,
    ):
        made_by.build(1)
    assert raised.value.code == "value_unsupported"
    assert "float8_e4m3fnuz" in raised.value.message
