"""Names of what a profile counts: every group, every stall, no name twice, and the wiki's rows are about them."""

from __future__ import annotations

import re

from kbs.evidence.vocabulary import vocabulary
from kbs.hardware.profile_metrics import DERIVED, NO_STALLS, STALLS, profile_metrics
from kbs.hardware.thresholds import names_of
from tests.bundled_pages import bundled_pages
from wiki.library import bundled_wiki

GROUPS = {
    "time and clocks", "speed of light", "bytes by level", "hit rates", "bytes per sector", "pipes", "issue",
    "occupancy", "launch", "divergence", "bank conflicts", "local memory", "load imbalance", "atomics", STALLS,
}  # fmt: skip
PER_LINE = ("memory_l1_", "memory_l2_")
"""Metrics of a line of source code, which no summary of a kernel has."""


def test_every_group_is_there() -> None:
    assert set(profile_metrics().groups()) == GROUPS


def test_no_name_of_nsight_compute_has_two_meanings() -> None:
    names = [name for metric in profile_metrics().all.values() for name in metric.ncu]
    assert len(names) == len(set(names))
    for metric in profile_metrics().all.values():
        assert metric.ncu
        assert metric.meaning.endswith(".")
        assert metric.unit in ("us", "B", "B/s", "Hz", "%", "")


def test_a_label_and_a_unit_name_one_metric() -> None:
    for label, metrics in profile_metrics().by_label.items():
        units = [metric.unit for metric in metrics]
        assert len(units) == len(set(units)), label


def test_all_stall_reasons_of_the_wiki_have_a_metric_and_a_symptom() -> None:
    page = (bundled_wiki().root / "profiling" / "warp-stall-reasons.md").read_text("utf-8")
    table = page.split("## What does each stall reason mean")[1].split("## ")[0]
    reasons = [row for row in re.findall(r"(?m)^\| ([a-z_]+) \|", table) if row != "reason"]
    assert len(reasons) == 19
    spelled = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}
    stalls = {f"stall_{spelled.get(reason, reason)}" for reason in reasons}
    assert stalls == {id for id in profile_metrics().all if id.startswith("stall_")}
    read = {name for symptom in vocabulary().symptoms.values() for name in symptom.ncu}
    for id in stalls - set(NO_STALLS):
        assert profile_metrics().all[id].ncu[0] in read, id


def test_names_for_the_same_thing_stand_for_each_other_and_others_do_not() -> None:
    metrics = profile_metrics()
    elapsed = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
    assert "sm__pipe_tensor_cycles_active_v2.avg.pct_of_peak_sustained_elapsed" in metrics.names_for(elapsed)
    assert all("sustained_active" not in name for name in metrics.names_for(elapsed))
    assert all("inst_executed" not in name for name in metrics.names_for(elapsed))
    assert metrics.names_for("no_such.metric") == ("no_such.metric",)


def test_threshold_rows_are_about_metrics_that_have_a_name() -> None:
    rows = [row for page in bundled_pages() for row in page.thresholds]
    assert len(rows) > 60
    for row in rows:
        assert names_of(row), row.metric
        for name in names_of(row):
            assert name in profile_metrics().by_ncu or name in DERIVED or name.startswith(PER_LINE), name
