"""What the proposer `search` writes of a family and its configurations."""

from __future__ import annotations

from loop.proposals.proposal import Proposal
from loop.proposers.reading import Unread
from loop.proposers.search import answer, family_of
from loop.search.study import Candidate
from loop.search.variant import Value, Variant
from loop.tools import FoundPassage, PastMethod, Search
from tests.loop.proposers.requests import past, request

PAGE = "gpu-wiki/method/launch_config.md"


def passage(reference: str, text: str = "# Launch\n\nWarps hide latency.", **more: object) -> FoundPassage:
    return FoundPassage(reference=reference, title="Launch > 8 warps", text=text, score=0.5, **more)  # type: ignore[arg-type]


def candidate(warps: int, methods: tuple[str, ...] = ("launch_config",), **more: Value) -> Candidate:
    config: dict[str, Value] = {"num_warps": warps, **more}
    variant = Variant(
        name="rewrite-warps", methods=methods, space={name: (value,) for name, value in config.items()}, render=str,
        cost=lambda _: 1.0, why="More warps have more loads on their way.",
    )  # fmt: skip
    return Candidate(variant, config, f"kernel[grid](x, num_warps={warps})\n", 0)


def answered(*candidates: Candidate, discipline: str = "single", **more: object) -> Proposal:
    found = answer(
        request(**more), candidates or (candidate(8),), lambda _: [passage(f"{PAGE}:L12-L14@abc")], discipline
    )
    assert isinstance(found, Proposal)
    return found


def test_it_addresses_the_request_and_cites_the_method_s_page() -> None:
    found = answered()
    assert (found.version, found.parent, found.methods) == (2, 0, ("launch_config",))
    assert found.kernel == "kernel[grid](x, num_warps=8)\n"
    assert found.hypothesis.single_change == "the family `rewrite-warps`, with num_warps=8"
    (selected,) = found.evidence.selected
    assert selected.reference == f"{PAGE}:L12-L14@abc"
    assert selected.quote == "# Launch"
    assert [query.text for query in found.evidence.queries] == ["when does this help a kernel: Launch configuration"]
    assert "8" not in found.hypothesis.rationale, "a figure of a title would need a source"


def test_a_passage_of_the_request_comes_before_another_query() -> None:
    searches = (Search(about="kernel", text="how", hits=(passage(f"{PAGE}:L20@def"),), degraded=""),)
    found = answered(searches=searches)
    assert found.evidence.queries == ()
    assert found.evidence.selected[0].reference == f"{PAGE}:L20@def"


def test_other_configurations_are_branches_under_their_own_names() -> None:
    found = answered(
        candidate(8), candidate(4), candidate(16, note="a very long value that does not fit in a name at all")
    )
    assert [branch.name for branch in found.branches] == ["num_warps-4", found.branches[1].name]
    assert len({*found.candidates}) == 3
    assert found.candidates["num_warps-4"].endswith("num_warps=4)\n")


def test_values_that_the_kernel_does_not_have_are_not_stated() -> None:
    assert answered(candidate(8, parts=3)).hypothesis.single_change == "the family `rewrite-warps`, with num_warps=8"


def test_the_discipline_decides_how_many_methods_there_are() -> None:
    several = candidate(8, ("launch_config", "reduction", "vectorized_access", "persistent_kernel"))
    assert answered(several).methods == ("launch_config",)
    assert len(answered(several, discipline="budget").methods) == 3


def test_what_failed_before_needs_other_circumstances() -> None:
    assert answered(history=()).circumstances == ""
    assert "num_warps=8" in answered(history=(past(1),)).circumstances
    known = passage("log/1", past=PastMethod(method="launch_config", advice="known failure"))
    searches = (Search(about="experience", text="past", hits=(known,), degraded=""),)
    found = answered(history=(), searches=searches)
    assert found.circumstances
    assert found.evidence.selected[0].reference.startswith(PAGE), "a failure of the log is no evidence for it"


def test_methods_that_apply_are_skipped_with_a_reason() -> None:
    other = request().methods[0].model_copy(update={"id": "vectorized_access", "tried": ()})
    assert [one.method for one in answered(methods=(*request().methods, other)).skipped] == ["vectorized_access"]


def test_nothing_left_is_said() -> None:
    found = answer(request(), (), lambda _: [], "single")
    assert isinstance(found, Unread)
    assert (found.rule, "was tried" in found.reasons[0]) == ("search-exhausted", True)
    nothing = answer(request(), (), lambda _: [], "single", families=0)
    assert isinstance(nothing, Unread)
    assert "nothing to rewrite" in nothing.reasons[0]


def test_no_passage_no_proposal() -> None:
    found = answer(request(searches=()), (candidate(8),), lambda _: [], "single")
    assert isinstance(found, Unread)
    assert found.rule == "search-evidence"


def test_the_family_of_a_change() -> None:
    assert family_of("the family `rewrite-warps`, with num_warps=8") == "rewrite-warps"
    assert family_of("num_warps from 4 to 8") == ""
