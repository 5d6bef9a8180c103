"""Generator of docs/proposal-rules.md: every rule for proposals."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from opshift.proposals.rules.rule_table import ProposalRule, rule_table

PAGE: Final = Path("docs", "proposal-rules.md")
HEAD: Final = """<!-- Written by tools/generate.py -->
# Rules for proposals

`opshift proposal check` applies these rules; those marked *accept* apply only on acceptance. An error blocks
acceptance, a warning is for the author and reviewers to consider, and an info is advice.
`opshift proposal explain RULE` explains a rule.

| rule | level | requirement | source |
|---|---|---|---|
"""


def files() -> Mapping[Path, str]:
    """Return the page."""
    return {PAGE: _page()}


def _page() -> str:
    return HEAD + "\n".join(map(_row, rule_table().values())) + "\n"


def _row(rule: ProposalRule) -> str:
    level = f"{rule.level}, *accept*" if rule.gate == "accept" else str(rule.level)
    return f"| `{rule.id}` | {level} | {rule.title} | {rule.source} |"
