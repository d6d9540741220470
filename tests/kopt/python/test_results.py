"""Python gets what `--json` prints, with its status and warnings; errors are KoptErrors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import kopt
from kbs.common.json_model import json_value
from kopt.python.results.result import Result
from kopt.python.session import opened, settings
from tests.conftest import ROOT, Run

FILES = ROOT / "tests" / "golden" / "contract" / "files"
WRONG = "H100 SXM HBM bandwidth: 9.9 TB/s <- gpu-wiki/hardware/h100-sxm.md:L61"


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    kopt.close()


def beside(result: BaseModel) -> tuple[Any, Any, Any]:
    """(data, status, warnings) as the envelope has them."""
    data = json_value(result)
    return data, data.pop("status"), data.pop("warnings")


def beside_data(envelope: Mapping[str, Any]) -> dict[str, Any]:
    """What a result has that stands beside `data` in the envelope."""
    return {name: envelope[name] for name in ("status", "warnings")}


@pytest.mark.slow
def test_every_function_gives_what_its_command_prints(
    home: Path, run: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    why, report = "why is my softmax memory-bound on H100", str(FILES / "report.csv")
    sizes, typed = {"M": 4096, "N": 8192}, ["--dims", "M=4096,N=8192", "--bytes", "8*M*N"]
    pairs: list[tuple[Callable[[], Result], list[str]]] = [
        (lambda: kopt.ask(why, home=home), ["ask", why]),
        (lambda: kopt.ask(why, gpu="h200", evidence=True, home=home), ["ask", why, "--gpu", "h200", "--evidence"]),
        (lambda: kopt.ask("best pizza in Rome", home=home), ["ask", "best pizza in Rome"]),
        (
            lambda: kopt.search("bank conflict", kind="profiling", k=2, home=home),
            ["search", "bank conflict", "--kind", "profiling", "--k", "2"],
        ),
        (lambda: kopt.spec("h100-sxm", "hbm_bandwidth", home=home), ["spec", "h100-sxm", "hbm_bandwidth"]),
        (lambda: kopt.spec(["h100-sxm", "h200"], home=home), ["spec", "compare", "h100-sxm", "h200"]),
        (lambda: kopt.spec("h100-sxm", "l2_bandwidth", home=home), ["spec", "h100-sxm", "l2_bandwidth"]),
        (lambda: kopt.spec(home=home), ["spec", "--list"]),
        (lambda: kopt.cite(WRONG, home=home), ["cite", WRONG]),
        (lambda: kopt.cite("nothing is cited", home=home), ["cite", "nothing is cited"]),
        (lambda: kopt.diagnose(report, dims=sizes, bytes="8*M*N", home=home), ["diagnose", report, *typed]),
        (lambda: kopt.ask("why is it slow", profile=report, home=home), ["ask", "why is it slow", "--profile", report]),
        (lambda: kopt.recommend("softmax", home=home), ["log", "recommend", "--kernel", "softmax"]),
    ]
    for call, words in pairs:
        result, envelope = call(), run(home, *words, "--json", cwd=tmp_path).json
        assert beside(result) == (envelope["data"], envelope["status"], envelope["warnings"]), words
        assert json.loads(result.model_dump_json()) == {**envelope["data"], **beside_data(envelope)}
        assert json_value(type(result).model_validate_json(result.model_dump_json())) == json_value(result)
        assert result._repr_html_().startswith("<div")
        assert result._repr_markdown_()
        assert str(result)
        assert repr(result).startswith(f"<{type(result).__name__} {envelope['status']}: ")


@pytest.mark.processes
@pytest.mark.slow
def test_a_kernel_is_checked_and_its_receipt_kept(tmp_path: Path) -> None:
    steps: list[str] = []
    receipt = tmp_path / "receipt.json"
    given: dict[str, Any] = {"device": "cpu", "plan": "signal", "home": tmp_path / "home", "wikis": []}
    right = kopt.bench(
        FILES / "kernel.py", FILES / "ref.py", receipt=receipt, progress=lambda step, *_: steps.append(step), **given
    )
    assert (right.status, right.verdict, right.receipt, right.timing) == ("ok", "accepted", str(receipt), None)
    assert receipt.exists()
    assert steps
    wrong = kopt.bench(FILES / "wrong.py", FILES / "ref.py", **given)
    assert (wrong.status, wrong.verdict) == ("rejected", "incorrect")
    assert Path(wrong.receipt).is_relative_to(tmp_path / "home")
    assert "incorrect" in wrong._repr_html_()
    library, sizes = tmp_path / "library.py", tmp_path / "sizes.jsonl"
    library.write_text((FILES / "ref.py").read_text("utf-8").replace("class Model(", "class ModelNew("), "utf-8")
    sizes.write_text('{"M": 8, "N": 16}\n{"M": 3, "N": 5}\n', "utf-8")
    assert kopt.bench(library, FILES / "ref.py", **given).verdict == "cheating"
    let = kopt.bench(library, FILES / "ref.py", allow_library=True, workloads=sizes, vary="N", **given)
    assert let.verdict == "accepted", let.reason
    kept = Path(let.receipt).read_text("utf-8")
    assert all(f'"N":{n}' in "".join(kept.split()) for n in (5, 16))
    assert not any("--vary" in one for one in let.not_checked)
    with pytest.raises(kopt.UsageError, match=r"not timed|no time"):
        kopt.diagnose(receipt, home=tmp_path / "home")


def test_errors_say_what_to_do(home: Path, tmp_path: Path) -> None:
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("empty_question", lambda: kopt.ask(" ", home=home)),
        ("metric_unknown", lambda: kopt.spec("h100-sxm", "no such metric", home=home)),
        ("filter_unknown", lambda: kopt.search("x", kinds="profiling", home=home)),
        ("argument_invalid", lambda: kopt.search("x", k=0, home=home)),
        ("argument_invalid", lambda: kopt.recommend("softmax", limit=0, home=home)),
        ("argument_invalid", lambda: kopt.bench("k.py", restarts=1, home=home)),
        ("dims_invalid", lambda: kopt.ask("x", dims={"M": 0}, home=home)),
        ("dims_invalid", lambda: kopt.recommend("softmax", dims={"M": object()}, home=home)),  # type: ignore[dict-item]
        ("no_kernel", lambda: kopt.ask("why", launch="softmax", home=home)),
        ("no_kernel", lambda: kopt.ask("why", kernel="k.py", peak="tf32_tensor_throughput", home=home)),
    ]
    for code, call in wrong:
        with pytest.raises(kopt.UsageError) as error:
            call()
        assert error.value.code == code
        assert error.value.hint
    (tmp_path / "kopt.toml").write_text('answer_model = "openai:x"\n', "utf-8")
    with pytest.raises(kopt.ConfigurationError) as refused:
        kopt.spec("h100-sxm", home=home, workspace=tmp_path)
    assert str(home) in refused.value.hint


def test_a_wrong_type_is_a_type_error_that_names_the_argument(home: Path) -> None:
    any_of: Any = lambda value: value  # noqa: E731
    for name, call in (
        ("question", lambda: kopt.ask(any_of(5), home=home)),
        ("gpu", lambda: kopt.ask("x", gpu=any_of(5), home=home)),
        ("gpu", lambda: kopt.spec(any_of([5]), home=home)),
        ("dtype", lambda: kopt.ask("x", dtype=any_of(None), home=home)),
        ("k", lambda: kopt.ask("x", k=any_of("5"), home=home)),
        ("metric", lambda: kopt.spec("h100-sxm", any_of(["hbm_bandwidth"]), home=home)),
        ("tolerance", lambda: kopt.bench("k.py", tolerance=any_of(1e-3), home=home)),
        ("bottleneck", lambda: kopt.recommend("softmax", bottleneck=any_of(None), home=home)),
        ("dims", lambda: kopt.recommend("softmax", dims=any_of((4096, 64)), home=home)),
        ("limit", lambda: kopt.recommend("softmax", limit=any_of(True), home=home)),
        ("restarts", lambda: kopt.bench("k.py", restarts=any_of(2.5), home=home)),
        ("device", lambda: kopt.bench("k.py", device=any_of(0), home=home)),
        ("kernel", lambda: kopt.bench(any_of(print), device="cpu", home=home)),
        ("report", lambda: kopt.diagnose(any_of(5), home=home)),
        ("profile", lambda: kopt.ask("x", profile=any_of(b"p.csv"), home=home)),
        ("profile", lambda: kopt.cite("x", profile=any_of(5), home=home)),
        ("wikis", lambda: kopt.spec("h100-sxm", wikis=any_of([5]), home=home)),
        ("home", lambda: kopt.spec("h100-sxm", home=any_of(5))),
        ("progress", lambda: kopt.spec("h100-sxm", home=home, progress=any_of(True))),
    ):
        with pytest.raises(TypeError, match=f"^{name} is "):
            call()


def test_one_may_be_given_where_several_may_and_errors_name_the_arguments(home: Path, tmp_path: Path) -> None:
    one: dict[str, Any] = {"gpu": "h100-sxm", "home": home}
    assert kopt.ask("roofline of softmax", dims="M=64,N=128", **one) == kopt.ask(
        "roofline of softmax", dims={"M": 64, "N": 128}, **one
    )
    with pytest.raises(kopt.ConfigurationError, match="nowiki"):
        kopt.spec("h100-sxm", wikis=tmp_path / "nowiki", home=home)
    with pytest.raises(kopt.UsageError, match=r"^unknown bottleneck 'mem'\n"):
        kopt.recommend("softmax", bottleneck="mem", home=home)
    names = ("h100-sxm", "h200")
    assert kopt.spec((name for name in names), "hbm_bandwidth", home=home).specs == (  # type: ignore[arg-type]  # wrong on purpose
        kopt.spec(names, "hbm_bandwidth", home=home).specs
    )
    measured = {"M": np.int64(64), "N": np.int32(128)}
    assert kopt.recommend("softmax", dims=measured, home=home) == (  # type: ignore[arg-type]  # wrong on purpose
        kopt.recommend("softmax", dims="M=64,N=128", home=home)
    )
    for empty in ("home", "workspace"):  # of a variable that is not set: never the working folder
        with pytest.raises(kopt.UsageError, match=f"^{empty} is empty"):
            kopt.spec("h100-sxm", **{"home": home, empty: ""})  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(kopt.UsageError, match="no folder"):
        kopt.spec("h100-sxm", home=home, workspace=tmp_path / "nowhere")
    named = kopt.search("bandwidth", product="H100", k=3, home=home)
    assert {one.page for one in named.passages} <= {f"hardware/h100-{kind}" for kind in ("sxm", "pcie", "nvl")}
    assert named.passages
    assert kopt.search("bandwidth", arch="Hopper", k=3, home=home).passages
    with pytest.raises(kopt.UsageError) as near:
        kopt.search("bandwidth", product="h100-smx", home=home)
    assert "h100-sxm" in near.value.hint


@pytest.mark.slow
def test_what_changes_is_seen_by_the_next_call(home: Path, tmp_path: Path, page: Callable[..., str]) -> None:
    wiki = tmp_path / "mine"
    (wiki / "technique").mkdir(parents=True)
    file = wiki / "technique" / "mine.md"

    def said(number: int) -> bool:
        file.write_text(page("technique/mine", f"Zorkulation of warps takes {number} fortnights.[^src]\n\n[^src]: src"))
        found = kopt.search("zorkulation of warps", k=3, home=home, wikis=[wiki])
        return f"{number} fortnights" in "".join(one.text for one in found.passages)

    assert said(3)
    assert said(41)
    with opened(settings(home, [wiki], None)) as engine:
        assert [one.name for one in engine.wikis] == ["gpu-wiki", "mine"]
    assert "fortnights" not in str(kopt.search("zorkulation of warps", k=3, home=home, workspace=tmp_path))


def test_texts_name_parameters_where_a_terminal_has_options(
    home: Path, tmp_path: Path, page: Callable[..., str]
) -> None:
    asked = kopt.ask("is softmax memory-bound on H100", home=home)
    assert {"--dims", "--long"} <= set(re.findall(r"--[a-z]+", asked.answer))  # as `--json` has it
    for text in (str(asked), asked._repr_html_(), asked._repr_markdown_().replace("\\", "")):
        assert "give yours with dims=" in text
        assert "more lines: long=True" in text
        assert not re.search(r"(?<!\w)--(dims|long|profile)\b", text)
    wiki = tmp_path / "mine" / "technique"
    wiki.mkdir(parents=True)
    body = "Zorkulation of warps is seen with `zork --profile all`.[^src]\n\n[^src]: src"
    (wiki / "mine.md").write_text(page("technique/mine", body, title="Zorkulation"), "utf-8")
    quoted = kopt.ask("what is zorkulation of warps", home=home, wikis=wiki.parent)
    assert "zork --profile all" in str(quoted)
