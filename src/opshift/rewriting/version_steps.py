"""Steps of an operator between its versions, built from declarations and checked against the versions."""

from collections.abc import Iterator, Mapping
from functools import cache, partial
from itertools import pairwise
from typing import Literal, NamedTuple

from opshift.adapters.core.adapter_table import Adapter, StepKey
from opshift.adapters.core.function_body import make_body_step
from opshift.adapters.core.rewriter import Rewriter, StepFunction
from opshift.adapters.core.type_guard import TypeGuard, lenient_type_guard, type_guard
from opshift.adapters.core.verbs import make_verbs_step
from opshift.model.errors import CannotConvert
from opshift.model.extensions import is_external
from opshift.model.node import Node
from opshift.model.operator_ids import OperatorId
from opshift.model.shared_data import FrozenRecord
from opshift.registry.errors import UNREGISTERED_REMEDY, DefinitionError
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.step_rules import (
    affected_element_types,
    body_problems,
    is_derivable,
    refutations,
    step_key,
    verb_problem,
)
from opshift.registry.steps import Refuse, StepAction

StepKind = Literal["compatible", "guarded", "declared", "adapter", "refused"]
"""Kind of step: no change; type guard only; verbs or function body; adapter; refusal."""


class VersionStep(FrozenRecord):
    """Step of an operator from one version to another.

    The emitted nodes are written for `opset`; `target` is `None` if this opset lacks the operator. `function`
    is `None` if nodes do not change. Nodes without the affected element types do not change either;
    `affected_element_types` is `None` if the step does not depend on types alone.
    """

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int
    kind: StepKind
    function: StepFunction | None
    reason: str = ""
    affected_element_types: frozenset[str] | None = None
    private_adapter: Adapter | None = None
    """The adapter if it is not part of opshift, else `None`; such adapters may fail or emit invalid nodes."""

    @property
    def change(self) -> str:
        """Description of the change, from the definition of the operator; may be empty."""
        source, target, opset = self.source, self.target, self.opset
        if target is not None and target.id == source.id:
            return ""
        if target is not None:
            newer = target if opset > source.since_version else source
            return newer.step.change if newer.step else ""
        if source.removal and source.removal.removed_in == opset:
            return source.removal.mapping
        return "the operator is expressed by other operators" if opset < source.since_version else ""

    @property
    def target_id(self) -> OperatorId:
        """Id of the target version, or with `opset` as its version if this opset lacks the operator."""
        return OperatorId(self.source.domain, self.source.name, self.opset)


def build_steps(operator: Operator, table: Mapping[StepKey, Adapter]) -> Iterator[VersionStep]:
    """Yield all steps of an operator.

    Raises:
        DefinitionError: a step is undefined, its declaration contradicts the definitions of the versions, or
            an adapter is missing or undeclared.
    """
    return (_build_step(ends, table) for ends in _step_ends(operator))


def find_step(operator: Operator, start: int, opset: int, table: Mapping[StepKey, Adapter]) -> VersionStep:
    """Return the step that converts the version `start` to an opset, see `build_steps`."""
    found = (each for each in _step_ends(operator) if each.opset == opset)
    ends = next(each for each in found if each.source.since_version == start)
    affected = operator.compatible_steps.get(step_key(start, opset))
    if affected is None or StepKey(operator.domain, operator.name, start, opset) in table:
        return _build_step(ends, table)
    return _compatible_step(ends, frozenset(affected))


class _StepEnds(NamedTuple):
    """Source and target version of a step; `target` is `None` if `opset` lacks the operator."""

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int

    def declared_action(self) -> StepAction | Literal["body"] | None:
        """Return the action that the definition declares for the step; `None` if it declares none."""
        source, target, opset = self
        if target is None:
            return (
                source.removal.up if source.removal and source.removal.removed_in == opset else source.before
            )
        is_upgrade = opset > source.since_version
        step = target.step if is_upgrade else source.step
        return None if step is None else step.up if is_upgrade else step.down


def _step_ends(operator: Operator) -> Iterator[_StepEnds]:
    for old, new in pairwise(operator.versions):
        yield _StepEnds(old, new, new.since_version)
        yield _StepEnds(new, old, old.since_version)
    first = operator.versions[0]
    if first.before is not None:
        yield _StepEnds(first, None, first.since_version - 1)
    for version in operator.versions:
        if version.removal:
            yield _StepEnds(version, None, version.removal.removed_in)


def _build_step(ends: _StepEnds, table: Mapping[StepKey, Adapter]) -> VersionStep:
    source, target, opset = ends
    answer = ends.declared_action()
    pair = StepKey(source.domain, source.name, source.since_version, opset)
    step = partial(VersionStep, source, target, opset)
    if answer == "adapter":
        adapter = table.get(pair)
        if adapter is None:
            reason = f"{pair}: the definition declares an adapter, but no adapter is registered"
            raise DefinitionError(reason, remedy=UNREGISTERED_REMEDY)
        # An adapter handles all types itself, except the types that the guard casts to a wider type.
        function = _guard_then(lenient_type_guard(source, target) if target else None, adapter)
        return step("adapter", function, private_adapter=adapter if is_external(adapter) else None)
    if pair in table:
        raise DefinitionError(f"{pair}: an adapter is registered, but the definition does not declare it")
    if answer is None and target is not None and not is_derivable(source, target):
        if opset > source.since_version:
            raise DefinitionError(f"{pair}: the definition does not declare how to upgrade")
        answer = Refuse(refuse="no downgrade is defined for this step", code="step.undefined")
    if isinstance(answer, Refuse):
        return step("refused", _refuse_function(answer), reason=answer.refuse)
    # A derivable step has no problems: `is_derivable` checks that.
    problem = (
        None
        if answer is None and target is not None
        else next(_problems_of_action(source, target, answer), None)
    )
    if problem:
        raise DefinitionError(f"{pair}: {problem}")
    if answer == "body":
        return step("declared", make_body_step(source))
    verbs = answer if isinstance(answer, tuple) else ()
    if verbs or target is None:
        guard = type_guard(source, target) if target else None
        return step("declared", _guard_then(guard, make_verbs_step(verbs)))
    return _compatible_step(ends, affected_element_types(source, target))


def _problems_of_action(
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


def _compatible_step(ends: _StepEnds, affected: frozenset[str]) -> VersionStep:
    """Return a step that keeps nodes, but casts or refuses inputs and outputs of affected element types."""
    source, target, opset = ends
    step = partial(VersionStep, source, target, opset, affected_element_types=affected)
    assert target is not None, "`compatible` is impossible: the target opset lacks the operator"
    if not affected:
        return step("compatible", None)
    # found on first use, because few models have an affected type
    find_guard = cache(partial(type_guard, source, target))

    def keep(node: Node, out: Rewriter) -> None:
        guard = find_guard()
        if guard is None or not guard(node, out):
            out.replace(node)

    return step("guarded", keep)


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
