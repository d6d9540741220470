"""`kopt ask --profile --kernel --ref`: an answer about that very kernel, every figure of it where it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.profiling.profile import read_profile
from evaluator.timing.ceilings import save
from kbs.common import canonical_json as canonical
from kbs.evidence.arithmetic import equation_holds
from kbs.evidence.checking import Status
from kbs.evidence.citation import CitationLine, EvidenceKind, Reference, SpecClaim
from kbs.evidence.file_evidence import FileEvidence
from kopt.services.user_kernel.evidence import FileCheck, checkers
from kopt.services.user_kernel.files import Report, choose
from tests.conftest import Run, run_kopt
from tests.evaluator.ncu_reports import EXPECTED, KERNELS, SOFTMAX, changed, details_csv, raw_csv, without
from tests.evaluator.receipts import KERNEL, REFERENCE, timed_receipt, timing, workload_timing
from tests.kopt.cli.analysis.test_roofline import ceilings

CORPUS = Path(__file__).parents[3] / "evaluator" / "profiles" / "kernels"
KERNEL_FILE, REF = str(CORPUS / "softmax_rows.py"), str(CORPUS / "ref_softmax.py")
Kopt = Callable[..., Run]


@pytest.fixture
def report(tmp_path: Path) -> str:
    """A profile of softmax_rows, with a kernel of PyTorch's beside it that took longer."""
    path = tmp_path / "r.csv"
    other = changed(duration="900.0")
    path.write_text(raw_csv(("softmax_rows", SOFTMAX), ("void at::native::fill<float>(float *)", other)))
    return str(path)


def data(run: Run, code: int = 0) -> dict[str, Any]:
    """What is under `data`."""
    assert run.code == code, run.out + run.err
    found = run.json["data"]
    assert isinstance(found, dict)
    return found


def error(run: Run) -> str:
    """The code of the error."""
    assert run.code == 2, run.out + run.err
    [found] = run.json["errors"]
    assert found["hint"]
    return str(found["code"])


