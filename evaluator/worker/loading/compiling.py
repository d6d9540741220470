"""The compiling requests of a worker: kernels to machine code for a named target, machine code to text."""

from __future__ import annotations

import subprocess
from typing import Any

from evaluator.worker.loading.cpu_mode import on_the_cpu
from evaluator.worker.loading.launches import Launches
from evaluator.worker.loading.subjects import CompileError, KernelBench, MissingError, load_module, make_subject, named
from evaluator.worker.memory.state import WorkerState

_LOG = 200_000
"""Characters of a compiler's log that are kept."""


class CompilingWorker(WorkerState):
    """What a worker does with compilers; `evaluator.worker.process.child.Worker` is one."""

    def do_record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Call the candidate once with nothing launched, and keep what Triton compiled for it."""
        import torch

        launches = self._launches(message)
        with on_the_cpu(), launches.watching():
            device = torch.device("cpu")
            maker = make_subject(message["oracle"], self.folder, device)
            subject = make_subject(message["load"], self.folder, device)
            if isinstance(subject, KernelBench):
                subject.build(maker.init_inputs(0) if isinstance(maker, KernelBench) else [], 0)
            values, _ = maker.make_inputs(0)
            failed = ""
            try:
                subject.call(values)
            except Exception as error:
                if not launches.kept or type(error).__name__ in ("CompilationError", "PTXASError", "TooManyError"):
                    raise
                # Nothing was computed, so host code that looks at results may stumble after the launch.
                failed = f"{type(error).__name__}: {error}"[:500]
        return {"binaries": launches.kept, "skipped": launches.skipped, "stopped": failed}

    def do_compile(self, message: dict[str, Any]) -> dict[str, Any]:
        """Compile kernels of a Triton file from the types of their parameters; no host code of it is called."""
        import triton
        from triton.compiler import ASTSource

        launches = self._launches(message)
        with on_the_cpu(), launches.watching():
            module = load_module(self.folder / message["load"]["file"])
            for asked in message["signatures"]:
                kernel = named(module, asked["kernel"])
                while not hasattr(kernel, "arg_names") or hasattr(kernel, "configs"):
                    if not hasattr(kernel, "fn"):
                        raise MissingError(f"{asked['kernel']} is no @triton.jit function")
                    kernel = kernel.fn
                source = _source(ASTSource, kernel, asked)
                options = {name: asked[name] for name in ("num_warps", "num_stages") if asked[name]}
                compiled = triton.compile(source, target=launches.target, options=options)
                metadata = compiled.metadata
                launches.add(metadata.name, compiled.asm["cubin"], metadata.shared, source, metadata)
        return {"binaries": launches.kept, "skipped": 0, "stopped": ""}

    def _launches(self, message: dict[str, Any]) -> Launches:
        from triton.backends.compiler import GPUTarget

        return Launches(self.folder, GPUTarget("cuda", int(message["target"]), 32), int(message["multiprocessors"]))

    def do_nvcc(self, message: dict[str, Any]) -> dict[str, Any]:
        """Compile a `.cu` file to a binary for one target. Nothing of it is run."""
        words = [*message["words"], "-o", str(self.folder / "kernel0.cubin"), str(self.folder / message["file"])]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            raise CompileError((done.stderr or done.stdout)[-8000:])
        (self.folder / "kernel0.log").write_text((done.stdout + done.stderr)[-_LOG:], "utf-8")
        return {}

    def do_disassemble(self, message: dict[str, Any]) -> dict[str, Any]:
        """Machine code of binaries that lie in the folder, as the disassembler prints it, into files beside them."""
        failed = []
        for name in message["files"]:
            with (self.folder / f"{name}.txt").open("wb") as printed:
                words = [*message["words"], str(self.folder / name)]
                done = subprocess.run(words, stdout=printed, stderr=subprocess.PIPE, check=False)
            said = done.stderr.decode("utf-8", "replace").strip()[-500:] or f"exit code {done.returncode}"
            failed.append(said if done.returncode else "")
        return {"failed": failed}


def _source(kind: Any, kernel: Any, asked: dict[str, Any]) -> Any:
    """Parameters in order: a type, `*fp32:16` where it is divisible by 16, or a constant."""
    given = asked["parameters"]
    if len(given) != len(kernel.arg_names):
        names = ", ".join(kernel.arg_names)
        raise MissingError(f"{asked['kernel']} has {len(kernel.arg_names)} parameters ({names}), not {len(given)}")
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    attributes: dict[tuple[int, ...], Any] = {}
    for place, (name, parameter) in enumerate(zip(kernel.arg_names, given, strict=True)):
        signature[name] = parameter["type"] or "constexpr"
        if not parameter["type"]:
            constants[name] = parameter["constant"]
        if parameter["divisible"]:
            attributes[(place,)] = [["tt.divisibility", 16]]
    return kind(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
