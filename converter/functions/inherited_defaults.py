"""Attribute defaults that callers inherit from the functions that are inlined into them.

An attribute that refers to an absent attribute of the caller is absent, so the default of the called function
applies. If the called function is inlined, its nodes refer to the attribute of the caller, which therefore
needs the default itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from graphlib import TopologicalSorter
from typing import NamedTuple

from opshift.model.graphs import ContainerProto, nested_nodes, root_graphs
from opshift.model.messages import AttributeProto, FunctionProto, ModelProto
from opshift.model.offloaded_tensors import serialize
from opshift.model.operator_ids import LocalFunction, called_function, function_id


class _Default(NamedTuple):
    """Value of an attribute that a call omits; `proto` is `None` if nodes assume different values."""

    key: bytes
    proto: AttributeProto | None


_AMBIGUOUS = _Default(b"", None)


def inherit_defaults(model: ModelProto, inlined: Set[LocalFunction]) -> None:
    """Declare the defaults of the functions in `inlined` in the functions that pass on their attributes."""
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
