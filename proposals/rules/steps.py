"""How models are moved over what is proposed."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.adapters.table import registered
from opshift.converter.lineage import lineage
from opshift.proposals.draft import Defined
from opshift.proposals.evidence.steps import Direction
from opshift.proposals.findings import Level
from opshift.proposals.folder import ADAPTERS, EXAMPLES, OPERATOR
from opshift.proposals.ran import Ran
from opshift.proposals.rules.table import Flaw, rule
from opshift.registry.changes.classes import BACKWARD
from opshift.registry.changes.classify import class_of, classify
from opshift.registry.errors import DefinitionError
from opshift.registry.rules import is_derivable
from opshift.registry.steps import Answer, Refuse

VERSIONING = "ONNX, Adding New Operator: version conversion"
REFUSE = "answer it, or refuse it with the reason: {refuse: why}"


@rule(
    "steps.change", Level.ERROR, source="README, Adding an operator version", remedy="say it in step.change"
)
def the_change_is_told(draft: Defined) -> Iterator[Flaw]:
    """A new version says what changed, and what that means for a model that is moved."""
    step = draft.version.step
    if _is_added(draft) and not (step and step.change.strip()):
        yield Flaw("what changed is not said", OPERATOR, _step(draft))


@rule("steps.up", Level.ERROR, source=VERSIONING, remedy="write the way up: compatible, verbs, or an adapter")
def there_is_a_way_up(draft: Defined) -> Iterator[Flaw]:
    """Models of the version before are brought to the new one.

    Without that, everybody who has a model of the old version is left behind.
    """
    if not _is_added(draft) or draft.previous is None:
        return
    answer = draft.version.step.up if draft.version.step else None
    if answer is None and not is_derivable(draft.previous, draft.version):
        yield Flaw("there is no way up", OPERATOR, _step(draft, "up"))
    if isinstance(answer, Refuse):
        yield Flaw("every model is refused on the way up", OPERATOR, _step(draft, "up"))


@rule("steps.down", Level.ERROR, source=VERSIONING, remedy=REFUSE)
def the_way_down_is_answered(draft: Defined) -> Iterator[Flaw]:
    """Models of what is proposed go down, or it is said why they cannot.

    A runtime takes years to know a new opset; until then the way down is how models reach it.
    """
    version, previous = draft.version, draft.previous
    if previous is None:
        if version.before is None and not _is_first_of_domain(draft):
            yield Flaw(
                "how it is expressed in the opset before is not answered", OPERATOR, _version(draft, "before")
            )
    elif _is_added(draft):
        answer = version.step.down if version.step else None
        if answer is None and not is_derivable(previous, version):
            yield Flaw("the way down is not answered", OPERATOR, _step(draft, "down"))


@rule(
    "steps.class",
    Level.INFO,
    source="ONNX, Versioning: what a change does",
    remedy="weigh it: the more nodes change, the better the reason has to be",
)
def nodes_stay_as_they_are(draft: Defined) -> Iterator[Flaw]:
    """Nodes of the version before stand as they are in the new one.

    What asks every model to be rewritten costs more than what only adds.
    """
    if _is_added(draft) and draft.previous is not None:
        found = class_of(classify(draft.previous, draft.version))
        if found not in BACKWARD:
            yield Flaw(f"{found}: {found.meaning}", OPERATOR, _step(draft))


@rule(
    "steps.adapters",
    Level.ERROR,
    source="README, Adding an operator version",
    remedy="see the line that is named",
)
def adapters_can_be_loaded(draft: Ran) -> Iterator[Flaw]:
    """`adapters.py` can be run, and claims no step that has an adapter."""
    if draft.adapters_error is not None:
        yield Flaw(draft.adapters_error.reason, ADAPTERS, remedy=draft.adapters_error.remedy)


@rule(
    "steps.sound",
    Level.ERROR,
    source="README, Adding an operator version",
    remedy="make the step what the definitions allow",
)
def steps_are_sound(draft: Ran) -> Iterator[Flaw]:
    """The definitions do not refute a step, and every adapter that is declared is written.

    `compatible` and the verbs are claims; two definitions can show them wrong.
    """
    if draft.adapters_error is not None:
        return
    try:
        lineage(draft.operator, registered())
    except DefinitionError as error:
        yield Flaw(error.reason, OPERATOR, _step(draft))


@rule(
    "steps.agree",
    Level.ERROR,
    source=VERSIONING,
    remedy="correct the step, or refuse the node that it cannot take",
)
def numbers_stay_the_same(draft: Ran) -> Iterator[Flaw]:
    """A model computes the same before and after a step.

    Every example goes down, and what came of it up again; examples of older versions go up.
    """
    for each in draft.evidence.steps:
        if each.compared.verdict == "differs":
            case = each.compared.case
            yield Flaw(f"{each.direction}, {case.name}: {each.compared.reason}", EXAMPLES, case.keys)


@rule("steps.tested", Level.ERROR, source=VERSIONING, remedy="add an example that is taken over the step")
def each_direction_is_tested(draft: Ran) -> Iterator[Flaw]:
    """At least one example is run over each step that is not refused."""
    for direction in _answered(draft):
        walked = [each.compared for each in draft.evidence.steps if each.direction == direction]
        if not any(each.verdict in ("agrees", "differs") for each in walked):
            why = f": {walked[0].reason}" if walked else ""
            yield Flaw(f"no example was run {direction}{why}", EXAMPLES, ("examples",))


def _answered(draft: Defined) -> tuple[Direction, ...]:
    """The directions that are not refused."""
    version, step = draft.version, draft.version.step
    if version.removal is not None:
        return () if isinstance(version.removal.up, Refuse) else ("up",)
    if version.deprecation is not None:
        return ("up",)
    if draft.previous is None:
        return () if version.before is None or isinstance(version.before, Refuse) else ("down",)
    ways: tuple[tuple[Direction, Answer | None], ...] = (
        ("up", step.up if step else None),
        ("down", step.down if step else None),
    )
    return tuple(each for each, answer in ways if answer is not None and not isinstance(answer, Refuse))


def _is_added(draft: Defined) -> bool:
    """Whether the last version is one that the registry has not, behind others."""
    published = draft.published.versions if draft.published else ()
    is_known = any(each.since_version == draft.version.since_version for each in published)
    return draft.previous is not None and not is_known


def _is_first_of_domain(draft: Defined) -> bool:
    return draft.version.since_version == 1


def _step(draft: Defined, *keys: str) -> tuple[int | str, ...]:
    return _version(draft, "step", *keys)


def _version(draft: Defined, *keys: int | str) -> tuple[int | str, ...]:
    return ("versions", draft.position, *keys)
