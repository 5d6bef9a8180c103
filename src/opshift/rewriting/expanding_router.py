"""Router that avoids given operators, domains and element types, by steps that expand nodes or cast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opshift.adapters.core.adapter_table import Adapter, StepKey
from opshift.adapters.core.equivalents import (
    Equivalent,
    TypeBridge,
    Unwanted,
    make_bridge_step,
    make_equivalent_step,
)
from opshift.adapters.core.function_body import make_body_step
from opshift.adapters.core.rewriter import Rewriter
from opshift.model.errors import CannotConvert
from opshift.model.extensions import is_external
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.steps import Refuse
from opshift.rewriting.routes import Router
from opshift.rewriting.version_steps import VersionStep

REMEDY = "keep the operator, or define it with a function body or `before:` in a folder of definitions"


class ExpandingRouter(Router):
    """Router whose results may not contain the operators, domains and types in `without`, see `Unwanted`."""

    def __init__(
        self,
        registry: Registry,
        table: Mapping[StepKey, Adapter],
        targets: Mapping[str, int],
        without: frozenset[Unwanted],
    ) -> None:
        self._equivalents = sorted(each for each in without if isinstance(each, Equivalent))
        added = {each.replacement.domain: each.replacement.since_version for each in self._equivalents}
        super().__init__(registry, table, {**added, **targets})
        self.without = without

    def _steps_of_path(
        self, definition: Operator, operator: OperatorVersion, target_opset: int
    ) -> list[VersionStep]:
        domain, name = definition.domain, definition.name
        names = {domain, f"{domain}.{name}"}
        if self.registry.releases.nonstandard.get(name) == domain:
            names.add(f"{DEFAULT_DOMAIN}.{name}")
        if names.isdisjoint(self.without):
            path = super()._steps_of_path(definition, operator, target_opset)
            if path and path[-1].target is None:  # the target lacks the operator
                *path, last = path
                return [*path, *self._equivalent_steps(last.source, last.source.since_version), last]
            reached = path[-1].target if path else operator
            assert reached is not None
            steps = self._equivalent_steps, self._bridge_steps
            return [*path, *(step for each in steps for step in each(reached, target_opset))]
        body = self._body_step(definition, operator, target_opset)
        if body:
            return [body]
        # Leave out guarded steps that cannot cast to a wider type. They refuse types that a version on the
        # path lacks, but no node of that version remains: the emitted nodes have their own routes.
        paths = [
            [step for step in path if step.kind != "guarded" or operator.bridge]
            for path in self._expanding_paths(definition, operator, target_opset)
        ]
        if not paths:
            return [VersionStep(operator, None, target_opset, "refused", _refuse_node)]
        return min(paths, key=lambda path: (any(step.kind == "refused" for step in path), len(path)))

    def _expanding_paths(
        self, definition: Operator, operator: OperatorVersion, target_opset: int
    ) -> Iterator[list[VersionStep]]:
        """Yield each path whose last step is a body, a removal or `before:`, which may refuse nodes."""
        for version in definition.versions:
            body = self._body_step(definition, version, target_opset)
            if body:
                yield [*super()._steps_of_path(definition, operator, version.since_version), body]
            if version.removal and not isinstance(version.removal.up, Refuse):
                yield super()._steps_of_path(definition, operator, version.removal.removed_in)
        first = definition.versions[0]
        if first.before is not None and not isinstance(first.before, Refuse):
            yield super()._steps_of_path(definition, operator, first.since_version - 1)
        elif first.before is not None:
            # Adapters on the path may replace some nodes before the last step refuses the others.
            *path, last = super()._steps_of_path(definition, operator, first.since_version - 1)
            yield [*path, VersionStep(last.source, None, last.opset, "refused", _refuse_node)]

    def _equivalent_steps(self, version: OperatorVersion, opset: int) -> Iterator[VersionStep]:
        """Yield the step that replaces nodes of a version by equivalents, if `without` contains any."""
        equivalents = [each for each in self._equivalents if each.operator == version.id]
        if equivalents:
            yield VersionStep(version, version, opset, "adapter", make_equivalent_step(equivalents))

    def _bridge_steps(self, version: OperatorVersion, opset: int) -> Iterator[VersionStep]:
        """Yield the step that inserts casts around nodes of a version, if `without` has a bridge for it."""
        bridges = [each for each in self.without if isinstance(each, TypeBridge)]
        own = [each for each in bridges if each.operator == version.id]
        if own:
            yield VersionStep(version, version, opset, "adapter", make_bridge_step(own))

    def _body_step(
        self, definition: Operator, version: OperatorVersion, target_opset: int
    ) -> VersionStep | None:
        """Return the step that replaces nodes of a version by its function body, or `None`."""
        opset = target_opset if definition.at(target_opset) is version else version.since_version
        if version.body is not None:
            return VersionStep(version, None, opset, "declared", make_body_step(version))
        key = StepKey(*version.id, version.since_version)
        if key not in self._table:
            return None
        adapter = self._table[key]
        private = adapter if is_external(adapter) else None
        return VersionStep(version, None, opset, "adapter", adapter, private_adapter=private)


def _refuse_node(node: Node, out: Rewriter) -> None:
    declared = out.source.before
    reason, remedy = f"no other operators can replace {out.source.id}", REMEDY
    if isinstance(declared, Refuse):
        reason = f"{reason}: {declared.refuse}"
        # For a later version, the declared remedy is a newer opset, which does not help here.
        remedy = declared.remedy if out.source.since_version == 1 and declared.remedy else REMEDY
    raise CannotConvert(reason, "operator.no-equivalent", remedy=remedy)
