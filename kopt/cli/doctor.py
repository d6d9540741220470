"""`kopt doctor`: what works here, what does not, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kopt.cli.command import command
from kopt.cli.output import Reply
from kopt.cli.support import print_lines

if TYPE_CHECKING:
    from kopt.services.results.installation import DoctorData


@command("doctor")
def doctor() -> Reply:
    """Check the model, the index, the wikis, the GPU and its tools, and show every setting with its origin.

    Exit code 5 if something that kopt needs is broken. What is merely absent, such as a GPU, is reported only.
    """
    from kbs.common.errors import ExitCode
    from kopt.services.doctor import examine
    from kopt.services.results.installation import DoctorData
    from kopt.services.settings import load_settings

    loaded = load_settings()
    checks = examine(loaded)
    data = DoctorData.of(loaded, checks)
    broken = any(check.status == "error" for check in checks)
    return Reply(data, print_lines(_lines(data)), ExitCode.CONFIGURATION if broken else ExitCode.OK)


def _lines(data: DoctorData) -> Iterator[str]:
    wide = max(len(check.name) for check in data.checks)
    for check in data.checks:
        yield f"{check.status:<8} {check.name:<{wide}} {check.detail}"
        if check.hint and check.status != "ok":
            yield f"{'':<8} {'':<{wide}} {check.hint}"
    yield from ("", f"KOPT_HOME is {data.home}")
    yield from (f"{setting.name:<18} {setting.value!r:<28} {setting.origin}" for setting in data.settings)
