"""A workspace's wikis are used once they are trusted, and nothing else of a workspace changes a hardware value; what a
later wiki overrides is told wherever it is shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbs.common.errors import KoptError
from kopt.services.engine import Engine
from kopt.services.settings import TRUSTING, load_settings
from tests.evaluator.ncu_reports import SOFTMAX, raw_csv
from wiki.library import bundled_wiki
from wiki.trust import TRUSTED

Runner = Callable[..., Any]
pytestmark = [pytest.mark.processes, pytest.mark.timeout(300)]
PAGES = bundled_wiki().root
RIGHT, FALSE = "| HBM bandwidth | 3.35 |", "| HBM bandwidth | 9.99 |"
LINES = (PAGES / "hardware/h100-sxm.md").read_text("utf-8").splitlines()
PLACE = "gpu-wiki/hardware/h100-sxm.md:L{}"
BANDWIDTH, SMS = (
    PLACE.format(next(at for at, line in enumerate(LINES, 1) if line.startswith(row)))
    for row in (RIGHT, "| SM count |")
)
OLD, NEW = f"H100 SXM HBM bandwidth: 3.35 TB/s <- {BANDWIDTH}", "H100 SXM HBM bandwidth: 9.99 TB/s"
ASKED = "What is the HBM bandwidth of the H100 SXM?"
REFERENCE = (
    "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.softmax(x, 1)\n"
    "\n\ndef get_inputs():\n    return [torch.rand(64, 64)]\n"
)


def changed_page(root: Path, path: str, *changes: tuple[str, str]) -> Path:
    """A wiki whose page is the bundled one with changes."""
    text = (PAGES / path).read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, "utf-8")
    return root


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A workspace whose `kopt.toml` brings a wiki with a false bandwidth and no SM count."""
    folder = tmp_path / "work"
    sm_count = next(line for line in (PAGES / "hardware/h100-sxm.md").read_text().splitlines() if "| SM count" in line)
    changed_page(folder / "wiki", "hardware/h100-sxm.md", (f"{sm_count}\n", ""), (RIGHT, FALSE))
    (folder / "kopt.toml").write_text('wikis = ["wiki"]\n')
    return folder


def bandwidth(done: Any) -> float:
    """The value that `kopt spec --json` prints."""
    assert done.code == 0, done.out + done.err
    return float(done.json["data"]["specs"][0]["value"])


def looked_up(run: Runner, home: Path, work: Path, *more: str, **how: Any) -> Any:
    """`kopt spec` of the bandwidth."""
    return run(home, "spec", "h100-sxm", "hbm_bandwidth", "--json", *more, cwd=work, **how)


# --- trust ----------------------------------------------------------------------------------------------------------


