"""Removal of local functions and opset imports that the result of a conversion may not contain."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain

from opshift.adapters.core.equivalents import Unwanted
from opshift.converter.functions.inlining import (
    called_functions,
    growth_obstacle,
    inline_functions,
    inlining_obstacles,
)
from opshift.converter.options import Options
from opshift.converter.plan.changes import Plan
from opshift.converter.refusals import Refusal
from opshift.model.graphs import ContainerProto, remove_messages, root_graphs
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import LocalFunction, canonical_domain, function_id, opset_imports


def plan_removal(plan: Plan, model: ModelProto, options: Options) -> Plan:
    """Return a plan that also removes functions and imports, with a sentence or a refusal for each."""
    names = _removed_functions(model, options.without)
    imports = {canonical_domain(each.domain) for each in model.opset_import} & options.without
    removals = [f"calls of the function {each} are replaced by its nodes" for each in names]
    removals += [f"the import of {each} is removed" for each in sorted(imports)]
    refusals = dict.fromkeys(_refusals(model, names, options))
    return replace(
        plan,
        repairs=(*plan.repairs, *removals),
        requested=(*plan.requested, *removals),
        requested_removals=plan.requested_removals | imports,
        refusals=(*plan.refusals, *refusals),
    )


def remove(model: ModelProto, without: frozenset[Unwanted]) -> None:
    """Inline functions and remove imports, in place, after the conversion of all nodes."""
    names = _removed_functions(model, without)
    if names:
        inline_functions(model, names)
    for imports in (model.opset_import, *(each.opset_import for each in model.functions)):
        remove_messages(imports, [canonical_domain(each.domain) in without for each in imports])


def _removed_functions(model: ModelProto, without: frozenset[Unwanted]) -> list[LocalFunction]:
    names = map(function_id, model.functions)
    return [each for each in names if not without.isdisjoint((each.domain, f"{each.domain}.{each.name}"))]


def _refusals(model: ModelProto, names: list[LocalFunction], options: Options) -> Iterator[Refusal]:
    targets = options.target.opsets
    imports = opset_imports(model.opset_import, model.ir_version)
    callers: list[tuple[ContainerProto, Mapping[str, int]]] = [(each, imports) for each in root_graphs(model)]
    callers += [
        (each, opset_imports(each.opset_import)) for each in model.functions if function_id(each) not in names
    ]
    obstacles = [growth_obstacle(model)] if names else []
    for caller, opsets in callers:
        called = called_functions(caller, model.functions, names)
        obstacles.append(inlining_obstacles(model, opsets, targets, options.registry, called))
    for function, reason in chain.from_iterable(obstacles):
        name = str(function_id(function))
        remedy = "convert all domains of the function and of its callers to one opset"
        yield Refusal(f"function {name}", name, reason, remedy, "operator.no-equivalent")
