"""Golden answers: facts that must appear and facts that must not, for questions of every kind."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kbs.answers.model import Answer, Claim, ClaimKind, Section
from kbs.evidence.checking import Status, check_citation, check_text
from kopt.services.engine import Engine
from kopt.services.knowledge import answers
from kopt.services.knowledge.answer_text import answer_text

GOLDEN = Path(__file__).parents[2] / "golden" / "questions.jsonl"
QUESTIONS = [json.loads(line) for line in GOLDEN.read_text("utf-8").splitlines()]
TITLE = "why is my softmax memory-bound on H100"


def ask(engine: Engine, text: str, **more: Any) -> Answer:
    return answers.ask(engine, answers.Asked(text, **more)).answer


@pytest.mark.parametrize("golden", QUESTIONS, ids=lambda golden: golden["ask"])
def test_golden(engine: Engine, golden: dict[str, Any]) -> None:
    answer = ask(engine, golden["ask"])
    text = answer_text(answer)
    assert answer.abstained == (golden.get("exit", 0) == 3), text
    assert answer.reason == golden.get("reason", ""), text
    assert answer.dropped == 0, answer.warnings
    for fact in golden["must"]:
        assert re.search(fact, text, re.MULTILINE), f"{fact} is missing in\n{text}"
    for fact in golden.get("must_not", ()):
        assert not re.search(fact, text, re.MULTILINE), f"{fact} stands in\n{text}"
    cited = {citation.path for claim in answer.claims for citation in claim.citations}
    assert set(golden.get("cites", ())) <= cited
    for claim in answer.claims:
        for citation in claim.citations:
            assert check_citation(citation, engine.library).status is Status.OK
    assert all(checked.status is Status.OK for checked in check_text(text, engine.library, engine.terms))


def test_title_question_through_the_command(kopt: Callable[..., Any]) -> None:
    done = kopt("ask", TITLE)
    assert done.code == 0
    first = done.out.splitlines()[0]
    assert first.startswith("Memory-bound: ")
    assert "0.625 FLOP per byte" in first
    assert "20.0 FLOP/byte" in first
    assert re.search(
        r"H100 SXM HBM bandwidth: 3\.35 TB/s <- gpu-wiki/hardware/h100-sxm\.md:L\d+$", done.out, re.MULTILINE
    )
    assert re.search(
        r"H100 SXM FP32 throughput: 66\.9 TFLOPS <- gpu-wiki/hardware/h100-sxm\.md:L\d+$", done.out, re.MULTILINE
    )
    assert "66.9 TFLOPS / 3.35 TB/s = 20.0 FLOP/byte" in done.out
    for variant in ("H100 SXM", "H100 PCIe", "H100 NVL"):
        assert variant in first
    checked = kopt("cite", "-", "--json", stdin=done.out)
    assert checked.code == 0, checked.out
    data = checked.json["data"]
    assert data["failed"] == 0
    pages = {item["reference"].rsplit(":", 1)[0] for item in data["citations"]}
    assert len(pages) >= 5, pages


def test_cited_lines_say_so(kopt: Callable[..., Any]) -> None:
    for metric, figure in (("hbm_bandwidth", "3.35"), ("fp32_throughput", "66.9")):
        envelope = kopt("spec", "h100-sxm", metric, "--json").json
        [row] = [row for row in envelope["data"]["specs"] if row["recommended"]]
        shown = kopt("show", f"gpu-wiki/{row['citation']['path']}:L{row['citation']['line_start']}")
        assert f"| {figure} |" in shown.out


def test_json_is_one_object_and_nothing_else(kopt: Callable[..., Any]) -> None:
    done = kopt("ask", TITLE, "--json")
    envelope = done.json
    assert done.code == 0
    assert set(envelope) == {"schema_version", "command", "status", "data", "warnings", "errors"}
    assert envelope["status"] == "ok"
    data = envelope["data"]
    assert {"question", "answer", "abstained", "reason", "claims", "passages", "experiments", "gaps"} <= set(data)
    claim = data["claims"][0]
    assert {"text", "kind", "citations", "derivation"} <= set(claim)
    assert {"wiki", "path", "line_start", "line_end", "revision", "hash", "quote"} == set(claim["citations"][0])
    assert {"path", "line_start", "line_end", "score"} <= set(data["passages"][0])
    assert kopt("cite", "-", stdin=done.out).code == 0


# --- 12 operations × 8 GPUs × 3 dtypes: bytes, intensity, ridge point and bound against sums made here ----------------

GPUS = {
    "H100 SXM": ("3.35e12", {"fp32": "66.9e12", "bf16": "989.4e12", "fp16": "989.4e12"}),
    "H100 PCIe": ("2000e9", {"fp32": "51.2e12", "bf16": "756e12", "fp16": "756e12"}),
    "H100 NVL": ("3938e9", {"fp32": "60e12", "bf16": "835.5e12", "fp16": "835.5e12"}),
    "H200": ("4.8e12", {"fp32": "67e12", "bf16": "989.5e12", "fp16": "989.5e12"}),
    "A100 SXM 40GB": ("1555e9", {"fp32": "19.5e12", "bf16": "312e12", "fp16": "312e12"}),
    "A100 SXM 80GB": ("2039e9", {"fp32": "19.5e12", "bf16": "312e12", "fp16": "312e12"}),
    "A100 PCIe 40GB": ("1555e9", {"fp32": "19.5e12", "bf16": "312e12", "fp16": "312e12"}),
    "A100 PCIe 80GB": ("1935e9", {"fp32": "19.5e12", "bf16": "312e12", "fp16": "312e12"}),
}
SIZE = {"fp32": 4, "bf16": 2, "fp16": 2}
M, N, K, S = 1024, 2048, 512, 1024


def costs(operation: str, s: int) -> tuple[int, int, int]:
    """(bytes, vector FLOP, tensor FLOP) by hand for the sizes below, `s` bytes an element."""
    return {
        "softmax": (2 * M * N * s, 5 * M * N, 0),
        "layernorm": ((2 * M * N + 2 * N) * s, 7 * M * N, 0),
        "rmsnorm": ((2 * M * N + N) * s, 4 * M * N, 0),
        "row sum": ((M * N + M) * s, M * N, 0),
        "cumsum": (2 * M * N * s, M * N, 0),
        "matmul": ((M * K + K * N + M * N) * s, 0, 2 * M * N * K),
        "gemv": ((M * K + K + M) * s, 2 * M * K, 0),
        "cross entropy": (M * N * s + M * 8 + M * 4, 4 * M * N, 0),
        "gelu": (2 * M * N * s, 9 * M * N, 0),
        "relu": (2 * M * N * s, M * N, 0),
        "swiglu": (3 * M * N * s, 4 * M * N, 0),
        "vector add": (3 * M * N * s, M * N, 0),
        "attention": (4 * 2 * 8 * S * 64 * s, 5 * 2 * 8 * S * S, 4 * 2 * 8 * S * S * 64),
    }[operation]


DIMS = {
    "matmul": {"M": M, "N": N, "K": K},
    "gemv": {"M": M, "K": K},
    "attention": {"B": 2, "H": 8, "S": S, "D": 64},
}


@pytest.mark.parametrize("dtype", SIZE)
@pytest.mark.parametrize(
    "operation",
    [
        "softmax",
        "layernorm",
        "rmsnorm",
        "row sum",
        "cumsum",
        "matmul",
        "gemv",
        "cross entropy",
        "gelu",
        "relu",
        "swiglu",
        "vector add",
        "attention",
    ],
)
def test_operations_on_every_gpu(engine: Engine, operation: str, dtype: str) -> None:
    for gpu, (bandwidth, peaks) in GPUS.items():
        dims = DIMS.get(operation, {"M": M, "N": N})
        answer = ask(engine, f"why is my {dtype} {operation} slow on {gpu}", dims=dims)
        assert not answer.abstained, (gpu, answer.warnings, answer.gaps)
        assert answer.dropped == 0
        steps = {step.name: step for step in answer.claims[0].derivation}
        moved, vector, tensor = costs(operation, SIZE[dtype])
        rate = Decimal(bandwidth)
        # fp16 and bf16 are widened for vector work, so the vector peak is that of fp32.
        peak = {"vector": Decimal(peaks["fp32"]), "tensor": Decimal(peaks[dtype])}
        work = {pipe: flop for pipe, flop in (("vector", vector), ("tensor", tensor)) if flop}
        several = len(work) > 1
        assert steps["bytes"].value == moved, operation
        for pipe, flop in work.items():
            prefix = f"{pipe} " if several else ""
            assert steps[f"{prefix}operations"].value == flop, operation
            assert steps[f"{prefix}intensity"].value == Decimal(flop) / moved
            [ridge] = [s for n, s in steps.items() if n.startswith("ridge point") and (not several or n.endswith(pipe))]
            assert ridge.value == peak[pipe] / rate, (gpu, dtype)
        longest = max(Decimal(flop) / peak[pipe] for pipe, flop in work.items())
        bound = "Compute-bound" if longest > moved / rate else "Memory-bound"
        assert answer.direct.startswith(bound), (gpu, answer.direct)


@pytest.mark.slow
def test_no_operation_or_product_name_in_python() -> None:
    from kbs.evidence.vocabulary import vocabulary

    names = {
        name.lower()
        for terms in (vocabulary().products, vocabulary().operations)
        for term in terms.values()
        for name in (term.id, term.name)
        if name.lower() not in ("sum", "copy", "add", "scan", "transpose", "attention forward", "embedding")
    }
    root = Path(__file__).parents[3]
    for package in ("kbs", "ingest", "wiki", "kopt"):
        for file in (root / package).rglob("*.py"):
            code = "\n".join(
                line
                for line in re.sub(r'""".*?"""', "", file.read_text("utf-8"), flags=re.DOTALL).splitlines()
                if not line.lstrip().startswith("#")
                and not any(shown in line for shown in ("help=", "hint=", "description="))  # examples for a reader
            ).lower()
            found = [name for name in names if re.search(rf"(?<![\w/.-]){re.escape(name)}(?![\w-])", code)]
            assert not found, f"{file.name} names {found}"


@pytest.mark.parametrize(("more", "told"), [(1, "1 more line: --long"), (2, "2 more lines: --long")])
def test_lines_that_are_not_shown_are_counted(more: int, told: str) -> None:
    claims = tuple(Claim(f"claim {n}", ClaimKind.STATEMENT) for n in range(40))
    shown = answer_text(Answer("q", sections=[Section("", ()), Section("Why", claims)])).count("\n  - claim")
    fewer = Answer("q", sections=[Section("", ()), Section("Why", claims[: shown + more])])
    assert told in answer_text(fewer).split("\n")
