"""What a client, or a workspace that a stranger made, must not get: other files, or a broken server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from kbs.common.errors import UsageError
from kopt.mcp.roots import Roots
from tests.kopt.mcp.client import call, over_stdio, refused
from tests.kopt.run_workspace import KERNEL, REFERENCE, workspace

SECRET = "the words of a secret file"


def outside(tmp_path: Path) -> tuple[Path, Path]:
    """(a workspace with links of every kind that lead out of it, a folder beside it)."""
    root, other = workspace(tmp_path / "work"), workspace(tmp_path / "other")
    (other / "secret.py").write_text(f"# {SECRET}\n{KERNEL}", "utf-8")
    (other / "report.csv").write_text(SECRET, "utf-8")
    (root / "link.py").symlink_to(other / "secret.py")
    (root / "far").symlink_to(other, target_is_directory=True)
    (root / "again").symlink_to(root / "far", target_is_directory=True)
    (root / "loop").symlink_to(root / "loop")
    (root / "sub").mkdir()
    (root / "sub" / "up").symlink_to(Path("..") / ".." / "other")
    return root, other


def ways(root: Path, other: Path) -> list[str]:
    """Names of a file outside the root."""
    return [
        str(other / "secret.py"),
        "../other/secret.py",
        "sub/../../other/secret.py",
        "link.py",
        "far/secret.py",
        "again/secret.py",
        "sub/up/secret.py",
        f"{root}/../other/secret.py",
        f"{root}-beside/secret.py",
        "/etc/passwd",
        "/proc/self/environ",
        "~/.ssh/id_rsa\0",
        "loop",
    ]


def test_paths_are_checked_by_where_they_lead(
    tmp_path: Path, built_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(built_home))
    root, other = outside(tmp_path)
    (root / "near.py").symlink_to(root / "kernel.py")
    roots = Roots(root.resolve())
    for given in ways(root, other):
        for check in (roots.file, roots.own):
            with pytest.raises(UsageError) as caught:
                check(given)
            assert caught.value.code in ("outside_roots", "path_invalid"), given
    assert roots.file("near.py") == root / "kernel.py"
    assert roots.file(str(root / "kernel.py")) == root / "kernel.py"
    page = Path(__file__).parents[3] / "wiki" / "pages" / "kernel" / "softmax.md"
    assert roots.file(str(page)) == page
    with pytest.raises(UsageError):
        roots.own(str(page))
    for key in ("receipts/../config.toml", "keys", "seeds", "wikis.json", "experience"):
        with pytest.raises(UsageError):
            roots.file(str(built_home / key))


@pytest.mark.processes
def test_no_tool_opens_a_file_outside(home: Path, tmp_path: Path) -> None:
    root, other = outside(tmp_path)
    ok: dict[str, Any] = {"kernel": "kernel.py", "ref": "ref.py"}
    tools: list[tuple[str, dict[str, Any], list[str]]] = [
        ("ask", {"question": "why is it slow"}, ["kernel", "ref", "profile"]),
        ("ask", {"question": "why is it slow", **ok}, ["inputs"]),
        ("cite", {"text": "x"}, ["profile[]"]),
        ("occupancy", {"gpu": "h100-sxm"}, ["kernel"]),
        ("roofline", {"gpu": "h100-sxm", **ok}, ["kernel", "ref", "inputs", "profile"]),
        ("diagnose", {"report": "report.csv"}, ["report", "kernel", "ref", "inputs"]),
        ("bench", {**ok, "device": "cpu", "plan": "signal"}, ["kernel", "ref", "against", "inputs"]),
        ("run_start", {"device": "cpu"}, ["workspace", "kernel", "ref", "inputs"]),
        ("run_submit", {"run": "x"}, ["kernel"]),
        ("wiki_propose", {}, ["page"]),
    ]

    async def talk(client: Client) -> None:
        for tool, more, names in tools:
            for name in names:
                for given in ways(root, other)[:10]:
                    bare = name.removesuffix("[]")
                    value: Any = [given] if name.endswith("[]") else given
                    done = await client.call_tool(tool, {**more, bare: value})
                    assert done.is_error, (tool, name, given)
                    assert SECRET not in str(done)
                    assert done.structured_content is not None
                    assert done.structured_content["errors"][0]["code"] in ("outside_roots", "workspace_unreadable"), (
                        tool, name, given, done.structured_content["errors"],
                    )  # fmt: skip
        for run in (str(other), "../other", "far", "/", ".."):
            for tool in ("run_status", "run_next"):
                assert await refused(client, tool, run=run) in ("outside_roots", "run_unknown")
        for reference in (
            "/etc/passwd",
            "gpu-wiki/../../../other/secret.py:L1",
            "../other/secret",
            "gpu-wiki//etc/passwd:L1",
        ):
            assert await refused(client, "show", reference=reference) in ("not_found", "evidence_unknown")
        assert await refused(client, "wiki_propose", page="kernel.py", wiki=str(other)) == "outside_roots"
        # `cite` takes a text and opens no file of that name
        read = await call(client, "cite", text=str(other / "secret.py"))
        assert read["data"]["citations"] == []

    over_stdio(home, root, talk)


@pytest.mark.processes
def test_a_workspace_of_links_gives_nothing_away(home: Path, tmp_path: Path) -> None:
    root, other = tmp_path / "trap", tmp_path / "other"
    root.mkdir()
    workspace(other)
    (other / "notes.md").write_text(f"- forbid: cuda_graphs {SECRET}\n", "utf-8")
    (root / "kernel.py").symlink_to(other / "kernel.py")
    (root / "ref.py").symlink_to(other / "ref.py")
    (root / "HINTS.md").symlink_to(other / "notes.md")

    async def talk(client: Client) -> None:
        done = await client.call_tool("run_start", {"device": "cpu"})
        assert done.is_error
        assert SECRET not in str(done)
        assert "leads out of the workspace" in str(done)
        (root / "kernel.py").unlink()
        (root / "kernel.py").write_text(KERNEL, "utf-8")
        (root / "ref.py").unlink()
        (root / "ref.py").write_text(REFERENCE, "utf-8")
        plan = await call(client, "run_start", device="cpu", accept_unmeasured=True)
        assert SECRET not in str(plan)

    over_stdio(home, root, talk)


@pytest.mark.processes
def test_the_server_outlives_nonsense(home: Path, tmp_path: Path) -> None:
    root = workspace(tmp_path / "work")

    async def talk(client: Client) -> None:
        for tool, arguments in (
            ("ask", {"question": "\0\ud7ff" * 50}),
            ("ask", {"question": ["a"]}),
            ("ask", {"question": "a" * 10_000}),
            ("search", {"query": "\"' OR 1=1; --", "kind": ["'; drop table pages; --"]}),
            ("spec", {"gpu": ["\x1b[31m"], "metric": "%s%n"}),
            ("show", {"reference": "%2e%2e/%2e%2e"}),
            ("occupancy", {"gpu": "h100-sxm", "regs": -1, "threads": 10**18}),
            ("run_submit", {"proposal": {"version": {"a": [None] * 100}}, "run": "\0"}),
            ("log_search", {"words": "x", "outcome": ["nonsense"]}),
            ("bench", {"kernel": "ref.py", "device": "cpu", "dims": {"M": 10**30}}),
        ):
            done = await client.call_tool(tool, arguments)
            assert done.structured_content is not None
            assert "internal" not in {one["code"] for one in done.structured_content["errors"]}, (tool, done)
        assert (await call(client, "spec", gpu=["h100-sxm"], metric="hbm_bandwidth"))["status"] == "ok"

    over_stdio(home, root, talk)


def test_the_answer_model_is_not_asked(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`ask` composes from evidence alone, also where the settings name a model that costs money."""
    monkeypatch.setenv("KOPT_HOME", str(home))
    monkeypatch.setenv("KOPT_ANSWER_MODEL", "openai:expensive")
    monkeypatch.setitem(os.environ, "OPENAI_BASE_URL", "http://127.0.0.1:9")
    from kopt.mcp.knowledge import ask
    from kopt.mcp.tool import Call

    done = ask(Call(Roots(tmp_path), lambda *_: None), "what is the HBM bandwidth of the H200")
    assert getattr(done.data, "wording", "") is None
    assert not done.errors
