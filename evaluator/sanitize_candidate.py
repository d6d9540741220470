"""What compute-sanitizer is given of an evaluation: the candidate, its weights and one draw of inputs."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evaluator import messages
from evaluator.buffers import shared_tensor
from evaluator.cases import Cases
from evaluator.contenders import Starter
from evaluator.findings import SanitizerRun
from evaluator.oracle import Values
from evaluator.sanitize import sanitize
from evaluator.source import Form


def sanitize_candidate(
    tools: Sequence[str], starter: Starter, cases: Cases, inputs: Values, dims: dict[str, int]
) -> list[SanitizerRun]:
    """Run the tools over a few calls of the candidate on these inputs."""
    request, recognised = starter.request, starter.recognised
    groups = {"init": cases.init, "weights": cases.weights, "inputs": inputs}
    host = torch.device("cpu")
    lent = {name: [shared_tensor({**s, "stride": None}, host) for s in v.specs] for name, v in groups.items()}
    for name, values in groups.items():
        for shared, tensor in zip(lent[name], values.tensors, strict=True):
            shared.tensor.copy_(tensor)
    built = recognised.form is Form.KERNELBENCH
    job = {
        "load": messages.candidate_message(request, recognised, dims),
        "build": {"tree": cases.init.tree, "seed": starter.seeds.seed("weights", 0)} if built else None,
        "names": starter.names,
        "tree": inputs.tree,
        **{name: [t.message for t in tensors] for name, tensors in lent.items()},
    }
    every = [t for tensors in lent.values() for t in tensors]
    files = messages.files_of_candidate(request)
    try:
        return sanitize(tools, starter.server, starter.limits, files, starter.reading, job, every)
    finally:
        for shared in every:
            shared.close()
