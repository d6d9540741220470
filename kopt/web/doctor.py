"""The page of what works here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from kopt.services.doctor import examine
from kopt.services.results.installation import DoctorData
from kopt.web.desk import Desk


async def page(desk: Desk, request: Request) -> Response:
    """`/doctor`: every check is made anew."""

    def work() -> Mapping[str, Any]:
        settings = desk.settings()
        return {"doctor": DoctorData.of(settings, examine(settings))}

    return await desk.page(request, "doctor.html", work)
