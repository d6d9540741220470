"""A naive evaluator, built as many public ones are: everything in one process, and everything believed.

    python naive.py CANDIDATE REFERENCE [--form FORM] [--inputs FILE] [--dims JSON] [--device D] [--min-speedup S]
                    [--timing events|sized|clock|do_bench|queue]

It seeds torch with a constant, makes the inputs once, imports the candidate into its own process, warms it up, and
then compares reference and candidate on those same inputs over a few trials, with `allclose` at 1e-2. It takes inputs
and tolerances from the candidate if the candidate has some. `--timing` says how it takes the time: see naive_timing.py;
`queue` draws several inputs, which lie in one block, and times one call for each as a whole. What it finds is one JSON
line on stdout and the exit code. `--build-only` imports the candidate and stops; `--serve` answers requests from stdin
with a fork each.
"""

from __future__ import annotations

import argparse
import ast
import atexit
import contextlib
import ctypes
import importlib.util
import io
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

import naive_timing

with contextlib.suppress(ImportError):
    import triton
    import triton.language  # noqa: F401 - so that a fork has it already

SEED = 42
TRIALS = 3
TIMED_CALLS = 2


def load(path, name):
    """Execute a Python file as a module that stays in sys.modules."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def agree(expected, got, atol, rtol):
    """Whether a result is as expected, to the tolerance."""
    from closeness import close

    return close(expected, got, atol, rtol)


def settle(device):
    """Let the device finish, and the machine cool."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
    time.sleep(0.03)


def tensors(result):
    """The results of a call as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def moved(value, device):
    """A tensor on the device; anything else as it is."""
    return value.to(device) if isinstance(value, torch.Tensor) else value


def models(candidate, reference, options):
    """Instances of `Model` and `ModelNew`, and what draws inputs; the dims are globals of the reference."""
    vars(reference).update(options.dims)
    init = reference.get_init_inputs()
    torch.manual_seed(SEED)
    model = reference.Model(*init).to(options.device)
    torch.manual_seed(SEED)
    new = getattr(candidate, "ModelNew", None) or candidate.Model
    new = new(*init)
    new = new.to(options.device) if isinstance(new, torch.nn.Module) else new
    torch.manual_seed(SEED)
    return model, new, getattr(candidate, "get_inputs", reference.get_inputs)


def kernelbench(candidate, reference, options):
    """Calls without arguments that give reference's and candidate's results."""
    model, new, draw = models(candidate, reference, options)
    inputs = [moved(value, options.device) for value in draw()]
    return lambda: model(*inputs), lambda: new(*inputs)


def made_by_setup(candidate, reference, options):
    """Keyword arguments and names of outputs, from the candidate's `setup` if it has one."""
    owner = candidate if hasattr(candidate, "setup") else reference
    torch.manual_seed(SEED)
    made = owner.setup(**options.dims)
    return {name: moved(value, options.device) for name, value in made["inputs"].items()}, made["outputs"]


def written_in_place(candidate, reference, options):
    """The same for `run_kernel`, which writes its outputs."""
    kwargs, outputs = made_by_setup(candidate, reference, options)

    def through(function):
        function(**kwargs)
        return [kwargs[name] for name in outputs]

    return lambda: through(reference.reference), lambda: through(candidate.run_kernel)


def solved(library, reference, options):
    """The same for `solve` of a shared library; its parameters are called as the reference's."""
    kwargs, outputs = made_by_setup(None, reference, options)
    text = Path(options.candidate).read_text("utf-8")
    signature = re.search(r"void\s+solve\s*\(([^)]*)\)", text).group(1)
    names = [re.search(r"(\w+)\s*$", word).group(1) for word in signature.split(",")]

    def call():
        values = [kwargs[name] for name in names]
        library.solve(*(ctypes.c_void_p(v.data_ptr()) if isinstance(v, torch.Tensor) else v for v in values))
        return [kwargs[name] for name in outputs]

    def check():
        reference.reference(**kwargs)
        return [kwargs[name] for name in outputs]

    return check, call