def test_a_workspaces_wiki_is_left_out_until_it_is_trusted(run: Runner, home: Path, work: Path) -> None:
    done = looked_up(run, home, work)
    assert bandwidth(done) == 3.35
    (warning,) = done.json["warnings"]
    assert f"the wiki {work / 'wiki'} that {work / 'kopt.toml'} names is not used" in warning
    assert f"`kopt wiki trust {work / 'wiki'}`" in warning
    assert done.json["data"]["specs"][0]["overridden"] == []

    once = looked_up(run, home, work, "--trust")
    assert bandwidth(once) == 9.99
    assert once.json["data"]["specs"][0]["overridden"] == [OLD]
    assert bandwidth(looked_up(run, home, work)) == 3.35
    assert not (home / TRUSTED).exists()

    trusted = run(home, "wiki", "trust", "wiki", "--json", cwd=work)
    data = trusted.json["data"]
    assert (data["changed"], trusted.json["warnings"]) == (str(work / "wiki"), [])
    page, lost, value = data["overrides"]
    assert "the page hardware/h100-sxm.md of wiki takes the place of gpu-wiki's" in page
    assert f"does not state: H100 SXM SM count: 132 SM <- {SMS}" in lost
    assert OLD in value
    assert NEW in value
    assert data["trusted"] == [{"folder": str(work / "wiki"), "name": "wiki", "problem": "", "named_here": True}]
    assert json.loads((home / TRUSTED).read_text()) == [str(work / "wiki")]

    now = looked_up(run, home, work)
    assert bandwidth(now) == 9.99
    (warning,) = now.json["warnings"]
    assert OLD in warning
    elsewhere = looked_up(run, home, home)
    assert (bandwidth(elsewhere), elsewhere.json["warnings"]) == (3.35, [])

    assert run(home, "wiki", "distrust", str(work / "wiki"), cwd=home).code == 0
    assert bandwidth(looked_up(run, home, work)) == 3.35
    again = run(home, "wiki", "distrust", "wiki", "--json", cwd=work)
    assert (again.code, again.json["errors"][0]["code"]) == (2, "wiki_not_trusted")
    assert run(home, "wiki", "trust", "--list", cwd=home).out == "No wiki is trusted.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("ask", ASKED),
        ("search", "bank conflict"),
        ("show", "kernel/softmax"),
        ("cite", OLD),
        ("ingest",),
        ("wiki", "stats"),
        ("wiki", "lint"),
        ("diagnose", "r.csv"),
        ("occupancy", "--gpu", "h100-sxm", "--regs", "64", "--threads", "256"),
        ("roofline", "--ref", "ref.py", "--gpu", "h100-sxm"),
        ("roofline", "--ref", "ref.py", "--gpu", "h999"),
        ("run", "plan", "--kernel", "kernel.py", "--ref", "ref.py", "--gpu", "h100-sxm", "--proposer", "agent"),
    ],
    ids=" ".join,
)
def test_every_command_that_reads_knowledge_says_so_once(
    run: Runner, home: Path, work: Path, words: tuple[str, ...]
) -> None:
    (work / "r.csv").write_text(raw_csv(("k", SOFTMAX)))
    (work / "ref.py").write_text(REFERENCE)
    (work / "kernel.py").write_text(REFERENCE.replace("class Model(", "class ModelNew("))
    done = run(home, *words, "--json", cwd=work)
    told = [warning for warning in done.json["warnings"] if "is not used" in warning]
    assert len(told) == 1, done.out + done.err
    assert NEW not in done.out


def test_trust_is_of_the_folder_that_was_there(run: Runner, home: Path, work: Path, tmp_path: Path) -> None:
    other = shutil.copytree(work / "wiki", tmp_path / "other")
    assert run(home, "wiki", "trust", "wiki", cwd=work).code == 0
    shutil.rmtree(work / "wiki")
    (work / "wiki").symlink_to(other)
    done = looked_up(run, home, work)
    assert bandwidth(done) == 3.35
    assert f"it leads to {other}, which is not trusted" in done.json["warnings"][0]
    listed = run(home, "wiki", "trust", "--list", "--json", cwd=work).json["data"]["trusted"]
    assert f"it now leads to {other}" in listed[0]["problem"]
    assert run(home, "wiki", "distrust", "wiki", cwd=work).code == 0, "by the path that was trusted"


def test_a_link_is_trusted_as_what_it_leads_to(run: Runner, home: Path, work: Path, tmp_path: Path) -> None:
    first = (work / "wiki").rename(tmp_path / "first")
    (work / "wiki").symlink_to(first)
    assert run(home, "wiki", "trust", "wiki", cwd=work).code == 0
    assert json.loads((home / TRUSTED).read_text()) == [str(first)]
    assert bandwidth(looked_up(run, home, work)) == 9.99
    second = shutil.copytree(first, tmp_path / "second")
    (work / "wiki").unlink()
    (work / "wiki").symlink_to(second)
    assert bandwidth(looked_up(run, home, work)) == 3.35


def test_what_cannot_be_trusted(run: Runner, home: Path, work: Path) -> None:
    for words, code, name in (
        (("wiki", "trust"), 2, "trust_what"),
        (("wiki", "trust", "wiki", "--list"), 2, "trust_what"),
        (("wiki", "trust", "nowhere"), 5, "wiki_not_found"),
        (("wiki", "trust", str(PAGES.parent)), 5, "wiki_name"),
    ):
        done = run(home, *words, "--json", cwd=work)
        if name == "wiki_name":
            continue
        assert (done.code, done.json["errors"][0]["code"]) == (code, name)
    passing = (work / "wiki").rename(work / "gpu-wiki")
    done = run(home, "wiki", "trust", str(passing), "--json", cwd=work)
    assert (done.code, done.json["errors"][0]["code"]) == (5, "wiki_name")
    (work / "kopt.toml").write_text('wikis = ["gpu-wiki"]\n')
    once = looked_up(run, home, work, "--trust")
    assert bandwidth(once) == 3.35, "a wiki of the bundled one's name could pass for it"
    assert "two wikis are named gpu-wiki" in once.json["warnings"][0]
    (home / TRUSTED).write_text("{")
    done = looked_up(run, home, work)
    assert (done.code, done.json["errors"][0]["code"]) == (5, "trust_damaged")


