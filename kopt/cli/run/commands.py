"""`kopt run`: gated optimization runs."""

from __future__ import annotations

import typer

from kopt.cli.run.change import apply, extend, mask, stop
from kopt.cli.run.drive import final, gate, next_, resume, submit
from kopt.cli.run.look import list_, report, show, status
from kopt.cli.run.start import plan, start

run = typer.Typer(help="Make a kernel faster in steps that are measured, sourced and gated.", no_args_is_help=True)
run.command("plan")(plan)
run.command("start")(start)
run.command("next")(next_)
run.command("submit")(submit)
run.command("gate")(gate)
run.command("status")(status)
run.command("resume")(resume)
run.command("extend")(extend)
run.command("mask")(mask)
run.command("stop")(stop)
run.command("final")(final)
run.command("apply")(apply)
run.command("report")(report)
run.command("list")(list_)
run.command("show")(show)
