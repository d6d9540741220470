"""A proposal from few words: with its kernel read, its parent as the run knows it, and quotations looked up."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from evaluator.source.source_file import SourceFile, is_cuda, read_source
from kbs.common.errors import UsageError
from kbs.evidence.checking import Status
from kopt.services.engine import Engine
from loop.gate.context import GateContext
from loop.gate.texts import selected_citations
from loop.journal.folder import KERNELS
from loop.planning.methods import REWRITE, read_methods
from loop.proposals.few_words import Language, Look, Parent, Words, compose
from loop.proposals.proposal import Proposal
from loop.proposals.request import NextRequest
from loop.run.driver import View

TYPED = {
    "hypothesis.rationale": "--why",
    "hypothesis.single_change": "--change",
    "hypothesis.risk": "--risk",
    "hypothesis.decision_rule": "--keep-if",
    "hypothesis.expected": "--expect",
    "evidence.selected": "--evidence",
    "evidence.queries": "--ask",
    "skipped": "--skip",
    "circumstances": "--circumstances",
    "methods": "--method",
}
"""Field of a proposal → the option that it was made from."""


def read_kernel(path: Path) -> tuple[str, Language]:
    """The text of a new kernel, and its language. Raises `UsageError`."""
    found = read_source(path, "kernel")
    return found.text, language_of(found)


def language_of_text(text: str) -> Language:
    """The language of a kernel without a file: what parses as Python is Python, also with CUDA in its strings."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return language_of(SourceFile(name="", text=text))
    return "python"


def language_of(kernel: SourceFile) -> Language:
    """`cuda` or `python`, as a proposal says it."""
    return "cuda" if is_cuda(kernel) else "python"


def propose(engine: Engine, view: View, said: Words, parent: int | None) -> Proposal:
    """The proposal for the open version. `parent`: the version that was changed; None for the one that the run names.

    UsageError: `proposal_incomplete` with everything that is missing, `version_unknown` for the parent.
    """
    open_version = view.state.current
    assert open_version is not None  # a proposal is wanted
    number = parent if parent is not None else open_version.opened.parent or 0
    if not 0 <= number < open_version.number or not view.state.versions[number].passed:
        passed = ", ".join(f"v{one.number}" for one in view.state.versions if one.passed)
        raise UsageError(
            f"v{number} did not pass, so nothing can start from it", code="version_unknown", hint=f"Passed: {passed}."
        )
    timed = view.record.device != "cpu"
    return compose(said, open_version.number, _parent(view, number), look(engine, view), timed=timed)


def look(engine: Engine, view: View) -> Look:
    """Looks a citation up as the gate does."""
    assert view.state.current is not None
    context = GateContext(
        view.folder, view.record, view.state, engine.library, engine.terms, view.state.current.number, "proposal",
        key=None,
    )  # fmt: skip

    def found(quote: str, reference: str) -> tuple[str, str]:
        checked = selected_citations(quote, reference, context)
        if not checked:
            return "", f"“{reference}” is not a reference"
        result = checked[0].result
        return result.says, result.detail if result.status is not Status.OK else ""

    return found


def _parent(view: View, number: int) -> Parent:
    version, folder = view.state.versions[number], view.folder.version(number)
    name = next((name for name in KERNELS.values() if (folder / name).is_file()), KERNELS["python"])
    text, language = read_kernel(folder / name)
    return Parent(
        version=number,
        kernel=text,
        language=language,
        bottleneck=version.profiled.bottleneck if version.profiled else "",
        receipt=version.result.receipt if version.result else "",
    )


def typed_place(file: str, kernel: str) -> str:
    """`--why` for `proposal.json#hypothesis.rationale`: the option in which a broken place was typed, or `kernel`."""
    name, _, field = file.partition("#")
    if name in KERNELS.values():
        return kernel
    option = next((option for field_name, option in TYPED.items() if field.startswith(field_name)), "")
    return option or file


def typed_fix(text: str) -> str:
    """How a broken rule is mended by whoever typed options: `with --ask` for ``under `evidence.queries` ``."""
    for field, option in TYPED.items():
        text = re.sub(rf"\bunder `{re.escape(field.removeprefix('hypothesis.'))}`", f"with {option}", text)
    return text


def to_skip(engine: Engine, view: View, request: NextRequest) -> dict[str, list[str]]:
    """Method that applies → the methods that a proposal of it must list as skipped: those that come before it on its
    axis, that the parent's profile calls for, and that no version tried. Methods without any are left out."""
    if request.diagnosis is None or not request.facts:
        return {}
    methods, terms = read_methods(engine.library), engine.terms
    product = terms.products.get(view.record.gpu)
    architecture = product.architecture if product else ""
    language = view.record.problem.backend or ("cuda" if request.parent.language == "cuda" else "triton")
    symptoms = {symptom.id for symptom in request.diagnosis.symptoms}
    applies = {method.id for method in request.methods if method.applies}
    tried = {name for version in view.state.versions[: request.version] for name in version.methods}
    found = {}
    for name in sorted(applies - {REWRITE}):
        above = methods.above(methods.by_id[name], architecture, language, symptoms)
        listed = [other.id for other in above if other.id in applies - tried]
        if listed:
            found[name] = listed
    return found
