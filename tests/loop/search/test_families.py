"""Which family is proposed: by what was measured, or by the models where nothing is timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from loop.search.families import Families, Measure, one_by_one
from loop.search.study import Outcome, Study, digest
from loop.search.variant import Config, Variant


def family(name: str, base: float, values: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8)) -> Variant:
    return Variant(
        name=name,
        methods=("launch_config",),
        space={"x": values},
        render=lambda config: f"{name} {config['x']}",
        cost=lambda config: base + float(config["x"]),
        why="because",
    )


def families(path: Path, **more: object) -> Families:
    fields: dict[str, object] = {
        "study": Study(path), "generated": [family("slow", 10.0), family("quick", 20.0)],
        "rewritten": [family("rewrite-warps", 30.0)], "parent": "the parent",
    }  # fmt: skip
    return Families(**{**fields, **more})  # type: ignore[arg-type]


def by_time(times: Callable[[str, int], float], seconds: float = 1.0) -> Measure:
    def measure(text: str) -> Outcome:
        name, x = text.rsplit(" ", 1)
        us = times(name, int(x))
        return Outcome(us, "", seconds) if us > 0 else Outcome(None, "compile_error: no", seconds)

    return one_by_one(measure)


def test_without_times_the_models_decide(tmp_path: Path) -> None:
    found = families(tmp_path / "s").chosen(3, (), timed=False)
    assert [one.text for one in found] == ["slow 1", "slow 2", "slow 3"]
    tried = families(tmp_path / "s", tried={"slow"}).chosen(2, (), timed=False)
    assert [one.text for one in tried] == ["quick 1", "quick 2"]
    past = families(tmp_path / "s", past={"rewrite-warps": ["with x=7"]}).chosen(2, (), timed=False)
    assert [one.text for one in past] == ["rewrite-warps 7", "rewrite-warps 1"]


def test_nothing_is_proposed_twice_and_the_end_is_seen(tmp_path: Path) -> None:
    without = set[str]()
    seen = list[str]()
    while found := families(tmp_path / "s").chosen(5, without, timed=False):
        assert len({one.variant.name for one in found}) == 1
        seen += [one.text for one in found]
        without |= {one.hash for one in found}
    assert len(seen) == len(set(seen)) == 24


def test_what_was_measured_decides_over_the_models(tmp_path: Path) -> None:
    here = families(tmp_path / "s")
    here.measured(by_time(lambda name, x: {"slow": 50.0, "quick": 9.0}.get(name, 30.0) + x), 30.0, (), 40.0)
    found = here.chosen(4, (), timed=True)
    assert [one.text for one in found] == ["quick 1", "quick 2", "quick 3", "quick 4"]
    without = {one.hash for one in found}
    assert here.chosen(4, without, timed=True)[0].text.startswith("quick"), "its other configurations come next"


def test_every_family_gets_a_look_and_the_seconds_are_kept(tmp_path: Path) -> None:
    here, seen = families(tmp_path / "s"), list[str]()

    def measure(text: str) -> Outcome:
        seen.append(text)
        return Outcome(10.0, "", 2.0)

    here.measured(one_by_one(measure), 13.0, (), 10.5)
    assert {text.rsplit(" ", 1)[0] for text in seen} == {"slow", "quick", "rewrite-warps"}
    assert len(seen) == 7
    assert here.study.seconds() == 14.0


def test_it_ends_where_nothing_is_gained(tmp_path: Path) -> None:
    here, seen = families(tmp_path / "s"), list[str]()

    def measure(text: str) -> Outcome:
        seen.append(text)
        return Outcome(10.0, "", 0.0)

    here.measured(one_by_one(measure), 1000.0, (), 5.0)
    assert len(seen) <= 24


def test_failures_of_a_whole_family_propose_another(tmp_path: Path) -> None:
    told = list[str]()
    here = families(tmp_path / "s", told=told.append)
    here.measured(by_time(lambda name, _: -1.0 if name == "slow" else 20.0), 60.0, (), 40.0)
    assert here.chosen(1, (), timed=True)[0].variant.name == "quick"
    assert "slow, x=1: compile_error: no" in told


def test_rewrites_are_known_by_their_parent_and_generated_kernels_are_not(tmp_path: Path) -> None:
    here = families(tmp_path / "s")
    here.measured(by_time(lambda _, x: float(x)), 6.0, (), None)
    other = families(tmp_path / "s", parent="another parent")
    keys = [other.study.trials(other.key(one)) for one in (*other.generated, *other.rewritten)]
    assert keys == [2, 2, 0]
    assert other.key(other.rewritten[0]).endswith(digest("another parent")[:12])


def test_a_generator_without_a_working_configuration_is_left_out(tmp_path: Path) -> None:
    none = Variant("none", ("x",), {"x": (1,)}, str, _never, "because")
    assert families(tmp_path / "s", generated=[none]).order[0].name == "rewrite-warps"


def _never(_: Config) -> float:
    return float("inf")


def test_on_several_devices_nothing_is_lost_or_told_twice(tmp_path: Path) -> None:
    here, sent = families(tmp_path / "s", width=3), list[str]()

    def three_at_a_time(texts: Iterable[str]) -> Iterator[tuple[int, Outcome]]:
        """The last one that was begun is done first."""
        begun = list[tuple[int, str]]()
        for place, text in enumerate(texts):
            begun.append((place, text))
            sent.append(text)
            if len(begun) == 3:
                yield begun.pop()[0], Outcome(20.0 - place, "", 1.0)
        while begun:
            yield begun.pop()[0], Outcome(30.0, "", 1.0)

    here.measured(three_at_a_time, 11.0, (), 40.0)
    assert len(sent) == len(set(sent))
    assert sum(here.study.trials(here.key(one)) for one in here.order) == len(sent)
    assert 11 <= len(sent) <= 13, "those under way when the seconds are used up are told too"
    assert here.study.seconds() == len(sent)
    again = families(tmp_path / "s")
    left = [one for variant in again.order for one in again.study.ask(variant, again.key(variant), 100)]
    assert len(left) == 24 - len(sent)
    assert not {one.text for one in left} & set(sent)


def test_a_parent_that_a_whole_kernel_overtook_is_not_rewritten(tmp_path: Path) -> None:
    def looked(quick: float) -> set[str]:
        names = set[str]()

        def times(name: str, x: int) -> float:
            names.add(name)
            return {"slow": 90.0, "quick": quick}.get(name, 30.0) + x

        families(tmp_path / str(quick)).measured(by_time(times), 8.0, (), 40.0)
        return names

    assert looked(20.0) == {"slow", "quick"}
    assert looked(39.0) == {"slow", "quick", "rewrite-warps"}
