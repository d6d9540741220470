"""The rules on proposals of several methods, on a run of the discipline `budget` with the real gate."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loop.journal.folder import RunFolder
from loop.proposals.proposal import Ablation, Branch, Proposal
from loop.run.driver import Driver
from tests.loop.gate import valid

pytestmark = pytest.mark.processes

METHODS = ("mufu_ex2_softmax", "warp_shuffle_sync")
"""Of the axes compute and latency."""
LEFT = "v4/ablations/mufu_ex2_softmax"
WHOLE = "    y = x + x\n    return (y.softmax(-1) + 4) - 5\n"
FIRST, SECOND = "    y = x + x\n    return (y.softmax(-1) + 4) - 4\n", "    return (x.softmax(-1) + 4) - 5\n"


@pytest.fixture(scope="module")
def open_run(tmp_path_factory: pytest.TempPathFactory) -> valid.ValidRun:
    return valid.build(tmp_path_factory.mktemp("budget"), discipline="budget")


def ablations(**texts: str) -> tuple[Ablation, ...]:
    return tuple(Ablation(method=method, kernel=text) for method, text in texts.items())


def proposed(run: valid.ValidRun, **changes: Any) -> Proposal:
    """A proposal of two methods that nothing speaks against."""
    left = ablations(
        mufu_ex2_softmax=valid.kernel(4, 75, FIRST), warp_shuffle_sync=valid.kernel(4, 78, SECOND)
    )  # fmt: skip
    return run.proposal(**{"kernel": valid.kernel(4, 63, WHOLE), "methods": METHODS, "ablations": left, **changes})


def test_two_methods_with_their_ablations_are_let_run(open_run: valid.ValidRun) -> None:
    found = open_run.look(proposed(open_run))
    assert found.passed, "\n".join(found.lines())


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("budget", {"methods": ("mufu_ex2_softmax", "mufu_ex2_softmax")}),
        ("budget", {"methods": ("vectorized_access", "cache_modifier_hint", "coalesced_access")}),
        ("ablations", {"ablations": ()}),
        ("ablations", {"ablations": ablations(mufu_ex2_softmax=valid.kernel(4, 75, FIRST))}),
        (
            "ablations",
            {
                "ablations": ablations(
                    mufu_ex2_softmax=valid.kernel(4, 63, WHOLE), warp_shuffle_sync=valid.kernel(4, 78, SECOND)
                )
            },
        ),
        (
            "ablations",
            {
                "ablations": ablations(
                    mufu_ex2_softmax=valid.kernel(4, 75, FIRST),
                    warp_shuffle_sync=valid.kernel(4, 78, "    f(x, num_warps=8)\n" + SECOND),
                )
            },
        ),
        ("ablations", {"methods": ("mufu_ex2_softmax",)}),
        ("ablations", {"branches": (Branch(name="wide", kernel=valid.kernel(4, 66)),)}),
    ],
)
def test_a_broken_proposal_is_refused(open_run: valid.ValidRun, rule: str, changes: dict[str, Any]) -> None:
    found = open_run.look(proposed(open_run, **changes))
    assert rule in found.rules, "\n".join(found.lines())


def measured(base: Path) -> valid.ValidRun:
    """A run whose version 4 has two methods, each of them left out once."""
    run = valid.build(base, discipline="budget")
    bench = valid.GpuTools(run.home, run.record, wiki=run.wiki)
    parts: Any = valid.RealParts(RunFolder(run.root), run.record, bench, wiki=run.wiki)
    with Driver.open(run.root, bench, run.home, parts) as driver:
        driver.advance()
        taken = driver.submit(proposed(run), b"{}")
        assert taken.accepted, taken.broken
        driver.advance()
        gated = driver.state.versions[4].gated
        assert gated is not None
        assert gated.passed, gated.rules
        assert driver.state.versions[4].kept
    return run


@pytest.fixture(scope="module")
def closed_run(tmp_path_factory: pytest.TempPathFactory) -> valid.ValidRun:
    return measured(tmp_path_factory.mktemp("ablated"))


def edits(path: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        (root / path).write_text(change((root / path).read_text()))

    return act


def swaps(one: str, other: str) -> Callable[[Path], None]:
    def act(root: Path) -> None:
        (root / one).write_bytes((root / other).read_bytes())

    return act


@pytest.mark.parametrize(
    ("rule", "act"),
    [
        ("ablation-measured", edits(f"{LEFT}/kernel.py", lambda text: text + "# \n")),
        ("ablation-measured", edits(f"{LEFT}/receipt.json", lambda text: text.replace("75", "99"))),
        ("ablation-measured", swaps(f"{LEFT}/receipt.json", "v4/receipt.json")),
        ("ablation-measured", lambda root: (root / LEFT / "receipt.json").unlink()),
        ("rendered", edits("v4/attribution.json", lambda text: text.replace("faster", "slower"))),
        ("artifact", lambda root: (root / "v4/attribution.json").unlink()),
    ],
)  # fmt: skip
def test_what_was_measured_cannot_be_changed(
    closed_run: valid.ValidRun, tmp_path: Path, rule: str, act: Callable[[Path], None]
) -> None:
    run = closed_run.copy(tmp_path)
    assert run.gate(4).passed, "\n".join(run.gate(4).lines())
    act(run.root)
    assert rule in run.gate(4).rules, "\n".join(run.gate(4).lines())
