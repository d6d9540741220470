"""Answers and diagnoses from the experience log: counted, quoted and cited, and nothing where it has nothing."""

from __future__ import annotations

import dataclasses
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kbs.answers.model import Answer, Claim, ClaimKind
from kbs.answers.verify import verify
from kbs.common.errors import KoptError
from kbs.common.ulid import new_ulid
from kbs.evidence.file_evidence import FileEvidence
from kbs.evidence.vocabulary import vocabulary
from kbs.experience.experiment import Experiment, Speedup
from kbs.experience.filters import Filter
from kbs.experience.log_evidence import Scope, record_evidence
from kbs.questions.forms import Form
from kbs.questions.question import understand
from kopt.services.engine import Engine
from kopt.services.experience.evidence import log_checker, past_log
from kopt.services.experience.log import open_log
from kopt.services.knowledge import answers
from kopt.services.knowledge.answer_text import answer_text
from kopt.services.settings import load_settings
from tests.conftest import run_kopt
from tests.evaluator.ncu_reports import SOFTMAX, raw_csv
from tests.kopt.test_imports import PROBE

WIDE: dict[str, Any] = {"methods": ("vectorized_access",), "optimization": "Load 16 bytes a thread"}
SPLIT: dict[str, Any] = {"methods": ("split_k",), "optimization": "Split the sum over more blocks"}


def experiment(outcome: str, ratio: float | None = None, **changes: Any) -> Experiment:
    fields: dict[str, Any] = {
        "time": "2026-11-21T14:00:00Z", "kernel": "softmax.py", "op": "softmax", "backend": "triton", "gpu": "H200",
        "dims": {"M": 4096, "N": 8192}, "dtype": "bf16", "bottleneck_before": "memory", "outcome": outcome,
        "speedup": Speedup(median=ratio) if ratio else None, "provenance": "reported", **WIDE,
    }  # fmt: skip
    return Experiment(id=new_ulid(), **{**fields, **changes})


LOGGED = (
    experiment("success", 1.31, lesson="Rows of an odd length need a masked tail."),
    experiment("success", 1.52, dims={"M": 16384, "N": 4096}),
    experiment("neutral", 1.003),
    experiment("regression", 0.91, **SPLIT, observed="The partial sums cost more than they save."),
    experiment("incorrect", **SPLIT),
    experiment("success", 1.2, gpu="A100", dtype="fp32"),
    experiment("success", 1.4, op="matmul", kernel="mm.py", bottleneck_before="compute", **SPLIT),
    experiment("failed", kernel="zorbl.py", op="", gpu="", dtype="", bottleneck_before="", methods=(),
               optimization="Fuse the zorbl with its epilogue"),
)  # fmt: skip


