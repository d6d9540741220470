"""Whether a candidate computed with the library that it should replace, by what really ran."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from evaluator.receipt.findings import DeviceKernel, LibraryOperation
from evaluator.scan.hazards import Hazard, Severity

SHARE = 0.25
"""Part of the problem's bytes that library operators may touch: a last sum over partial results is honest."""
TIME_SHARE = 0.25
"""Part of the device time that library kernels may take."""
_LIBRARY_KERNELS = re.compile(
    r"at::native|cublas|cudnn|cutlass_\d|_xmma_|nvjet_|cub::|cufft|cusparse|cusolver"
    r"|^(?:maxwell|volta|turing|ampere|hopper)_\w*gemm_\w*\d+x\d+"  # the tile stands in the name
    r"|flash::flash_(?:fwd|bwd)|flash::FlashAttn|fmha_cutlass|PyTorchMemEff|flashinfer::"
    r"|namespace\)::softmax_warp_|cunn_SoftMax|(?:regular|vector)_fft\w*<"
    r"|\btriton_(?:poi|red|per|tem|for|spl)_fused|gemmk1_kernel|splitKreduce",
    re.IGNORECASE,
)
_PLAIN_KERNELS = re.compile(r"FillFunctor|CopyFunctor|copy_kernel|Memcpy|Memset|direct_copy|arange", re.IGNORECASE)


def operations(operators: Sequence[dict[str, Any]], problem_bytes: int) -> list[LibraryOperation]:
    """The operators of a call, with their part of the problem's bytes (at most 1)."""
    return [
        LibraryOperation(
            name=one["name"][:200], calls=one["calls"], share=min(1.0, one["bytes"] / max(1, problem_bytes))
        )
        for one in operators
        if one["calls"]
    ]


def device_kernels(kernels: Sequence[dict[str, Any]]) -> list[DeviceKernel]:
    """The kernels of a call, each told apart as a library's or the candidate's own."""
    return [
        DeviceKernel(
            name=str(kernel["name"])[:200],
            library=bool(_LIBRARY_KERNELS.search(str(kernel["name"]))),
            calls=max(1, int(kernel["calls"])),
            microseconds=max(0.0, float(kernel["microseconds"])),
        )
        for kernel in kernels
    ]


def _who(operators: Sequence[LibraryOperation]) -> str:
    arrays = {"aten::resolve_neg", "aten::lift_fresh"} & {operation.name for operation in operators}
    return "arrays of another library" if arrays else "operators of PyTorch"


def _is_plain(kernel: DeviceKernel) -> bool:
    return _PLAIN_KERNELS.search(kernel.name) is not None


def judge(
    operators: Sequence[LibraryOperation], kernels: Sequence[DeviceKernel], *, own: bool = True, allowed: bool
) -> list[Hazard]:
    """The hazard `library_call`, where operators or kernels of a library did a real part of the work, or all of it.

    `own`: whether in each call that gave results a kernel of the candidate's own may have run.
    """
    severity, evidence = Severity.NOTE if allowed else Severity.REJECT, ""
    share = sum(operation.share for operation in operators)
    total = sum(kernel.microseconds or 0.0 for kernel in kernels)
    computing = [k for k in kernels if k.library and not _is_plain(k)]
    taken = sum(kernel.microseconds or 0.0 for kernel in computing)
    if share > SHARE:
        names = ", ".join(operation.name for operation in operators[:4])
        evidence = f"{names}: {_who(operators)} touched {min(share, 1):.0%} of the problem's bytes"
    elif total and taken / total > TIME_SHARE:
        names = ", ".join(kernel.name[:60] for kernel in computing[:2])
        evidence = f"{names}: kernels of a library took {taken / total:.0%} of the device time"
    elif not own or (any(k.library for k in kernels) and all(k.library or _is_plain(k) for k in kernels)):
        evidence = "a call gave results without any kernel of the candidate's own"
    return [Hazard(id="library_call", severity=severity, evidence=evidence)] if evidence else []
