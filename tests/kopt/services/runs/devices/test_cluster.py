"""A cluster of four workers on this machine: a killed worker, unlike machines, a dead scheduler, no extra."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbs.common.errors import ConfigurationError, KoptError, UsageError
from kopt.services.runs.devices.cluster import Cluster
from kopt.services.runs.devices.spread import spread
from tests.kopt.services.runs.devices import stub

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """Four processes and a scheduler."""
    import dask
    from distributed import LocalCluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        LocalCluster(
            n_workers=4, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
        ) as made,
    ):
        yield made


@pytest.mark.slow
@pytest.mark.processes
def test_a_killed_worker_loses_nothing_and_unlike_ones_are_left_out(workers: Any, tmp_path: Path) -> None:
    cluster = Cluster(workers.scheduler_address, stub.HERE, stub.answer)
    assert cluster.width == 4
    tasks = [stub.task(us=number) for number in range(1, 20)]
    tasks[5] = stub.task(us=6, kill=tmp_path / "once")
    found = sorted(spread(lambda: cluster.width, cluster.submit, tasks), key=lambda one: one[0])
    assert (tmp_path / "once").exists(), "a worker was killed in the middle of a task"
    assert [(place, one.us) for place, one in found] == [(n - 1, float(n)) for n in range(1, 20)]
    assert cluster.notes == []

    pids = [one.pid for one in workers.workers.values()]
    found = list(spread(lambda: 4, cluster.submit, (stub.task(us=1, driver=pids[0]) for _ in range(12))))
    assert all(one.setting == stub.HERE for _, one in found), "what was measured elsewhere does not count"
    assert all("driver 570.2, not 580.1" in note for note in cluster.notes)

    other = Cluster(workers.scheduler_address, stub.HERE.model_copy(update={"triton": "3.7"}), stub.answer)
    with pytest.raises(KoptError, match=r"triton 3\.6, not 3\.7") as caught:
        list(spread(lambda: 1, other.submit, [stub.task(us=1)]))
    assert caught.value.code == "mixed_hardware"

    deadly = next(spread(lambda: 1, cluster.submit, [stub.task(us=1, deadly=1)]))[1]
    assert deadly.why.startswith("crashed: it ended each worker"), "a value like any other, and the search goes on"

    cluster.patience = 0.0
    workers.close()
    with pytest.raises(KoptError, match="gone") as caught:
        list(spread(lambda: 1, cluster.submit, [stub.task(us=1)]))
    assert caught.value.code == "scheduler_lost"
    assert "kopt run resume" in caught.value.hint
    for one in (cluster, other):
        one.close()


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigurationError, match=r"dask\.distributed") as caught:
        Cluster("tcp://127.0.0.1:1", stub.HERE)
    assert "kopt[cluster]" in caught.value.hint
    with pytest.raises(UsageError) as wrong:
        Cluster("gpu-box:8786", stub.HERE)
    assert wrong.value.code == "scheduler_invalid"
