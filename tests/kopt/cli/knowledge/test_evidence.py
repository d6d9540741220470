"""`kopt ask --evidence`: what an agent gets, as text and as JSON, and that it can be cited as it stands."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

SOFTMAX = "why is my softmax memory-bound on H100"


def test_claims_have_ids_lines_and_quotes_that_kopt_cite_accepts(kopt: Callable[..., Any]) -> None:
    done = kopt("ask", SOFTMAX, "--evidence")
    assert done.code == 0
    assert re.search(r"^  c1 \[derived\] Memory-bound: ", done.out, re.MULTILINE)
    assert "    H100 SXM HBM bandwidth: 3.35 TB/s <- gpu-wiki/hardware/h100-sxm.md:L" in done.out
    assert "    > | HBM bandwidth | 3.35 | TB/s |" in done.out
    assert "    = 66.9 TFLOPS / 3.35 TB/s = 20.0 FLOP/byte" in done.out
    for heading in ("Claims", "Not known", "Passages found"):
        assert f"\n{heading}\n" in done.out
    checked = kopt("cite", "-", "--json", stdin=done.out)
    assert (checked.code, checked.json["data"]["failed"]) == (0, 0)
    assert checked.json["data"]["ok"] > 20


def test_of_what_holds_for_every_gpu_the_first_are_told(kopt: Callable[..., Any]) -> None:
    """An agent reads all of it: with no GPU named there are hundreds of claims, and one has hundreds of sources."""
    short, long = (kopt("ask", "why is softmax slow", "--evidence", *more) for more in ((), ("--long",)))
    assert len(short.out) < 40_000 < len(long.out)
    assert re.search(r"^  \d+ more claims of Hardware facts: --long$", short.out, re.MULTILINE)
    assert re.search(r"^    \d+ more steps and \d+ more sources: --long$", short.out, re.MULTILINE)
    assert ": --long" not in long.out
    told = [set(re.findall(r"^  (c\d+) ", done.out, re.MULTILINE)) for done in (short, long)]
    assert told[0] < told[1]
    assert kopt("cite", "-", "--json", stdin=short.out).json["data"]["failed"] == 0


def test_the_json_has_the_same_ids_in_the_order_of_the_claims(kopt: Callable[..., Any]) -> None:
    data = kopt("ask", SOFTMAX, "--evidence", "--json").json["data"]
    pack = data["evidence"]
    assert [one["id"] for one in pack["claims"]] == [f"c{n}" for n in range(1, len(data["claims"]) + 1)]
    for one, claim in zip(pack["claims"], data["claims"], strict=True):
        assert one["kind"] == claim["kind"]
        assert [source["quote"] for source in one["sources"]] == [cited["quote"] for cited in claim["citations"]]
        assert one["derivation"] == [step["shown"] for step in claim["derivation"]]
    assert data["passages"]
    assert kopt("ask", SOFTMAX, "--json").json["data"]["evidence"] is None


@pytest.mark.parametrize(
    ("question", "code", "reason", "unread"),
    [
        ("What is the memory bandwidth of the H150?", 3, "unknown_product", ["H150"]),
        ("why is my javascript slow", 3, "not_understood", ["javascript"]),
        ("H100 PCIe HBM bandwidth in TB/s, flurbgrid", 3, "partial", ["flurbgrid"]),
        ("Does the H100 SXM have 60 MB of L2?", 3, "wrong_premise", []),
    ],
)
def test_exit_codes_stay_and_what_was_not_understood_is_named(
    kopt: Callable[..., Any], question: str, code: int, reason: str, unread: list[str]
) -> None:
    done = kopt("ask", question, "--evidence", "--json")
    data = done.json["data"]
    assert (done.code, data["reason"], data["evidence"]["not_understood"]) == (code, reason, unread)
    text = kopt("ask", question, "--evidence")
    assert text.code == code
    assert all(f"  - {word}\n" in f"{text.out}\n" for word in unread)
    assert (f"State: not answered ({reason})" in text.out) == bool(reason)
