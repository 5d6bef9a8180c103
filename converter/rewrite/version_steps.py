"""Steps of an operator between its versions, built from their declarations and checked against them."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Literal, NamedTuple

from opshift.adapters.core.adapter_table import Adapter, StepKey
from opshift.adapters.core.function_body import make_body_step
from opshift.adapters.core.rewriter import Rewriter, StepFunction
from opshift.adapters.core.type_guard import TypeGuard, lost_types, type_bridge, type_guard
from opshift.adapters.core.verbs import make_verbs_step
from opshift.model.element_types import element_names
from opshift.model.errors import CannotConvert
from opshift.model.extensions import is_external
from opshift.model.frozen_record import FrozenRecord
from opshift.model.node import Node
from opshift.model.operator_ids import OperatorId
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.step_rules import body_problems, is_derivable, refutations, verb_problem
from opshift.registry.steps import AnyVerb, Refuse, StepAction

StepKind = Literal["compatible", "guarded", "declared", "adapter", "refused"]
"""Kind of step: no change, type check only, verbs or function body, adapter, or refusal."""


class VersionStep(FrozenRecord):
    """Step of an operator from one version to another.

    The emitted nodes are written for `opset`; `target` is `None` if it lacks the operator. `function` is
    `None` if nodes do not change. Nodes without the affected element types do not change either; these are
    `None` if the step does not depend on types alone.
    """

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int
    kind: StepKind
    function: StepFunction | None
    change: str = ""
    reason: str = ""
    affected_element_types: frozenset[str] | None = None
    private_adapter: Adapter | None = None
    """The adapter if it is not part of this package: it may fail, or emit invalid nodes."""

    @property
    def target_id(self) -> OperatorId:
        """Target version, or the expansion of an operator that the target opset lacks."""
        return OperatorId(self.source.domain, self.source.name, self.opset)


def build_steps(operator: Operator, table: Mapping[StepKey, Adapter]) -> Iterator[VersionStep]:
    """Yield all steps of an operator.

    Raises:
        DefinitionError: a step is undefined, its declaration contradicts the definitions of the versions, or
            an adapter is missing or undeclared.
    """
    return (_build_step(declaration, table) for declaration in _declarations(operator))


def find_step(operator: Operator, start: int, opset: int, table: Mapping[StepKey, Adapter]) -> VersionStep:
    """Return the step that converts the version `start` to an opset, see `build_steps`."""
    ends = (start, opset)
    found = (each for each in _declarations(operator) if (each.source.since_version, each.opset) == ends)
    return _build_step(next(found), table)


class _StepDeclaration(NamedTuple):
    """Step as the operator definitions declare it."""

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int
    answer: StepAction | Literal["body"] | None
    change: str


def _declarations(operator: Operator) -> Iterator[_StepDeclaration]:
    for old, new in zip(operator.versions, operator.versions[1:], strict=False):
        step = new.step
        change = step.change if step else ""
        yield _StepDeclaration(old, new, new.since_version, step.up if step else None, change)
        yield _StepDeclaration(new, old, old.since_version, step.down if step else None, change)
    first = operator.versions[0]
    if first.before is not None:
        change = "the operator is expressed by other operators"
        yield _StepDeclaration(first, None, first.since_version - 1, first.before, change)
    for version in operator.versions:
        if version.removal:
            yield _StepDeclaration(
                version, None, version.removal.removed_in, version.removal.up, version.removal.mapping
            )


def _build_step(declaration: _StepDeclaration, table: Mapping[StepKey, Adapter]) -> VersionStep:
    source, target, opset, answer, change = declaration
    pair = StepKey(source.domain, source.name, source.since_version, opset)
    step = partial(VersionStep, source, target, opset, change=change)
    if answer == "adapter":
        adapter = table.get(pair)
        if adapter is None:
            raise DefinitionError(f"{pair}: the definition declares an adapter, but no adapter is registered")
        # an adapter handles all types itself, except the types that the bridge casts
        function = _guard_then(type_bridge(source, target) if target else None, adapter)
        return step("adapter", function, private_adapter=adapter if is_external(adapter) else None)
    if pair in table:
        raise DefinitionError(f"{pair}: an adapter is registered, but the definition does not declare it")
    if answer is None and target is not None and not is_derivable(source, target):
        if opset > source.since_version:
            raise DefinitionError(f"{pair}: the definition does not declare how to upgrade")
        answer = Refuse(refuse="no downgrade is defined for this step", code="step.undefined")
    if isinstance(answer, Refuse):
        return step("refused", _refuse_function(answer), reason=answer.refuse)
    problem = next(_problems(source, target, answer), None)
    if problem:
        raise DefinitionError(f"{pair}: {problem}")
    if answer == "body":
        return step("declared", make_body_step(source))
    return _verbs_step(step, source, target, answer if isinstance(answer, tuple) else ())


def _problems(
    source: OperatorVersion, target: OperatorVersion | None, answer: StepAction | Literal["body"] | None
) -> Iterator[str]:
    verbs = answer if isinstance(answer, tuple) else ()
    if answer == "body":
        yield from (each.reason for each in body_problems(source))
    elif target is not None:
        yield from filter(None, (verb_problem(verb, source, target) for verb in verbs))
        yield from (f"{each.rule}: {each.reason}" for each in refutations(source, target, verbs))
    elif not isinstance(answer, tuple):
        yield "an operator that the target lacks needs an adapter, verbs or a refusal"


def _verbs_step(
    step: Callable[..., VersionStep],
    source: OperatorVersion,
    target: OperatorVersion | None,
    verbs: tuple[AnyVerb, ...],
) -> VersionStep:
    guard = type_guard(source, target) if target else None
    if verbs or target is None:
        return step("declared", _guard_then(guard, make_verbs_step(verbs)))
    lost = chain.from_iterable(lost_types(source, target).values())
    affected = frozenset(chain.from_iterable(map(element_names, lost)))
    if guard is None:
        return step("compatible", None, affected_element_types=affected)
    keep = _guard_then(guard, lambda node, out: out.replace(node))
    return step("guarded", keep, affected_element_types=affected)


def _refuse_function(answer: Refuse) -> StepFunction:
    def refuse(node: Node, out: Rewriter) -> None:
        raise CannotConvert(answer.refuse, answer.code, remedy=answer.remedy)

    return refuse


def _guard_then(guard: TypeGuard | None, rewrite: StepFunction) -> StepFunction:
    if guard is None:
        return rewrite

    def guarded(node: Node, out: Rewriter) -> None:
        if not guard(node, out):
            rewrite(node, out)

    return guarded