def own(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The claims about the kernel."""
    return [claim for claim in found["claims"] if claim["kind"] in ("measured", "counted", "read")]


# --- all of it --------------------------------------------------------------------------------------------------------


def test_everything_together(kopt: Kopt, report: str) -> None:
    files = ("--profile", report, "--kernel", KERNEL_FILE, "--ref", REF, "--dims", "ROWS=16384,COLS=4096")
    found = data(kopt("ask", "why is it slow", *files, "--long", "--json"))
    assert found["dropped"] == 0
    assert not found["abstained"]
    first = found["claims"][0]
    assert first["kind"] == "measured"
    assert first["text"].startswith("softmax_rows is memory-bound on H200 SXM: memory throughput 88.6 % > 80 %")
    kernel = found["kernel"]
    assert (kernel["bottleneck"], kernel["gpu"], kernel["binding"]) == ("memory-bound", "h200-sxm", "dram_throughput")
    assert (kernel["form"], kernel["backend"], kernel["entry"]) == ("kernelbench", "triton", "ModelNew")
    assert kernel["measured"]["function"] == "softmax_rows"
    assert kernel["measured"]["launch"] == 1, "the slower launch is no kernel of the file"
    [counted] = kernel["counted"]
    moved = 2 * 16384 * 4096 * 4
    assert (counted["bytes"], counted["flop"]) == (moved, {"fp32_throughput": 5 * 16384 * 4096})
    assert counted["intensity"]["fp32_throughput"] == 5 / 8
    assert counted["floor_seconds"] == pytest.approx(moved / 4.8e12)
    text = found["answer"]
    for said in (
        "(268435456 B + 263100000 B) / 128.5 us = 4,136 GB/s",
        "86.2 % of the cited memory bandwidth of H200 SXM",
        f"(268435456 B + 263100000 B) / {moved:,} B = 0.990",
        f"{moved:,} B / 4.8 TB/s / 128.5 us = 87.0 %",
        "0.625 FLOP/byte, below the ridge point of 14.0",
        "long scoreboard stall: 48.2 / 60.1 = 0.8020",
        "H200 SXM HBM bandwidth: 4.8 TB/s <- gpu-wiki/hardware/h200-sxm.md:L",
        "GPU: H200 SXM, since r.csv names NVIDIA H200",
        "operation: softmax, the one operator of the reference",
    ):
        assert said in text, said
    assert "Your kernel itself was not looked at" not in text
    assert {"bottleneck/memory-bound.md", "kernel/softmax.md"} <= {
        citation["path"] for claim in found["claims"] for citation in claim["citations"]
    }


def test_every_figure_stands_in_a_file_and_every_sum_holds(kopt: Kopt, report: str) -> None:
    files = ("--profile", report, "--kernel", KERNEL_FILE, "--ref", REF)
    found = data(kopt("ask", "why is it slow", *files, "--json"))
    assert len(own(found)) >= 10
    for claim in own(found):
        assert claim["exhibits"], claim["text"]
        assert all(equation_holds(step["shown"]) for step in claim["derivation"]), claim
        for item in claim["exhibits"]:
            if item["kind"] == "profile":
                number = item["states"].split()[0]
                assert re.search(rf'"{number[:3]}[\d,.]*"', Path(report).read_text()), item


def test_cite_checks_the_figures_against_the_profile(kopt: Kopt, report: str) -> None:
    shown = kopt("ask", "why is it slow", "--profile", report, "--kernel", KERNEL_FILE).out
    assert kopt("cite", "-", "--profile", report, stdin=shown).code == 0
    alone = kopt("cite", "-", "--json", stdin=shown)
    assert alone.code == 4
    failed = [one for one in alone.json["data"]["citations"] if one["status"] != "ok"]
    assert failed
    assert all("--profile FILE" in one["detail"] for one in failed)
    for old, new in (("88.6 % <-", "88.7 % <-"), ("128.5 us <-", "128.5 ms <-"), ("[1]\n", "[7]\n"),
                     ("dram__bytes_read.sum: ", "dram__bytes_write.sum: ")):  # fmt: skip
        assert old in shown
        assert kopt("cite", "-", "--profile", report, stdin=shown.replace(old, new)).code == 4, new
    rounded = shown.replace("268.435456 Mbyte <-", "268 Mbyte <-")
    assert rounded != shown
    assert kopt("cite", "-", "--profile", report, stdin=rounded).code == 0


@pytest.mark.parametrize("kernel", KERNELS)
def test_class_and_first_symptom_are_those_of_diagnose(kopt: Kopt, tmp_path: Path, kernel: str) -> None:
    (tmp_path / "r.csv").write_text(raw_csv((kernel, KERNELS[kernel])))
    found = data(kopt("ask", "why is my kernel slow", "--profile", "r.csv", "--json", cwd=tmp_path))
    diagnosed = kopt("diagnose", "r.csv", "--json", cwd=tmp_path).json["data"]
    assert (found["kernel"]["bottleneck"], found["kernel"]["symptoms"]) == (
        diagnosed["bottleneck"], [one["symptom"] for one in diagnosed["symptoms"]],
    )  # fmt: skip
    assert found["dropped"] == 0, found["answer"]
    assert found["kernel"]["bottleneck"] == EXPECTED[kernel][0]
    assert f"{kernel} is {EXPECTED[kernel][0]}" in found["claims"][0]["text"]


# --- each alone -------------------------------------------------------------------------------------------------------


def test_the_kernel_alone(kopt: Kopt) -> None:
    found = data(kopt("ask", "why is my softmax slow on H200", "--kernel", KERNEL_FILE, "--json"))
    [claim] = own(found)
    assert claim["text"] == "softmax_rows.py defines softmax_rows."
    assert claim["exhibits"][0]["place"] == "L9"
    assert found["kernel"]["measured"] is None
    assert found["claims"][0]["kind"] == "derived"
    assert any("neither a profile" in gap for gap in found["gaps"])


def test_the_reference_alone(kopt: Kopt) -> None:
    found = data(kopt("ask", "what bounds it", "--ref", REF, "--dims", "ROWS=64,COLS=128", "--gpu", "h200", "--json"))
    assert found["claims"][0]["text"].startswith("Memory-bound by what it must do on H200 SXM: 0.625 FLOP/byte")
    assert found["kernel"]["counted"][0]["bytes"] == 2 * 64 * 128 * 4
    assert any("no profile was given" in gap for gap in found["gaps"])
    nowhere = data(kopt("ask", "what bounds it", "--ref", REF, "--json"))
    assert nowhere["kernel"]["counted"][0]["bound"] == ""
    assert nowhere["claims"][0]["text"].startswith("A kernel for ref_softmax.py must move 1,073,741,824 B")
    assert any("no GPU is named" in gap for gap in nowhere["gaps"])


def test_a_family_is_counted_for_each_variant(kopt: Kopt) -> None:
    found = data(kopt("ask", "is softmax memory-bound on H100", "--ref", REF, "--json"))
    assert [one["gpu"] for one in found["kernel"]["counted"]] == ["H100 SXM", "H100 PCIe", "H100 NVL"]
    assert found["dropped"] == 0


def test_what_cannot_be_counted_is_a_gap_with_why(kopt: Kopt, tmp_path: Path, report: str) -> None:
    ref = tmp_path / "ref.py"
    ref.write_text(Path(REF).read_text().replace("torch.softmax(x, dim=-1)", "torch.from_numpy(x.numpy() + 1)"))
    found = data(kopt("ask", "why is it slow", "--profile", report, "--ref", str(ref), "--json"))
    assert found["kernel"]["counted"] == []
    assert any("compulsory bytes and operations" in gap for gap in found["gaps"])
    assert found["kernel"]["bottleneck"] == "memory-bound"


def test_what_cannot_be_counted_can_be_declared(kopt: Kopt, tmp_path: Path) -> None:
    text = Path(REF).read_text().replace("torch.softmax(x, dim=-1)", "torch.from_numpy(x.numpy() + 1)")
    (tmp_path / "ref.py").write_text(text)
    ask = ("ask", "what bounds it", "--ref", "ref.py", "--dims", "ROWS=64,COLS=128", "--gpu", "h200", "--json")
    said = ("--bytes", "2*ROWS*COLS*4", "--operations", "500*ROWS*COLS")
    none = data(kopt(*ask, cwd=tmp_path))
    assert any("--bytes '2*M*N*4' --operations '5*M*N'" in gap for gap in none["gaps"])
    found = data(kopt(*ask, *said, "--peak", "fp32_throughput", cwd=tmp_path))
    [counted] = found["kernel"]["counted"]
    assert (counted["bytes"], counted["bound"]) == (2 * 64 * 128 * 4, "compute-bound")
    assert found["claims"][0]["text"].startswith("Compute-bound by what it must do on H200 SXM: 62.5 FLOP/byte")
    assert found["dropped"] == 0
    slower = data(kopt(*ask, *said, "--peak", "bf16", cwd=tmp_path))
    assert slower["kernel"]["counted"][0]["bound"] == "memory-bound"
    assert any("--peak" in gap for gap in data(kopt(*ask, *said, cwd=tmp_path))["gaps"])
    assert error(kopt(*ask, "--peak", "hbm_bandwidth", cwd=tmp_path)) == "metric_unknown"


@pytest.mark.parametrize("words", [("--bytes", "4"), ("--operations", "4"), ("--peak", "bf16"), ("--outputs", "y")])
def test_words_about_a_reference_need_one(kopt: Kopt, words: tuple[str, str]) -> None:
    ask = ("ask", "why is it slow", "--json")
    done = kopt(*ask, *words, "--kernel", KERNEL_FILE)
    assert (error(done), words[0] in done.json["errors"][0]["message"]) == ("no_reference", True)
    assert error(kopt(*ask, *words)) == "no_kernel"


def test_a_profile_without_throughputs_is_not_guessed_at(kopt: Kopt, tmp_path: Path) -> None:
    (tmp_path / "u.csv").write_text(raw_csv(("k", without("sm__", "gpu__compute", "gpu__dram"))))
    found = data(kopt("ask", "why is it slow on H200", "--profile", "u.csv", "--ref", REF, "--json", cwd=tmp_path))
    assert found["kernel"]["bottleneck"] == "unknown"
    assert found["gaps"][0].startswith("What bounds k is unknown")
    assert "by what it must do" in found["claims"][0]["text"]


def test_a_gpu_that_no_page_is_about(kopt: Kopt, tmp_path: Path) -> None:
    metrics = {**SOFTMAX, "device__attribute_display_name": ("", "NVIDIA Z1")}
    (tmp_path / "z.csv").write_text(raw_csv(("k", metrics)))
    found = data(kopt("ask", "why is it slow", "--profile", "z.csv", "--json", cwd=tmp_path))
    assert found["kernel"]["headroom"] == []
    assert any("NVIDIA Z1, which is no GPU of the wikis" in gap for gap in found["gaps"])


# --- a receipt --------------------------------------------------------------------------------------------------------


@pytest.fixture
def receipt(tmp_path: Path) -> dict[str, str]:
    """A receipt, its kernel and its reference."""
    texts = {"kernel.py": KERNEL, "reference.py": REFERENCE, "inputs.json": '[["n", 4096]]'}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, "utf-8")
    made = timed_receipt(timing(workload_timing(of_peak=0.91, gb_per_s=4368.0)))
    (tmp_path / "receipt.json").write_bytes(canonical.dumps(made.model_dump(mode="json")))
    return {name: str(tmp_path / name) for name in (*texts, "receipt.json")}


def test_a_receipt_is_degraded_and_gives_its_sizes(kopt: Kopt, receipt: dict[str, str]) -> None:
    files = ("--profile", receipt["receipt.json"], "--kernel", receipt["kernel.py"])
    more = ("--ref", receipt["reference.py"], "--inputs", receipt["inputs.json"])
    found = data(kopt("ask", "why is it slow", *files, *more, "--long", "--json"))
    assert found["dropped"] == 0, found["answer"]
    kernel = found["kernel"]
    assert (kernel["measured"]["grade"], kernel["bottleneck"]) == ("degraded", "memory-bound")
    assert kernel["dims"] == kernel["measured"]["dims"] == {"n": 64}
    assert kernel["counted"][0]["bytes"] == 2 * 64 * 4096 * 4
    assert any("sizes: n=64" in one for one in found["taken"])
    shown = kopt("ask", "why is it slow", *files, *more).out
    assert "<- receipt/" in shown
    cite = ("cite", "-", "--profile", receipt["receipt.json"])
    assert kopt(*cite, stdin=shown).code == 0
    assert " GB/s <-" in shown
    assert kopt(*cite, stdin=shown.replace(" GB/s <-", " TB/s <-")).code == 4


def test_a_receipt_that_was_kept_need_not_be_given(kopt: Kopt, receipt: dict[str, str], home: Path) -> None:
    content = Path(receipt["receipt.json"]).read_bytes()
    id = json.loads(content)["id"]
    line = f"median_us: 95.0 us <- receipt/{id[:12]}#timing.workloads[0].candidate.summary.median_us"
    fields = json.loads(content)["timing"]["workloads"][0]["candidate"]["summary"]
    line = line.replace("95.0", str(fields["median_us"]))
    assert run_kopt(home, "cite", line, "--json").json["data"]["citations"][0]["status"] == "not found"
    kept = home / "receipts" / f"{id[:16]}.json"
    kept.parent.mkdir(exist_ok=True)
    kept.with_name(f"{id[:16]}.plan.json").write_text("{}")
    kept.write_bytes(content)
    assert run_kopt(home, "cite", line).code == 0
    assert run_kopt(home, "cite", line.replace(" us <-", " ms <-")).code == 4
    kept.write_bytes(content[:-40])
    [damaged] = run_kopt(home, "cite", line, "--json").json["data"]["citations"]
    assert damaged["status"] == "not found"
    assert str(kept) in damaged["detail"]


def test_a_receipt_of_something_else(kopt: Kopt, receipt: dict[str, str]) -> None:
    ask = ("ask", "why is it slow", "--profile", receipt["receipt.json"], "--json")
    assert error(kopt(*ask, "--kernel", KERNEL_FILE)) == "profile_of_another"
    assert error(kopt(*ask, "--ref", REF)) == "profile_of_another"
    files = ("--kernel", receipt["kernel.py"], "--ref", receipt["reference.py"], "--inputs", receipt["inputs.json"])
    assert error(kopt(*ask, *files, "--dims", "n=65")) == "profile_of_other_sizes"


# --- contradictions ---------------------------------------------------------------------------------------------------


def test_contradictions_are_named(kopt: Kopt, report: str, tmp_path: Path) -> None:
    ask = ("ask", "why is it slow", "--json")
    other = str(CORPUS / "copy_strided.cu")
    assert error(kopt(*ask, "--profile", report, "--kernel", other)) == "profile_of_another"
    assert error(kopt(*ask, "--profile", report, "--kernel", KERNEL_FILE, "--launch", "2")) == "profile_of_another"
    assert error(kopt(*ask, "--profile", report, "--launch", "nope")) == "report_of_another_kernel"
    assert error(kopt(*ask, "--profile", report, "--gpu", "a100-sxm-80gb")) == "profile_of_another_gpu"
    asked = kopt("ask", "why is my softmax slow on A100 80GB", "--profile", report, "--json")
    assert error(asked) == "profile_of_another_gpu"
    assert error(kopt(*ask, "--profile", str(tmp_path / "none.csv"))) == "file_not_found"
    assert error(kopt(*ask, "--kernel", str(tmp_path / "none.py"))) == "file_not_found"
    assert error(kopt(*ask, "--ref", REF, "--dims", "NONE=3")) == "dims_do_not_fit"
    assert error(kopt(*ask, "--launch", "2")) == "no_kernel"


def test_a_gpu_of_the_question_that_does_not_exist_still_abstains(kopt: Kopt, report: str) -> None:
    found = data(kopt("ask", "why is it slow", "--gpu", "h9000", "--profile", report, "--json"), code=3)
    assert found["reason"] == "unknown_product"


def test_a_profile_that_changes_meanwhile_is_not_quoted(report: str) -> None:
    found = choose(Path(report), "1", None, None, {})
    exhibits = found.stated("duration")
    files = FileCheck(found.report, Path(report))
    assert files.why_not(exhibits[0]) == ""
    invented = FileEvidence(**{**vars(exhibits[0]), "states": "99 us"})
    assert "states" in files.why_not(invented)
    Path(report).write_text(Path(report).read_text().replace("128.5", "12.85"))
    assert "changed since" in files.why_not(exhibits[0])


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("files", [["--profile", "r.csv"], ["--kernel", KERNEL_FILE]], ids=["profile", "kernel"])
def test_no_tensor_library_is_loaded_without_a_reference(built_home: Path, tmp_path: Path, files: list[str]) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(("softmax_rows", SOFTMAX)))
    probe = (
        f"import sys; sys.argv = ['kopt', 'ask', 'why is my softmax slow on H200', *{files!r}]\n"
        "from kopt.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as done:\n    assert not done.code\n"
        "heavy = {'torch', 'triton', 'sentence_transformers', 'matplotlib'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    environment = {**os.environ, "KOPT_HOME": str(built_home)}
    subprocess.run([sys.executable, "-c", probe], check=True, cwd=tmp_path, env=environment, timeout=120)


# --- other files ------------------------------------------------------------------------------------------------------


def test_a_cuda_kernel_with_a_reference_that_sizes_its_buffers(kopt: Kopt, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(raw_csv(("copy_strided(const float *, float *)", KERNELS["copy_strided"])))
    files = ("--kernel", str(CORPUS / "copy_strided.cu"), "--ref", str(CORPUS / "ref_copy_strided.py"))
    asked = ("ask", "why is it slow", "--profile", "r.csv", *files, "--dims", "n=1024,stride=8", "--json")
    found = data(kopt(*asked, cwd=tmp_path))
    assert found["dropped"] == 0, found["answer"]
    kernel = found["kernel"]
    assert (kernel["form"], kernel["backend"], kernel["symptoms"][0]) == ("solve", "cuda", "uncoalesced-access")
    assert kernel["counted"][0]["bytes"] == 2 * 1024 * 4
    assert "useful bytes per sector, loads 4 byte/sector < 16 B" in found["answer"]


def test_the_details_page_has_labels_for_metrics(kopt: Kopt, tmp_path: Path) -> None:
    rows = [
        ("GPU Speed Of Light Throughput", "Duration", "us", "128.5"),
        ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "88.6"),
        ("GPU Speed Of Light Throughput", "Compute (SM) Throughput", "%", "31.4"),
        ("GPU Speed Of Light Throughput", "DRAM Throughput", "%", "88.6"),
    ]
    (tmp_path / "d.csv").write_text(details_csv("softmax_rows", rows))
    shown = kopt("ask", "why is it slow on H200", "--profile", "d.csv", "--kernel", KERNEL_FILE, cwd=tmp_path)
    assert shown.out.startswith("softmax_rows is memory-bound on H200 SXM: "), shown.out
    assert "failed their check" not in shown.out
    assert "that it is H200 SXM is taken from the question" in shown.out
    assert kopt("cite", "-", "--profile", "d.csv", stdin=shown.out, cwd=tmp_path).code == 0


def test_a_measured_ceiling_is_told_beside_the_cited_peak(run: Callable[..., Run], home: Path, report: str) -> None:
    save(home, ceilings())
    found = data(
        run(home, "ask", "why is it slow", "--profile", report, "--launch", "1", "--ref", REF, "--long", "--json")
    )
    assert found["dropped"] == 0, found["answer"]
    assert "of the measured copy 512 MiB of this GPU is reached" in found["answer"]
    assert "nine tenths of the measured ceiling" in found["answer"]
    kinds = {item["kind"] for claim in found["claims"] for item in claim["exhibits"]}
    assert kinds == {"profile", "ceiling", "count"}


def test_text_of_a_report_commands_no_terminal(kopt: Kopt, tmp_path: Path) -> None:
    metrics = {**SOFTMAX, "device__attribute_display_name": ("", "GPU\x1b[31m Z")}
    (tmp_path / "r.csv").write_text(raw_csv(("evil\x1b[2J_kernel", metrics)))
    (tmp_path / "k.py").write_text("import triton\n@triton.jit\ndef other(x):  # \x1b[2J\n    pass\n")
    shown = kopt("ask", "why is it slow on H200", "--profile", "r.csv", cwd=tmp_path)
    assert shown.code == 0
    assert "evil\\x1b[2J_kernel is memory-bound" in shown.out
    file = kopt("ask", "why is my softmax slow on H200", "--kernel", "k.py", cwd=tmp_path)
    refused = kopt("ask", "why is it slow", "--profile", "r.csv", "--kernel", "k.py", cwd=tmp_path)
    assert refused.code == 2
    for text in (shown.out, shown.err, file.out, file.err, refused.err):
        assert "\x1b" not in text


LINES = st.text(st.characters(codec="utf-8"), max_size=40)


@given(name=LINES, value=LINES, place=LINES)
def test_no_line_makes_the_check_fail_other_than_by_saying_no(name: str, value: str, place: str) -> None:
    evidence = Report("profile", "r.csv", "ab" * 32, read_profile(raw_csv(("k", SOFTMAX)).encode(), "r.csv"))
    known = checkers([evidence])
    for part in (place, "gpu__time_duration.sum[1]"):
        reference = Reference(EvidenceKind.PROFILE, "", "abab", part)
        line = CitationLine(1, "", reference, SpecClaim(name, "", value, name))
        status, why, _ = known[EvidenceKind.PROFILE](line)
        assert status is not Status.OK or part.endswith("]")
        assert why or status is Status.OK
