"""What a client over stdio gets: tools with the schemas of `--json`, cited answers, pages, prompts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp.types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from kbs.common.json_model import json_schema
from kopt.cli.schema import printed_type
from kopt.mcp.server import listed, make_server
from kopt.mcp.tool import TOOLS
from tests.conftest import ROOT, Run
from tests.kopt.mcp.client import call, over_stdio, refused, said
from tests.kopt.run_workspace import KERNEL

QUESTIONS = (
    "why is my softmax memory-bound on H100",
    "what is the HBM bandwidth of the H200",
    "how do I avoid shared memory bank conflicts",
    "what is a long scoreboard stall",
    "how much shared memory may a block use on H100",
    "what limits occupancy",
    "when does split-k help",
    "how do I reduce register pressure",
    "what is coalescing",
    "how many registers may a thread have on Hopper",
)


def test_every_tool_gives_what_json_has() -> None:
    tools = {one.name: one for one in listed()}
    assert set(tools) == set(TOOLS)
    assert list(tools)[:5] == ["ask", "search", "show", "spec", "cite"]
    for name, one in tools.items():
        command = TOOLS[name].command
        assert one.description
        assert one.output_schema is not None
        made = json.loads(json.dumps(one.output_schema))
        [data, nothing] = made["properties"]["data"]["anyOf"]
        assert nothing == {"type": "null"}
        wanted = without_texts(json_schema(printed_type(command)))
        if command == "bench":  # which also prints the record of the user's own benchmark, and no tool runs one
            ref = wanted["discriminator"]["mapping"]["measured"].rpartition("/")[2]
            wanted = {**wanted["$defs"][ref], "$defs": wanted["$defs"]}
            assert data == {k: v for k, v in wanted.items() if k != "$defs"}
            continue
        parts = wanted.pop("$defs", {})
        assert data == wanted, name
        assert made.get("$defs", {}) == parts, name


def without_texts(schema: Any) -> Any:
    """A schema without titles and descriptions, which are texts; fields of these names are objects, and stay."""
    if isinstance(schema, list):
        return [without_texts(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    texts = [key for key in ("title", "description") if isinstance(schema.get(key), str)]
    return {key: without_texts(value) for key, value in schema.items() if key not in texts}


def test_the_list_of_tools_is_short_and_fields_keep_their_names() -> None:
    tools = {one.name: one for one in listed()}
    assert len(types.ListToolsResult(tools=[*tools.values()]).model_dump_json(exclude_none=True)) < 110_000
    for one in tools.values():
        assert all("description" in of for of in one.input_schema["properties"].values()), one.name
    assert "title" in (tools["show"].output_schema or {})["$defs"]["ShowData"]["properties"]


def test_a_call_over_http_need_not_list_all_tools_for_the_schema_of_one(tmp_path: Path) -> None:
    look = make_server(tmp_path).get_tool_input_schema
    assert look is not None
    assert {one.name: look(one.name) for one in listed()} == {one.name: one.input_schema for one in listed()}
    assert look("rm") is None


def test_a_tool_says_whether_it_writes() -> None:
    writes = {one.name for one in listed() if one.annotations and not one.annotations.read_only_hint}
    assert writes == {"bench", "run_start", "run_resume", "run_final", "run_submit", "wiki_propose"}


@pytest.mark.processes
@pytest.mark.slow
def test_ten_questions_with_citations_that_hold(home: Path, run: Callable[..., Run]) -> None:
    answers: list[str] = []

    async def talk(client: Client) -> None:
        assert {one.name for one in (await client.list_tools()).tools} == set(TOOLS)
        for question in QUESTIONS:
            made = await call(client, "ask", question=question)
            assert made["status"] == "ok", question
            assert made["data"]["claims"], question
            done = await client.call_tool("ask", {"question": question, "evidence": True})
            answers.append(said(done))
            checked = await call(client, "cite", text=json.dumps(made))
            assert checked["data"]["failed"] == 0, question
            assert checked["data"]["ok"] > 0, question
        astray = await call(client, "ask", question="what is the best pizza in Rome")
        assert astray["status"] == "abstained"
        wrong = await call(client, "cite", text="H100 SXM HBM bandwidth: 9.9 TB/s <- gpu-wiki/hardware/h100-sxm.md:L61")
        assert (wrong["status"], wrong["data"]["failed"]) == ("rejected", 1)

    over_stdio(home, home, talk)
    for answer in answers:
        done = run(home, "cite", "-", "--json", stdin=answer)
        assert done.code == 0, done.out
        assert done.json["data"]["ok"] > 0


@pytest.mark.processes
def test_each_tool_that_reads_says_what_the_command_says(home: Path, run: Callable[..., Run]) -> None:
    files = ROOT / "tests" / "golden" / "contract" / "files"
    cases: list[tuple[str, dict[str, object], list[str]]] = [
        ("spec", {"gpu": ["h100-sxm"], "metric": "hbm_bandwidth"}, ["spec", "h100-sxm", "hbm_bandwidth"]),
        ("spec", {"gpu": ["h100-sxm", "h200-sxm"]}, ["spec", "compare", "h100-sxm", "h200-sxm"]),
        ("spec", {}, ["spec", "--list"]),
        ("search", {"query": "bank conflict", "k": 4}, ["search", "bank conflict", "--k", "4"]),
        ("show", {"reference": "kernel/softmax"}, ["show", "kernel/softmax"]),
        (
            "occupancy",
            {"gpu": "h100-sxm", "regs": 72, "smem": 49152, "threads": 256},
            ["occupancy", "--gpu", "h100-sxm", "--regs", "72", "--smem", "48KB", "--threads", "256"],
        ),
        ("diagnose", {"report": "report.csv"}, ["diagnose", "report.csv"]),
        (
            "roofline",
            {"gpu": "h200", "kernel": "softmax.py", "ref": "softmax_ref.py", "dims": {"M": 64, "N": 128}},
            ["roofline", "--gpu", "h200", "--kernel", "softmax.py", "--ref", "softmax_ref.py", "--dims", "M=64,N=128"],
        ),
        ("log_recommend", {"kernel": "attention"}, ["log", "recommend", "--kernel", "attention"]),
        ("log_search", {"words": "16 bytes"}, ["log", "search", "16 bytes"]),
    ]

    async def talk(client: Client) -> None:
        for tool, arguments, words in cases:
            made = await call(client, tool, **arguments)
            assert made == run(home, *words, "--json", cwd=files).json, tool
        one = {"gpu": "h100-sxm", "metric": "hbm_bandwidth"}  # a text where a list is wanted
        assert await call(client, "spec", **one) == await call(client, "spec", **{**one, "gpu": ["h100-sxm"]})
        sizes = {"gpu": "h200", "ref": "softmax_ref.py"}  # as they are typed in a terminal
        named = await call(client, "roofline", **sizes, dims={"M": 64, "N": 128})
        assert await call(client, "roofline", **sizes, dims="M=64,N=128") == named
        fit = {"gpu": "h100-sxm", "regs": 72, "threads": 256}
        assert await call(client, "occupancy", **fit, smem="48KB") == await call(client, "occupancy", **fit, smem=49152)
        for tool, arguments, words in cases:  # a client may show its model the text alone
            if tool in ("occupancy", "roofline", "log_recommend"):
                done = await client.call_tool(tool, arguments)
                told = said(done).removeprefix("status: abstained\n")
                assert told == run(home, *words, cwd=files).out.strip()
        done = await client.call_tool("search", {"query": "bank conflict", "k": 4})
        assert isinstance(done.structured_content, dict)
        for one in done.structured_content["data"]["passages"]:
            assert one["reference"] in said(done)
            assert one["text"] in said(done)
        done = await client.call_tool("ask", {"question": "why is it slow", "profile": "report.csv"})
        assert run(home, "ask", "why is it slow", "--profile", "report.csv", cwd=files).out.strip() in said(done)

    over_stdio(home, files, talk)


@pytest.mark.processes
def test_pages_and_prompts(home: Path) -> None:
    async def talk(client: Client) -> None:
        known = {str(one.uri) for one in (await client.list_resources()).resources}
        assert "kopt://gpu-wiki/kernel/softmax" in known
        [text] = (await client.read_resource("kopt://gpu-wiki/kernel/softmax")).contents
        assert getattr(text, "text", "") == (ROOT / "wiki" / "pages" / "kernel" / "softmax.md").read_text("utf-8")
        for wrong in (
            "kopt://gpu-wiki/../../README",
            "kopt://gpu-wiki/%2e%2e/reader",
            "file:///etc/passwd",
            "kopt:///",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(wrong)
        names = {one.name for one in (await client.list_prompts()).prompts}
        assert names == {"why_is_my_kernel_slow", "optimize_this_kernel"}
        for name in names:
            [message] = (await client.get_prompt(name, {"kernel": "k.py", "ref": "r.py"})).messages
            assert "k.py" in getattr(message.content, "text", "")
            with pytest.raises(MCPError):
                await client.get_prompt(name, {})

    over_stdio(home, home, talk)


@pytest.mark.processes
def test_errors_have_the_text_of_the_command_line(home: Path, run: Callable[..., Run]) -> None:
    async def talk(client: Client) -> None:
        for tool, arguments, words in (
            ("spec", {"gpu": ["h100-sxm"], "metric": "nonsense"}, ["spec", "h100-sxm", "nonsense"]),
            ("show", {"reference": "kernel/nothing"}, ["show", "kernel/nothing"]),
        ):
            done = await client.call_tool(tool, arguments)
            assert done.is_error
            assert run(home, *words, cwd=home).err == f"error: {said(done)}\n"
            assert done.structured_content == run(home, *words, "--json", cwd=home).json
        for tool, arguments, hint in (  # commands and options by their names here
            ("ask", {"question": " "}, 'Ask, for example, ask "what is a bank conflict".'),
            ("run_status", {}, "Name the folder with run FOLDER, or begin a run with `run_start`."),
            ("run_next", {"run": "nothing"}, None),
        ):
            done = await client.call_tool(tool, arguments)
            assert done.is_error
            assert isinstance(done.structured_content, dict)
            assert hint in (None, done.structured_content["errors"][0]["hint"])
            assert hint is None or said(done).endswith(f"\n{hint}")
            assert "kopt run" not in said(done)
        assert await refused(client, "ask", question="a", nonsense=1) == "arguments_invalid"
        assert await refused(client, "ask") == "arguments_invalid"
        done = await client.call_tool("search", {"q": "a"})
        assert said(done).startswith("search: query is missing; there is no argument q\nIts arguments: query (needed),")
        done = await client.call_tool("occupancy", {"gpu": "h100-sxm", "regs": 72})
        assert said(done) == (
            "threads must be given where there is no kernel\n"
            "Example: occupancy gpu h100-sxm regs 72 smem 48KB threads 256"
        )
        # what is wrong is not that `metric` is left aside, and a hint has no option that is no argument
        assert await refused(client, "spec", metric="hbm_bandwidth") == "gpu_missing"
        (home / "bare.py").write_text(KERNEL, "utf-8")
        done = await client.call_tool("occupancy", {"gpu": "h100-sxm", "kernel": "bare.py"})
        assert said(done).endswith("\nAdd it, or give a file that has it with ref REF.py.")
        assert await refused(client, "occupancy", smem="48 pages") == "value_invalid"
        assert await refused(client, "ask", question="a", dims="M") == "dims_invalid"
        assert await refused(client, "search", query="a", k=10**9) == "arguments_invalid"
        with pytest.raises(MCPError):
            await client.call_tool("rm", {})

    over_stdio(home, home, talk)
