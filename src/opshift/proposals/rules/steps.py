"""Rules for the conversion of models across the proposed version."""

from opshift.adapters.core.adapter_table import registered_adapters
from opshift.checker.findings import ERROR, INFO
from opshift.proposals.content.draft import DefinedDraft
from opshift.proposals.content.folder import ADAPTERS
from opshift.proposals.evidence.evidence import Direction, Evaluated
from opshift.proposals.rules.opset import changed_fields
from opshift.proposals.rules.rule_table import ADDING, CONTRIBUTING, Problems, first_of, rule
from opshift.registry.changes.classes import BACKWARD
from opshift.registry.changes.classify import classify, most_severe_class
from opshift.registry.descriptions import texts_of
from opshift.registry.errors import DefinitionError
from opshift.registry.models import OperatorVersion
from opshift.registry.step_rules import is_derivable
from opshift.registry.steps import Refuse, StepAction
from opshift.rewriting.version_graph import build_version_graph

VERSIONING = f"{ADDING}: version conversion"


@rule("steps.change", ERROR, CONTRIBUTING, "describe it in step.change")
def check_steps_change(draft: DefinedDraft) -> Problems:
    """A new version differs, and describes what changed and how that affects converted models."""
    step, previous = draft.version.step, draft.previous
    if not draft.adds_version or previous is None:
        return
    if not (step and step.change.strip()):
        yield draft.at_version("the change is not described", "step")
    elif not _differs(previous, draft.version):
        remedy = "change the definition or its texts, or withdraw the proposal"
        reason = f"the version is the same as version {previous.since_version}"
        yield draft.at_version(reason)._replace(remedy=remedy)


@rule(
    "steps.up",
    ERROR,
    VERSIONING,
    "declare `up` as compatible, as adapter, or as verbs, which docs/proposals.md lists",
    unless=("leaving.way",),
)
def check_steps_up(draft: DefinedDraft) -> Problems:
    """Models of the previous version can be upgraded to the new one.

    Otherwise existing models could not use newer opsets.
    """
    if not draft.adds_version or draft.previous is None:
        return
    action = _step_action(draft, "up")
    if action is None and not is_derivable(draft.previous, draft.version):
        yield draft.at_version("no upgrade is declared", "step", "up")
    if isinstance(action, Refuse):
        yield draft.at_version("the upgrade refuses every model", "step", "up")


@rule("steps.down", ERROR, VERSIONING, "declare the conversion, or refuse it with a reason: {refuse: reason}")
def check_steps_down(draft: DefinedDraft) -> Problems:
    """The downgrade to the previous opset is declared, or refused with a reason; version 1 has none.

    Runtimes support new opsets late; until then they can only run downgraded models.
    """
    version, previous = draft.version, draft.previous
    if previous is None:
        is_first_of_domain = version.since_version == 1
        if version.before is None and not is_first_of_domain:
            yield draft.at_version("no downgrade to the previous opset is declared in `before`", "before")
        elif version.before is not None and is_first_of_domain and not draft.is_preview:
            problem = draft.at_version("there is no opset before version 1", "before")
            yield problem._replace(remedy="delete `before`")
    elif draft.adds_version and _step_action(draft, "down") is None and not is_derivable(previous, version):
        yield draft.at_version("no downgrade is declared", "step", "down")


@rule(
    "steps.class",
    INFO,
    "ONNX, Versioning: what a change does",
    "make sure that the benefit justifies the changes to existing models",
)
def check_steps_class(draft: DefinedDraft) -> Problems:
    """Nodes of the previous version are valid unchanged in the new one.

    A change that requires rewriting every model costs more than an addition.
    """
    if draft.adds_version and draft.previous is not None:
        change_class = most_severe_class(classify(draft.previous, draft.version))
        if change_class not in BACKWARD:
            yield draft.at_version(f"{change_class}: {change_class.meaning}", "step")


@rule("steps.adapters", ERROR, CONTRIBUTING, "fix the error at this line")
def check_steps_adapters(draft: Evaluated) -> Problems:
    """`adapters.py` can be executed, and registers no step that already has an adapter."""
    error = draft.adapters_error
    if error is not None:
        yield draft.at_file(error.reason, ADAPTERS, error.remedy)


@rule(
    "steps.sound",
    ERROR,
    CONTRIBUTING,
    "declare a step that the definitions allow",
    unless=("opset.version", "body.names", "steps.adapters", "steps.up", "steps.down", "leaving.way"),
)
def check_steps_sound(draft: Evaluated) -> Problems:
    """The definitions do not contradict a step, and every declared adapter exists.

    `compatible` and the verbs are claims that a comparison of two definitions can refute.
    """
    try:
        build_version_graph([draft.operator], registered_adapters())
    except DefinitionError as error:
        key = (
            "step"
            if draft.previous and not draft.version.removal
            else "removal"
            if draft.previous
            else "before"
        )
        remedy = (
            "register it in adapters.py with `@adapter`, see docs/private-domains.md" if error.remedy else ""
        )
        yield draft.at_version(error.reason, key)._replace(remedy=remedy)


@rule(
    "steps.agree",
    ERROR,
    VERSIONING,
    "correct the step, or refuse the nodes that it cannot convert",
    unless=("reference.", "body.", "shape."),
)
def check_steps_agree(draft: Evaluated) -> Problems:
    """A model computes the same outputs before and after a step, and adapters raise no exceptions.

    Every example is downgraded, and the result upgraded again; examples of older versions are upgraded.
    """
    for direction, comparisons in draft.evidence.steps.items():
        different = [each for each in comparisons if each.verdict == "differs"]
        problems = (draft.at_case(each.case, f"{direction}: {each.reason}") for each in different)
        yield from first_of(zip((each.case.name for each in different), problems, strict=True))


@rule(
    "steps.tested",
    ERROR,
    VERSIONING,
    "add an example that the step converts",
    unless=("opset.version", "body.", "steps.", "leaving.", "examples.", "reference."),
)
def check_steps_tested(draft: Evaluated) -> Problems:
    """At least one example is converted and run in each direction that is not refused."""
    for direction in _supported_directions(draft):
        comparisons = draft.evidence.steps[direction]
        if not any(each.verdict in ("agrees", "differs") for each in comparisons):
            cause = f": {comparisons[0].reason}" if comparisons else ""
            yield draft.at_examples(f"no example was converted {direction} and run{cause}")


def _differs(old: OperatorVersion, new: OperatorVersion) -> bool:
    """Return whether two versions differ in more than their number and step."""
    return not {*changed_fields(old, new)} <= {"since_version", "step"} or texts_of(old) != texts_of(new)


def _step_action(draft: DefinedDraft, direction: Direction) -> StepAction | None:
    step = draft.version.step
    if step is None:
        return None
    return step.up if direction == "up" else step.down


def _supported_directions(draft: DefinedDraft) -> list[Direction]:
    """Return the declared directions that are not refused."""
    version = draft.version
    actions: dict[Direction, StepAction | str | None]
    if version.removal is not None:
        actions = {"up": version.removal.up}
    elif version.deprecation is not None:
        return ["up"]
    elif draft.previous is None:
        actions = {"down": version.before}
    else:
        actions = {"up": _step_action(draft, "up"), "down": _step_action(draft, "down")}
    return [each for each, action in actions.items() if action is not None and not isinstance(action, Refuse)]
