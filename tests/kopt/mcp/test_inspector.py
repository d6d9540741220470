"""`kopt mcp` as the MCP inspector sees it, where it is installed: `npm install -g @modelcontextprotocol/inspector`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kopt.mcp.tool import TOOLS
from tests.kopt.mcp.client import environment

INSPECTOR = shutil.which("mcp-inspector")
pytestmark = [
    pytest.mark.processes,
    pytest.mark.slow,
    pytest.mark.skipif(INSPECTOR is None, reason="no mcp-inspector: npm install -g @modelcontextprotocol/inspector"),
]


def inspect(home: Path, method: str, *words: str) -> dict[str, Any]:
    """What the inspector prints for one request."""
    assert INSPECTOR is not None
    command = [INSPECTOR, "--cli", sys.executable, "-m", "kopt", "mcp", "--method", method, *words]
    done = subprocess.run(command, cwd=home, env=environment(home), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(done.stdout)
    assert isinstance(made, dict)
    return made


def test_lists(home: Path) -> None:
    assert {one["name"] for one in inspect(home, "tools/list")["tools"]} == set(TOOLS)
    assert "kopt://gpu-wiki/kernel/softmax" in {one["uri"] for one in inspect(home, "resources/list")["resources"]}
    [template] = inspect(home, "resources/templates/list")["resourceTemplates"]
    assert template["uriTemplate"] == "kopt://{wiki}/{+page}"
    assert len(inspect(home, "prompts/list")["prompts"]) == 2


def test_calls(home: Path) -> None:
    made = inspect(home, "tools/call", "--tool-name", "ask", "--tool-arg", "question=what is a bank conflict")
    assert (made.get("isError", False), made["structuredContent"]["status"]) == (False, "ok")
    made = inspect(home, "tools/call", "--tool-name", "spec", "--tool-arg", "gpu=h100-sxm", "metric=hbm_bandwidth")
    assert "gpu-wiki/hardware/h100-sxm.md:L61" in made["content"][0]["text"]
    made = inspect(home, "tools/call", "--tool-name", "show", "--tool-arg", "reference=/etc/passwd")
    assert (made["isError"], made["structuredContent"]["status"]) == (True, "error")
    [page] = inspect(home, "resources/read", "--uri", "kopt://gpu-wiki/kernel/softmax")["contents"]
    assert page["text"].startswith("---\nid: kernel/softmax\n")
    words = ("--prompt-name", "optimize_this_kernel", "--prompt-args", "kernel=kernel.py")
    assert "kernel.py" in inspect(home, "prompts/get", *words)["messages"][0]["content"]["text"]
