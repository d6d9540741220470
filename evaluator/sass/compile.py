"""Compile a candidate to machine code without a GPU: compile in one sandbox, disassemble in another.

A Triton file is executed in the sandbox, since its kernels are Python objects: either its host code is called once
with a driver that launches nothing (`evaluator/worker/loading/launches.py`), so that Triton's own specialization
decides types, constants and options, or single kernels are compiled from types that the user names. A `.cu` file is
compiled and not executed. What the compiling worker hands over is foreign; the worker that disassembles has executed
none of it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pydantic import Field

from evaluator.request import Request
from evaluator.sandbox.fork_server import ForkServer
from evaluator.sandbox.messages import (
    candidate_files,
    candidate_message,
    header_folders,
    nvcc_path,
    own_setup,
    reference_files,
    reference_message,
)
from evaluator.sandbox.replies import checked_reply
from evaluator.sandbox.worker_process import Worker, WorkerLostError
from evaluator.sass.parse import DisassemblyError, Spills, Usage, read_functions, read_spills, read_usage
from evaluator.sass.sass import Function, Resources
from evaluator.sass.tools import Target, disassembler
from evaluator.sass.triton_types import KernelTypes
from evaluator.source.forms import Backend, Recognised
from evaluator.source.source_file import is_cuda
from evaluator.worker.process.isolation import Limits
from kbs.common.errors import ConfigurationError, KoptError, UsageError
from kbs.common.json_model import Record

MAX_TEXT = 64 << 20
"""Bytes of a disassembly, of a binary, or of a log that are read."""
STAND_IN_SMS = 100
"""Multiprocessors that host code is told of where nothing says how many the GPU has."""
_COMPILE_ERRORS = frozenset(
    {"CompileError", "CompilationError", "CompileTimeAssertionFailure", "UnsupportedLanguageConstruct", "PTXASError"}
)
_KERNEL = re.compile(r"\b__global__\b")


class Machine(Record):
    """The machine code of a candidate, or why there is none."""

    target: str
    """What it was compiled for, as the compiler was told: sm_90a."""
    how: str
    """How kernels, types and constants were found."""
    functions: tuple[Function, ...] = ()
    """Every function of the machine code."""
    compile_error: str = ""
    """The compiler's own words where it refused the candidate."""
    notes: tuple[str, ...] = Field(default=())
    """What a reader should know of how it came about."""


class _RefusedError(Exception):
    """The compiler refused the candidate."""


def machine_code(
    server: ForkServer,
    request: Request,
    target: Target,
    kernels: Sequence[KernelTypes] = (),
    multiprocessors: int | None = None,
) -> Machine:
    """Compile a candidate for a target and disassemble it. Needs no GPU, and uses none.

    `server` is one for `cuda`, so that Triton compiles; `kernels` are the kernels to compile from types alone; without
    them the candidate is called once with inputs of the reference, of `inputs` or of its own. A candidate that does not
    compile is a value with `compile_error`.

    UsageError `no_kernel`, `inputs_missing` and what `recognise` raises; ConfigurationError `no_disassembler`,
    `disassembler_failed`, `no_nvcc`; KoptError `candidate_failed`, `worker_lost`, `disassembly_invalid`.
    """
    tool = disassembler(request.environment, request.cuda_home)
    request = request.model_copy(update={"device": "cpu"})
    try:
        if is_cuda(request.candidate):
            return _cuda(server, request, target, tool)
        return _triton(server, request, target, tool, kernels, multiprocessors)
    except _RefusedError as error:
        return Machine(target=target.exact, how="", compile_error=str(error))


# --- Triton -----------------------------------------------------------------------------------------------------------


