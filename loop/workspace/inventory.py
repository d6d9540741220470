"""Finds kernel, reference, inputs and hints in a workspace, by the content of files and not by their names.

Nothing is executed. If several files fit, they are listed and none is chosen.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from evaluator.source.cuda_signature import exported_functions
from evaluator.source.forms import Backend, Form, Recognised, recognise
from evaluator.source.languages import HIP, check_language, language_of
from evaluator.source.python_source import Definitions, definitions, has_triton_kernel, imported, parse
from evaluator.source.source_file import MAX_BYTES, SourceFile, is_cuda, read_source
from kbs.common.errors import UsageError
from kbs.common.visible_text import visible
from loop.journal.folder import HINTS, JOURNAL, RECORD
from loop.workspace.data_files import DATA, kind_of_data
from loop.workspace.first_kernel import FirstKernel, file_name, of_reference

DEEP = 3
"""Levels of folders below the workspace that are searched."""
MOST = 2000
"""Limit of files: a workspace with more is a home folder, or a mistake."""
_LEFT_OUT = {"runs", "node_modules", "site-packages", "venv", "env", "build", "dist", "third_party"}
_SOURCES = (".py", ".cu", ".hip")
_ARRAYS = (".npz", ".safetensors", ".pt", ".pth")
_LISTED = 8
"""Files that an error lists."""
STRAYS = 20
"""Files of data that a plan names."""


@dataclass(frozen=True)
class Source:
    """A source file, and what it could be."""

    path: Path
    file: SourceFile
    kernel: str
    """Why it could be the kernel; empty if it could not."""
    reference: str
    """Why it could be the reference."""
    inputs: str
    """Why it could be a file of inputs."""


@dataclass(frozen=True)
class Inventory:
    """The files of a run."""

    workspace: Path
    kernel: Path
    """Where there is no kernel: the file that one would have."""
    reference: Path
    inputs: Path | None
    hints: Path | None
    recognised: Recognised
    """How the kernel is called, and what it is compared with."""
    why: dict[str, str]
    """kernel, reference, inputs, hints → why that file."""
    passed_over: tuple[str, ...]
    """Other files that could have been one of them, each with what it is."""
    strays: tuple[str, ...] = ()
    """Files of data and text that lie about, each with what it is."""
    made: FirstKernel | None = None
    """The kernel that is made where there is none; None where there is one."""

    @property
    def kernel_source(self) -> SourceFile:
        """The kernel, as it is in its file or as it was made. Raises `UsageError` where it cannot be read."""
        return self.made.file if self.made is not None else read_source(self.kernel, "kernel")

    def starting_from(self, first: FirstKernel) -> Inventory:
        """The same files with another made kernel. Raises `UsageError` where it does not fit the reference."""
        found = recognise(
            first.file, read_source(self.reference, "reference"), inputs=self.inputs.name if self.inputs else None,
            entry=None, backend=None,
        )  # fmt: skip
        return replace(self, made=first, recognised=found, why={**self.why, "kernel": first.why})

    @property
    def not_used(self) -> tuple[str, ...]:
        """Every file that is named and not used."""
        return (*self.passed_over, *self.strays)


@dataclass
class _Search:
    """What is wanted, and what the workspace has."""

    workspace: Path
    entry: str | None
    backend: str | None
    knowledge: frozenset[Path] = frozenset()
    """Folders of notes, which are not looked into."""
    sources: list[Source] = field(default_factory=list)
    arrays: list[Path] = field(default_factory=list)
    hints: list[Path] = field(default_factory=list)
    strays: list[Path] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Fit:
    """A kernel, a reference and inputs that belong together."""

    kernel: Source
    reference: Source
    inputs: Path | None
    recognised: Recognised


def take(
    workspace: Path,
    *,
    kernel: Path | None = None,
    reference: Path | None = None,
    inputs: Path | None = None,
    entry: str | None = None,
    backend: str | None = None,
    knowledge: Sequence[Path] = (),
) -> Inventory:
    """Search a workspace. A file given as an argument is used as that, and may be anywhere. `knowledge`: folders of
    notes, which are not looked into.

    Raises `UsageError`: `workspace_unreadable`, `workspace_too_large`; `kernel_not_found`, `reference_not_found`,
    `kernel_ambiguous`, `reference_ambiguous`, `inputs_ambiguous`, `hints_ambiguous`, each with the candidates;
    `setup_in_kernel`; for files that are named, what `evaluator.source.forms` raises. `ConfigurationError`
    (`language_missing`) where the only kernel is in HIP.
    """
    search = _Search(workspace, entry, backend, frozenset(path.resolve() for path in knowledge))
    _look(search)
    kernels = [_named(kernel, "kernel")] if kernel else [one for one in search.sources if one.kernel]
    if kernels and all(language_of(one.file) is HIP for one in kernels):
        check_language(kernels[0].file)  # raises: nothing here can be run
    kernels = [one for one in kernels if language_of(one.file) is not HIP]
    references = [_named(reference, "reference")] if reference else [one for one in search.sources if one.reference]
    made = _made(search, references) if not kernels else {}
    if not kernels and not made:
        raise _none(search, "kernel", 'one with a Triton kernel, ModelNew, run_kernel, or extern "C" in a .cu file')
    if not references:
        raise _none(search, "reference", "one with Model and get_inputs, reference(...), or the kernel's own function")
    fits, against = _fits(search, kernels, references, inputs)
    for one, reference_of_it in made.values():
        found, why_not = _fits(search, [one], [reference_of_it], inputs)
        fits, against = [*fits, *found], [*against, *why_not]
    if not fits:
        raise _misfit(search, kernels or [one for one, _ in made.values()], references, against)
    if made:  # which reference it is says which kernel is made
        fits = _one(fits, "reference", lambda fit: fit.reference.path, lambda fit: fit.reference.reference, search)
    # A kernel in a language of kernels is preferred to plain PyTorch.
    strong = [
        fit
        for fit in fits
        if fit.kernel.kernel and (fit.recognised.backend is not Backend.TORCH or language_of(fit.kernel.file))
    ]
    chosen = _one(strong or fits, "kernel", lambda fit: fit.kernel.path, lambda fit: fit.kernel.kernel, search)
    chosen = _one(
        [fit for fit in chosen if fit.recognised.form is chosen[0].recognised.form],
        "reference",
        lambda fit: fit.reference.path,
        lambda fit: fit.reference.reference,
        search,
    )
    fit = _one(chosen, "inputs", lambda fit: fit.inputs, lambda _: "inputs", search)[0]
    if fit.recognised.setup_from == "candidate":
        raise UsageError(
            f"the inputs are made by setup in {fit.kernel.path.name}, the file that the run would change",
            code="setup_in_kernel",
            hint="Move setup(**dims) into the reference, or into a file that --inputs names.",
        )
    hints = _hints(search)
    first = of_reference(fit.reference.file, fit.kernel.path.name, compiled=False) if made else None
    why = {
        "kernel": first.why if first else fit.kernel.kernel or "named",
        "reference": fit.reference.reference or "named",
    }
    if fit.inputs is not None:
        why["inputs"] = "named" if inputs else "the only inputs of this workspace"
    if hints is not None:
        why["hints"] = f"named {hints.name}"
    used = {fit.kernel.path, fit.reference.path, fit.inputs}
    others = [
        f"{_shown(search, one.path)}: {one.kernel or one.reference or one.inputs}"
        for one in search.sources
        if one.path not in used and (one.kernel or one.reference or one.inputs)
    ]
    data = [path for path in (*search.strays, *search.arrays) if path not in used]
    strays = [f"{_shown(search, path)}: {kind_of_data(path)}" for path in data]
    return Inventory(
        workspace, fit.kernel.path, fit.reference.path, fit.inputs, hints, fit.recognised, why, tuple(others),
        (*strays[:STRAYS], *([f"{len(strays) - STRAYS} more files of data or text"] if len(strays) > STRAYS else [])),
        first,
    )  # fmt: skip


def _made(search: _Search, references: Sequence[Source]) -> dict[Path, tuple[Source, Source]]:
    """Path → (the reference as a kernel, the reference). None where a file was meant as a kernel: it is not passed over
    in silence."""
    if search.unread or any(_meant_as_kernel(one.file) for one in search.sources):
        return {}
    found = {}
    for reference in references:
        if is_cuda(reference.file):
            continue
        path = search.workspace / file_name(reference.path)
        first = of_reference(reference.file, path.name, compiled=False)
        if first is not None and not path.exists():
            found[path] = (Source(path, first.file, first.why, "", ""), reference)
    return found


# --- looking ----------------------------------------------------------------------------------------------------------


def _look(search: _Search) -> None:
    root = search.workspace
    if not root.is_dir():
        raise UsageError(
            f"{root} is not a folder that can be read",
            code="workspace_unreadable",
            hint="Give the folder that holds the kernel and its reference, or the kernel itself with --kernel.",
        )
    count = 0
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        depth = len(here.relative_to(root).parts)
        if depth and {RECORD, JOURNAL} <= set(names):
            folders.clear()  # a run: its kernels are no kernels of the workspace
            continue
        folders[:] = sorted(
            name
            for name in folders
            if depth < DEEP
            and not name.startswith((".", "__"))
            and name not in _LEFT_OUT
            and not (search.knowledge and (here / name).resolve() in search.knowledge)
        )
        for name in sorted(names):
            count += 1
            if count > MOST:
                raise UsageError(
                    f"{root} holds more than {MOST:,} files",
                    code="workspace_too_large",
                    hint="Give the folder of one kernel, or name the files with --kernel and --ref.",
                )
            path = here / name
            if name.startswith(".") or not path.is_file():
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
                search.unread.append(f"{_shown(search, path)} is a link that leads out of the workspace")
            else:
                _sort(search, path, depth)


def _sort(search: _Search, path: Path, depth: int) -> None:
    suffix = path.suffix.lower()
    if depth == 0 and path.name.casefold() == HINTS.casefold():
        search.hints.append(path)
    elif suffix in _ARRAYS or (suffix == ".json" and _describes_inputs(path)):
        search.arrays.append(path)
    elif suffix in _SOURCES:
        try:
            found = _classified(path, read_source(path, "file"))
        except UsageError as error:
            search.unread.append(f"{_shown(search, path)}: {error.message}")
            return
        search.sources.append(found)
    elif suffix in DATA:
        search.strays.append(path)


def _meant_as_kernel(file: SourceFile) -> bool:
    """Whether a file is in a language of kernels, whatever it lacks to be one."""
    if is_cuda(file) or language_of(file) is not None:
        return True
    return any(name.partition(".")[0] == "triton" for name in imported(parse(file.name, file.text)))


def _describes_inputs(path: Path) -> bool:
    """Whether a JSON file describes inputs: it has shapes, or names a file of raw numbers."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return False
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    if isinstance(found, dict):
        return isinstance(found.get("file"), str) or (bool(found) and all(map(_shape, found.values())))
    return isinstance(found, list) and bool(found) and all(map(_shape, found))


