"""Removal of the local functions and opset imports that the option `without` names.

Functions that pass on their attributes to a removed function inherit the defaults of its attributes.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from graphlib import TopologicalSorter
from itertools import chain
from typing import NamedTuple

from opshift.adapters.core.equivalents import Unwanted
from opshift.converter.functions.inlining import (
    called_functions,
    growth_obstacle,
    identity_obstacles,
    inline_functions,
    inlining_obstacles,
)
from opshift.converter.options import Options
from opshift.converter.plan.changes import FunctionCopy, Plan
from opshift.converter.refusals import Refusal
from opshift.model.graphs import ContainerProto, nested_nodes, remove_messages, root_graphs
from opshift.model.messages import AttributeProto, FunctionProto, ModelProto
from opshift.model.offloaded_tensors import serialize
from opshift.model.operator_ids import (
    LocalFunction,
    called_function,
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
    """Yield a refusal if inlining the converted functions would produce too many nodes or bytes."""
    added: dict[LocalFunction, int] = {}
    for index, container in plan.function_versions():
        called = function_id(model.functions[index])
        changes = chain.from_iterable(each.changes for each in container.walk())
        added[called] = max(added.get(called, 0), sum(each.result.node_count - 1 for each in changes))
    for function, reason in growth_obstacle(model, added):
        yield _refusal_of_function(function, reason, "convert to a newer opset", "limit.exceeded")


class _Default(NamedTuple):
    """Value of an attribute that a call omits; `proto` is `None` if nodes assume different values."""

    key: bytes
    proto: AttributeProto | None


_AMBIGUOUS = _Default(b"", None)


def inherit_defaults(model: ModelProto, inlined: Set[LocalFunction]) -> None:
    """Copy attribute defaults of the functions in `inlined` to their callers.

    If a caller passes an attribute on by reference, inlining would otherwise lose the default.
    """
    inherited = _inherited_defaults(model, inlined)
    for function in model.functions:
        for name, default in inherited.get(function_id(function), {}).items():
            if default.proto is None:
                continue  # all calls set the attribute, see `ambiguous_defaults`
            function.attribute_proto.add().CopyFrom(default.proto)
            function.attribute_proto[-1].name = name
            if name in function.attribute:
                function.attribute.remove(name)


def ambiguous_defaults(model: ModelProto, inlined: Set[LocalFunction]) -> Iterator[tuple[FunctionProto, str]]:
    """Yield functions outside `inlined`, each with an attribute for which there is no single default.

    A call omits the attribute, and nodes of the function would assume different values for it.
    """
    inherited = _inherited_defaults(model, inlined)
    ambiguous = {
        name: {attribute for attribute, default in defaults.items() if default.proto is None}
        for name, defaults in inherited.items()
        if name not in inlined
    }
    if not any(ambiguous.values()):
        return
    omitted: dict[LocalFunction, set[str]] = defaultdict(set)
    callers: list[tuple[ContainerProto, set[str]]] = [(graph, set()) for graph in root_graphs(model)]
    callers += [(each, {default.name for default in each.attribute_proto}) for each in model.functions]
    for caller, defaults in callers:
        for node in nested_nodes(caller):
            if names := ambiguous.get(called_function(node)):
                # The reference may be absent, too, unless the attribute of the caller has a default.
                present = {
                    each.name
                    for each in node.attribute
                    if not each.ref_attr_name or each.ref_attr_name in defaults
                }
                omitted[called_function(node)] |= names - present
    for function in model.functions:
        for name in sorted(omitted.get(function_id(function), ())):
            yield function, name


def _inherited_defaults(
    model: ModelProto, inlined: Set[LocalFunction]
) -> Mapping[LocalFunction, Mapping[str, _Default]]:
    """Return the defaults that functions inherit from those in `inlined`, by attribute of the caller."""
    known = {
        function_id(function): {
            each.name: _Default(_value_key(each), each) for each in function.attribute_proto
        }
        for function in model.functions
        if getattr(function, "attribute_proto", ())
    }
    if known.keys().isdisjoint(inlined):
        return {}
    functions = {function_id(each): each for each in model.functions}
    calls = {name: {*map(called_function, nested_nodes(each))} for name, each in functions.items()}
    found: dict[LocalFunction, dict[str, _Default]] = {}
    # Called functions first, because a function may inherit a default that the called function inherits.
    for name in TopologicalSorter(calls).static_order():
        if name in functions:
            own = known.get(name, {})
            found[name] = _inherited_by(functions[name], own.keys(), known, inlined)
            known[name] = {**own, **found[name]}
    return found


def _inherited_by(
    function: FunctionProto,
    own: Set[str],
    known: Mapping[LocalFunction, Mapping[str, _Default]],
    inlined: Set[LocalFunction],
) -> dict[str, _Default]:
    """Return the defaults that a function inherits for its attributes, except those in `own`.

    `known` has the defaults of the functions that it calls.
    """
    uses: dict[str, list[_Default | None]] = defaultdict(list)
    inheriting: set[str] = set()
    for node in nested_nodes(function):
        called = called_function(node)
        for attribute in node.attribute:
            name = attribute.ref_attr_name
            if name and name not in own:
                default = known.get(called, {}).get(attribute.name)
                uses[name].append(default)
                if default and called in inlined:
                    inheriting.add(name)
    return {name: _common_default(uses[name]) for name in uses if name in inheriting}


def _common_default(defaults: Sequence[_Default | None]) -> _Default:
    keys = {each.key if each else None for each in defaults}
    return defaults[0] or _AMBIGUOUS if len(keys) == 1 else _AMBIGUOUS


def _value_key(default: AttributeProto) -> bytes:
    """Return the serialized value of an attribute, without its name and doc string."""
    bare = type(default)()
    bare.CopyFrom(default)
    bare.ClearField("name")
    bare.ClearField("doc_string")
    return serialize(bare)
