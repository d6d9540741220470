"""A page, a workspace or a text that a stranger made runs nothing, reads no other file, and costs nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kopt
from tests.kopt.python.test_display import TAGS, Seen

SECRET = "the words of a secret file"
EVIL = '<img src=x onerror="alert(1)"> $\\href{javascript:alert(1)}{x}$ [a](javascript:alert(1))'


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    kopt.close()


@pytest.mark.slow
def test_a_hostile_page_and_workspace(
    home: Path, tmp_path: Path, page: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text(page("technique/secret", f"Zorkulation: {SECRET}.[^src]\n\n[^src]: src"), "utf-8")
    workspace, mine = tmp_path / "work", tmp_path / "mine"
    for wiki in (workspace / "theirs", mine):
        (wiki / "technique").mkdir(parents=True)
        body = f"Zorkulation of warps {EVIL}.[^src]\n\n[^src]: src"
        (wiki / "technique" / "evil.md").write_text(page("technique/evil", body, title="Zorkulation"), "utf-8")
        (wiki / "technique" / "link.md").symlink_to(secret)
    (workspace / "kopt.toml").write_text('wikis = ["theirs"]\n', "utf-8")
    for name in ("numpy", "chromadb", "torch", "kbs", "sitecustomize"):
        (workspace / f"{name}.py").write_text("raise SystemExit('the workspace ran')\n", "utf-8")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("KOPT_ANSWER_MODEL", "openai:costly")
    monkeypatch.setenv("KOPT_MODEL", "openai:costly")
    opened: list[str] = []
    watching = [True]

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and event in ("subprocess.Popen", "os.system", "os.exec", "socket.connect"):
            opened.append(f"{event} {arguments}")
        elif watching and event == "open" and str(arguments[0]) == str(secret):
            opened.append(f"open {arguments[0]}")

    sys.addaudithook(watch)
    try:
        untrusted = kopt.search("zorkulation of warps", k=3, home=home)
        assert "onerror" not in str(untrusted)
        assert any("not used" in one and "trust" in one for one in untrusted.warnings)
        for result in (
            kopt.search("zorkulation of warps", k=3, home=home, wikis=[mine]),
            kopt.ask("what is zorkulation", home=home, wikis=[mine]),
            kopt.ask(EVIL, home=home, wikis=[mine]),
            kopt.cite(f'"{EVIL}" <- mine/technique/evil.md:L1 {secret}', home=home, wikis=[mine]),
            kopt.cite(str(secret), home=home),
            kopt.ask(str(secret), home=home),
        ):
            seen = Seen(result._repr_html_())
            assert set(seen.tags) <= TAGS
            assert seen.attributes == [("class", "kopt mathjax_ignore tex2jax_ignore")]
            assert SECRET not in result.model_dump_json()
            assert SECRET not in str(result)
        found = kopt.search("zorkulation of warps", k=3, home=home, wikis=[mine])
        assert "onerror" in str(found), "the page was found, and is shown as the text that it is"
    finally:
        watching.clear()
    assert not opened
    for setting in ('model = "openai:x"', 'chroma_url = "http://example.org"', 'embedding_model = "theirs"'):
        (workspace / "kopt.toml").write_text(f"{setting}\n", "utf-8")
        with pytest.raises(kopt.ConfigurationError, match="which a workspace may not set"):
            kopt.ask("what is a bank conflict", home=home)


@pytest.mark.processes
@pytest.mark.slow
def test_a_kernel_runs_in_the_sandbox_alone(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "kernel.py").write_text(
        "import os, sys\n"
        f"open({str(mark)!r}, 'w').write(str(os.getpid()))\n"
        "import torch\n"
        "class ModelNew(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x * 2\n",
        "utf-8",
    )
    (tmp_path / "ref.py").write_text(
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return torch.relu(x) * 2\n"
        "def get_inputs():\n"
        "    return [torch.randn(4, 8)]\n"
        "def get_init_inputs():\n"
        "    return []\n",
        "utf-8",
    )
    result = kopt.bench(
        tmp_path / "kernel.py", tmp_path / "ref.py", device="cpu", plan="signal", home=tmp_path / "home", wikis=[]
    )
    assert result.status == "rejected"
    assert not mark.exists(), "what a kernel may write is bounded by the sandbox"
    assert "kernel" not in sys.modules