def _triton(
    server: ForkServer,
    request: Request,
    target: Target,
    tool: Path,
    kernels: Sequence[KernelTypes],
    multiprocessors: int | None,
) -> Machine:
    fields: dict[str, Any] = {"target": target.number, "multiprocessors": multiprocessors or STAND_IN_SMS}
    files = candidate_files(request)
    notes = []
    if kernels:
        op = "compile"
        fields |= {"load": {"file": next(iter(files))}, "signatures": [asdict(kernel) for kernel in kernels]}
        how = "types from --signature"
    else:
        recognised = _recognised(request)
        op = "record"
        files = {**reference_files(request, recognised, request.dims), **files}
        mapped = {"maps_cuda": True, "device": "cpu"}
        fields |= {
            "oracle": {
                **reference_message(request, recognised, request.dims),
                **own_setup(request, recognised),
                **mapped,
            },
            "load": {**candidate_message(request, recognised, request.dims), **mapped},
        }
        how = f"one call of {recognised.entry} with nothing launched: types and constants are those of its launches"
        if multiprocessors is None and re.search(r"multi_?processor_count", request.candidate.text):
            notes.append(f"host code that asks how many SMs there are was told {STAND_IN_SMS}, a stand-in")
    with _spawn(server, request, "compiler", files) as worker:
        reply = _asked(worker, op, request, **fields)
        binaries = reply["binaries"]
        if not binaries:
            raise UsageError(
                f"{request.candidate.name} launches no Triton kernel",
                code="no_kernel",
                hint="Give a file with a @triton.jit kernel that its entry launches, or a .cu file.",
            )
        content = [_read(worker, f"kernel{n}.cubin") for n in range(len(binaries))]
        logs = [_read(worker, f"kernel{n}.log").decode("utf-8", "replace") for n in range(len(binaries))]
    if reply["skipped"]:
        notes.append(f"{reply['skipped']} further configurations of its autotuners were not compiled")
    if reply["stopped"]:
        notes.append(f"after these launches its host code stopped, since nothing is computed: {reply['stopped']}")
    texts = _disassembled(server, request, tool, content)
    functions: list[Function] = []
    versions = _versions(binaries)
    for n, binary in enumerate(binaries):
        functions += _functions(*texts[n], logs[n], versions[n], binary["shared"])
    return Machine(target=target.exact, how=how, functions=tuple(functions), notes=tuple(notes))


def _recognised(request: Request) -> Recognised:
    try:
        recognised = request.recognised()
    except UsageError as error:
        if "triton" in request.candidate.text and error.code in ("no_kernel", "inputs_missing", "two_kernels"):
            signature = "Or name the types of a kernel: --signature 'KERNEL: *fp32:16, *fp32:16, i32, 1024'."
            raise UsageError(error.message, code=error.code, hint=f"{error.hint} {signature}") from error
        raise
    if recognised.backend is not Backend.TRITON:
        raise UsageError(
            f"{request.candidate.name} has no @triton.jit kernel",
            code="no_kernel",
            hint="Give a file with a Triton kernel or a .cu file; CUDA text inside Python must be put into a .cu file.",
        )
    return recognised


def _versions(binaries: Sequence[dict[str, Any]]) -> list[str]:
    """For each binary what tells it from others of the same kernel; constants and types that all share are left out."""
    words: list[dict[str, str]] = []
    for binary in binaries:
        types = {f"{name}:": kind for name, kind in binary["signature"].items() if kind != "constexpr"}
        options = {name: str(binary[name]) for name in ("num_warps", "num_stages") if binary[name]}
        words.append({**types, **binary["constants"], **options})
    found = []
    for n, binary in enumerate(binaries):
        others = [words[m] for m, other in enumerate(binaries) if other["name"] == binary["name"]]
        shown = [
            f"{name}{'' if name.endswith(':') else '='}{value}"
            for name, value in words[n].items()
            if not name.endswith(":") or any(other.get(name) != value for other in others)
        ]
        found.append(" ".join(shown))
    return found


# --- CUDA -------------------------------------------------------------------------------------------------------------


def _cuda(server: ForkServer, request: Request, target: Target, tool: Path) -> Machine:
    if not _KERNEL.search(request.candidate.text):
        raise UsageError(
            f"{request.candidate.name} has no __global__ function",
            code="no_kernel",
            hint="Give a .cu file with a kernel, or a Python file with a @triton.jit kernel.",
        )
    nvcc = nvcc_path(request)
    folders = header_folders(request)
    flags = ["-O3", "-std=c++17", *(f"-I{folder}" for folder in folders), *request.nvcc_flags]
    words = [str(nvcc), f"-arch={target.exact}", "-cubin", "-Xptxas", "-v", *flags]
    toolkit = [nvcc.resolve().parent.parent, *folders]
    files = {"candidate.cu": request.candidate.text.encode()}
    with _spawn(server, request, "compiler", files, toolkit) as worker:
        _asked(worker, "nvcc", request, words=words, file="candidate.cu")
        content = [_read(worker, "kernel0.cubin")]
        log = _read(worker, "kernel0.log").decode("utf-8", "replace")
    functions = _functions(*_disassembled(server, request, tool, content)[0], log, "", None)
    if not functions:
        raise UsageError(
            f"{request.candidate.name} leaves no function in the machine code",
            code="no_kernel",
            hint="A template is compiled only where it is used: instantiate it, or launch it from solve.",
        )
    return Machine(target=target.exact, how=f"nvcc {' '.join(words[1:2] + flags)}", functions=tuple(functions))


