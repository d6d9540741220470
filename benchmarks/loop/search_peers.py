"""`python search_peers.py REFERENCE KERNEL`: a generated kernel beside torch.compile, plain and with max-autotune.

Times as `generated_gpu.py` takes them, in one process, each taken twice in turn; one JSON object is printed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.loop.generated_gpu import imported, timed  # noqa: E402  # ROOT must be on the path first


def main() -> int:
    """Time them."""
    import torch

    reference, kernel = (imported(Path(one)) for one in sys.argv[1:3])
    with torch.device("cuda"), torch.no_grad():
        model = reference.Model(*reference.get_init_inputs()).cuda()
        own = kernel.ModelNew().cuda()
        if model.state_dict():
            own.load_state_dict(model.state_dict())
        inputs = reference.get_inputs()
        started = time.monotonic()
        calls: dict[str, Callable[..., Any]] = {"generated": own, "compile": torch.compile(model)}
        calls["max_autotune"] = torch.compile(model, mode="max-autotune-no-cudagraphs")
        for call in calls.values():
            call(*inputs)
        taken = time.monotonic() - started
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(2):
            for name, call in calls.items():
                times[name].append(timed(lambda call=call: call(*inputs)))
    print(json.dumps({"peers_us": {name: min(found) for name, found in times.items()}, "compiling_s": round(taken, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
