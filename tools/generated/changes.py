"""Generator of docs/changes.md: every version step of ONNX and its effect on models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from opshift.registry.changes.classes import BACKWARD, CHANGE_RULES, FORWARD, ChangeClass
from opshift.registry.changes.history import HistoryStep, history_steps
from opshift.registry.changes.policies import POLICIES
from opshift.registry.registry import default_registry

PAGE: Final = Path("docs", "changes.md")
HEAD: Final = """<!-- Written by tools/generate.py -->
# Changes

The effect of each new operator version on models that use the previous version. A step is the difference
between two consecutive versions, or the removal of an operator. Rules classify the changes of a step; the
step has the most severe class of its changes. A definition does not contain the whole meaning of an
operator: if two definitions are equal or compatible, the declared conversion between them is classified, too.

A step passes *backward* if nodes of the older version are valid, unchanged, in the newer version, and
*forward* if nodes of the newer version are valid, unchanged, in the older one.

"""


PATHS: Final = (PAGE,)


def files() -> Mapping[Path, str]:
    """Return the page."""
    return {PAGE: _page_text()}


def _page_text() -> str:
    steps = list(history_steps(default_registry().operators()))
    parts = [_classes_section(steps), _rules_section(steps), _policies_section()]
    for domain in default_registry().domains():
        rows = [_step_row(step) for step in steps if step.old.domain == domain]
        if rows:
            parts.append("\n".join([f"## {domain}", "", "| step | class | rules |", "|---|---|---|", *rows]))
    return HEAD + "\n\n".join(parts) + "\n"


def _classes_section(steps: Sequence[HistoryStep]) -> str:
    counts = Counter(step.change_class for step in steps)
    removals = sum(step.new is None for step in steps)
    lines = [
        f"{len(steps) - removals} steps between versions and {removals} removals.",
        "",
        f"{_count_passing(steps, BACKWARD)} of the steps pass backward, "
        f"{_count_passing(steps, FORWARD)} forward.",
        "",
        "| class | steps | backward | forward | meaning |",
        "|---|---:|---|---|---|",
    ]
    for each in ChangeClass:
        ways = " | ".join("yes" if each in passing else "no" for passing in (BACKWARD, FORWARD))
        lines.append(f"| {each} | {counts[each]} | {ways} | {each.meaning} |")
    return "\n".join(lines)


def _count_passing(steps: Iterable[HistoryStep], classes: frozenset[ChangeClass]) -> int:
    return sum(all(change.change_class in classes for change in step.changes) for step in steps)


def _rules_section(steps: Iterable[HistoryStep]) -> str:
    counts = Counter(rule for step in steps for rule in _rule_ids(step))
    lines = ["## Rules", "", "| rule | class | steps | description |", "|---|---|---:|---|"]
    rows = (
        f"| {rule.id} | {rule.change_class} | {counts[rule.id]} | {rule.purpose} |"
        for rule in CHANGE_RULES.values()
    )
    return "\n".join([*lines, *rows])


def _policies_section() -> str:
    lines = ["## Policies", "", "| policy | description |", "|---|---|"]
    return "\n".join([*lines, *(f"| {each.name} | {each.purpose} |" for each in POLICIES.values())])


def _step_row(step: HistoryStep) -> str:
    to = str(step.opset) if step.new else f"removed in {step.opset}"
    return f"| {step.old.id} -> {to} | {step.change_class} | {', '.join(_rule_ids(step))} |"


def _rule_ids(step: HistoryStep) -> Iterator[str]:
    return iter(dict.fromkeys(change.rule for change in step.changes))
