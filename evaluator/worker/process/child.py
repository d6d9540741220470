"""The worker: takes messages, runs reference or candidate, and puts results into memory that the parent made."""

from __future__ import annotations

import contextlib
import os
import platform
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from evaluator.worker.counting.reference import ReferenceWorker
from evaluator.worker.loading.compiling import CompilingWorker
from evaluator.worker.loading.cpu_mode import STAND_INS, on_the_cpu
from evaluator.worker.loading.interpreted import LAUNCHES
from evaluator.worker.loading.interpreter import driver_of
from evaluator.worker.loading.subjects import CompileError, MissingError, compiled, make_subject
from evaluator.worker.loading.unsupported import unsupported
from evaluator.worker.measurement import deeds, integrity
from evaluator.worker.measurement.operations import Nothing, Operators, device_kernels
from evaluator.worker.measurement.own_code import has_own_code
from evaluator.worker.measurement.threads import Threads, elsewhere
from evaluator.worker.measurement.timed import TimedWorker
from evaluator.worker.memory import tensors as memory
from evaluator.worker.memory.inputs import InputsError
from evaluator.worker.memory.values import (
    StructureError,
    Tree,
    UnsupportedValueError,
    deliver,
    is_exact,
    rebuild,
    results,
)
from evaluator.worker.process import bootstrap, protocol, standalone
from evaluator.worker.process.isolation import Sandbox

_TEXT = 6000
"""Characters of an error or a traceback that are passed on."""
_now = time.monotonic
_ALONE_SECONDS = 10.0
"""How long a call may take without what it may rely on."""
_LATE_CYCLES = 20_000_000
"""About ten milliseconds of a GPU's clock."""


