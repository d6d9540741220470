"""`kopt wiki propose --from-run RUN`: a page of a finished run, whose figures are those of its receipts."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path

import pytest

from kbs.common.errors import UsageError
from kbs.evidence.vocabulary import vocabulary
from kopt.services.runs.wiki_proposal import ProposedPage, problems_of, propose
from loop.journal.state import Phase
from loop.run.driver import read_run
from tests.conftest import run_kopt
from tests.loop import tools
from tests.loop.driving import drive, faster, opened
from tests.loop.driving import propose as hand_in
from wiki.page import Page
from wiki.reader import read_page

pytestmark = pytest.mark.processes

TODAY = datetime.date(2026, 11, 22)


@pytest.fixture(scope="module")
def improved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that ended with a faster kernel; its KOPT_HOME stands beside it."""
    root = tmp_path_factory.mktemp("improved") / "run"
    with opened(root, device="cuda:0", device_name="NVIDIA H200", gpu="h200-sxm") as driver:
        assert drive(driver, lambda v, a: tools.kernel(v, us=150) if v == 2 else faster(v, a)) is Phase.FINISHED
    return root


def proposed(root: Path) -> ProposedPage:
    return propose(read_run(root), root.parent / "home", vocabulary(), TODAY)


def page_of(made: ProposedPage) -> Page:
    page = read_page("mine", f"{made.id}.md", made.text.encode(), "", vocabulary())
    assert isinstance(page, Page), page
    return page


def test_the_page_is_one_and_passes_the_lint(improved: Path) -> None:
    made = proposed(improved)
    page = page_of(made)
    assert (made.problems, made.left_out, page.problems) == ((), (), ())
    assert (page.meta.kind, page.meta.operations, page.meta.architectures) == ("experiment", ("softmax",), ("hopper",))
    assert page.meta.confidence == "experimental"
    state = read_run(improved).state
    assert state.final is not None
    assert made.receipts[0] == state.final.receipt
    for source, hash in zip(page.meta.sources, made.receipts, strict=True):
        assert source.kind == "measurement"
        assert hash in source.title
        assert f"{source.id} receipt {hash}, " in made.text
    assert {source.id for source in page.meta.sources} == {"final", "v1", "v2", "v3"}


def test_rows_are_what_the_receipts_say(improved: Path) -> None:
    page, state = page_of(proposed(improved)), read_run(improved).state
    rows = {(row.source.split()[0], row.metric): row for row in page.measured}
    assert {row.gpu for row in page.measured} == {"H200 SXM"}
    assert {row.operation for row in page.measured} == {"softmax"}
    assert {row.shape for row in page.measured} == {"n=64"}
    assert state.final is not None
    assert state.final.ratio is not None
    assert float(rows["final", "speedup"].value) == pytest.approx(state.final.ratio[0], abs=0.001)
    for version in state.versions[1:]:
        last = version.attempts[-1].evaluated
        assert last is not None
        assert last.ratio is not None
        assert last.median_us is not None
        row = rows[f"v{version.number}", "speedup"]
        assert float(row.value) == pytest.approx(last.ratio[0], abs=0.001)
        assert "vectorized_access" in row.what
        assert float(rows[f"v{version.number}", "time"].value) == pytest.approx(last.median_us, rel=0.001)


def test_what_helped_and_what_did_not(improved: Path) -> None:
    text = proposed(improved).text
    helped, _, rest = text.partition("## What did not make softmax on H200 SXM faster in the run")
    assert "version v1" in helped
    assert "version v2" in rest.partition("## How far")[0]
    assert "Load four words at once, variant 2" in rest


def test_its_sections_say_what_they_answer_and_are_found_by_asks(improved: Path) -> None:
    lead, helped, not_helped, limits, measured = page_of(proposed(improved)).sections
    assert helped.heading.startswith("What made softmax on H200 SXM faster in the run softmax-")
    assert helped.asks[:2] == ("how to make softmax on H200 SXM faster", "which changes sped up softmax on H200 SXM")
    assert [len(one.asks) for one in (lead, helped, not_helped, limits, measured)] == [3, 3, 3, 3, 0]


def test_words_of_a_proposer_stay_words(tmp_path: Path) -> None:
    root = tmp_path / "run"
    words = "A ~~~ [link](http://x.example) | cell <b>\n## Heading\n---\n[^v9] `code`"
    with opened(root, device="cuda:0", iterations=1) as driver:
        assert driver.advance() is Phase.PROPOSE
        first = tools.proposal(1)
        hand_in(driver, faster(1, 1), hypothesis=first.hypothesis.model_copy(update={"single_change": words}))
        assert driver.advance() is Phase.FINISHED
    page = page_of(proposed(root))
    assert [block.trail for block in page.blocks if "Heading" in str(block.trail)] == []
    assert len([block for block in page.blocks if block.kind == "table"]) == 1
    assert not [block for block in page.blocks if block.kind == "code"]


