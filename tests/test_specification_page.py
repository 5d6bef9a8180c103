"""docs/specification.md refers to existing rules, files and tests, and counts its statements correctly."""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from opshift.analysis.comparison.result import RULES
from opshift.checker.rule_table import rule_table
from opshift.converter.options import ALLOW_VALUES
from opshift.proposals.rules.rule_table import rule_table as proposal_rule_table
from opshift.registry.changes.rules import CHANGE_RULES
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
OTHER_NAMES = re.compile(r"opshift \w+|--\w+|check|[a-z_]+\*?|\*|\d\.\d\.\d|ai\.onnx\.ml|Comparison")


@cache
def rule_ids() -> set[str]:
    return {
        *rule_table(),
        *proposal_rule_table(),
        *lint_rule_table(),
        *RULES,
        *CHANGE_RULES,
        *ALLOW_VALUES,
    }


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
    found = [each for each in references if "/" in each or each in rule_ids()]
    assert found or state != "yes" or "`opshift " in evidence, (
        "no rule, file or test implements the statement"
    )


def test_counts_statements() -> None:
    counted = {
        state: int(count) for state, count in re.findall(r"^\| ([a-z ]+) \| .* \| (\d+) \|$", PAGE, re.M)
    }
    assert counted == {state: Counter(row[1] for row in ROWS)[state] for state in STATES}
    assert counted["no"] <= 3
    assert counted["partly"] <= 5
