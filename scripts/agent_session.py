"""Lets an agent that has nothing but `kopt mcp` work, and keeps what it said, called and was told.

    python -m scripts.agent_session < docs/examples/agent.jsonl   # play it again, and write docs/examples/agent.md
    python -m scripts.agent_session --root FOLDER --out FILE.md   # type lines, one a call

A line is `{"say": "...", "tool": "ask", "arguments": {...}}`. A line without a tool is something said; `resource` names
a page in place of a tool, and `prompt` a prompt; `files` writes files of the user's, name → text. The client is the
SDK's, over standard input and output.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import CallToolResult, TextContent

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "docs" / "examples"
LINES = 40
"""Lines of a result that the transcript shows; the agent saw all."""


@dataclass
class Step:
    """One line of the session with what came of it."""

    say: str
    called: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    status: str = ""
    told: str = ""
    progress: list[str] = field(default_factory=list)


async def play(root: Path, lines: Iterator[str], *, echo: bool) -> list[Step]:
    """Call what the lines say, on a server that is started in `root`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    server = StdioServerParameters(command=sys.executable, args=["-m", "kopt", "mcp"], env=environment, cwd=str(root))
    steps: list[Step] = []
    async with Client(server) as client:
        for line in lines:
            if not line.strip():
                continue
            step = await _step(client, json.loads(line), root)
            steps.append(step)
            if echo:
                print(f"== {step.status}\n{step.told}\n== end", flush=True)
    return steps


async def _step(client: Client, line: dict[str, Any], root: Path) -> Step:
    step = Step(line.get("say", ""))
    if "tool" in line:
        step.called, step.arguments = line["tool"], line.get("arguments", {})

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            del progress, total
            if message and message not in step.progress:
                step.progress.append(message)

        done = await client.call_tool(step.called, step.arguments, progress_callback=hear)
        step.status = (done.structured_content or {}).get("status", "error")
        step.told = _text(done)
    elif "files" in line:
        step.called, step.arguments = "files", line["files"]
        for name, text in step.arguments.items():
            (root / name).write_text(text, "utf-8")
    elif "resource" in line:
        step.called, step.arguments = "resources/read", {"uri": line["resource"]}
        step.told = "\n".join(
            getattr(one, "text", "") for one in (await client.read_resource(line["resource"])).contents
        )
        step.status = "ok"
    elif "prompt" in line:
        step.called, step.arguments = f"prompts/get {line['prompt']}", line.get("arguments", {})
        found = await client.get_prompt(line["prompt"], step.arguments)
        step.told, step.status = "\n".join(getattr(one.content, "text", "") for one in found.messages), "ok"
    return step


def _text(done: CallToolResult) -> str:
    return "\n".join(one.text for one in done.content if isinstance(one, TextContent))


def written(steps: list[Step], names: dict[str, str]) -> str:
    """The session as Markdown. `names` has what stands for folders of this machine."""
    parts = []
    for number, step in enumerate(steps, 1):
        made = [f"## {number}. `{step.called}`" if step.status else f"## {number}."]
        if step.say:
            made.append(step.say)
        long = {name for name, one in step.arguments.items() if isinstance(one, str) and "\n" in one}
        short = {name: one for name, one in step.arguments.items() if name not in long}
        if short:
            made.append(_fenced(json.dumps(short, ensure_ascii=False, indent=1), "json"))
        made += [f"`{name}`:\n\n" + _fenced(step.arguments[name].rstrip("\n"), "text") for name in sorted(long)]
        if step.progress:
            made.append("Progress: " + "; ".join(f"`{one}`" for one in step.progress[:12]) + ".")
        if step.status:
            shown = _lines(step.told)
            rest = [f"… {len(shown) - LINES} more lines"] if len(shown) > LINES else []
            made.append(f"`{step.status}`:\n\n" + _fenced("\n".join([*shown[:LINES], *rest]), "text"))
        parts.append("\n\n".join(made))
    text = "\n\n".join(parts) + "\n"
    for folder, name in names.items():
        text = text.replace(folder, name)
    return text


def _lines(told: str) -> list[str]:
    try:
        return json.dumps(json.loads(told), ensure_ascii=False, indent=1).splitlines()
    except ValueError:
        return told.splitlines()


def _fenced(text: str, kind: str) -> str:
    fence = "`" * max(3, *(len(one) + 1 for one in re.findall(r"`+", text)), 3)
    return f"{fence}{kind}\n{text}\n{fence}"


def main() -> None:
    """Play, and write the transcript."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--root", type=Path, help="the folder (default: an empty one)")
    parser.add_argument("--out", type=Path, default=EXAMPLES / "agent.md")
    parser.add_argument("--head", type=Path, default=EXAMPLES / "agent.head.md", help="what stands before the calls")
    parser.add_argument("--echo", action="store_true", help="also print what the agent is told")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = options.root or Path(folder) / "kernels"
        root.mkdir(exist_ok=True)
        home = os.environ.get("KOPT_HOME", "")
        steps = anyio.run(lambda: play(root, iter(sys.stdin.readline, ""), echo=options.echo))
        text = written(steps, {str(root.resolve()): "~/kernels", **({home: "~/.kopt"} if home else {})})
    head = options.head.read_text("utf-8") + "\n" if options.head.is_file() else ""
    options.out.write_text(head + text, "utf-8")


if __name__ == "__main__":
    main()
