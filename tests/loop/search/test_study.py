"""Which configurations are tried, in which order, and what is kept of them when a process is killed."""

from __future__ import annotations

from pathlib import Path

from loop.search.study import Outcome, Study, ordered, read_config
from loop.search.variant import Config, Variant


def family(**more: object) -> Variant:
    fields: dict[str, object] = {
        "name": "rows", "methods": ("launch_config",), "space": {"block": (64, 128, 256, 512), "num_warps": (4, 8, 16)},
        "render": lambda config: f"kernel {config['block']} {config['num_warps']}",
        "cost": cost, "why": "because",
    }  # fmt: skip
    return Variant(**{**fields, **more})  # type: ignore[arg-type]


def cost(config: Config) -> float:
    if config["block"] == 512 and config["num_warps"] == 16:
        return float("inf")
    return float(config["block"]) / float(config["num_warps"])


def test_the_cheapest_come_first_and_what_cannot_work_never() -> None:
    order = ordered(family())
    assert order[0] == {"block": 64, "num_warps": 16}
    assert len(order) == 11
    assert {"block": 512, "num_warps": 16} not in order
    past = [{"block": 256, "num_warps": 4}, {"block": 512, "num_warps": 16}]
    assert ordered(family(), past)[0] == {"block": 256, "num_warps": 4}
    assert len(ordered(family(), past)) == 11


def test_a_large_space_is_drawn_from(tmp_path: Path) -> None:
    large = family(space={name: tuple(range(10)) for name in "abcdef"}, render=str, cost=lambda config: config["a"])
    order = ordered(large)
    assert 3000 < len(order) <= 4097
    assert order == ordered(large)
    assert len(Study(tmp_path / "s").ask(large, "large", 4)) == 4


def test_every_configuration_is_asked_once_and_the_best_is_found(tmp_path: Path) -> None:
    study, variant = Study(tmp_path / "s"), family()
    asked = list[tuple[object, ...]]()
    while found := study.ask(variant, "rows", 4):
        for one in found:
            asked.append(tuple(one.config.items()))
            us = abs(float(one.config["block"]) - 256) + float(one.config["num_warps"])
            study.tell("rows", one, Outcome(us, "", 2.0))
    assert len(asked) == len(set(asked)) == 11
    assert study.trials("rows") == 11
    assert study.seconds() == 22.0
    us, best = next(study.results("rows", variant))
    assert (us, best.shown) == (4.0, "block=256, num_warps=4")


def test_the_measurements_lead_where_the_model_is_wrong(tmp_path: Path) -> None:
    """Of a space of which a third is measured, the best tenth is found although the model says the opposite."""
    values = tuple(range(12))
    variant = family(space={"a": values, "b": values}, render=str, cost=lambda config: -config["a"] - config["b"])
    study, tried = Study(tmp_path / "s", seed=3), 0
    while tried < 48:
        for one in study.ask(variant, "k", 4):
            tried += 1
            study.tell("k", one, Outcome(10.0 + float(one.config["a"]) + float(one.config["b"]), "", 1.0))
    assert next(study.results("k", variant))[0] <= 14.0


def test_failures_are_values_and_never_the_best(tmp_path: Path) -> None:
    study, variant = Study(tmp_path / "s"), family()
    for one in study.ask(variant, "rows", 4):
        failed = one.config["num_warps"] == 16
        study.tell("rows", one, Outcome(1.0 if failed else 50.0, "incorrect: wrong" if failed else "", 1.0))
    assert study.trials("rows") == 4
    assert all(one.config["num_warps"] != 16 for _, one in study.results("rows", variant))
    again = study.ask(variant, "rows", 11)
    assert len(again) == 7, "what failed is not asked again"


def test_a_killed_process_loses_nothing_that_was_told(tmp_path: Path) -> None:
    variant, path = family(), tmp_path / "below" / "s"
    first = Study(path)
    told, open_ = first.ask(variant, "rows", 2)
    first.tell("rows", told, Outcome(7.0, "", 3.0))
    again = Study(path)
    assert (again.trials("rows"), again.seconds()) == (1, 3.0)
    assert [us for us, _ in again.results("rows", variant)] == [7.0]
    asked = again.ask(variant, "rows", 20)
    assert open_.config in [one.config for one in asked], "what was under way is asked again"
    assert told.config not in [one.config for one in asked]


def test_a_generator_that_changed_has_no_results_of_before(tmp_path: Path) -> None:
    study = Study(tmp_path / "s")
    (one,) = study.ask(family(), "rows", 1)
    study.tell("rows", one, Outcome(7.0, "", 1.0))
    assert list(study.results("rows", family(render=lambda config: f"another {config}"))) == []


def test_configurations_without_a_kernel_are_left_out(tmp_path: Path) -> None:
    def render(config: Config) -> str:
        if config["num_warps"] != 4:
            raise ValueError("too many warps")
        return str(config)

    found = Study(tmp_path / "s").ask(family(render=render), "rows", 20)
    assert len(found) == 4
    assert {one.config["num_warps"] for one in found} == {4}


def test_a_sentence_of_the_log_names_a_configuration() -> None:
    assert read_config("the family `rows`, with block=128, num_warps=8.", family()) == {"block": 128, "num_warps": 8}
    assert read_config("block=128", family()) is None
    assert read_config("block=100, num_warps=8", family()) is None
