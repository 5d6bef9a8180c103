"""docs/proposal-rules.md: every rule that a proposal is judged by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from opshift.proposals.rules.table import Rule, rule_table

PAGE: Final = Path("docs", "proposal-rules.md")
HEAD: Final = """<!-- Written by tools/generate.py -->
# Rules for proposals

`opshift proposal check` judges by these; those marked *accept* count when a proposal is to be accepted. An
error stands in the way, a warning is for the author and reviewers to weigh, an info is advice.
`opshift proposal explain RULE` says what a rule is for.

| rule | level | asks that | comes from |
|---|---|---|---|
"""


def files() -> Mapping[Path, str]:
    """The page."""
    return {PAGE: _page()}


def _page() -> str:
    return HEAD + "\n".join(map(_row, rule_table().values())) + "\n"


def _row(rule: Rule) -> str:
    level = f"{rule.level}, *accept*" if rule.gate == "accept" else str(rule.level)
    return f"| `{rule.id}` | {level} | {rule.title} | {rule.source} |"
