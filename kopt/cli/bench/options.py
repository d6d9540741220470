"""Reading the words of `kopt bench`: a request, and what its options mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluator.request import InputsFile, Request


def make_request(**words: Any) -> Request:
    """The request that the words of `kopt bench` make; each is named as the command's parameter. `role` is what errors
    call the candidate."""
    from evaluator.correctness.sanitizer import TOOLS
    from evaluator.receipt.plan import BaselineChoice
    from evaluator.request import Request
    from evaluator.source.source_file import read_source
    from kbs.common.errors import UsageError
    from kopt.cli.bench.timing import read_baselines
    from kopt.cli.support import read_dims

    if words["plan"] not in ("signal", "verdict"):
        raise UsageError(f"{words['plan']!r} is no plan", code="plan_unknown", hint="Plans are signal and verdict.")
    asked = names(words["sanitizers"] or "")
    tools = TOOLS if asked == ("all",) else asked
    unknown = [tool for tool in tools if tool not in TOOLS]
    if unknown:
        raise UsageError(
            f"{unknown[0]!r} is no tool of compute-sanitizer",
            code="sanitizer_unknown",
            hint=f"Tools are {', '.join(TOOLS)}, or all.",
        )
    against = words.pop("against", None)
    baselines = {"baselines": read_baselines(words["baselines"])} if "baselines" in words else {}
    if against is not None and "baselines" in baselines:
        baselines = {"baselines": (BaselineChoice(name="incumbent", how="incumbent"), *baselines["baselines"])}
    read = {
        "incumbent": None if against is None else read_source(against, "incumbent"),
        "candidate": read_source(words.pop("candidate"), words.pop("role", "candidate")),
        "reference": None if words["ref"] is None else read_source(words["ref"], "reference"),
        "inputs": None if words["inputs"] is None else read_inputs(words["inputs"]),
        "dims": read_dims(words["dims"]),
        "workloads": read_workloads(words["workloads"]),
        "tolerance": read_tolerance(words["tolerance"]),
        "nvcc_flags": tuple(words["nvcc_flags"].split()),
        "sanitizers": tools,
        **baselines,
    }
    del words["ref"]
    memory = words.pop("memory")
    limit = {} if memory is None else {"memory_limit": int(memory * 1e9)}
    return Request(**{**words, **read, **limit})


def names(text: str) -> tuple[str, ...]:
    """`a, b` as names, each once."""
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def pairs(texts: Any) -> dict[str, str]:
    """What --ptr-size says: name → expression. UsageError `ptr_size_invalid`."""
    from kbs.common.errors import UsageError

    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UsageError(
                f"--ptr-size {text!r} cannot be read", code="ptr_size_invalid", hint="Such as --ptr-size A=M*N."
            )
        found[name.strip()] = value.strip()
    return found


def read_tolerance(text: str | None) -> tuple[float, float] | None:
    """`1e-3,1e-3` as (atol, rtol). UsageError `tolerance_invalid`."""
    from kbs.common.errors import UsageError

    if text is None:
        return None
    try:
        atol, rtol = (float(part) for part in text.split(","))
    except ValueError:
        atol = rtol = -1.0
    if not (0 <= atol < 1e300 and 0 <= rtol < 1e300):
        raise UsageError(
            f"--tolerance {text!r} cannot be read",
            code="tolerance_invalid",
            hint="Give two numbers from 0 up, atol and rtol: --tolerance 1e-3,1e-3.",
        )
    return atol, rtol


def read_workloads(path: Path | None) -> tuple[dict[str, int], ...]:
    """Sets of sizes, one a line of a file. UsageError `workloads_empty`, `dims_invalid`, `file_not_found`."""
    from kbs.common.errors import UsageError
    from kopt.cli.support import read_dims

    if path is None:
        return ()
    lines = _read_bytes(path, "workloads").decode("utf-8", "replace").splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            found += [read_dims(line)] if line.strip() else []
        except UsageError as error:
            hint = 'One object a line: {"M": 4096, "N": 8192}.'
            raise UsageError(f"line {number} of {path}: {error.message}", code=error.code, hint=hint) from error
    if not found:
        raise UsageError(
            f"{path} names no workload", code="workloads_empty", hint='One object a line: {"M": 4096, "N": 8192}.'
        )
    return tuple(found)


def read_inputs(path: Path) -> InputsFile:
    """The file of inputs as bytes; it is opened by the worker alone."""
    import json as json_module

    from evaluator.request import InputsFile
    from kbs.common.errors import UsageError

    known = (".py", ".npz", ".safetensors", ".pt", ".pth", ".json")
    if path.suffix not in known:
        raise UsageError(
            f"{path} is no file of inputs", code="inputs_format", hint=f"Inputs are {', '.join(known)} files."
        )
    content, beside = _read_bytes(path, "inputs"), {}
    if path.suffix == ".json":
        try:
            described = json_module.loads(content)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{path} is no JSON: {error}",
                code="inputs_invalid",
                hint="Such as [[64, 128], [128]], a list of shapes.",
            ) from error
        name = described.get("file") if isinstance(described, dict) else None
        if isinstance(name, str):
            if Path(name).name != name:
                raise UsageError(
                    f"{name!r} must lie beside {path}", code="inputs_invalid", hint="Name a file without a folder."
                )
            beside[name] = _read_bytes(path.parent / name, "inputs")
    return InputsFile(name=path.name, content=content, beside=beside)


def _read_bytes(path: Path, what: str) -> bytes:
    from kbs.common.errors import UsageError

    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {path} ({what})", code="file_not_found", hint="Check the path.") from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", code="file_unreadable", hint="Check its permissions."
        ) from error