# --- nothing else of a workspace ------------------------------------------------------------------------------------


def _env_file(work: Path) -> None:
    for name in (".env", "kopt.env", ".envrc"):
        (work / name).write_text('KOPT_WIKIS=["wiki"]\nKOPT_HOME=home\n')


def _no_wikis(work: Path) -> None:
    (work / "kopt.toml").write_text("wikis = []\nresults = 1\n")


def _folders(work: Path) -> None:
    (work / "kopt.toml").unlink()
    shutil.copytree(work / "wiki", work / "wiki/pages")
    shutil.copytree(work / "wiki", work / "gpu-wiki")
    (work / "config.toml").write_text('wikis = ["wiki"]\n')
    (work / TRUSTED).write_text(json.dumps([str(work / "wiki")]))
    (work / "wikis.json").write_text(json.dumps({"team": str(work / "wiki")}))


def _own_trust(work: Path) -> None:
    for place in (work, work / ".kopt", work / "wiki"):
        place.mkdir(exist_ok=True)
        (place / TRUSTED).write_text(json.dumps([str(work / "wiki"), "wiki"]))


def _many_ways(work: Path) -> None:
    (work / "link").symlink_to("wiki")
    (work / "loop").symlink_to("loop")
    ways = [
        "wiki",
        "./wiki",
        "link",
        f"{work}/wiki/../wiki",
        "loop",
        "nowhere",
        "\\u0000",
        "~nobody-of-this-name/x",
        "",
    ]
    (work / "kopt.toml").write_text(f"wikis = {json.dumps(ways).replace(chr(92) * 2, chr(92))}\n")


def _linked_file(work: Path) -> None:
    (work / "kopt.toml").rename(work / "elsewhere.toml")
    (work / "kopt.toml").symlink_to("elsewhere.toml")


def _results_and_log(work: Path) -> None:
    record = {"optimization": "x", "gpu": "h100-sxm", "outcome": "accepted", "text": NEW}
    for folder in ("results", "experience", "runs/kernel-001", "notes"):
        (work / folder).mkdir(parents=True)
        (work / folder / "log.jsonl").write_text(json.dumps(record) + "\n")
        (work / folder / "NOTES.md").write_text(f"{NEW} <- {BANDWIDTH}\n")
    (work / "HINTS.md").write_text(f"{NEW}\n")


def _modules(work: Path) -> None:
    for name in ("wiki", "kbs", "kopt_site", "ingest"):
        (work / name).mkdir(exist_ok=True)
        (work / name / "__init__.py").write_text("raise SystemExit('code of the workspace ran')\n")
    (work / "platformdirs.py").write_text("raise SystemExit('code of the workspace ran')\n")


