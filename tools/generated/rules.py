"""Generator of docs/checker-rules.md and docs/proposal-rules.md: every rule for models and for proposals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from opshift.checker import rule_table as checker
from opshift.proposals.rules import rule_table as proposals

CHECKER_HEAD: Final = """# Rules of the checker

`opshift check` and `opshift.check` apply these rules. An error leaves the model without a defined meaning, or
runtimes or ONNX's own checker reject it. A warning is forbidden by the specification, but runtimes accept it.
An info is advice. [specification-editions.md](specification-editions.md) describes the edition of the
specification that the rules follow.
"""
PROPOSALS_HEAD: Final = """# Rules for proposals

`opshift proposal check` applies these rules; those marked *accept* apply only on acceptance. An error blocks
acceptance, a warning is for the author and reviewers to consider, and an info is advice.
`opshift proposal explain RULE` explains a rule.
"""


def files() -> Mapping[Path, str]:
    """Return the pages."""
    checker_rows = (_row(rule, str(rule.level)) for rule in checker.rule_table().values())
    proposal_rows = (
        _row(rule, f"{rule.level}, *accept*" if rule.gate == "accept" else str(rule.level))
        for rule in proposals.rule_table().values()
    )
    return {
        Path("docs", "checker-rules.md"): _page(CHECKER_HEAD, checker_rows),
        Path("docs", "proposal-rules.md"): _page(PROPOSALS_HEAD, proposal_rows),
    }


def _page(head: str, rows: Iterable[str]) -> str:
    header = "| rule | level | requirement | source |\n|---|---|---|---|"
    return "\n".join(["<!-- Written by tools/generate.py -->", head, header, *rows, ""])


def _row(rule: checker.Rule | proposals.ProposalRule, level: str) -> str:
    return f"| `{rule.id}` | {level} | {rule.title} | {rule.source} |"