def _shape(item: object) -> bool:
    """`[64, "N"]`, or `{"shape": [64, "N"], …}`."""
    sizes = item.get("shape") if isinstance(item, dict) else item
    return isinstance(sizes, list) and all(type(n) is int or isinstance(n, str) for n in sizes)


def _classified(path: Path, file: SourceFile) -> Source:
    language = language_of(file)
    if language is HIP:
        return Source(path, file, f"a kernel in {language.name}", "", "")
    if is_cuda(file):
        names = exported_functions(file)
        return Source(path, file, f'extern "C" {", ".join(names[:3])}' if names else "", "", "")
    tree = parse(file.name, file.text)
    own = definitions(tree)
    triton = has_triton_kernel(tree)
    kernel = (
        "class ModelNew"
        if own.has_class("ModelNew")
        else "function run_kernel"
        if own.callable("run_kernel")
        else "a Triton kernel"
        if triton
        else ""
    )
    if language is not None:
        kernel = f"{kernel or 'a kernel'} in {language.name}"
    return Source(
        path,
        file,
        kernel,
        _as_reference(own, triton or language is not None),
        "get_inputs" if own.callable("get_inputs") else "",
    )


def _as_reference(own: Definitions, triton: bool) -> str:
    if own.has_class("Model") and own.callable("get_inputs"):
        return "class Model and get_inputs"
    if own.callable("reference"):
        return "function reference"
    public = [name for name in own.functions if not name.startswith(("_", "test_")) and name != "get_inputs"]
    if public and not triton and not own.classes and "run_kernel" not in public:
        return f"function {', '.join(public[:3])}"
    return ""


