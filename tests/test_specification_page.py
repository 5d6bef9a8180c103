"""docs/specification.md refers to existing rules, files and tests, and counts its statements correctly.

A statement that holds names a test, or a rule. Each rule has a legal model or definition and one with a
violation: other tests run them, and compare the rules with their cases.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from opshift.checker.rule_table import rule_table
from opshift.converter.options import ALLOW_VALUES
from opshift.converter.signature import RULES
from opshift.proposals.rules.rule_table import rule_table as proposal_rule_table
from opshift.registry.changes.classes import CHANGE_RULES
from opshift.registry.lint.rule_table import rule_table as lint_rule_table

pytestmark = pytest.mark.every_case

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "specification.md").read_text("utf-8")
STATES = {"yes", "partly", "no", "other edition", "people"}
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for section in PAGE.split("\n## ")[1:]
    for line in section.splitlines()[4:]
    if line
]
COMPLETE_CASES = (
    "tests/checker/test_rule_table.py::test_every_rule_has_a_case",
    "tests/analysis/comparison/test_compare.py::test_every_rule_has_a_case",
    "tests/proposals/rules/test_rule_table.py::test_every_rule_has_a_case",
    "tests/registry/changes/test_classify.py::test_every_rule_has_a_triggering_and_a_similar_pair",
    "tests/registry/lint/test_mistakes.py::test_each_rule_has_a_mistake",
)
"""Tests that fail for a rule without a case."""
OTHER_NAMES = re.compile(r"opshift \w+|--\w+|check|[a-z_]+\*?|\*|\d\.\d\.\d|ai\.onnx\.ml|Comparison")


@cache
def rule_ids() -> set[str]:
    return {*rules_with_cases(), *ALLOW_VALUES}


@cache
def rules_with_cases() -> set[str]:
    return {*rule_table(), *proposal_rule_table(), *lint_rule_table(), *RULES, *CHANGE_RULES}


@cache
def names_of_tests(path: Path) -> set[str]:
    nodes = ast.walk(ast.parse(path.read_text("utf-8")))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:60])
def test_statement_has_state_and_evidence(row: list[str]) -> None:
    statement, state, evidence = row
    assert statement.endswith(".")
    assert state in STATES
    assert evidence
    references = re.findall(r"`([^`]+)`", evidence)
    for reference in references:
        path, _, test = reference.partition("::")
        if "/" in path or path.endswith(".md"):
            assert (ROOT / path).exists(), reference
            assert not test or test in names_of_tests(ROOT / path), reference
        else:
            assert reference in rule_ids() or OTHER_NAMES.fullmatch(reference), reference


@pytest.mark.parametrize("row", [row for row in ROWS if row[1] == "yes"], ids=lambda row: row[0][:60])
def test_statement_that_holds_names_its_test(row: list[str]) -> None:
    references = re.findall(r"`([^`]+)`", row[2])
    tests = [each for each in references if each.startswith("tests/") and "::" in each]
    assert tests or rules_with_cases() & set(references), "name a rule, or a test as FILE::FUNCTION"


@pytest.mark.parametrize("reference", COMPLETE_CASES)
def test_every_rule_of_a_table_has_a_case(reference: str) -> None:
    path, _, test = reference.partition("::")
    assert test in names_of_tests(ROOT / path)


def test_counts_statements() -> None:
    counted = {
        state: int(count) for state, count in re.findall(r"^\| ([a-z ]+) \| .* \| (\d+) \|$", PAGE, re.M)
    }
    assert counted == {state: Counter(row[1] for row in ROWS)[state] for state in STATES}
    assert counted["no"] <= 3
    assert counted["partly"] <= 5
