"""The diagnosis of the corpus: of reports taken on an H200, and of what was PREDICTED before they were there."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from pathlib import Path

import pytest

from evaluator.diagnosis.bottleneck import Diagnosis
from evaluator.profiling.profile import Launch, read_profile
from evaluator.source.cuda_signature import evaluate_size
from kopt.services.diagnosis import diagnose_launch, task_of
from kopt.services.engine import Engine
from kopt.services.work_counts import ProblemWork, declare
from tests.evaluator.ncu_reports import raw_csv
from tests.evaluator.profiles.corpus import REPORTS, Expected, load
from tests.kopt.diagnosis_numbers import stray_numbers
from tests.kopt.profile_predictions import PREDICTED

CORPUS = load()
ROWS = {row.id: row for row in CORPUS.profile}
TAKEN = [row for row in CORPUS.profile if (REPORTS / f"{row.id}.full.csv").is_file()]


def full_report(row: Expected) -> Launch:
    """The launch in its report with all sections."""
    path = REPORTS / f"{row.id}.full.csv"
    return read_profile(path.read_bytes(), path.name).choose().launch


def of(engine: Engine, row: Expected, launch: Launch) -> Diagnosis:
    """The diagnosis with the bytes that the row declares."""
    said = {"bytes": declare("bytes", row.bytes, row.dims)}
    task = task_of(engine, launch, "", ProblemWork(None, said))
    assert task.problem.bytes == evaluate_size(row.bytes, row.dims)
    return diagnose_launch(engine, launch, "", task=task).diagnosis


def differences(row: Expected, found: Diagnosis) -> list[str]:
    """What is not as the row says."""
    ids = [finding.symptom.id for finding in found.symptoms]
    binding = found.binding.metric if found.binding else None
    first = ids[0] if ids else None
    return [
        *([f"class {found.bottleneck.value}, not {row.bottleneck}"] if found.bottleneck != row.bottleneck else ()),
        *([f"first {first}, not {row.first_symptom}"] if first != row.first_symptom else ()),
        *([f"resource {binding}, not {row.resource}"] if binding != row.resource else ()),
        *(f"no {id}" for id in row.also if id not in ids),
        *(f"{id}, which would be false" for id in row.never if id in ids),
    ]


@pytest.mark.parametrize("id", PREDICTED)
def test_prediction_is_diagnosed_as_expected(engine: Engine, id: str) -> None:
    launch = read_profile(raw_csv((id, PREDICTED[id])).encode(), "prediction").choose().launch
    found = of(engine, ROWS[id], launch)
    assert differences(ROWS[id], found) == [], [f.symptom.id for f in found.symptoms]


def test_all_of_the_corpus_is_predicted() -> None:
    assert set(PREDICTED) == set(ROWS)


OTHERWISE = {"histogram_hot_bin": ["resource stall_drain, not stall_lg_throttle"]}
"""What the reports show and the table did not expect. Its `risk` leaves open which stall leads: a warp of this kernel
ends with its additions, and waits for them after its last instruction, which is `drain`."""


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row.id)
def test_report_is_diagnosed_as_expected(engine: Engine, row: Expected) -> None:
    found = of(engine, row, full_report(row))
    assert differences(row, found) == OTHERWISE.get(row.id, []), [f.symptom.id for f in found.symptoms]


def test_bar(engine: Engine) -> None:
    if not TAKEN:
        pytest.skip("no profile was taken yet")
    counted = [row for row in TAKEN if row.counts]
    first = {row.id: of(engine, row, full_report(row)) for row in counted}
    right = [row.id for row in counted if (first[row.id].bottleneck, first[row.id].symptoms[0].symptom.id)
             == (row.bottleneck, row.first_symptom)]  # fmt: skip
    assert len(right) >= 12, sorted(set(first) - set(right))


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row.id)
def test_every_number_of_a_report_s_diagnosis_stands_in_it_or_in_arithmetic(engine: Engine, row: Expected) -> None:
    path = REPORTS / f"{row.id}.full.csv"
    chosen = read_profile(path.read_bytes(), path.name).choose()
    said = {"bytes": declare("bytes", row.bytes, row.dims)}
    task = task_of(engine, chosen.launch, "", ProblemWork(None, said))
    found = diagnose_launch(engine, chosen.launch, "", task=task)
    counters = chosen.launch.counters.values()
    known = {number for counter in counters for number in (counter.amount, counter.value) if number is not None}
    known |= {Decimal(size) for size in (*row.dims.values(), task.problem.bytes or 0)}
    assert stray_numbers(path.name, chosen, found, frozenset(known)) == []


@pytest.mark.parametrize("row", TAKEN, ids=lambda row: row.id)
def test_basic_set_is_enough_for_the_class(engine: Engine, row: Expected) -> None:
    """The report without what `ncu --set basic` does not count."""
    counted = _rows(next(iter(sorted(REPORTS.glob("*.basic.csv")))))[0]
    rows = _rows(REPORTS / f"{row.id}.full.csv")
    kept = [place for place, name in enumerate(rows[0]) if name in counted]
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerows([cells[place] for place in kept] for cells in rows)
    found = of(engine, row, read_profile(out.getvalue().encode(), "basic").choose().launch)
    assert found.bottleneck == row.bottleneck
    assert not {finding.symptom.id for finding in found.symptoms} & set(row.never)


def _rows(report: Path) -> list[list[str]]:
    lines = report.read_text("utf-8").splitlines()
    return list(csv.reader(line for line in lines if not line.startswith("==")))
