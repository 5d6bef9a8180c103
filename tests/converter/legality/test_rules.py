"""Every rule has a model that keeps it and one that breaks it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.legality import graphs, models, nodes, others, tensors
from support.legality.case import Case, rules_broken

from opshift.converter.legality import rules
from opshift.converter.legality.findings import Flaw, Level
from opshift.converter.legality.rules import DuplicateRule, Flaws, rule, rule_table, rules_of
from opshift.converter.legality.subjects import Node

CASES = (*models.CASES, *graphs.CASES, *nodes.CASES, *tensors.CASES, *others.CASES)
ELSEWHERE = {"model.readable", "model.text", "external.file"}
"""Rules that are broken by files, not by what a message says; their tests are in `test_check.py`."""


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_a_model_keeps_a_rule_until_something_breaks_it(case: Case) -> None:
    assert case.rule not in rules_broken(case.keeping())
    assert case.rule in rules_broken(case.breaking())


def test_every_rule_has_a_case() -> None:
    assert set(rule_table()) == {case.rule for case in CASES} | ELSEWHERE


def test_no_two_cases_are_called_the_same() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("name", rule_table())
def test_a_rule_says_what_it_asks_for_where_it_is_written_and_what_to_do(name: str) -> None:
    found = rule_table()[name]
    assert found.id == name
    assert found.title.endswith(".")
    assert found.source
    assert found.remedy
    assert found.subjects


def test_rules_are_listed_by_name() -> None:
    assert list(rule_table()) == sorted(rule_table())


def test_a_name_belongs_to_one_rule() -> None:
    def again(node: Node) -> Flaws:
        """There is a rule of this name."""
        return ()

    with pytest.raises(DuplicateRule, match=r"two rules have the id node\.op-type"):
        rule("node.op-type", Level.INFO, source="here", remedy="none")(again)


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[..., rules.Rule]:
    """Register a rule in a table of its own."""
    table: dict[str, rules.Rule] = {}
    monkeypatch.setattr(rules, "_registered", table)

    def made(judge: Callable[[Node], Flaws]) -> rules.Rule:
        rule("a.rule", Level.WARNING, source="here", remedy="mend it")(judge)
        return table["a.rule"]

    return made


def test_a_rule_judges_what_its_parameter_says(register: Callable[..., rules.Rule]) -> None:
    def judge(node: Node) -> Flaws:
        """Something holds.

        More on it is for readers of the code.
        """
        return ()

    found = register(judge)
    assert (found.title, found.subjects) == ("Something holds.", (Node,))
    assert "node.domain" not in {each.id for each in rules_of(Node)}
    assert "value.order" in {each.id for each in rules_of(Node)}


@pytest.mark.parametrize(
    ("flaw", "told"),
    [
        ("is wrong", ("there", "is wrong", "mend it")),
        (Flaw("is wrong", "throw it away"), ("there", "is wrong", "throw it away")),
        (Flaw("is wrong", place="elsewhere"), ("elsewhere", "is wrong", "mend it")),
    ],
    ids=["a sentence", "with a remedy of its own", "with a place of its own"],
)
def test_a_flaw_becomes_a_finding(
    flaw: str | Flaw, told: tuple[str, str, str], register: Callable[..., rules.Rule]
) -> None:
    class Thing:
        place = "there"

    def judge(node: Node) -> Flaws:
        """Something holds."""
        return ()

    found = register(judge).finding(Thing(), flaw)
    assert (found.place, found.reason, found.remedy) == told
    assert (found.rule, found.level) == ("a.rule", Level.WARNING)