@pytest.fixture
def logged(home: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose log has `LOGGED`."""
    monkeypatch.setenv("KOPT_HOME", str(home))
    engine = Engine(load_settings(workspace=home))
    open_log(engine.settings).append(LOGGED)
    return engine


def ask(engine: Engine, text: str, **more: Any) -> Answer:
    return answers.ask(engine, answers.Asked(text, **more)).answer


def section(answer: Answer, title: str) -> list[Claim]:
    return [claim for one in answer.sections if one.title == title for claim in one.claims]


@pytest.mark.parametrize(
    "text",
    [
        "what did we learn about softmax on H200",
        "what worked for layernorm",
        "did split-k help on matmul",
        "past experiments on softmax",
        "have we tried vectorized loads on softmax",
        "what failed for rmsnorm on A100",
    ],
)
def test_questions_about_the_past(text: str) -> None:
    assert understand(text, vocabulary()).form is Form.EXPERIENCE


@pytest.mark.parametrize(
    "text", ["why is my softmax slow", "how does split-k work", "what is a bank conflict", "how do I speed up softmax"]
)
def test_other_questions(text: str) -> None:
    assert understand(text, vocabulary()).form is not Form.EXPERIENCE


def test_what_we_learned(logged: Engine) -> None:
    answer = ask(logged, "what did we learn about softmax on H200")
    assert not answer.abstained
    assert (answer.dropped, answer.warnings) == (0, [])
    assert answer.direct.startswith(
        "softmax on H200 SXM: 5 experiments: 2 success, 1 neutral, 1 regression, 1 incorrect"
    )
    [worked] = section(answer, "What worked")
    assert worked.text.startswith("vectorized_access: 3 experiments: 2 success, 1 neutral")
    assert "median of 3 speedups 1.31x" in worked.text
    [failed] = section(answer, "What did not work")
    assert failed.text.startswith("split_k: 2 experiments: 1 regression, 1 incorrect")
    assert [claim.text for claim in section(answer, "What was noted")] == [
        "“The partial sums cost more than they save.” (regression, 0.91x)",
        "“Rows of an odd length need a masked tail.” (success, 1.31x)",
    ]
    for claim in answer.claims:
        assert any(item.kind == "log" for item in claim.evidence), claim.text
    cited = {item.hash for claim in answer.claims for item in claim.evidence if item.kind == "log"}
    assert cited <= {one.id for one in LOGGED if one.op == "softmax" and one.gpu == "h200-sxm"}


def test_its_source_lines_are_checked_by_cite(logged: Engine) -> None:
    text = answer_text(ask(logged, "what did we learn about softmax on H200"))
    home = logged.settings.home
    done = run_kopt(home, "cite", "-", "--json", stdin=text)
    assert done.code == 0, done.out
    assert done.json["data"]["ok"] >= 4
    spoiled = text.replace("1.52x", "1.62x")
    assert spoiled != text
    assert run_kopt(home, "cite", "-", stdin=spoiled).code == 4
    open_log(logged.settings).mask(LOGGED[1].id, True, "a busy GPU")
    masked = run_kopt(home, "cite", "-", "--json", stdin=text)
    assert masked.code == 4
    [stale] = [one for one in masked.json["data"]["citations"] if one["status"] != "ok"]
    assert (stale["status"], stale["detail"]) == ("stale", "the record is masked: a busy GPU")


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("what worked for softmax on A100", "softmax on A100"),
        ("what did we learn about softmax on Ampere", "softmax on Ampere: 1 experiment: 1 success"),
        ("what did we learn about softmax on sm_80", "softmax on Ampere: 1 experiment: 1 success"),
        ("did anything help softmax on Ampere", "softmax on Ampere: 1 experiment: 1 success"),
        ("what did we learn about softmax in fp32", "softmax, fp32: 1 experiment"),
        ("past experiments on memory-bound kernels", "all kernels, memory-bound: 6 experiments"),
        ("did split-k help on matmul", "split_k on matrix multiplication: 1 experiment: 1 success"),
        ("did split-k help", "split_k on all kernels: 3 experiments"),
        ("what did we learn about zorbl", "all kernels, “zorbl”: 1 experiment: 1 failed"),
    ],
)
def test_filters(logged: Engine, text: str, starts: str) -> None:
    answer = ask(logged, text)
    assert answer.direct.startswith(starts)
    assert answer.dropped == 0


@pytest.mark.parametrize(
    ("text", "why", "gap"),
    [
        ("what worked for layernorm", "no past experiment is recorded of LayerNorm", "6 of softmax"),
        ("did split-k help on softmax on A100", "PCIe 80 GB, “split k”", "5 on h200-sxm"),
        ("did warp specialization help on softmax", "“warp specialization”", "5 on h200-sxm"),
        ("what did we learn about quuxing", "“quuxing”", "6 of softmax"),
    ],
)
def test_nothing_similar_abstains_and_says_why(logged: Engine, text: str, why: str, gap: str) -> None:
    answer = ask(logged, text)
    assert (answer.abstained, answer.reason) == (True, "no_experience")
    assert why in answer.direct
    assert gap in " ".join(answer.gaps)


def test_an_empty_log_abstains_with_exit_code_3(home: Path) -> None:
    before = set(home.glob("experience*"))  # other tests' commands share the home that this one was copied from
    done = run_kopt(home, "ask", "what did we learn about softmax on H200", "--json")
    assert (done.code, done.json["data"]["reason"]) == (3, "no_experience")
    assert "no past experiment is recorded here" in done.json["data"]["answer"]
    assert set(home.glob("experience*")) == before  # nothing is made where there is nothing to read


def test_masked_records_are_not_told(logged: Engine) -> None:
    for one in LOGGED:
        open_log(logged.settings).mask(one.id, True, "the clock was wrong")
    assert ask(logged, "what did we learn about softmax").reason == "no_experience"
    assert section(ask(logged, "why is my softmax memory-bound on H200"), "Similar past outcomes") == []


def test_other_answers_show_similar_outcomes(logged: Engine) -> None:
    answer = ask(logged, "why is my softmax memory-bound on H200")
    past = section(answer, "Similar past outcomes")
    assert 1 <= len(past) <= 3
    assert past[0].text == "vectorized_access on softmax, H200 SXM, bf16, M=16384 N=4096: success, 1.52x"
    assert answer.dropped == 0
    assert answer.sections[0].claims[0].kind is not ClaimKind.EXPERIENCE
    assert section(ask(logged, "how much memory does the H200 have"), "Similar past outcomes") == []


def test_without_a_log_they_do_not(engine: Engine) -> None:
    assert section(ask(engine, "why is my softmax memory-bound on H200"), "Similar past outcomes") == []


def test_json_has_the_cited_records(logged: Engine) -> None:
    done = run_kopt(logged.settings.home, "ask", "what did we learn about matmul", "--json")
    data = done.json["data"]
    assert [one["reference"] for one in data["experiments"]] == [LOGGED[6].reference]
    evidence = [item for claim in data["claims"] for item in claim["exhibits"]]
    assert {item["kind"] for item in evidence} == {"log", "tally"}
    assert data["claims"][0]["kind"] == "experience"


def test_claims_that_the_log_does_not_bear_out_are_dropped(logged: Engine) -> None:
    first = record_evidence(LOGGED[0])
    said = dataclasses.replace(first, states="success, 2.50x")
    wrong_number = Claim(f"{first.name}: success, 1.31x, or 7.7x", ClaimKind.EXPERIENCE, evidence=(first,))
    words = FileEvidence("log", "", LOGGED[0].id, "", "", "no such words there")
    for claim in (
        Claim(f"{said.name}: {said.states}", ClaimKind.EXPERIENCE, evidence=(said,)),
        wrong_number,
        Claim("It helped.", ClaimKind.EXPERIENCE),
        Claim("It was so.", ClaimKind.EXPERIENCE, evidence=(words,)),
    ):
        answer = Answer("q", "experience")
        answer.add("", [Claim(f"{first.name}: {first.states}", ClaimKind.EXPERIENCE, evidence=(first,)), claim])
        with past_log(logged.settings) as past:
            assert past is not None
            verify(answer, logged.library, logged.terms, past)
        assert answer.dropped == 1, claim.text
        assert len(answer.claims) == 1


def test_a_tally_is_counted_again(logged: Engine) -> None:
    with past_log(logged.settings) as past:
        assert past is not None
        tally = past.tally(Scope(Filter(op="softmax")), "softmax")
        assert past.why_not(tally) == ""
        assert past.why_not(dataclasses.replace(tally, states="9 experiments: 9 success"))
        open_log(logged.settings).append([experiment("failed")])
        past.index.refresh()
        assert "7 experiments" in past.why_not(tally)


def test_a_damaged_index_is_said(logged: Engine) -> None:
    with past_log(logged.settings, lambda _text, _count: ["01"]) as past:
        assert past is not None
        past.index.db.execute("DROP TABLE entries")
        with pytest.raises(KoptError) as caught:
            past.search("softmax", Filter(), 5)
    assert caught.value.code == "index_damaged"
    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)


def test_diagnose_shows_similar_outcomes(logged: Engine, tmp_path: Path) -> None:
    report = tmp_path / "report.csv"
    report.write_text(raw_csv(("softmax_kernel", SOFTMAX)))
    home = logged.settings.home
    done = run_kopt(home, "diagnose", str(report), "--gpu", "h200-sxm")
    assert "Similar past outcomes" in done.out
    lines = re.findall(r"^  (.* <- log/\S+)  \(similarity", done.out, re.MULTILINE)
    assert lines[0].startswith("vectorized_access on softmax, H200 SXM")
    assert run_kopt(home, "cite", lines[0]).code == 0
    data = run_kopt(home, "diagnose", str(report), "--gpu", "h200-sxm", "--json").json["data"]
    assert [one["line"] for one in data["past"]] == lines
    for one in LOGGED:
        open_log(logged.settings).mask(one.id, True, "the clock was wrong")
    again = run_kopt(home, "diagnose", str(report), "--gpu", "h200-sxm", "--json")
    assert again.json["data"]["past"] == []


def test_lines_of_citations_in_json_are_checked_too(logged: Engine) -> None:
    with log_checker(logged.settings) as check:
        assert callable(check)
    done = run_kopt(logged.settings.home, "cite", f'{{"said": "outcome: failed <- {LOGGED[0].reference}"}}', "--json")
    assert (done.code, done.json["data"]["citations"][0]["status"]) == (4, "mismatch")


def test_torch_stays_out(logged: Engine) -> None:
    words = ["ask", "what did we learn about softmax on H200", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=words, heavy=("torch", "triton", "git"))],
        env={**os.environ, "KOPT_HOME": str(logged.settings.home)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "LOADED 0", done.stdout[-300:] + done.stderr[-500:]
