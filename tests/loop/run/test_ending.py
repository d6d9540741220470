"""The end of a run: the best version is restored, measured again, and applied."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from evaluator.receipt.plan import SeedSchedule
from evaluator.receipt.receipt import Receipt
from evaluator.request import Request
from kbs.common.errors import KoptError, UsageError
from loop.journal.folder import RunFolder
from loop.journal.record import RunRecord
from loop.journal.state import Phase
from loop.run.driver import Driver, create_run
from tests.loop import crashes, tools
from tests.loop.driving import drive, faster, opened, propose

pytestmark = pytest.mark.processes


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "run"


class Forgetful(tools.FakeTools):
    """Measures some kernels otherwise at the end."""

    def __init__(self, home: Path, record: RunRecord, slow: tuple[str, ...]) -> None:
        super().__init__(home, record)
        self.slow = slow
        self.seen: set[str] = set()

    def evaluate(self, request: Request, schedule: SeedSchedule) -> Receipt:
        text = request.candidate.text
        again = text in self.seen
        if request.plan == "verdict":
            self.seen.add(text)
        if again and text in self.slow and request.incumbent is not None:
            other = request.incumbent.model_copy(update={"text": text})  # as fast as itself: no gain
            request = request.model_copy(update={"incumbent": other})
        return super().evaluate(request, schedule)


def test_where_the_end_disagrees_both_are_reported_and_the_next_best_is_measured(root: Path) -> None:
    home = root.parent / "home"
    record = tools.run_record(home, device="cuda:0")
    create_run(root, record, tools.run_files(), home)
    bench = Forgetful(home, record, (faster(3, 1),))
    with Driver.open(root, bench, home, tools.FakeParts(RunFolder(root), record, bench)) as driver:
        assert drive(driver, faster) is Phase.FINISHED
        finals = driver.state.finals
    assert [(found.version, found.agrees) for found in finals] == [(3, False), (2, True)]
    assert "its lower bound is not above 1.01" in finals[0].why
    assert (root / "best/kernel.py").read_bytes() == faster(2, 1).encode()
    assert (root / "final/v3/receipt.json").exists()
    assert crashes.git(root, "log", "-1", "--format=%s").strip() == "[final] restore v2 (1.23x): cap"


def test_where_nothing_can_be_confirmed_the_end_is_version_0(root: Path) -> None:
    home = root.parent / "home"
    record = tools.run_record(home, device="cuda:0", iterations=1)
    create_run(root, record, tools.run_files(), home)
    bench = Forgetful(home, record, (faster(1, 1),))
    with Driver.open(root, bench, home, tools.FakeParts(RunFolder(root), record, bench)) as driver:
        assert drive(driver, faster) is Phase.FINISHED
        assert [(found.version, found.agrees) for found in driver.state.finals] == [(1, False), (0, True)]
    assert (root / "best/kernel.py").read_bytes() == tools.kernel(0, us=100).encode()


def test_a_best_version_that_was_changed_is_not_restored(root: Path) -> None:
    with opened(root) as driver:
        driver.advance()
        propose(driver, tools.kernel(1))
        driver.advance()
        (root / "v1/kernel.py").write_text("def run(x):\n    return x\n")
        with pytest.raises(KoptError) as caught:
            driver.final()
        assert caught.value.code == "artifact_changed"


def test_the_best_version_is_applied_over_what_was_shown(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "softmax.py"
    target.write_bytes(tools.kernel(0, us=100).encode())
    shown = hashlib.sha256(target.read_bytes()).hexdigest()
    with opened(root) as driver:
        drive(driver, faster)
        difference = driver.difference(target)
        assert "-# us=100" in difference
        assert "v3/kernel.py" in difference
        target.write_text("changed meanwhile\n")
        with pytest.raises(UsageError) as caught:
            driver.apply(target, shown)
        assert caught.value.code == "target_changed"
        assert target.read_text() == "changed meanwhile\n"
        event = driver.apply(target, hashlib.sha256(target.read_bytes()).hexdigest())
        assert event is not None
        assert event.version == 3
        assert target.read_bytes() == (root / "best/kernel.py").read_bytes()
        assert driver.difference(target) == ""
        assert driver.apply(target, event.after) is None
    assert (root / "replaced/a1-softmax.py").read_text() == "changed meanwhile\n"
    assert crashes.git(root, "status", "--porcelain") == ""


def test_a_kill_between_the_copy_and_its_event_is_made_good(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "softmax.py"
    target.write_text("mine\n")
    with opened(root) as driver:
        drive(driver, faster)
        before = hashlib.sha256(target.read_bytes()).hexdigest()

        def killed(event: object) -> None:
            raise KeyboardInterrupt

        driver.run.happened = killed  # type: ignore[method-assign]  # the process ends here
        with pytest.raises(KeyboardInterrupt):
            driver.apply(target, before)
    with opened(root) as driver:
        event = driver.apply(target, before)
        assert event is not None
        assert event.before == before
        assert len(driver.state.applied) == 1


def test_a_kernel_of_another_language_is_not_copied_over(root: Path, tmp_path: Path) -> None:
    target = tmp_path / "softmax.cu"
    target.write_text("__global__\n")
    with opened(root) as driver:
        drive(driver, faster)
        with pytest.raises(UsageError) as caught:
            driver.apply(target, hashlib.sha256(target.read_bytes()).hexdigest())
        assert caught.value.code == "target_language"
