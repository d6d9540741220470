"""docs/gate.md says what the rules say."""

from __future__ import annotations

from loop.gate.registry import RULES, RULES_BY_ID
from loop.gate.report import explain_rules, rules_table
from loop.gate.rule import STAGES
from tests.conftest import ROOT

PAGE = ROOT / "docs/gate.md"


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    text = PAGE.read_text("utf-8")
    assert rules_table() in text, "write docs/gate.md again: its table is loop.gate.report.rules_table()"


def test_every_rule_explains_itself() -> None:
    assert len(RULES_BY_ID) == len(RULES)
    for rule in RULES:
        assert rule.stage in STAGES
        assert rule.title.endswith(".")
        assert len(rule.explain.split()) > 15
    explained = list(explain_rules())
    assert len(explained) == 2 * len(RULES)
    assert explained[0].startswith("addressed (proposal): ")
