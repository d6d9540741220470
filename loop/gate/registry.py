"""All rules of the gate, in the order in which they are asked."""

from __future__ import annotations

from loop.gate.rule import Rule
from loop.gate.rules.above_ceiling import above_ceiling
from loop.gate.rules.addressed import addressed
from loop.gate.rules.artifact import artifact
from loop.gate.rules.best_restored import best_restored
from loop.gate.rules.changed_file import changed_file
from loop.gate.rules.citation import citation
from loop.gate.rules.current_iteration import current_iteration
from loop.gate.rules.discipline import discipline
from loop.gate.rules.evidence_found import evidence_found
from loop.gate.rules.evidence_queries import evidence_queries
from loop.gate.rules.evidence_reference import evidence_reference
from loop.gate.rules.expected_metric import expected_metric
from loop.gate.rules.final_receipt import final_receipt
from loop.gate.rules.final_rendered import final_rendered
from loop.gate.rules.forbidden_method import forbidden_method
from loop.gate.rules.hedged_spec import hedged_spec
from loop.gate.rules.hint_limit import hint_limit
from loop.gate.rules.hint_precision import hint_precision
from loop.gate.rules.journal_chain import journal
from loop.gate.rules.kernel_unchanged import kernel_unchanged
from loop.gate.rules.known_failure import known_failure
from loop.gate.rules.later_artifact import later_artifact
from loop.gate.rules.loose_number import loose_number
from loop.gate.rules.not_accepted import not_accepted
from loop.gate.rules.profile_grade import profile_grade
from loop.gate.rules.profile_kernel import profile_kernel
from loop.gate.rules.proposal_recorded import proposal_recorded
from loop.gate.rules.receipt_kernel import receipt_kernel
from loop.gate.rules.receipt_problem import receipt_problem
from loop.gate.rules.receipt_recorded import receipt_recorded
from loop.gate.rules.receipt_seal import receipt_seal
from loop.gate.rules.record_changed import record
from loop.gate.rules.rendered import rendered
from loop.gate.rules.skipped_priority import skipped_priority
from loop.gate.rules.stale_citation import stale_citation
from loop.gate.rules.unknown_method import unknown_method
from loop.gate.rules.unpinned_citation import unpinned_citation
from loop.gate.rules.unsourced_spec import unsourced_spec
from loop.gate.rules.wrong_arithmetic import wrong_arithmetic

RULES: tuple[Rule, ...] = (
    addressed,
    kernel_unchanged,
    unknown_method,
    discipline,
    forbidden_method,
    hint_precision,
    skipped_priority,
    known_failure,
    evidence_queries,
    evidence_reference,
    evidence_found,
    citation,
    stale_citation,
    unpinned_citation,
    unsourced_spec,
    hedged_spec,
    loose_number,
    wrong_arithmetic,
    above_ceiling,
    expected_metric,
    journal,
    record,
    changed_file,
    later_artifact,
    current_iteration,
    artifact,
    proposal_recorded,
    receipt_seal,
    receipt_recorded,
    receipt_kernel,
    receipt_problem,
    not_accepted,
    profile_grade,
    profile_kernel,
    hint_limit,
    rendered,
    best_restored,
    final_receipt,
    final_rendered,
)
RULES_BY_ID = {rule.id: rule for rule in RULES}
"""Each of them."""
