"""Expected movements name a metric."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from kbs.hardware.profile_metrics import profile_metrics
from loop.gate.context import GateContext
from loop.gate.rule import Broken, rule


@rule("expected-metric", "An expected movement names a metric of the profile, or `time`.", "proposal")
def expected_metric(context: GateContext) -> Iterator[Broken]:
    """The next record says whether what was expected happened, so it must be something that is measured: an id of the
    profile's metrics such as dram_throughput, a name of Nsight Compute, or `time`."""
    known = profile_metrics()
    for number, one in enumerate(context.proposal.hypothesis.expected if context.proposal is not None else ()):
        if one.metric not in known.all and one.metric not in known.by_ncu and one.metric not in ("time", "speedup"):
            near = difflib.get_close_matches(one.metric.lower().replace(" ", "_"), known.all, n=3, cutoff=0.4)
            message = f"{one.metric!r} is no metric of a profile"
            mend = f"Name one of {', '.join([*near, 'time'])}."
            file = f"{context.proposal_file}#hypothesis.expected[{number}]"
            yield Broken(file=file, line=0, message=message, mend=mend)
