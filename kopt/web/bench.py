"""Pages of receipts: which there are, and all that one says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from evaluator.receipt.timing import Ratio, Timed, WorkloadTiming
from kopt.services.viewing.receipts import find_anywhere, kept_receipts
from kopt.web.desk import Desk
from kopt.web.drawing.samples import samples

MOST = 200
"""Receipts that are listed, the newest first."""


async def overview(desk: Desk, request: Request) -> Response:
    """`/bench`"""

    def work() -> Mapping[str, Any]:
        found, total = kept_receipts(desk.settings().home, MOST)
        return {"receipts": found, "total": total}

    return await desk.page(request, "bench.html", work)


async def receipt(desk: Desk, request: Request) -> Response:
    """`/bench/{id}`: one that is kept, or that a known run holds."""
    id = request.path_params["id"]

    def work() -> Mapping[str, Any]:
        shown = find_anywhere(desk.settings().home, id, desk.known_runs().all.values())
        timing = getattr(shown.receipt, "timing", None)
        return {
            "shown": shown,
            "receipt": shown.receipt,
            "pictures": samples(timing) if timing else [],
            "rows_of": _rows_of,
        }

    return await desk.page(request, "receipt.html", work)


def _rows_of(workload: WorkloadTiming) -> list[tuple[Timed, Ratio | None]]:
    """The kernels of a workload, each with its time over the candidate's."""
    return [(workload.candidate, None), *((one.timed, one.ratio) for one in workload.baselines.values())]
