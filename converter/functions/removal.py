"""Removal of the local functions and opset imports that the option `without` names."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from opshift.adapters.core.equivalents import Unwanted
from opshift.converter.functions.identity_obstacles import identity_obstacles
from opshift.converter.functions.inherited_defaults import ambiguous_defaults, inherit_defaults
from opshift.converter.functions.inlining import (
    called_functions,
    growth_obstacle,
    inline_functions,
    inlining_obstacles,
)
from opshift.converter.options import Options
from opshift.converter.plan.changes import FunctionCopy, Plan
from opshift.converter.refusals import Refusal
from opshift.model.graphs import ContainerProto, remove_messages, root_graphs
from opshift.model.messages import FunctionProto, ModelProto
from opshift.model.operator_ids import (
    LocalFunction,
    canonical_domain,
    function_id,
    functions_with_opsets,
    opset_imports,
)


def plan_removal(plan: Plan, model: ModelProto, options: Options) -> Plan:
    """Add the removal of functions and imports in `options.without` to a plan, with refusals."""
    removed = _removed_functions(model, options.without)
    imports = {canonical_domain(each.domain) for each in model.opset_import} & options.without
    removals = [f"calls of the function {each} are replaced by its nodes" for each in removed]
    removals += [f"the import of {each} is removed" for each in sorted(imports)]
    refusals = dict.fromkeys(_inlining_refusals(model, removed, options))
    if removed or plan.ir.inlines_functions:
        refusals.update(dict.fromkeys(_growth_refusals(model, plan)))
    return replace(
        plan,
        repairs=(*plan.repairs, *removals),
        requested=(*plan.requested, *removals),
        requested_removals=plan.requested_removals | imports,
        refusals=(*plan.refusals, *refusals),
    )


def remove(
    model: ModelProto,
    without: frozenset[Unwanted],
    copies: Iterable[FunctionCopy],
    targets: Mapping[str, int],
) -> None:
    """Inline the functions and remove the imports in `without` from a model converted to `targets`, in place.

    `copies` of a removed function, which the conversion added, are removed with it.
    """
    removed = _removed_functions(model, without)
    functions = {function_id(each): each for each in model.functions}
    originals = {str(name): name for name in removed}
    for copy in copies:
        if copy.function in originals:
            name = originals[copy.function]._replace(name=copy.name)
            removed[name] = functions[name]
    if removed:
        inherit_defaults(model, removed.keys())
        inline_functions(model, removed.keys(), targets)
    for imports in (model.opset_import, *(each.opset_import for each in model.functions)):
        remove_messages(imports, [canonical_domain(each.domain) in without for each in imports])


def _removed_functions(model: ModelProto, without: frozenset[Unwanted]) -> dict[LocalFunction, FunctionProto]:
    functions = {function_id(each): each for each in model.functions}
    return {
        name: function
        for name, function in functions.items()
        if not without.isdisjoint((name.domain, f"{name.domain}.{name.name}"))
    }


def _inlining_refusals(
    model: ModelProto, removed: Mapping[LocalFunction, FunctionProto], options: Options
) -> Iterator[Refusal]:
    targets = options.target.opsets
    imports = opset_imports(model.opset_import, model.ir_version)
    callers: list[tuple[ContainerProto, Mapping[str, int]]] = [(each, imports) for each in root_graphs(model)]
    callers += [
        (function, opsets)
        for function, opsets in functions_with_opsets(model)
        if function_id(function) not in removed
    ]
    obstacles: list[Iterator[tuple[FunctionProto, str]]] = []
    for caller, opsets in callers:
        called = called_functions(caller, removed)
        obstacles.append(inlining_obstacles(model, opsets, targets, options.registry, called))
    remedy = "convert all domains of the function and of its callers to one opset"
    for function, reason in chain.from_iterable(obstacles):
        yield _refusal_of_function(function, reason, remedy, "operator.no-equivalent")
    for each in identity_obstacles(model, [*removed.values()], targets, options.registry):
        yield _refusal_of_function(*each)
    for function, attribute in ambiguous_defaults(model, removed.keys()):
        reason = f"a call omits attribute {attribute!r}, for which nodes to inline have different defaults"
        remedy = f"set attribute {attribute!r} in all calls of the function"
        yield _refusal_of_function(function, reason, remedy, "function.calls-differ")


def _refusal_of_function(function: FunctionProto, reason: str, remedy: str, code: str) -> Refusal:
    name = str(function_id(function))
    return Refusal(f"function {name}", name, reason, remedy, code)


def _growth_refusals(model: ModelProto, plan: Plan) -> Iterator[Refusal]:
    """Yield a refusal if inlining the converted functions would produce too many nodes."""
    added: dict[LocalFunction, int] = {}
    for index, container in plan.function_versions():
        called = function_id(model.functions[index])
        changes = chain.from_iterable(each.changes for each in container.walk())
        added[called] = max(added.get(called, 0), sum(each.result.node_count - 1 for each in changes))
    for function, reason in growth_obstacle(model, added):
        yield _refusal_of_function(function, reason, "convert to a newer opset", "limit.exceeded")