def function(candidate, reference, options):
    """The same for one plain function, called with what the file of inputs makes."""
    tree = ast.parse(Path(options.reference).read_text("utf-8"))
    name = next(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    torch.manual_seed(SEED)
    inputs = [moved(value, options.device) for value in load(options.inputs, "inputs").get_inputs()]
    new, old = getattr(candidate, name), getattr(reference, name)
    return lambda: old(*inputs), lambda: new(*inputs)


def timed(call, device):
    """Seconds of a few calls; their results are dropped."""
    seconds = []
    for _ in range(TIMED_CALLS):
        start = time.perf_counter()
        call()
        if device.startswith("cuda"):
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return seconds


def queued(candidate, reference, options):
    """Accepted or not by one call for each of several inputs."""
    model, new, draw = models(candidate, reference, options)
    inputs = naive_timing.blocks(draw, options.device)
    with torch.no_grad():
        before, expected = naive_timing.whole_queue(model, inputs, options.device)
        after, results = naive_timing.whole_queue(new, inputs, options.device)
        settle(options.device)
        passed = [agree(want, got, options.atol, options.rtol) for want, got in zip(expected, results, strict=True)]
    return judged(passed, before, after, options)


def judged(passed, before, after, options):
    """What is printed: the candidate is accepted where all passed and the times say that it is faster by enough."""
    speedup = before / max(after, 1e-9)
    found = {"speedup": round(speedup, 3), "before": before, "after": after}
    return {"accepted": all(passed) and speedup >= options.min_speedup, **found}


def compiled(path):
    """A `.cu` file as a shared library."""
    target = Path("solve.so").resolve()
    command = ["nvcc", "-arch=native", "--shared", "-Xcompiler", "-fPIC", "-o", str(target), str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(target))


def evaluate(options):
    """Accepted or not, and why."""
    forms = {"kernelbench": kernelbench, "setup": written_in_place, "function": function, "solve": solved}
    reference = load(options.reference, "reference")
    candidate = compiled(options.candidate) if options.form == "solve" else load(options.candidate, "candidate")
    if options.timing == "queue":
        return queued(candidate, reference, options)
    expect, call = forms[options.form](candidate, reference, options)
    with torch.no_grad():
        call()
        settle(options.device)
        passed = []
        for _ in range(TRIALS):
            expected = [result.clone() for result in tensors(expect())]
            results = tensors(call())
            settle(options.device)
            atol = vars(candidate).get("atol", options.atol)
            rtol = vars(candidate).get("rtol", options.rtol)
            passed.append(len(results) == len(expected))
            for want, got in zip(expected, results, strict=False):
                if not isinstance(got, torch.Tensor):
                    passed.append(False)
                    continue
                passed.append(agree(want, got.to(want.dtype), atol, rtol))
        if options.timing:
            clock = naive_timing.CLOCKS[options.timing]
            before, after = clock(expect, options.device), clock(call, options.device)
        else:
            before = statistics.median(timed(expect, options.device))
            after = statistics.median(timed(call, options.device))
    return judged(passed, before, after, options)


def main():
    """The command; its exit code says whether the candidate was accepted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("candidate")
    parser.add_argument("reference")
    parser.add_argument("--form", default="kernelbench")
    parser.add_argument("--inputs", default="")
    parser.add_argument("--dims", type=json.loads, default={})
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--atol", type=float, default=1e-2)
    parser.add_argument("--rtol", type=float, default=1e-2)
    parser.add_argument("--min-speedup", type=float, default=0.0)
    parser.add_argument("--timing", default="", choices=["", *naive_timing.CLOCKS, "queue"])
    parser.add_argument("--build-only", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.build_only:
        if options.form != "solve":
            load(options.candidate, "candidate")
        return 0
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # what a candidate prints is of no interest
            record = evaluate(options)
    except Exception as error:
        record = {"accepted": False, "error": f"{type(error).__name__}: {error}"}
    sys.stdout.write(json.dumps(record) + "\n")
    return 0 if record["accepted"] else 1


def leave():
    """Run the command and end as an interpreter does, without the second that it takes to take torch apart."""
    try:
        code = main()
    except SystemExit as ended:
        code = ended.code
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(int(code or 0))


def serve():
    """Fork once for each request line on stdin; a child becomes the command, the server answers with its exit code."""
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.chdir(request["folder"])
            output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ["TMPDIR"] = request["folder"]
            sys.argv = [sys.argv[0], *request["words"]]
            leave()
        deadline = time.monotonic() + request["seconds"]
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
                break
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                code = -signal.SIGKILL
                break
            time.sleep(0.005)
        sys.stdout.write(json.dumps({"code": code}) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(serve() if "--serve" in sys.argv else main())
