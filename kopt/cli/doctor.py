"""`kopt doctor`: what works here, what does not, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kopt.cli.output import DebugFlag, JsonFlag, Reply, deliver

if TYPE_CHECKING:
    from rich.console import Console


def doctor(json: JsonFlag = False, debug: DebugFlag = False) -> None:
    """Check the model, the index, the wikis, the GPU and its tools, and show every setting with its origin.

    Exit code 5 if something that kopt needs is broken; what is merely absent, such as a GPU, is told.
    """

    def work() -> Reply:
        from kbs.common.errors import ExitCode
        from kopt.services.doctor import examine
        from kopt.services.results.installation import DoctorData, SettingData
        from kopt.services.settings import load_settings

        loaded = load_settings()
        checks = examine(loaded)
        settings = [
            SettingData(name=name, value=value, origin=loaded.origins[name])
            for name, value in loaded.values.model_dump(mode="json").items()
        ]

        def show(console: Console) -> None:
            for check in checks:
                console.print(f"{check.status:<8} {check.name:<18} {check.detail}", markup=False)
                if check.hint and check.status != "ok":
                    console.print(f"{'':<27} {check.hint}", markup=False)
            console.print(f"\nKOPT_HOME is {loaded.home}", markup=False)
            for setting in settings:
                console.print(f"{setting.name:<18} {setting.value!r:<28} {setting.origin}", markup=False)

        broken = any(check.status == "error" for check in checks)
        data = DoctorData(home=str(loaded.home), checks=list(checks), settings=settings)
        return Reply(data, show, ExitCode.CONFIGURATION if broken else ExitCode.OK)

    deliver("doctor", json, debug, work)
