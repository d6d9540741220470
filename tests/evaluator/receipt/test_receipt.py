"""Receipts: what cannot be built, and that bytes and receipts say the same."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from evaluator.receipt.findings import MAX_OUTPUT, CandidateOutput, NotTried, SanitizerRun, TaskCheck, Trial
from evaluator.receipt.problem import DeclaredTolerance, InputsRecord, SourceRecord
from evaluator.receipt.receipt import Receipt, parse, render
from evaluator.receipt.timing import BackToBack, Timing
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.scan.hazards import Hazard, Severity
from kbs.common import canonical_json as canonical
from kbs.common.errors import ExitCode, KoptError, UsageError
from kbs.common.json_model import document_schema
from tests.evaluator.receipts import (
    REFERENCE,
    audit,
    back_to_back,
    baseline,
    content,
    failed_baseline,
    physics,
    plan,
    problem,
    ratio,
    receipt,
    row,
    source_record,
    spans,
    timed_receipt,
    timing,
    trial,
    workload_timing,
)

REALS = st.floats() | st.integers(min_value=-(2**60), max_value=2**60)
ANY_TEXT = st.text(st.characters(), max_size=60) | st.sampled_from(
    ["\ud800", "\ufeff", "\0", "\u2028", "NaN", "…" * 5000]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=20,
)
CEILING = workload_timing().ceiling
CHEAT = Hazard(id="patched", severity=Severity.REJECT, evidence="torch.allclose was replaced")


def test_a_receipt_comes_back_from_its_bytes() -> None:
    made = receipt()
    data = render(made)
    assert render(parse(data)) == data
    assert parse(data).id == made.id
    assert data.endswith(b"}\n")
    json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_the_id_is_the_hash_of_the_content() -> None:
    document = json.loads(render(receipt()))
    del document["seal"]
    id = document.pop("id")
    text = json.dumps(document, sort_keys=True, indent=1, ensure_ascii=False) + "\n"
    assert hashlib.sha256(text.encode()).hexdigest() == id


@settings(deadline=None)
@given(
    st.fixed_dictionaries(dict.fromkeys(("kappa", "rms_ratio", "max_ratio", "expected", "got"), REALS)),
    st.fixed_dictionaries(dict.fromkeys(("rule", "detail", "output", "distribution"), ANY_TEXT)),
)
def test_any_number_and_any_text_come_back(numbers: dict[str, float], texts: dict[str, str]) -> None:
    made = receipt(correctness=(trial(**numbers, **texts, passed=False),), verdict=Verdict.INCORRECT)
    data = render(made)
    again = parse(data)
    assert render(again) == data
    for name, number in numbers.items():
        value = getattr(again.correctness[0], name)
        assert value == float(number) or (math.isnan(value) and math.isnan(number))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"correctness": ()}, "nothing was compared"),
        ({"correctness": (trial(), trial(index=4, passed=False))}, "output result of call 4 failed"),
        ({"hazards": (CHEAT,)}, "the hazard patched rejects"),
        ({"task_check": None}, "the task was not checked"),
        ({"task_check": TaskCheck(refused=True, reasons=("zeros pass",))}, "the task is refused"),
        ({"correctness": (trial(dims={"n": 65}),)}, "the workload .* was not tried"),
        ({"not_tried": ()}, "the distribution small was not tried, and nothing says why"),
        ({"sanitizers": (SanitizerRun(tool="memcheck", status="failed"),)}, "memcheck failed"),
        ({"plan": plan(sanitizers=("racecheck",))}, "nothing says what racecheck found"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_forbids_acceptance(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=f"the verdict is accepted, and {why}"):
        content(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"not_tried": (), "correctness": (trial(), trial(index=1, distribution="small"))},
        {
            "plan": plan(sanitizers=("racecheck",)),
            "sanitizers": (SanitizerRun(tool="racecheck", status="not run", detail="there is no GPU"),),
        },
        {"correctness": (trial(), trial(output="second"))},
    ],
    ids=["every distribution", "a tool that could not run", "two outputs of one call"],
)
def test_what_does_not(changes: dict[str, Any]) -> None:
    assert receipt(**changes).verdict is Verdict.ACCEPTED


@pytest.mark.parametrize("verdict", sorted(set(Verdict) - {Verdict.ACCEPTED, Verdict.CHEATING, Verdict.TASK_REFUSED}))
def test_other_verdicts_need_no_trials(verdict: Verdict) -> None:
    made = receipt(verdict=verdict, correctness=(), task_check=None, not_tried=())
    assert parse(render(made)).verdict is verdict


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"verdict": Verdict.CHEATING}, "no hazard says why"),
        ({"verdict": Verdict.TASK_REFUSED}, "the task check did not refuse it"),
        *[
            ({"improvement": improvement}, "no time was taken")
            for improvement in sorted(set(Improvement) - {Improvement.NOT_TIMED})
        ],
        ({"seed": "0" * 64}, "not the one that the plan committed to"),
        ({"plan": plan(candidate_hash="0" * 64)}, "made for another candidate"),
        ({"plan": plan(reference_hash=None)}, "made for another reference"),
        ({"problem": problem(reference=None, oracle="original kernel")}, "made for another reference"),
        ({"correctness": (trial(), trial())}, "stands in the table twice"),
        ({"reason": ""}, "at least 1 character"),
        ({"seconds": -1.0}, "greater than or equal to 0"),
        ({"more": 1}, "Extra inputs"),
        ({"timing": {}}, "Field required"),
        ({"ceiling": CEILING}, "the ceiling is not that of the first workload"),
        ({"physics": physics()}, "the physics are not those of the first workload"),
    ],
    ids=str,
)
def test_what_contradicts_itself(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        content(**changes)


# --- times ------------------------------------------------------------------------------------------------------------

ALONE = timing(workload_timing(baselines={}, against="", improvement=Improvement.NOT_COMPARED), plan="signal")
SLOWER = timing(workload_timing(baselines={"eager": baseline("eager", 0.9)}, improvement=Improvement.SLOWER))
SAME = timing(workload_timing(baselines={"eager": baseline("eager", 1.0)}, improvement=Improvement.SAME))
CAUGHT = {"verdict": Verdict.CHEATING, "hazards": (CHEAT,)}


@pytest.mark.parametrize(
    ("times", "changes"),
    [
        (timing(), {}),
        (timing(), {"improvement": Improvement.UNSTABLE}),
        (SAME, {"improvement": Improvement.SAME}),
        (SLOWER, {"improvement": Improvement.SLOWER}),
        (ALONE, {"improvement": Improvement.NOT_COMPARED}),
        (timing(), {"improvement": Improvement.UNSTABLE, **CAUGHT}),
        (timing(workload_timing(spans=spans(status="refuted"))), {"improvement": Improvement.UNSTABLE, **CAUGHT}),
        (timing(workload_timing(confirmed=False)), {"improvement": Improvement.UNSTABLE}),
        (
            timing(
                workload_timing(dims={"n": 1}, improvement=Improvement.SLOWER),
                workload_timing(dims={"n": 2}, improvement=Improvement.UNSTABLE),
            ),
            {"improvement": Improvement.SLOWER},
        ),
    ],
    ids=[
        "faster",
        "unstable",
        "same",
        "slower",
        "nothing to compare with",
        "cheating found by times",
        "cheating found by a cross-check",
        "not confirmed",
        "one workload slower, one unstable",
    ],
)
def test_times_that_a_receipt_may_have(times: Timing, changes: dict[str, Any]) -> None:
    made = timed_receipt(times, **changes)
    data = render(made)
    assert parse(data) == made
    assert render(parse(data)) == data


@pytest.mark.parametrize(
    ("times", "changes", "why"),
    [
        (timing(), {"improvement": Improvement.NOT_TIMED}, "there are times"),
        (timing(), {"improvement": Improvement.NOT_COMPARED}, "there is a ratio"),
        (ALONE, {"improvement": Improvement.SAME}, "there is no ratio"),
        (timing(), CAUGHT, "the verdict is cheating"),
        (timing(), {"improvement": Improvement.SLOWER}, "neither the interval"),
        (SLOWER, {"improvement": Improvement.FASTER}, "a workload is slower"),
        (SLOWER, {"improvement": Improvement.SAME}, "a workload is slower"),
        (SAME, {"improvement": Improvement.FASTER}, "reaches down to 1"),
        (timing(workload_timing(improvement=Improvement.UNSTABLE)), {}, "a workload is unstable"),
        (timing(workload_timing(confirmed=False)), {}, "no cross-check confirms"),
        (timing(workload_timing(spans=spans(status="refuted"))), {}, "a cross-check refutes its time"),
        (timing(workload_timing(audit=audit(status="refuted"))), {}, "a cross-check refutes its time"),
        (timing(workload_timing(physics=physics(status="impossible"))), {}, "its time is impossible"),
        (timing(), {"plan": plan(name="signal")}, "by another plan"),
        (timing(), {"plan": plan(workloads=({"n": 65},)), "correctness": (trial(dims={"n": 65}),)}, "not planned"),
        (timing(), {"ceiling": None}, "the ceiling is not that"),
        (timing(), {"physics": physics(bytes=1)}, "the physics are not those"),
    ],
    ids=str,
)
def test_times_that_contradict_a_receipt(times: Timing, changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        timed_receipt(times, **changes)


def test_calls_without_a_pause_are_kept_and_leave_no_trace_where_there_were_none() -> None:
    """A receipt of before there were any must come to the same bytes."""
    made = timed_receipt(timing(workload_timing(back_to_back=back_to_back())))
    assert parse(render(made)) == made
    (workload,) = json.loads(render(made))["timing"]["workloads"]
    assert workload["back_to_back"]["candidate"]["per_call_us"] == 1988.0
    (without,) = json.loads(render(timed_receipt(timing())))["timing"]["workloads"]
    assert "back_to_back" not in without


@pytest.mark.parametrize(
    "changes", [{"ratio": None}, {"ratio": 0.8}, {"baseline": None}, {"candidate": row(per_call_us=0.0)}]
)
def test_a_ratio_without_a_pause_is_that_of_its_rows(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="the ratio is not that of the rows"):
        back_to_back(**changes)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (back_to_back(candidate=row("eager")), "is not the candidate's"),
        (back_to_back(baseline=row("other", per_call_us=1620.0)), "is of no baseline"),
        (back_to_back(baseline=row(per_call_us=1620.0)), "is of no baseline"),
    ],
)
def test_rows_without_a_pause_are_of_those_who_were_timed(found: BackToBack, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        workload_timing(back_to_back=found)


def test_one_workload_twice() -> None:
    with pytest.raises(ValidationError, match="or of one twice"):
        timed_receipt(timing=timing(workload_timing(), workload_timing()))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"against": "", "ratio": ratio()}, "not every workload has"),
        ({"ratio": None}, "there is no ratio to it"),
        ({"ratio": ratio(1.5)}, "not the geometric mean"),
        ({"against": "flashinfer", "ratio": ratio()}, "not every workload has"),
    ],
    ids=str,
)
def test_the_ratio_is_that_of_its_workloads(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        timing(workload_timing(baselines={"eager": baseline(), "flashinfer": failed_baseline()}), **changes)


@pytest.mark.parametrize("wrong", [{"id": "0" * 64}, {"plan_hash": "0" * 64}])
def test_hashes_that_do_not_fit(wrong: dict[str, str]) -> None:
    fields = {name: getattr(receipt(), name) for name in Receipt.model_fields}
    with pytest.raises(ValidationError, match="is not the"):
        Receipt(**{**fields, **wrong})


def test_a_receipt_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        receipt().verdict = Verdict.CHEATING


def test_source_and_problem_have_their_own_hashes() -> None:
    with pytest.raises(ValidationError, match="not that of the text"):
        SourceRecord(name="a.py", text="a", hash=source_record("a.py", "b").hash)
    with pytest.raises(ValidationError, match="not that of the text"):
        InputsRecord(name="inputs.json", kind="shapes", hash="0" * 64, text="[[8]]")
    assert InputsRecord(name="inputs.npz", kind="npz", hash="0" * 64, text=None).text is None
    fields = problem().model_dump()
    with pytest.raises(ValidationError, match="not that of the problem"):
        type(problem())(**{**fields, "allow_library": False})


def test_the_problem_is_the_same_whatever_was_measured_of_its_tolerance() -> None:
    def declared(atol: float, looser: bool | None) -> str:
        return problem(
            tolerance=DeclaredTolerance(atol=atol, rtol=0, declared_by="reference", looser=looser)
        ).hash  # fmt: skip

    assert declared(1e-3, True) == declared(1e-3, None)
    assert declared(1e-3, True) != declared(1e-2, True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"reference": None},
        {"setup_from": "candidate"},
        {"setup_hash": "0" * 64},
        {"workloads": ()},
        {"form": "other"},
    ],
    ids=str,
)
def test_problems_that_make_no_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        problem(**wrong)


def test_a_reference_file_may_hold_an_original_kernel() -> None:
    assert problem(oracle="original kernel").reference == source_record("reference.py", REFERENCE)


@pytest.mark.parametrize("wrong", [{"refused": True}, {"refused": False, "reasons": ("zeros pass",)}], ids=str)
def test_a_task_is_refused_for_a_reason(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="exactly where there is a reason"):
        TaskCheck(**wrong)


def test_what_was_not_tried_has_a_reason() -> None:
    with pytest.raises(ValidationError):
        NotTried(what="small", why="")


def test_long_descriptions_are_cut_and_sources_are_not() -> None:
    made = trial(detail="d" * 10**6)
    assert len(made.detail) == canonical.MAX_LINE
    assert made.detail.endswith(" …")
    assert len(source_record("a.py", "#" * 10**6).text) == 10**6


@settings(deadline=None)
@given(st.text(max_size=3 * MAX_OUTPUT))
def test_the_tail_is_the_end_of_what_was_printed(text: str) -> None:
    kept = CandidateOutput.tail(text)
    assert kept.untrusted
    assert text.endswith(kept.text)
    assert kept.text == text if len(text) <= MAX_OUTPUT else len(kept.text) <= MAX_OUTPUT


def test_the_tail_begins_with_a_whole_line() -> None:
    assert CandidateOutput.tail("x" * 500 + "\n" + "y" * 3900 + "\n").text == "y" * 3900 + "\n"
    assert CandidateOutput.tail("x" * 5000 + "\n").text == "x" * 3999 + "\n"


# --- bytes that are no receipt ----------------------------------------------------------------------------------------


def refused(data: bytes) -> UsageError:
    """The error that parsing ends with."""
    with pytest.raises(UsageError) as caught:
        parse(data)
    assert caught.value.code == "receipt_invalid"
    assert caught.value.exit_code is ExitCode.USAGE
    assert caught.value.hint
    assert "\n" not in caught.value.message
    return caught.value


@settings(deadline=None)
@given(st.binary())
def test_random_bytes(data: bytes) -> None:
    refused(data)


@settings(deadline=None)
@given(JSON)
def test_random_json(value: object) -> None:
    refused(json.dumps(value).encode())


@pytest.mark.slow
@given(st.sampled_from(list(Receipt.model_fields)), JSON)
@settings(max_examples=200, deadline=None)
def test_a_field_that_says_something_else(name: str, value: object) -> None:
    document = json.loads(render(receipt()))
    if value != document[name]:
        refused(json.dumps({**document, name: value}).encode())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not JSON"),
        (b"[]", "another kind"),
        (b"{}", "another kind"),
        (b'{"kind": "kopt-plan"}', "another kind"),
        (b"\xff\xfe", "not UTF-8 at byte 0"),
        (b"\xef\xbb\xbf{}", "not JSON"),
        (b'{"kind": "kopt-receipt", "kind": "kopt-receipt"}', "the key 'kind' twice"),
        (b'{"kind": "kopt-receipt", "schema_version": 1}', "schema version 1"),
        (b'{"kind": "kopt-receipt", "schema_version": 2}', "not whole"),
        (b'{"kind": NaN}', "NaN"),
        (b'{"kind": -Infinity}', "Infinity"),
        (b'{"kind": 1e999}', "1e999"),
        (b'{"kind": ' + b"9" * 5000 + b"}", "digits"),
        (b"[" * 100_000, "nested deeper"),
        (b"[" * 100 + b"]" * 100, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
        (b"\x89PNG\r\n\x1a\n", "not UTF-8"),
    ],
)
def test_what_is_wrong_is_said(data: bytes, says: str) -> None:
    assert says in refused(data).message


def test_a_document_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    data = render(receipt())
    monkeypatch.setattr(canonical, "MAX_BYTES", len(data) - 1)
    assert "larger than" in refused(data).message
    with pytest.raises(KoptError) as caught:
        render(receipt())
    assert caught.value.code == "receipt_too_large"


def test_white_space_and_order_mean_nothing_to_a_reader() -> None:
    made = receipt()
    document = json.loads(render(made))
    assert parse(json.dumps(dict(reversed(document.items())), indent=4).encode()).id == made.id


@pytest.mark.processes
def test_reading_a_receipt_needs_no_torch() -> None:
    code = (
        "import sys; from evaluator.receipt.receipt import parse; from evaluator.store.seal import verify;"
        " parse(sys.stdin.buffer.read()); print(sorted({'torch', 'triton', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=render(receipt()), capture_output=True, check=True)
    assert done.stdout == b"[]\n"


# --- the published schema ---------------------------------------------------------------------------------------------


def test_every_field_is_described() -> None:
    schema = document_schema(Receipt)
    models = {"Receipt": schema, **schema["$defs"]}
    bare = [
        f"{model}.{name}"
        for model, described in models.items()
        for name, field in described.get("properties", {}).items()
        if not field.get("description")
    ]
    assert bare == []


def test_the_schema_fits_the_documents() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    checker = jsonschema.Draft202012Validator(Receipt.model_json_schema(mode="serialization"))
    document = json.loads(render(receipt()))
    assert document["correctness"][1]["kappa"] == "NaN"
    assert not list(checker.iter_errors(document))
    document["correctness"][1]["kappa"] = "nan"
    assert list(checker.iter_errors(document))


@settings(deadline=None)
@given(REALS)
def test_reals_in_json(value: float) -> None:
    class Holder(BaseModel):
        real: canonical.Real

    written = Holder(real=value).model_dump(mode="json")["real"]
    assert isinstance(written, float) if math.isfinite(value) else written in ("NaN", "Infinity", "-Infinity")
    read = Holder.model_validate({"real": written}).real
    assert read == float(value) or math.isnan(read) == math.isnan(value) is True


@pytest.mark.parametrize("text", ["nan", "inf", "1.5", "", "infinity"])
def test_other_strings_are_no_reals(text: str) -> None:
    with pytest.raises(ValidationError):
        Trial.model_validate({**trial().model_dump(), "kappa": text})