def _named(path: Path, role: str) -> Source:
    found = read_source(path, role)
    try:
        known = _classified(path, found)
    except UsageError:
        known = Source(path, found, "", "", "")
    return Source(path, found, known.kernel or "named", known.reference or "named", known.inputs)


# --- choosing ---------------------------------------------------------------------------------------------------------


def _fits(
    search: _Search, kernels: Sequence[Source], references: Sequence[Source], inputs: Path | None
) -> tuple[list[_Fit], list[str]]:
    """(combinations that fit, why the others do not)"""
    fits: list[_Fit] = []
    against: list[str] = []
    for kernel in kernels:
        for reference in references:
            given = [inputs] if inputs else [None, *search.arrays, *_makers(search, kernel, reference)]
            for one in given:
                try:
                    known = recognise(
                        kernel.file, reference.file, inputs=one.name if one else None, entry=search.entry,
                        backend=search.backend,
                    )  # fmt: skip
                except UsageError as error:
                    against.append(
                        f"{_shown(search, kernel.path)} with {_shown(search, reference.path)}: {error.message}"
                    )
                    continue
                if known.oracle != "reference":
                    against.append(f"{_shown(search, reference.path)} is a kernel itself, not a reference")
                    continue
                fits.append(_Fit(kernel, reference, one, known))
                if one is None:
                    break  # the reference makes the inputs: no file is needed
    apart = [fit for fit in fits if fit.kernel.path != fit.reference.path]
    return apart or fits, list(dict.fromkeys(against))