# --- both -------------------------------------------------------------------------------------------------------------


def _spawn(
    server: ForkServer, request: Request, name: str, files: dict[str, bytes], readable: Sequence[Path] = ()
) -> Worker:
    limits = Limits(request.memory_limit, request.process_limit, MAX_TEXT, limit_data=False)
    return server.spawn(name, limits, files, [str(path) for path in readable])


def _asked(worker: Worker, op: str, request: Request, **fields: Any) -> dict[str, Any]:
    """The answer of a compiling worker. Raises `_RefusedError` for what a compiler refused."""
    try:
        reply = checked_reply(worker, worker.request(op, request.load_seconds, **fields))
    except WorkerLostError as error:
        raise KoptError(
            f"{request.candidate.name} could not be compiled: {error.detail}",
            code="worker_lost",
            hint="Give it more time with --timeout, or smaller --dims.",
        ) from error
    if reply["ok"]:
        return reply
    raised = reply["error"]
    if raised["type"] in _COMPILE_ERRORS:
        raise _RefusedError(raised["message"])
    if raised["usage"]:
        raise UsageError(raised["message"], code="no_kernel", hint="Check the names in the file and in --signature.")
    raise KoptError(
        f"{request.candidate.name} stopped before it launched a kernel: {raised['type']}: {raised['message']}",
        code="candidate_failed",
        hint="Its host code runs on CPU tensors and launches nothing. Give a kernel's types with --signature instead.",
    )


def _read(worker: Worker, name: str) -> bytes:
    content = worker.read_file(name, MAX_TEXT)
    if content is None:
        raise KoptError(
            f"the compiling process wrote no readable {name}",
            code="worker_lost",
            hint=f"A file of at most {MAX_TEXT >> 20} MiB is expected; compile fewer kernels at once.",
        )
    return content


def _disassembled(server: ForkServer, request: Request, tool: Path, binaries: Sequence[bytes]) -> list[tuple[str, str]]:
    """Each binary as (instructions, resources), from a worker that has executed nothing of the candidate's."""
    files = {f"code{n}.cubin": content for n, content in enumerate(binaries)}
    with _spawn(server, request, "disassembler", files, [tool.resolve().parent]) as worker:

        def printed(*options: str) -> list[str]:
            fields: dict[str, Any] = {"words": [str(tool), *options], "files": [*files]}
            try:
                reply = checked_reply(worker, worker.request("disassemble", request.load_seconds, **fields))
            except WorkerLostError as error:
                raise _tool_failed(tool, error.detail) from error
            said = reply["error"]["message"] if not reply["ok"] else next(filter(None, reply["failed"]), "")
            if said:
                raise _tool_failed(tool, said)
            return [_read(worker, f"{name}.txt").decode("utf-8", "replace") for name in files]

        return list(zip(printed("-sass"), printed("-res-usage", "-elf"), strict=True))


def _tool_failed(tool: Path, said: str) -> ConfigurationError:
    return ConfigurationError(
        f"{tool.name} could not read the machine code: {said}",
        code="disassembler_failed",
        hint="A cuobjdump older than the compiler cannot read its code: give a newer CUDA toolkit with --cuda-home.",
    )


def _functions(instructions: str, resources: str, log: str, version: str, dynamic_shared: int | None) -> list[Function]:
    try:
        functions = read_functions(instructions)
    except DisassemblyError as error:
        raise KoptError(
            f"the disassembly cannot be read: {error}",
            code="disassembly_invalid",
            hint="Report it with the version of cuobjdump, or use another toolkit with --cuda-home.",
        ) from error
    usage, spills = read_usage(resources), read_spills(log)
    return [
        Function(
            name=name,
            version=version,
            kernel=name in usage and usage[name].kernel,
            instructions=code.opcodes.total(),
            opcodes=dict(code.opcodes.most_common()),
            resources=_resources(usage.get(name), spills.get(name), dynamic_shared),
            code=code.hash,
        )
        for name, code in functions.items()
    ]


def _resources(usage: Usage | None, spills: Spills | None, dynamic_shared: int | None) -> Resources:
    return Resources(
        registers=usage.registers if usage else None,
        stack_bytes=usage.stack if usage else None,
        spill_store_bytes=spills.stores if spills else None,
        spill_load_bytes=spills.loads if spills else None,
        static_shared_bytes=usage.shared if usage else None,
        dynamic_shared_bytes=dynamic_shared,
        barriers=usage.barriers if usage else None,
        required_threads=usage.required_threads if usage else None,
        max_threads=usage.max_threads if usage else None,
    )
