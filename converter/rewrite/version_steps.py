"""Steps of an operator between its versions, built from their declarations and checked against them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from opshift.adapters.core.adapter_table import Adapter, StepKey
from opshift.adapters.core.function_body import make_body_step
from opshift.adapters.core.rewriter import Rewriter, StepFunction
from opshift.adapters.core.type_guard import TypeGuard, lost_types, type_bridge, type_guard
from opshift.adapters.core.verbs import make_verbs_step
from opshift.model.element_types import element_names
from opshift.model.errors import CannotConvert
from opshift.model.node import Node
from opshift.model.operator_ids import OperatorId
from opshift.registry.errors import DefinitionError
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.step_rules import body_problems, is_derivable, refutations, verb_problem
from opshift.registry.steps import Refuse, StepAction

StepKind = Literal["compatible", "guarded", "declared", "adapter", "refused"]
"""Kind of step: no change, type check only, verbs or function body, adapter, or refusal."""

Exactness = Literal["exact", "conditional", "per node", "impossible"]
"""Nodes that a step converts exactly: all; those that its type check, verbs or function body do not refuse;
those that its adapter decides on (some adapters approximate if the caller allows it); or none."""

_EXACTNESS: Final[Mapping[StepKind, Exactness]] = {
    "compatible": "exact",
    "guarded": "conditional",
    "declared": "conditional",
    "adapter": "per node",
    "refused": "impossible",
}


@dataclass(frozen=True)
class VersionStep:
    """Step of an operator from one version to another.

    Attributes:
        source: version that the step converts.
        target: version that it converts to; `None` if the target opset lacks the operator.
        opset: opset that the emitted nodes are written for.
        kind: how the step is defined.
        function: function that rewrites a node; `None` if nodes do not change.
        change: description of the change.
        reason: reason of a refusal.
        affected_element_types: element types that the step affects; nodes without them do not change. `None`
            if the step does not depend on types alone.
    """

    source: OperatorVersion
    target: OperatorVersion | None
    opset: int
    kind: StepKind
    function: StepFunction | None
    change: str = ""
    reason: str = ""
    affected_element_types: frozenset[str] | None = None

    @property
    def exactness(self) -> Exactness:
        """Nodes that the step converts exactly."""
        return _EXACTNESS[self.kind]

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
    """Return the step that converts the version `start` to an opset.

    Raises:
        DefinitionError: see `build_steps`.
        StopIteration: the step does not exist.
    """
    return _build_step(
        next(
            declaration
            for declaration in _declarations(operator)
            if (declaration.source.since_version, declaration.opset) == (start, opset)
        ),
        table,
    )


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
    if answer == "adapter":
        adapter = table.get(pair)
        if adapter is None:
            raise DefinitionError(f"{pair}: the definition declares an adapter, but no adapter is registered")
        return VersionStep(
            source, target, opset, "adapter", _with_type_bridge(source, target, adapter), change
        )
    if pair in table:
        raise DefinitionError(f"{pair}: an adapter is registered, but the definition does not declare it")
    if isinstance(answer, Refuse):
        return VersionStep(source, target, opset, "refused", _refuse_function(answer), change, answer.refuse)
    if answer == "body":
        return _body_step(source, opset, change, pair)
    if target is None:
        return _removal_step(source, opset, answer, change, pair)
    if answer is None and not is_derivable(source, target):
        return _undeclared_step(source, target, opset, change, pair)
    verbs = answer if isinstance(answer, tuple) else ()
    problems = [
        *(verb_problem(verb, source, target) for verb in verbs),
        *_refutation_texts(source, target, verbs),
    ]
    first = next((reason for reason in problems if reason), None)
    if first:
        raise DefinitionError(f"{pair}: {first}")
    guard = type_guard(source, target)
    if not verbs:
        kind: StepKind = "guarded" if guard else "compatible"
        affected = frozenset(_lost_elements(source, target))
        return VersionStep(
            source, target, opset, kind, _guard_only(guard), change, affected_element_types=affected
        )
    return VersionStep(
        source, target, opset, "declared", _guard_then(guard, make_verbs_step(verbs, source, target)), change
    )


def _lost_elements(source: OperatorVersion, target: OperatorVersion) -> Iterator[str]:
    for types in lost_types(source, target).values():
        for each in types:
            yield from element_names(each)


def _refutation_texts(
    source: OperatorVersion, target: OperatorVersion, verbs: tuple[object, ...]
) -> Iterator[str]:
    for refutation in refutations(source, target, verbs):  # type: ignore[arg-type]  # verbs are AnyVerb
        yield f"{refutation.rule}: {refutation.reason}"


def _body_step(source: OperatorVersion, opset: int, change: str, pair: StepKey) -> VersionStep:
    violation = next(body_problems(source), None)
    if violation is not None:
        raise DefinitionError(f"{pair}: {violation.reason}")
    return VersionStep(source, None, opset, "declared", make_body_step(source), change)


def _removal_step(
    source: OperatorVersion, opset: int, answer: StepAction | None, change: str, pair: StepKey
) -> VersionStep:
    if not isinstance(answer, tuple):
        raise DefinitionError(
            f"{pair}: an operator that the target lacks needs an adapter, verbs or a refusal"
        )
    return VersionStep(source, None, opset, "declared", make_verbs_step(answer, source, None), change)


def _undeclared_step(
    source: OperatorVersion, target: OperatorVersion, opset: int, change: str, pair: StepKey
) -> VersionStep:
    if opset > source.since_version:
        raise DefinitionError(f"{pair}: the definition does not declare how to upgrade")
    reason = "no downgrade is defined for this step"
    return VersionStep(
        source, target, opset, "refused", _refuse_function(Refuse(refuse=reason)), change, reason
    )


def _refuse_function(answer: Refuse) -> StepFunction:
    def refuse(node: Node, out: Rewriter) -> None:
        raise CannotConvert(answer.refuse, remedy=answer.remedy)

    return refuse


def _with_type_bridge(
    source: OperatorVersion, target: OperatorVersion | None, rewrite: StepFunction
) -> StepFunction:
    """Run the type bridge before an adapter, which otherwise handles types itself."""
    return rewrite if target is None else _guard_then(type_bridge(source, target), rewrite)


def _guard_only(guard: TypeGuard | None) -> StepFunction | None:
    return _guard_then(guard, lambda node, out: out.replace(node)) if guard else None


def _guard_then(guard: TypeGuard | None, rewrite: StepFunction) -> StepFunction:
    if guard is None:
        return rewrite

    def guarded(node: Node, out: Rewriter) -> None:
        if not guard(node, out):
            rewrite(node, out)

    return guarded
