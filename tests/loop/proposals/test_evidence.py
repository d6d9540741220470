"""What is looked up for a version: the kernel, what bounds it, and what the proposer asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbs.common.errors import KoptError
from kbs.evidence.vocabulary import vocabulary
from loop.proposals.evidence import MANDATORY, after_stall, further, look_up, operation, queries, read, render
from loop.proposals.proposal import Proposal, Query
from loop.tools import DiagnosisNote, Search
from tests.loop.gate.valid import proposal as valid_proposal
from wiki.library import bundled_wiki

TERMS = vocabulary()


class Asked:
    """Remembers what was asked, and finds nothing."""

    def __init__(self) -> None:
        self.said: list[tuple[str, str]] = []

    def search(self, about: str, text: str) -> Search:
        self.said.append((about, text))
        return Search.model_validate({"about": about, "text": text, "hits": (), "degraded": "words alone"})


def note(bottleneck: str) -> DiagnosisNote:
    return DiagnosisNote(
        bottleneck=bottleneck, resource="", dominant_stall="long scoreboard stall", headroom=(), symptoms=(), text="t"
    )


def proposal(*asked: Query) -> Proposal:
    return valid_proposal(bundled_wiki(), 1, 0, evidence={"queries": asked})


@pytest.mark.parametrize("diagnosis", [None, note("unknown"), note("memory-bound")])
def test_kernel_and_bottleneck_are_always_asked_about(diagnosis: DiagnosisNote | None) -> None:
    asked = queries("softmax_v2", ["import triton"], "H200 SXM", diagnosis, TERMS)
    assert set(MANDATORY) - {"experience"} == {about for about, _ in asked}
    assert all(3 <= len(text) <= 400 for _, text in asked)
    assert asked[0][1] == "softmax Triton kernel: how to make it faster on H200 SXM"


def test_the_bottleneck_is_named_where_it_is_known() -> None:
    asked = queries("x", [], "", note("memory-bound"), TERMS)
    assert ("bottleneck", "memory-bound kernel with long scoreboard stall: what to try") in asked


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("softmax_v2", "torch.sum(x)", "softmax"),
        ("kernel", "torch.nn.functional.layer_norm(x, (4,))", "LayerNorm"),
        ("my_thing", "return x", "my thing"),
    ],
)
def test_the_operation_is_found_in_name_or_text(name: str, text: str, wanted: str) -> None:
    assert operation(name, [text], TERMS) == wanted


def test_each_question_is_asked_once() -> None:
    tools = Asked()
    found = look_up(tools, [("kernel", "one"), ("kernel", "one"), ("other", "one")])
    assert tools.said == [("kernel", "one"), ("other", "one")]
    tools.said.clear()
    log = Asked()
    wanted = proposal(
        Query(about="kernel", text="one"),
        *(Query(about="other", text="two"),) * 2,
        Query(about="experience", text="how did it go"),
    )
    asked = further(tools, wanted, found, lambda text: log.search("experience", text))
    assert [one.text for one in asked] == ["two", "how did it go"]
    assert tools.said == [("other", "two")]
    assert log.said == [("experience", "how did it go")], "put to the log, and not to the knowledge base"


def test_after_a_stall_untried_methods_are_asked_about() -> None:
    assert after_stall(("split_k", "b", "c", "d"), "")[0] == ("other", "split k: when does it help")
    assert len(after_stall(("split_k", "b", "c", "d"), "")) == 3


def test_searches_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = look_up(Asked(), [("kernel", "one\u2028 π"), ("other", "two")])
    path = tmp_path / "searches.jsonl"
    assert read(path) == ()
    path.write_bytes(render(found))
    assert read(path) == found
    path.write_bytes(render(found) + b"{}\n")
    with pytest.raises(KoptError, match="line 3"):
        read(path)