class Worker(ReferenceWorker, TimedWorker, CompilingWorker):
    """One process, one subject."""

    def __init__(self, channel: socket.socket, sandbox: Sandbox) -> None:
        super().__init__(Path(sandbox.folder))
        self.channel = channel
        self.sandbox = sandbox
        self.changed: Callable[[], list[str]] = list
        self.deeds: Callable[[], list[dict[str, Any]]] = list
        self.threads = Threads()
        self.mapped = False
        """Whether what asks for a GPU gets the CPU."""
        self.mapping = contextlib.ExitStack()
        self.held: list[tuple[torch.Tensor, torch.Tensor]] = []
        """The last call's results with copies of their bytes, where the parent asked to keep them."""
        self.findings = self._findings

    def serve(self) -> None:
        """Answer messages until the parent hangs up."""
        self._say({"op": "hello", "layers": [vars(layer) for layer in self.sandbox.layers], "versions": _versions()})
        while True:
            received = protocol.receive(self.channel)
            if received is None:
                return
            message, descriptors = received
            reply = self._answer(message, descriptors)
            with contextlib.suppress(Exception):  # a candidate may have closed or replaced them
                sys.stdout.flush()
                sys.stderr.flush()
            try:
                self._say({**reply, "nonce": message["nonce"]})
            except (protocol.ProtocolError, ValueError, RecursionError) as error:  # too long, or a number of no end
                unsaid = UnsupportedValueError(f"there is more to tell than a message holds: {error}")
                self._say({**_failure(unsaid), "nonce": message["nonce"]})

    def _say(self, message: dict[str, Any]) -> None:
        protocol.send(self.channel, message)

    def _answer(self, message: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        try:
            self._map(message, descriptors)
            started = time.monotonic()
            answer: dict[str, Any] = getattr(self, f"do_{message['op']}")(message)
            return {"ok": True, "seconds": time.monotonic() - started, **answer}
        except BaseException as error:  # SystemExit and KeyboardInterrupt of a candidate are findings too
            return _failure(error, on_a_gpu=self.device.type != "cpu")

    def _map(self, message: dict[str, Any], descriptors: list[int]) -> None:
        for id in message.get("forget", ()):
            known = self.buffers.pop(id, None)
            if known is not None:
                known.close()
        for buffer, descriptor in zip(message.get("buffers", ()), descriptors, strict=True):
            if buffer["kind"] == "host":
                mapping = memory.map_host(descriptor, buffer["size"])
            else:
                mapping = memory.map_device(descriptor, buffer["size"], self.device.index or 0)
            self.buffers[buffer["id"]] = mapping

    # --- loading ----------------------------------------------------------------------------------------------------

    def do_load(self, message: dict[str, Any]) -> dict[str, Any]:
        """Execute or compile the subject's file."""
        self.device = torch.device(message["device"])
        told = STAND_INS[message.get("stand_in", 0)]
        if self.device.type == "cuda":
            torch.cuda.set_device(self.device)
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        elif message["maps_cuda"]:
            available = message["role"] == "candidate"
            self.mapping.enter_context(on_the_cpu(told, available=available))  # for the rest of this process's life
            self.mapped = True
        if message["role"] == "candidate":
            if self.device.type == "cpu":
                driver_of(told)
            self.changed = integrity.watch()
            integrity.hide()
            self.deeds = deeds.watch(self.folder)
        self.threads = Threads()
        self.subject = make_subject(message, self.folder, self.device)
        unfilled = getattr(self.subject, "filler", "")
        return {**self._findings(), "unfilled": unfilled if isinstance(unfilled, str) else ""}

    def _findings(self) -> dict[str, Any]:
        """What the candidate did, and left behind: replaced functions, threads (also those that `threading` does not
        list), processes."""
        left = {"threads": self.threads.count(), "processes": len(self._processes())}
        return {"patched": self.changed(), "deeds": self.deeds(), **left}

    def _processes(self) -> list[str]:
        """Ids of the processes that the candidate started and that still run."""
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        return children.read_text().split() if children.exists() else []

    def do_map(self, message: dict[str, Any]) -> dict[str, Any]:
        """Nothing but the buffers that came with the message."""
        del message
        return {}

    def do_build(self, message: dict[str, Any]) -> dict[str, Any]:
        """KernelBench form: construct the model from the arguments that the reference made."""
        arguments = rebuild(message["tree"], self.arguments(message["tensors"]))
        state = self.subject.build(arguments, message["seed"])
        self.tensors["weights"] = list(state.values())
        weights = [{"name": name, **memory.spec_of(tensor)} for name, tensor in state.items()]
        return {"weights": weights, **self._findings()}

    def do_set_weights(self, message: dict[str, Any]) -> dict[str, Any]:
        """Load parameters and buffers that the parent chose."""
        tensors = self.arguments(message["tensors"])
        self.subject.load(dict(zip(message["names"], tensors, strict=True)))
        return {}

    def do_state(self, message: dict[str, Any]) -> dict[str, Any]:
        """Copy parameters and buffers as they are now into the parent's memory."""
        state = self.subject.model.state_dict()
        for name, spec in zip(message["names"], message["tensors"], strict=True):
            deliver(state.get(name), self.shared(spec))
        self.wait()
        return {}

    # --- the candidate's work ---------------------------------------------------------------------------------------

    def do_call(self, message: dict[str, Any]) -> dict[str, Any]:
        """One call of the candidate; what it returns is judged by type and copied into the parent's buffers at once."""
        arguments = self.arguments(message["tensors"])
        if message.get("plain"):
            arguments = [memory.own(argument) for argument in arguments]
        values = rebuild(message["tree"], arguments)
        self.subject.before_call()
        self.subject.gradients = bool(message.get("plain"))
        self.subject.evaluates = bool(message.get("evaluates"))
        bring_back = self._make_late(arguments) if message["late"] else None
        watch = Operators() if message["watch"] else Nothing()
        launched = LAUNCHES.made
        with watch:
            if bring_back is not None:
                bring_back()
            result = self._called(values, message.get("way", ""))
        own = launched is None or LAUNCHES.made != launched or has_own_code()
        idle = launched is not None and LAUNCHES.made != launched and not has_own_code()
        # In the order of the stream, not after all of the device: work on a stream that nobody joins comes too late.
        answer = self.copy_out(result, message["result"], message["returns"], arguments)
        written = [(arguments[n], arguments[n].clone()) for n in message["written"]] if message["late"] else []
        self.wait()
        answer["reused"] = any(not torch.equal(_bytes(held), before) for held, before in self.held)
        self.held = self._held(result, message["result"], arguments) if message.get("keep") else []
        del result
        for argument, in_order in written:
            argument.copy_(in_order)
        for spec, tensor in zip(message["tensors"], arguments, strict=True):
            shared = self.shared(spec)
            if message.get("plain"):
                memory.span(shared).copy_(memory.span(tensor.detach()))
            elif shared.device != tensor.device:
                shared.copy_(tensor)
        self.wait()
        answer |= {"operators": watch.table(), "blinded": watch.blinded, "own": own or self.device.type != "cpu"}
        answer["idle"] = idle and message.get("way") == "idle"
        return {**answer, **self._findings()}

    def _called(self, values: Any, way: str) -> Any:
        """One call as it is, or `inference`: in that mode of PyTorch's; `thread`: in another thread; `alone`: with the
        processes ended that were started; `idle`: with launches of Triton's interpreter that run nothing."""
        if way == "inference":
            with torch.inference_mode():
                return self.subject.call(values)
        if way == "thread":
            return elsewhere(lambda: self.subject.call(values), self.device, mapped=bool(self.mapped))
        if way == "alone":
            for process in self._processes():
                os.kill(int(process), signal.SIGKILL)
        LAUNCHES.run = way != "idle"
        try:
            with _interrupted(_ALONE_SECONDS) if way else contextlib.nullcontext():
                return self.subject.call(values)
        finally:
            LAUNCHES.run = True

    def do_row(self, message: dict[str, Any]) -> dict[str, Any]:
        """Calls on the same arguments whose results nobody reads: as many as were asked for, or fit into the time.

        What a call changes that the reference changes too is set back before the next. In Triton's interpreter
        kernels are launched and do not run. The first result is held; `reused` says whether its memory came again.
        """
        arguments = self.arguments(message["tensors"])
        values = rebuild(message["tree"], arguments)
        written = [(arguments[n], arguments[n].clone()) for n in message["written"]]
        state = {name: t.clone() for name, t in self.subject.model.state_dict().items()} if message["state"] else {}
        self.subject.gradients = self.subject.evaluates = False
        calls, stopped, reused = 0, "", False
        kept: list[torch.Tensor] = []
        LAUNCHES.run = False
        try:
            with _interrupted(2 * message["within"]):
                until = _now() + message["within"]
                while calls < message["calls"] and _now() < until:
                    for argument, content in written:
                        argument.copy_(content)
                    if state:
                        self.subject.load(state)
                    made = self._new(self.subject.call(values), message["result"], arguments)
                    reused = reused or any(memory.alias(value, kept) is not None for value in made)
                    kept = kept or made
                    calls += 1
                self.wait()
        except Exception as error:
            stopped = _end(f"{type(error).__name__}: {error}")
        finally:
            LAUNCHES.run = True
        return {"calls": calls, "stopped": stopped, "reused": reused, **self._findings()}

    def _held(self, result: Any, tree: Tree, arguments: list[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Returned tensors that lie in no argument, each with a copy of its bytes."""
        return [(value, _bytes(value).clone()) for value in self._new(result, tree, arguments)]

    def _new(self, result: Any, tree: Tree, arguments: list[torch.Tensor]) -> list[torch.Tensor]:
        """The memory of returned tensors that lie in no argument, held as an array over it holds it: not by the tensor
        that was returned, which who made it might count on."""
        try:
            returned = [value for value in results(result, tree) if is_exact(value)]
        except StructureError:
            return []
        return [memory.held(value) for value in returned if memory.alias(value, arguments) is None]

    def _make_late(self, arguments: list[torch.Tensor]) -> Callable[[], None]:
        """Take the inputs away; the answer brings them back on the current stream, behind work that keeps it busy.

        A kernel on another stream that does not wait for this one finds nothing right there.
        """
        kept = [argument.clone() for argument in arguments]
        for argument in arguments:
            argument.fill_(float("nan") if argument.is_floating_point() else 0)
        torch.cuda.synchronize()

        def bring_back() -> None:
            torch.cuda._sleep(_LATE_CYCLES)  # type: ignore[no-untyped-call]  # torch does not annotate it
            for argument, content in zip(arguments, kept, strict=True):
                argument.copy_(content)

        return bring_back

    def do_kernels(self, message: dict[str, Any]) -> dict[str, Any]:
        """Which device kernels one call runs."""
        values = rebuild(message["tree"], self.arguments(message["tensors"]))
        return {"kernels": device_kernels(lambda: self.subject.call(values))}

    def do_sanitize(self, message: dict[str, Any]) -> dict[str, Any]:
        """Tools of compute-sanitizer over a few calls, each in a process that it starts itself."""
        self._write_job(message, profile=False)
        tools, limit = message["tools"], message["limit"]
        return {"runs": standalone.under(tools, self.folder, bootstrap.STANDALONE, message["package"], limit)}

    def do_profile(self, message: dict[str, Any]) -> dict[str, Any]:
        """One call under ncu, after others, in a process that ncu starts."""
        self._write_job(message, profile=True)
        package, limit = message["package"], message["limit"]
        return {"profile": standalone.profiled(message["ncu"], self.folder, bootstrap.STANDALONE, package, limit)}

    def _write_job(self, message: dict[str, Any], *, profile: bool) -> None:
        self.device = torch.device(message["load"]["device"])
        if message["load"]["form"] == "solve":
            compiled(message["load"], self.folder)
        tensors = {name: [self.shared(spec) for spec in message[name]] for name in ("init", "weights", "inputs")}
        standalone.write_job(message, self.folder, tensors, profile=profile)


@contextlib.contextmanager
def _interrupted(seconds: float) -> Iterator[None]:
    """`TimeoutError` where what stands inside, Python's code, takes longer."""

    def late(*_: object) -> None:
        raise TimeoutError(f"it did not end within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().contiguous().flatten().view(torch.uint8)


def _failure(error: BaseException, *, on_a_gpu: bool = True) -> dict[str, Any]:
    """What was raised, as it is told."""
    return {
        "ok": False,
        "error": {
            "type": type(error).__name__,
            "message": _end(error.msg if isinstance(error, SyntaxError) else str(error)),
            "traceback": _end("".join(traceback.format_exception(error))),
            "compile": isinstance(error, (CompileError, SyntaxError, ImportError, MissingError)),
            "usage": isinstance(error, (MissingError, InputsError, UnsupportedValueError)),
            "unsupported": "" if on_a_gpu else _end(unsupported(error)),
        },
    }


def _end(text: str) -> str:
    """The end of a text, without halves of surrogate pairs, which no receipt can hold."""
    return text[-_TEXT:].encode("utf-8", "replace").decode("utf-8")


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("torch", "triton", "numpy"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def live(channel: socket.socket, sandbox: Sandbox) -> None:
    """The worker's whole life after its isolation; never returns to the fork server's code."""
    folder = Path(sandbox.folder)
    output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    tempfile.tempdir = None  # what a module asked for before the fork was the server's
    kept = {0, 1, 2, channel.fileno()}
    for descriptor in [int(name) for name in os.listdir("/proc/self/fd")]:  # noqa: PTH208 - names, not paths
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    sys.path[:] = [path for path in sys.path if path not in ("", ".")]
    sys.argv[:] = ["main.py"]
    sys.orig_argv[:] = ["python", "main.py"]
    main = vars(sys.modules["__main__"])
    for name in [name for name in main if not name.startswith("__")]:
        del main[name]  # what `bootstrap` leaves there
    with contextlib.suppress(BrokenPipeError, ConnectionResetError, OSError, protocol.ProtocolError):
        Worker(channel, sandbox).serve()