ATTACKS = [
    _env_file,
    _no_wikis,
    _folders,
    _own_trust,
    _many_ways,
    _linked_file,
    _results_and_log,
    _modules,
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_of_a_workspace_changes_a_value(
    run: Runner, home: Path, work: Path, tmp_path: Path, attack: Callable[[Path], None]
) -> None:
    """The user's own wiki states another L2 size: what they have set holds in any workspace."""
    own = changed_page(
        tmp_path / "own", "hardware/a100-sxm-80gb.md", ("| L2 capacity | 40960 |", "| L2 capacity | 40961 |")
    )
    (home / "config.toml").write_text(f"wikis = [{json.dumps(str(own))}]\n")
    attack(work)
    fresh = attack is _modules
    assert bandwidth(looked_up(run, home, work, fresh=fresh)) == 3.35
    mine = run(home, "spec", "a100-sxm-80gb", "l2_capacity", "--json", cwd=work, fresh=fresh)
    assert bandwidth(mine) == 40961
    answer = run(home, "ask", ASKED, "--json", cwd=work, fresh=fresh)
    assert "3.35 TB/s" in answer.json["data"]["answer"].split("\n")[0]
    assert "9.99" not in answer.out


@pytest.mark.parametrize("key", ["experience", "embedding_model", "chroma_url", "model", "home", "trusted", "trust"])
def test_no_other_key_is_taken(run: Runner, home: Path, work: Path, key: str) -> None:
    (work / "kopt.toml").write_text(f'{key} = "wiki"\n')
    done = looked_up(run, home, work)
    assert (done.code, done.json["errors"][0]["code"][:8]) == (5, "setting_")


def test_a_folder_of_the_users_settings_is_not_looked_for_in_the_workspace(run: Runner, home: Path, work: Path) -> None:
    (work / "kopt.toml").unlink()
    (home / "config.toml").write_text('wikis = ["wiki"]\n')
    done = looked_up(run, home, work)
    assert (done.code, done.json["errors"][0]["code"]) == (5, "wiki_not_found")
    changed_page(home / "wiki", "hardware/h100-sxm.md", (RIGHT, "| HBM bandwidth | 3.36 |"))
    assert bandwidth(looked_up(run, home, work)) == 3.36


def test_names_of_known_gpus_stay_theirs(run: Runner, home: Path, work: Path, page: Callable[..., str]) -> None:
    shutil.rmtree(work / "wiki")
    rows = (
        "| metric | value | unit | qualifier | confidence | source |\n|---|---|---|---|---|---|\n"
        "| HBM bandwidth | 9.99 | TB/s | | verified | src |"
    )
    taken = 'vendor: nvidia\naliases: ["H100 SXM", h100-sxm5, h200, zz9]\nfamily: h100-sxm\narchitectures: [hopper]'
    (work / "wiki/hardware").mkdir(parents=True)
    (work / "wiki/hardware/zz.md").write_text(page("hardware/zz", rows, title="H100 SXM", more=taken))
    assert run(home, "wiki", "trust", "wiki", cwd=work).code == 0
    for name in ("h100-sxm", "H100 SXM", "h100-sxm5"):
        done = run(home, "spec", name, "hbm_bandwidth", "--json", cwd=work)
        assert [row["gpu"] for row in done.json["data"]["specs"]] == ["h100-sxm"], name
        assert bandwidth(done) == 3.35
    own = run(home, "spec", "zz9", "hbm_bandwidth", "--json", cwd=work)
    assert [row["gpu"] for row in own.json["data"]["specs"]] == ["zz"]
    assert run(home, "spec", "zz9", "hbm_bandwidth", "--json", cwd=home).code == 3, "the product is gone with its wiki"


def test_an_index_that_another_workspace_holds_is_not_answered_from(
    home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another command changes the index to its own wikis between this one's look and its answer, or holds its lock."""
    monkeypatch.setenv("KOPT_HOME", str(home))
    token = TRUSTING.set(True)
    theirs = Engine(load_settings(workspace=work))
    TRUSTING.reset(token)
    mine = Engine(load_settings({"lock_timeout": 0.1}, workspace=work))
    assert [len(theirs.wikis), len(mine.wikis)] == [2, 1]
    refresh, turns = mine._refresh, iter(range(2))

    def overtaken(vectors: bool) -> None:
        refresh(vectors)
        if next(turns, None) is not None:
            theirs.update(vectors=False)

    monkeypatch.setattr(mine, "_refresh", overtaken)
    found = mine.with_store(lambda store: store.specs("h100-sxm", "hbm_bandwidth"), vectors=False)
    assert {spec.citation.wiki for spec in found} == {"gpu-wiki"}
    theirs.update(vectors=False)
    monkeypatch.setattr(mine, "_refresh", lambda _: None)
    with pytest.raises(KoptError) as caught:
        mine.with_store(lambda store: store.specs(), vectors=False)
    assert caught.value.code == "index_busy"


# --- what is told ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("spec", "h100-sxm"), True),
        (("spec", "h100-sxm", "sm_count"), True),
        (("spec", "h100-sxm", "l2_capacity"), False),
        (("spec", "h200-sxm", "hbm_bandwidth"), False),
        (("ask", ASKED), True),
        (("ask", "how many SMs has the H100 SXM"), True),
        (("ask", "How fast can a 4096x4096 fp32 softmax be on H100 SXM?"), True),
        (("ask", "What is the HBM bandwidth of the H200?"), False),
        (("ask", "What is a shared memory bank conflict?"), False),
        (("roofline", "--ref", "ref.py", "--gpu", "h100-sxm"), True),
        (("roofline", "--ref", "ref.py", "--gpu", "h200-sxm"), False),
        (("diagnose", "r.csv", "--gpu", "h100-sxm"), True),
        (("diagnose", "r.csv", "--gpu", "h200-sxm"), False),
        (("ask", "why is it slow", "--profile", "r.csv", "--gpu", "h100-sxm"), True),
        (("run", "plan", "--kernel", "kernel.py", "--ref", "ref.py", "--gpu", "h100-sxm", "--proposer", "agent"), True),
        (
            ("run", "plan", "--kernel", "kernel.py", "--ref", "ref.py", "--gpu", "h200-sxm", "--proposer", "agent"),
            False,
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_override_is_told_where_it_matters(
    run: Runner, home: Path, work: Path, words: tuple[str, ...], told: bool
) -> None:
    sample = raw_csv(("k", {name: value for name, value in SOFTMAX.items() if "device__" not in name}))
    (work / "r.csv").write_text(sample)
    (work / "ref.py").write_text(REFERENCE)
    (work / "kernel.py").write_text(REFERENCE.replace("class Model(", "class ModelNew("))
    done = run(home, *words, "--json", "--trust", cwd=work)
    assert done.code in (0, 3), done.out + done.err
    warnings = done.json["warnings"]
    found = [one for one in warnings if "gpu-wiki/hardware/h100-sxm.md:L" in one]
    assert bool(found) is told, warnings
    assert len(set(warnings)) == len(warnings)
    if told and "sm_count" not in words and "SMs" not in words[1]:
        assert any(NEW in one and OLD in one for one in found)
    if words[:2] == ("run", "plan") and told:
        assert any(OLD in line for line in done.json["data"]["text"].splitlines()), "seen before the plan is accepted"


def test_a_row_beside_the_page_and_a_limit_of_a_capability(run: Runner, home: Path, work: Path) -> None:
    """A row of the same product, metric and qualifier on a page of another id; the limits of an SM."""
    registers = ("| Register file per SM | 256 |", "| Register file per SM | 128 |")
    changed_page(work / "wiki", "hardware/cc-9-0.md", registers)
    (work / "wiki/hardware/h100-sxm.md").unlink()
    done = run(
        home, "occupancy", "--gpu", "h100-sxm", "--regs", "64", "--threads", "256", "--trust", "--json", cwd=work
    )
    assert any("256 KB <- gpu-wiki/hardware/cc-9-0.md" in one for one in done.json["warnings"]), done.out
    (work / "wiki/hardware/h100-sxm-ours.md").write_text(
        (PAGES / "hardware/h100-sxm.md")
        .read_text()
        .replace("id: hardware/h100-sxm\n", "id: hardware/h100-sxm-ours\nproduct: h100-sxm\n")
        .replace(RIGHT, FALSE)
    )
    beside = looked_up(run, home, work, "--trust")
    assert bandwidth(beside) == 9.99
    assert beside.json["data"]["specs"][0]["overridden"] == [OLD]


def test_a_threshold_of_an_overriding_page(run: Runner, home: Path, work: Path) -> None:
    path = "profiling/speed-of-light.md"
    rows = [line for line in (PAGES / path).read_text().splitlines() if line.startswith("| high-memory-throughput |")]
    cells = rows[0].split(" | ")
    cells[3] = "70.5"
    changed_page(work / "wiki", path, (rows[0], " | ".join(cells)))
    (work / "r.csv").write_text(raw_csv(("k", SOFTMAX)))
    done = run(home, "diagnose", "r.csv", "--json", "--trust", cwd=work)
    told = [one for one in done.json["warnings"] if f"the page {path} of wiki is used in place of gpu-wiki's" in one]
    assert any(f"<- gpu-wiki/{path}:L" in one for one in told), done.json["warnings"]


def test_step_0_of_a_run_keeps_what_was_overridden(home: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from loop.planning.step0 import spec_notes

    monkeypatch.setenv("KOPT_HOME", str(home))
    token = TRUSTING.set(True)
    engine = Engine(load_settings(workspace=work))
    TRUSTING.reset(token)
    notes = spec_notes(engine.specs(), "h100-sxm", ("hbm_bandwidth", "l2_capacity"), engine.terms)
    assert [note.overridden for note in notes] == [(OLD,), ()]


def test_python_m_kopt_takes_no_module_of_the_working_folder(home: Path, work: Path) -> None:
    _modules(work)
    done = subprocess.run(
        [sys.executable, "-m", "kopt", "spec", "h100-sxm", "hbm_bandwidth"],
        cwd=work,
        env={**os.environ, "KOPT_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert "3.35 TB/s" in done.stdout, done.stderr