def test_a_receipt_that_was_changed_does_not_count(improved: Path, tmp_path: Path) -> None:
    root = tmp_path / "run"
    shutil.copytree(improved, root)
    shutil.copytree(improved.parent / "home", tmp_path / "home")
    state = read_run(root).state
    last = state.versions[1].attempts[-1].evaluated
    assert last is not None
    path = next(path for path in last.files if path.endswith("receipt.json"))
    (root / path).chmod(0o644)
    (root / path).write_bytes((root / path).read_bytes().replace(b'"accepted"', b'"incorrect"', 1))
    made = proposed(root)
    assert [one.partition(":")[0] for one in made.left_out] == ["v1"]
    assert "v1" not in {source.id for source in page_of(made).meta.sources}
    assert made.problems == ()
    assert state.final is not None
    final = next(path for path in state.final.files if path.endswith("receipt.json"))
    (root / final).unlink()
    with pytest.raises(UsageError) as caught:
        proposed(root)
    assert caught.value.code == "receipt_refused"


def test_figures_that_the_receipt_does_not_have_are_left_out(improved: Path) -> None:
    view = read_run(improved)
    attempt = view.state.versions[1].attempts[-1]
    assert attempt.evaluated is not None
    attempt.evaluated = attempt.evaluated.model_copy(update={"ratio": (9.0, 8.9, 9.1)})
    made = propose(view, improved.parent / "home", vocabulary(), TODAY)
    (left_out,) = made.left_out
    assert left_out.startswith("v1: ")
    assert "other figures than the journal" in left_out
    assert "9.0" not in made.text
    assert view.state.final is not None
    view.state.finals[-1] = view.state.final.model_copy(update={"ratio": (9.0, 8.9, 9.1)})
    with pytest.raises(UsageError, match="other figures than the journal"):
        propose(view, improved.parent / "home", vocabulary(), TODAY)


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    with opened(tmp_path / "a" / "run", device="cuda:0") as driver:
        driver.advance()
    with pytest.raises(UsageError) as caught:
        proposed(tmp_path / "a" / "run")
    assert caught.value.code == "run_unfinished"
    assert "kopt run final" in caught.value.hint
    with opened(tmp_path / "b" / "run", device="cuda:0") as driver:
        assert drive(driver, lambda version, _: tools.kernel(version, us=120)) is Phase.FINISHED
    with pytest.raises(UsageError) as caught:
        proposed(tmp_path / "b" / "run")
    assert caught.value.code == "no_improvement"
    with opened(tmp_path / "c" / "run") as driver:  # on the CPU: nothing is timed
        assert drive(driver, faster) is Phase.FINISHED
    with pytest.raises(UsageError) as caught:
        proposed(tmp_path / "c" / "run")
    assert caught.value.code == "no_improvement"


def test_the_lint_is_really_asked(improved: Path) -> None:
    made = proposed(improved)
    broken = ProposedPage(made.run, made.id, made.text.replace("[^final]:", "[^final ]:"), made.receipts, (), ())
    assert {problem.rule for problem in problems_of(broken, vocabulary(), TODAY)} >= {"footnote"}


def test_through_the_command(improved: Path, tmp_path: Path) -> None:
    home = improved.parent / "home"
    out = tmp_path / "lesson.md"
    done = run_kopt(home, "wiki", "propose", "--from-run", str(improved), "--out", str(out), "--json")
    assert done.code == 0, done.err
    assert done.json["data"]["file"] == str(out)
    assert done.json["data"]["markdown"] == out.read_text("utf-8")
    again = run_kopt(home, "wiki", "propose", "--from-run", str(improved), "--out", str(out), "--json")
    assert (again.code, again.json["errors"][0]["code"]) == (2, "out_exists")
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(out, folder / "page.md")
    inside = run_kopt(
        home, "wiki", "propose", "--from-run", str(improved), "--out", str(folder / "new.md"), "--json",
        env={"KOPT_WIKIS": f'["{folder}"]'},
    )  # fmt: skip
    assert (inside.code, inside.json["errors"][0]["code"]) == (2, "out_in_wiki")
    assert not (folder / "new.md").exists()
    printed = run_kopt(home, "wiki", "propose", "--from-run", str(improved))
    assert printed.out.startswith("---\nid: experiment/")
