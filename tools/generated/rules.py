"""Generator of pages with rules: those of the checker, for proposals and for definitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from opshift.checker import rule_table as checker
from opshift.proposals.rules import rule_table as proposals
from opshift.registry.lint import rule_table as definitions
from opshift.registry.lint.tree_rules import TreeOperator

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
DEFINITIONS_HEAD: Final = """# Rules for definitions

`opshift lint FOLDER` reports all mistakes in the definitions of a folder. Every other command, and the loader
of the Python API, refuse a definition with a mistake; only `opshift lint` applies the rules that are marked
*lint only*.

A published version never changes: its key `known_mistakes` lists the rules that it breaks.
"""


PATHS: Final = tuple(Path("docs", f"{each}-rules.md") for each in ("checker", "definition", "proposal"))


def files() -> Mapping[Path, str]:
    """Return the pages."""
    checker_rows = (_rule_row(rule, str(rule.level)) for rule in checker.rule_table().values())
    proposal_rows = (
        _rule_row(rule, f"{rule.level}, *accept*" if rule.gate == "accept" else str(rule.level))
        for rule in proposals.rule_table().values()
    )
    pages = (
        _page_text(CHECKER_HEAD, checker_rows),
        _definition_page(),
        _page_text(PROPOSALS_HEAD, proposal_rows),
    )
    return dict(zip(PATHS, pages, strict=True))


def _definition_page() -> str:
    rows = []
    for rule in definitions.rule_table().values():
        note = " *Lint only.*" if TreeOperator in rule.target_types or rule.id == "file.ignored" else ""
        rows.append(f"| `{rule.id}` | {rule.title}{note} | {rule.remedy} |")
    header = "| rule | requirement | remedy |\n|---|---|---|"
    return "\n".join(["<!-- Written by tools/generate.py -->", DEFINITIONS_HEAD, header, *rows, ""])


def _page_text(head: str, rows: Iterable[str]) -> str:
    header = "| rule | level | requirement | source |\n|---|---|---|---|"
    return "\n".join(["<!-- Written by tools/generate.py -->", head, header, *rows, ""])


def _rule_row(rule: checker.Rule | proposals.ProposalRule, level: str) -> str:
    return f"| `{rule.id}` | {level} | {rule.title} | {rule.source} |"
