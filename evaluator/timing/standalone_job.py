"""A candidate's calls in a process of their own, as a job for a tool that starts that process itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from evaluator.correctness.cases import Cases
from evaluator.correctness.reference import Values
from evaluator.sandbox import messages
from evaluator.sandbox.shared_buffers import SharedTensor, shared_tensor
from evaluator.source.forms import Form
from evaluator.timing.processes import Starter


@contextmanager
def job_of(
    starter: Starter, cases: Cases, inputs: Values, dims: dict[str, int]
) -> Iterator[tuple[dict[str, Any], list[SharedTensor]]]:
    """(the message for `Worker.do_sanitize` or `Worker.do_profile` but for the tool, the tensors that it names): the
    candidate, its weights and one draw of inputs."""
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
    try:
        yield job, every
    finally:
        for shared in every:
            shared.close()