def _makers(search: _Search, kernel: Source, reference: Source) -> list[Path]:
    """Files with get_inputs; only the reference if it is one of them."""
    makers = [one.path for one in search.sources if one.inputs and one.path != kernel.path]
    return [reference.path] if reference.path in makers else makers


def _one(
    fits: list[_Fit],
    role: str,
    which: Callable[[_Fit], Path | None],
    why: Callable[[_Fit], str],
    search: _Search,
) -> list[_Fit]:
    found = dict.fromkeys(which(fit) for fit in fits)
    if len(found) == 1:
        return fits
    said = {path: next(why(fit) for fit in fits if which(fit) == path) for path in found}
    option = {"kernel": "--kernel", "reference": "--ref", "inputs": "--inputs"}[role]
    listed = [f"{_shown(search, path)} ({said[path]})" if path else "none" for path in found]
    raise UsageError(
        f"{len(found)} files could be the {role}: {_joined(listed)}",
        code=f"{role}_ambiguous",
        hint=f"Say which with {option} FILE.",
    )


def _hints(search: _Search) -> Path | None:
    if len(search.hints) > 1:
        raise UsageError(
            f"{len(search.hints)} files could be the hints: {_joined([one.name for one in search.hints])}",
            code="hints_ambiguous",
            hint=f"Keep one of them, named {HINTS}.",
        )
    return search.hints[0] if search.hints else None


def _none(search: _Search, role: str, wanted: str) -> UsageError:
    looked = [_shown(search, one.path) for one in search.sources] + search.unread
    said = f"; looked at: {_joined(looked)}" if looked else "; it holds no .py and no .cu file"
    option = "--kernel" if role == "kernel" else "--ref"
    return UsageError(
        f"no file of {search.workspace} could be the {role}{said}",
        code=f"{role}_not_found",
        hint=f"Add it ({wanted}), or name it with {option} FILE.",
    )


def _misfit(
    search: _Search, kernels: Sequence[Source], references: Sequence[Source], against: Sequence[str]
) -> UsageError:
    shown = partial(_shown, search)
    several = f"{_joined([shown(one.path) for one in kernels])} with {_joined([shown(one.path) for one in references])}"
    return UsageError(
        f"no kernel fits a reference ({several}):\n" + "\n".join(f"    {line}" for line in against[:_LISTED]),
        code="reference_not_found",
        hint="Name the two with --kernel and --ref, and a file of inputs with --inputs where the reference makes none.",
    )


def _joined(texts: Sequence[str]) -> str:
    more = len(texts) - _LISTED
    return ", ".join(map(visible, texts[:_LISTED])) + (f" and {more} more" if more > 0 else "")


def _shown(search: _Search, path: Path) -> str:
    try:
        return visible(path.relative_to(search.workspace).as_posix())
    except ValueError:
        return visible(str(path))


def form_words(form: Form) -> str:
    """How the kernel is called, in words."""
    return {
        Form.KERNELBENCH: "class ModelNew in place of Model",
        Form.SETUP: "run_kernel, which writes its outputs in place",
        Form.SOLVE: 'extern "C" void solve of a .cu file',
        Form.FUNCTION: "a function that returns its result",
    }[form]
