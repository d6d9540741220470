"""A whole run of three iterations on the CPU by an agent that has nothing but the MCP server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from tests.conftest import Run
from tests.kopt.mcp.client import call, over_http, over_stdio, refused, said, served
from tests.kopt.run_workspace import KERNEL, WRONG, answer, workspace

pytestmark = [pytest.mark.processes, pytest.mark.slow]
BEGIN = {"device": "cpu", "accept_unmeasured": True}


def test_three_iterations_by_mcp_alone(home: Path, tmp_path: Path, run: Callable[..., Run]) -> None:
    root = workspace(tmp_path / "work")
    told: list[tuple[float, str]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        told.append((progress, message or ""))

    async def talk(client: Client) -> None:
        transcript: list[dict[str, Any]] = []

        async def do(tool: str, **arguments: Any) -> dict[str, Any]:
            made = await call(client, tool, **arguments)
            transcript.append({"tool": tool, "arguments": arguments, "status": made["status"]})
            return made

        plan = await do("run_start", **BEGIN, iterations=3)
        assert plan["data"]["run"] is None
        assert not (root / "runs").exists()
        done = await client.call_tool("run_start", {**BEGIN, "accept": True}, progress_callback=hear)
        assert not done.is_error
        assert done.structured_content is not None
        begun = done.structured_content["data"]["run"]
        assert begun["phase"] == "propose"
        assert [number for number, _ in told] == sorted(number for number, _ in told)
        assert any("v0" in words for _, words in told), told

        # a refusal runs nothing; a wrong kernel is an attempt
        request = (await do("run_next"))["data"]["request"]
        said = await do("run_submit", proposal=answer(request, methods=["more_warps"]))
        assert (said["status"], said["data"]["outcome"]) == ("rejected", "refused")
        assert "unknown-method" in {one["rule"] for one in said["data"]["broken"]}
        request = (await do("run_next"))["data"]["request"]
        spoilt = answer(request, kernel=WRONG.replace("num_warps=1", "num_warps=8"), methods=["kernel_fusion"])
        said = await do("run_submit", proposal=spoilt)
        assert said["data"]["outcome"] == "attempt_failed"

        # the first version in few words, after a look at what the gate says; then whole proposals
        request = (await do("run_next"))["data"]["request"]
        made = answer(request)
        (root / "next.py").write_text(made["kernel"], "utf-8")
        evidence = made["evidence"]["selected"][0]
        typed = {
            "kernel": "next.py",
            "method": made["methods"],
            "why": made["hypothesis"]["rationale"],
            "change": made["hypothesis"]["single_change"],
            "evidence": [f'"{evidence["quote"]}" <- {evidence["reference"]}'],
            "expect": ["time down: a little"],
            "skip": [f"{one['method']}={one['reason']}" for one in made["skipped"]],
            "ask": [made["evidence"]["queries"][0]["text"]],
        }
        shown = await do("run_submit", **typed, show=True)
        assert shown["data"]["outcome"] == "shown", shown["data"]["broken"]
        assert (await do("run_submit", **typed))["data"]["outcome"] == "passed"
        for number in (2, 3):
            request = (await do("run_next"))["data"]["request"]
            made = answer(request)
            again = {**typed, "kernel": "", "source": made["kernel"], "change": made["hypothesis"]["single_change"]}
            again["why"] = made["hypothesis"]["rationale"]
            said = await do("run_submit", **(again if number == 2 else {"proposal": made}))
            assert (said["data"]["version"], said["data"]["outcome"]) == (number, "passed")
        assert (await do("run_next"))["status"] == "abstained"
        status = await do("run_status")
        assert status["data"]["phase"] == "finished"
        assert await refused(client, "run_submit", proposal=answer(request)) == "not_awaited"
        learned = await do("log_search", words="number of warps", limit=20)
        assert {one["experiment"]["run"] for one in learned["data"]["entries"]} == {begun["run"]}
        (tmp_path / "transcript.json").write_text(json.dumps(transcript, indent=1), "utf-8")

    over_stdio(home, root, talk)
    lines = json.loads((tmp_path / "transcript.json").read_text("utf-8"))
    assert [one["tool"] for one in lines].count("run_submit") == 6
    # the command line agrees with what the agent was told, and the gate with the whole run
    assert run(home, "run", "status", "--json", cwd=root).json["data"]["phase"] == "finished"
    assert run(home, "run", "gate", "--final", cwd=root).code == 0
    assert run(home, "run", "verify", cwd=root).code == 0
    assert (root / "runs" / "kernel-001" / "final_report.md").is_file()


def test_a_run_goes_on_after_its_server_was_killed(home: Path, tmp_path: Path, run: Callable[..., Run]) -> None:
    """What an agent without a terminal does when the server dies in the middle of a hand-in: resume, end, report."""
    root = workspace(tmp_path / "work")
    typed = {"source": KERNEL.replace("num_warps=1", "num_warps=2"), "method": "launch_config", "why": "More warps."}

    async def hand_in(address: str, server: subprocess.Popen[str]) -> None:
        async def kill(progress: float, total: float | None, message: str | None) -> None:
            del progress, total
            if "checking" in (message or ""):
                server.kill()

        async with over_http(address) as client:
            await call(client, "run_start", **BEGIN, iterations=3, accept=True)
            with pytest.raises(MCPError):
                await client.call_tool("run_submit", typed, progress_callback=kill)

    async def go_on(address: str) -> None:
        async with over_http(address) as client:
            stopped = await call(client, "run_next")
            assert stopped["status"] == "abstained"
            done = await client.call_tool("run_submit", typed)
            assert said(done).endswith("`run_resume` continues.")
            went_on = await call(client, "run_resume")
            assert (went_on["status"], went_on["data"]["phase"]) == ("ok", "propose")
            assert (await call(client, "run_resume"))["status"] == "abstained"
            early = await client.call_tool("run_report", {})
            assert "warning: the run has no final report" in said(early)
            ended = await call(client, "run_final", why="one change was enough")
            assert ended["data"]["phase"] == "finished"
            assert (await call(client, "run_final"))["status"] == "abstained"
            report = said(await client.call_tool("run_report", {}))
            assert "one change was enough" in report
            assert report == (root / "runs/kernel-001/final_report.md").read_text("utf-8").rstrip()

    with served(home, root) as server:
        anyio.run(hand_in, server.address, server.process)
    with served(home, root) as server:
        anyio.run(go_on, server.address)
    assert run(home, "run", "gate", "--final", cwd=root).code == 0


def test_a_kernel_is_checked_and_the_receipt_read_again(home: Path, tmp_path: Path, run: Callable[..., Run]) -> None:
    root = workspace(tmp_path / "work")
    (root / "wrong.py").write_text(WRONG, "utf-8")

    async def talk(client: Client) -> None:
        made = await call(client, "bench", kernel="kernel.py", ref="ref.py", device="cpu", plan="signal")
        assert (made["status"], made["data"]["verdict"]) == ("ok", "accepted")
        assert run(home, "bench", "verify", made["data"]["receipt"]).code == 0
        bad = await call(client, "bench", kernel="wrong.py", ref="ref.py", device="cpu", plan="signal")
        assert (bad["status"], bad["data"]["verdict"]) == ("rejected", "incorrect")
        assert await refused(client, "bench", kernel="nothing.py", device="cpu") == "file_not_found"
        assert await refused(client, "bench", kernel="kernel.py", device="tpu") == "device_unknown"

    over_stdio(home, root, talk)
