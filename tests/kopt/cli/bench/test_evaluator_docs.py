"""docs/evaluator.md says what the evaluator does: its tables are the code's, its examples run."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

from evaluator.correctness.distributions import DISTRIBUTIONS
from evaluator.correctness.tolerance import constants
from evaluator.receipt.timing import AuditWitness
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.sandbox.isolation_report import try_isolation
from evaluator.scan.hazards import HAZARDS
from evaluator.source.cuda_signature import solve_parameters
from evaluator.source.forms import Form, recognise
from evaluator.source.source_file import SourceFile
from kopt.services.results.telling.receipt import time_sections as sections
from tests.evaluator.receipts import timing

PAGE = (Path(__file__).parents[4] / "docs" / "evaluator.md").read_text("utf-8")


def section(title: str) -> str:
    """The text below a heading, up to the next one; comments in code begin with one # alone."""
    (text,) = re.findall(rf"(?ms)^##+ {re.escape(title)}\n(.*?)(?=^##|\Z)", PAGE)
    return str(text)


def rows(title: str) -> list[list[str]]:
    """The cells of a section's table, code marks taken off; without its head."""
    lines = [line for line in section(title).splitlines() if line.startswith("|")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_hazard_stands_in_the_page_and_no_other() -> None:
    table = rows("Hazards")
    assert {row[0]: row[1] for row in table} == HAZARDS
    assert len(table) == len(HAZARDS)
    assert {row[2] for row in table} == {"rejects", "note", "both", "fails"}


def test_every_verdict_stands_in_the_page_and_no_other() -> None:
    assert sorted(row[0] for row in rows("Verdicts")) == sorted(Verdict)


def test_every_improvement_stands_in_the_page_and_no_other() -> None:
    assert sorted(row[0] for row in rows("Improvements")) == sorted(Improvement)


def test_everything_that_is_shown_of_times_stands_in_the_page() -> None:
    shown = {row[0] for row in rows("Times")}
    assert {label for label, _ in sections(timing())} <= shown
    for status in get_args(AuditWitness.model_fields["status"].annotation):
        assert f"`{status}`" in section("Times")


def test_distributions_are_those_of_the_code() -> None:
    expected = [[d.name, "stretched" if d.stretched else "plain", d.meaning] for d in DISTRIBUTIONS]
    assert rows("Distributions") == expected


def test_constants_are_those_in_force() -> None:
    expected = {name: table for name, table in constants().items() if name != "oracle"}
    table = {row[0].replace("other floats", "other"): row[1:] for row in rows("Tolerance")}
    assert table == {name: [f"{row['plain']:g}", f"{row['stretched']:g}"] for name, row in expected.items()}
    assert constants()["oracle"]["same_width"] == 2, "the page says that κ is doubled"


@pytest.mark.processes
def test_layers_are_those_that_a_worker_applies() -> None:
    named = [layer.name for layer in try_isolation().layers]
    assert sorted(row[0] for row in rows("Isolation")) == sorted(named)


FORMS = ["KernelBench", "setup", "function", pytest.param("solve", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("form", FORMS)
def test_examples_run(form: str, run: Callable[..., Any], tmp_path: Path) -> None:
    """The files of an example are written out, and its commands typed: the kernel is accepted."""
    text = section(f"The {form} form")
    for name, content in re.findall(r"(?s)```(?:python|cuda)\n(?:#|//) (\S+)\n(.*?)```", text):
        (tmp_path / name).write_text(content, "utf-8")
    (commands,) = re.findall(r"(?s)```sh\n(.*?)```", text)
    benched = 0
    for line in commands.splitlines():
        if not line.startswith("kopt "):
            subprocess.run(line, shell=True, check=True, cwd=tmp_path)
            continue
        done = run(tmp_path, *shlex.split(line)[1:], cwd=tmp_path)
        assert done.code == 0, done.out + done.err
        assert done.out.startswith("ACCEPTED")
        benched += 1
    assert benched == 1


def test_solve_example_has_its_form() -> None:
    """What can be said of it where no GPU runs it."""
    files = dict(re.findall(r"(?s)```(?:python|cuda)\n(?:#|//) (\S+)\n(.*?)```", section("The solve form")))
    candidate = SourceFile(name="sum.cu", text=files["sum.cu"])
    reference = SourceFile(name="sum_ref.py", text=files["sum_ref.py"])
    assert recognise(candidate, reference, inputs=None, entry=None, backend=None).form is Form.SOLVE
    assert [p.name for p in solve_parameters(candidate)] == ["a", "b", "c", "n"]
