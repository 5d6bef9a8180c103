"""Each rule has a model that follows it and a model that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.checker_cases import features, graphs, models, nodes, shapes, tensors
from support.checker_cases.case import Case, violated_rules

from opshift.checker import rule_table as rules
from opshift.checker.checked_nodes import CheckedNode
from opshift.checker.findings import Level, Problem
from opshift.checker.rule_table import Problems, rule, rule_table, rules_for
from opshift.model.rule_table import DuplicateRule, RuleTable

pytestmark = pytest.mark.every_case

CASES = (
    *models.CASES,
    *graphs.CASES,
    *nodes.CASES,
    *shapes.CASES,
    *tensors.CASES,
    *features.CASES,
)
TESTED_SEPARATELY = {
    "model.errors",
    "model.readable",
    "model.text",
    "external.checksum",
    "external.file",
    "external.links",
    "opset.unreleased",
}
"""Rules that only files, huge models or proposals break: see `test_check.py` and `test_release.py`."""


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_valid_model_passes_and_changed_model_fails(case: Case) -> None:
    assert case.rule not in violated_rules(case.keeping())
    assert case.rule in violated_rules(case.breaking())


def test_every_rule_has_a_case() -> None:
    assert set(rule_table()) == {case.rule for case in CASES} | TESTED_SEPARATELY


def test_ids_of_cases_are_unique() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("rule_id", rule_table())
def test_rule_has_title_source_remedy_and_subjects(rule_id: str) -> None:
    rule = rule_table()[rule_id]
    assert rule.id == rule_id
    assert rule.title.endswith(".")
    assert rule.source
    assert rule.remedy
    assert rule.target_types


def test_rules_are_sorted_by_id() -> None:
    assert list(rule_table()) == sorted(rule_table())


def test_refuses_duplicate_rule_id() -> None:
    def duplicate(node: CheckedNode) -> Problems:
        """Two rules share an id."""
        return ()

    with pytest.raises(DuplicateRule, match=r"'node\.op-type' is defined by both .*duplicate"):
        rule("node.op-type", Level.INFO, source="here", remedy="none")(duplicate)


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[..., rules.Rule]:
    """Return a function that registers a rule in a separate table."""
    table: RuleTable[rules.Rule] = RuleTable("opshift.checker.rules")
    monkeypatch.setattr(rules, "_TABLE", table)

    def register_rule(check: Callable[[CheckedNode], Problems]) -> rules.Rule:
        rule("a.rule", Level.WARNING, source="here", remedy="mend it")(check)
        return table.registered["a.rule"]

    return register_rule


def test_parameter_type_selects_subjects(register: Callable[..., rules.Rule]) -> None:
    def check(node: CheckedNode) -> Problems:
        """Something holds.

        The title ends with the first paragraph.
        """
        return ()

    registered = register(check)
    assert (registered.title, registered.target_types) == ("Something holds.", (CheckedNode,))
    assert "node.domain" not in {each.id for each in rules_for(CheckedNode)}
    assert "value.order" in {each.id for each in rules_for(CheckedNode)}


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ("is wrong", ("there", "is wrong", "mend it")),
        (Problem("is wrong", "throw it away"), ("there", "is wrong", "throw it away")),
        (Problem("is wrong", place="elsewhere"), ("elsewhere", "is wrong", "mend it")),
    ],
    ids=["message", "custom remedy", "custom place"],
)
def test_problem_becomes_finding(
    problem: str | Problem, expected: tuple[str, str, str], register: Callable[..., rules.Rule]
) -> None:
    class Thing:
        location = "there"

    def check(node: CheckedNode) -> Problems:
        """Something holds."""
        return ()

    finding = register(check).to_finding(Thing(), problem)
    assert (finding.place, finding.reason, finding.remedy) == expected
    assert (finding.rule, finding.level) == ("a.rule", Level.WARNING)
