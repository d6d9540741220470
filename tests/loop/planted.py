"""Tools for which a kernel says more of itself, so that signals are told from verdicts.

# signal_us=75          the time that its signal shows, where that is another
# signal=incorrect      what its signal says, where that is something else
# spread=0.05           how far the interval of its ratio reaches to each side, as a part of 1
# code=vectorized_access,ldmatrix_stmatrix    methods that its machine code shows; `none` for none at all
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from evaluator.receipt.plan import SeedSchedule, TimingPlan
from evaluator.receipt.receipt import Receipt, ReceiptContent
from evaluator.receipt.verdict import Improvement, Verdict
from evaluator.request import Request
from evaluator.store.seal import ensure_key, seal
from loop.tools import MachineNote
from tests.evaluator import receipts
from tests.loop.tools import FakeTools, said


@dataclass
class PlantedTools(FakeTools):
    """Its `asked` names the plan of each evaluation before the hash of its kernel."""

    def evaluate(self, request: Request, schedule: SeedSchedule) -> Receipt:
        made, text = super().evaluate(request, schedule), request.candidate.text
        made = self._signal(made, text) if request.plan == "signal" else self._spread(made, text)
        self.asked[-1] = f"{request.plan} {self.asked[-1]}"
        return made

    def _signal(self, receipt: Receipt, text: str) -> Receipt:
        """What a signal says: the kernel's own time, compared with nothing."""
        verdict = Verdict(said(text, "signal", receipt.verdict.value))
        timed = receipt.plan.timing is not None and verdict is Verdict.ACCEPTED
        plan: dict[str, Any] = {"name": "signal"}
        if receipt.plan.timing is not None:
            plan["timing"] = TimingPlan(restarts=1, seconds=1.0, baselines=())
        changes: dict[str, Any] = {
            "plan": receipt.plan.model_copy(update=plan),
            "verdict": verdict,
            "reason": f"as it says: {verdict}",
            "correctness": (receipts.trial(passed=verdict is Verdict.ACCEPTED),),
            "improvement": Improvement.NOT_COMPARED if timed else Improvement.NOT_TIMED,
            **dict.fromkeys(("timing", "ceiling", "physics")),
        }
        if timed:
            own = float(said(text, "signal_us", said(text, "us", "100")))
            workload = receipts.workload_timing(
                candidate=receipts.timed(us=own), baselines={}, against="", of_ceiling=0.5,
                improvement=Improvement.NOT_COMPARED,
            )  # fmt: skip
            timing = receipts.timing(workload, plan="signal")
            changes |= {"timing": timing, "ceiling": workload.ceiling, "physics": workload.physics}
        return self._changed(receipt, changes)

    def _changed(self, receipt: Receipt, changes: dict[str, Any]) -> Receipt:
        fields = {name: getattr(receipt, name) for name in ReceiptContent.model_fields}
        return seal(receipts.receipt(**{**fields, **changes}), ensure_key(self.home))

    def _spread(self, receipt: Receipt, text: str) -> Receipt:
        """The receipt with an interval as wide as the kernel says."""
        wide = said(text, "spread", "")
        if not wide or receipt.timing is None:
            return receipt
        workload = receipt.timing.workloads[0]
        against = workload.baselines["eager"]
        assert against.ratio is not None
        median = against.ratio.median
        low, high = median * (1 - float(wide)), median * (1 + float(wide))
        found = Improvement.FASTER if low > 1.01 else Improvement.SLOWER if high < 0.99 else Improvement.SAME
        ratio = against.ratio.model_copy(update={"ci_low": low, "ci_high": high})
        baseline = against.model_copy(update={"ratio": ratio, "improvement": found})
        changed = workload.model_copy(update={"baselines": {"eager": baseline}, "improvement": found})
        timing = receipt.timing.model_copy(update={"workloads": (changed,), "ratio": ratio})
        return self._changed(receipt, {"timing": timing, "improvement": found})

    def machine_code(self, kernel_text: str, kernel_name: str, methods: tuple[str, ...]) -> MachineNote:
        """What a kernel says that its machine code shows; nothing can be looked at where it does not say."""
        code = said(kernel_text, "code", "")
        if not code:
            return super().machine_code(kernel_text, kernel_name, methods)
        shown = {
            method: f"present 1 ({method.upper()} 1)" if method in code.split(",") else "absent" for method in methods
        }
        return MachineNote(target="sm_90", functions={"run": kernel_text}, methods=shown, opcodes={}, why="")
