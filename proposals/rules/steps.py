"""Rules for the conversion of models across the proposed version."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.adapters.core.adapter_table import registered_adapters
from opshift.checker.findings import Level
from opshift.converter.rewrite.version_graph import build_version_graph
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.folder import ADAPTERS, EXAMPLES, OPERATOR
from opshift.proposals.evidence.conversions import Direction
from opshift.proposals.evidence.evidence import Evaluated
from opshift.proposals.rules.rule_table import ProposalProblem, rule
from opshift.registry.changes.classes import BACKWARD
from opshift.registry.changes.classify import classify, most_severe_class
from opshift.registry.errors import DefinitionError
from opshift.registry.step_rules import is_derivable
from opshift.registry.steps import Refuse, StepAction

VERSIONING = "ONNX, Adding New Operator: version conversion"

CONVERSION_REMEDY = "declare the conversion, or refuse it with a reason: {refuse: reason}"


@rule(
    "steps.change",
    Level.ERROR,
    source="CONTRIBUTING.md, Add an operator version",
    remedy="describe it in step.change",
)
def check_steps_change(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """A new version describes what changed and how that affects converted models."""
    step = draft.version.step
    if _adds_version(draft) and not (step and step.change.strip()):
        yield ProposalProblem("the change is not described", OPERATOR, _step_keys(draft))


@rule("steps.up", Level.ERROR, source=VERSIONING, remedy="declare `up` as compatible, verbs or an adapter")
def check_steps_up(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """Models of the previous version can be upgraded to the new one.

    Otherwise existing models could not use newer opsets.
    """
    if not _adds_version(draft) or draft.previous is None:
        return
    action = draft.version.step.up if draft.version.step else None
    if action is None and not is_derivable(draft.previous, draft.version):
        yield ProposalProblem("no upgrade is declared", OPERATOR, _step_keys(draft, "up"))
    if isinstance(action, Refuse):
        yield ProposalProblem("the upgrade refuses every model", OPERATOR, _step_keys(draft, "up"))


@rule("steps.down", Level.ERROR, source=VERSIONING, remedy=CONVERSION_REMEDY)
def check_steps_down(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """The downgrade to the previous opset is declared, or refused with a reason.

    Runtimes support new opsets late; until then they can only run downgraded models.
    """
    version, previous = draft.version, draft.previous
    if previous is None:
        if version.before is None and not _is_first_of_domain(draft):
            yield ProposalProblem(
                "no downgrade to the previous opset is declared in `before`",
                OPERATOR,
                _version_keys(draft, "before"),
            )
    elif _adds_version(draft):
        action = version.step.down if version.step else None
        if action is None and not is_derivable(previous, version):
            yield ProposalProblem("no downgrade is declared", OPERATOR, _step_keys(draft, "down"))


@rule(
    "steps.class",
    Level.INFO,
    source="ONNX, Versioning: what a change does",
    remedy="make sure that the benefit justifies the changes to existing models",
)
def check_steps_class(draft: DefinedDraft) -> Iterator[ProposalProblem]:
    """Nodes of the previous version are valid unchanged in the new one.

    A change that requires rewriting every model costs more than an addition.
    """
    if _adds_version(draft) and draft.previous is not None:
        change_class = most_severe_class(classify(draft.previous, draft.version))
        if change_class not in BACKWARD:
            yield ProposalProblem(f"{change_class}: {change_class.meaning}", OPERATOR, _step_keys(draft))


@rule(
    "steps.adapters",
    Level.ERROR,
    source="CONTRIBUTING.md, Add an operator version",
    remedy="fix the error at this line",
)
def check_steps_adapters(draft: Evaluated) -> Iterator[ProposalProblem]:
    """`adapters.py` can be executed, and registers no step that already has an adapter."""
    if draft.adapters_error is not None:
        yield ProposalProblem(draft.adapters_error.reason, ADAPTERS, remedy=draft.adapters_error.remedy)


@rule(
    "steps.sound",
    Level.ERROR,
    source="CONTRIBUTING.md, Add an operator version",
    remedy="declare a step that the definitions allow",
)
def check_steps_sound(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The definitions do not contradict a step, and every declared adapter exists.

    `compatible` and the verbs are claims that a comparison of two definitions can refute.
    """
    if draft.adapters_error is not None:
        return  # the missing adapters would cause misleading findings
    try:
        build_version_graph([draft.operator], registered_adapters())
    except DefinitionError as error:
        yield ProposalProblem(error.reason, OPERATOR, _step_keys(draft))


@rule(
    "steps.agree",
    Level.ERROR,
    source=VERSIONING,
    remedy="correct the step, or refuse the nodes that it cannot convert",
)
def check_steps_agree(draft: Evaluated) -> Iterator[ProposalProblem]:
    """A model computes the same outputs before and after a step.

    Every example is downgraded, and the result upgraded again; examples of older versions are upgraded.
    """
    for each in draft.evidence.steps:
        if each.comparison.verdict == "differs":
            case = each.comparison.case
            yield ProposalProblem(
                f"{each.direction}, {case.name}: {each.comparison.reason}", EXAMPLES, case.keys
            )


@rule("steps.tested", Level.ERROR, source=VERSIONING, remedy="add an example that the step converts")
def check_steps_tested(draft: Evaluated) -> Iterator[ProposalProblem]:
    """At least one example is converted and run in each direction that is not refused."""
    for direction in _supported_directions(draft):
        comparisons = [each.comparison for each in draft.evidence.steps if each.direction == direction]
        if not any(each.verdict in ("agrees", "differs") for each in comparisons):
            cause = f": {comparisons[0].reason}" if comparisons else ""
            yield ProposalProblem(
                f"no example was converted {direction} and run{cause}", EXAMPLES, ("examples",)
            )


def _supported_directions(draft: DefinedDraft) -> tuple[Direction, ...]:
    """Return the declared directions that are not refused."""
    version, step = draft.version, draft.version.step
    if version.removal is not None:
        return () if isinstance(version.removal.up, Refuse) else ("up",)
    if version.deprecation is not None:
        return ("up",)
    if draft.previous is None:
        return () if version.before is None or isinstance(version.before, Refuse) else ("down",)
    actions: tuple[tuple[Direction, StepAction | None], ...] = (
        ("up", step.up if step else None),
        ("down", step.down if step else None),
    )
    return tuple(each for each, action in actions if action is not None and not isinstance(action, Refuse))


def _adds_version(draft: DefinedDraft) -> bool:
    """Return whether the last version follows another one and is not published yet."""
    published = draft.published.versions if draft.published else ()
    is_known = any(each.since_version == draft.version.since_version for each in published)
    return draft.previous is not None and not is_known


def _is_first_of_domain(draft: DefinedDraft) -> bool:
    return draft.version.since_version == 1


def _step_keys(draft: DefinedDraft, *keys: str) -> tuple[int | str, ...]:
    return _version_keys(draft, "step", *keys)


def _version_keys(draft: DefinedDraft, *keys: int | str) -> tuple[int | str, ...]:
    return ("versions", draft.position, *keys)
