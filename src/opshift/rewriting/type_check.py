"""Check the input types of emitted nodes against the types that their operator versions support."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Protocol

from opshift.adapters.core.type_guard import TYPE_REMEDY
from opshift.inference.facts import Facts
from opshift.inference.infer_types import type_from_attributes, type_of_constant
from opshift.model.element_types import type_string
from opshift.model.errors import CannotConvert
from opshift.model.node import Node
from opshift.model.types import short_type
from opshift.registry.models import OperatorVersion, Parameter
from opshift.rewriting.result import ComputedRewrite, ConvertedNode, emitted_graphs

Types = frozenset[str]
"""Types that a value may have, such as `tensor(float)`."""

UNKNOWN: Types = frozenset()


class _Constants(Protocol):
    """Source of the element types of emitted constants."""

    def constant_type(self, name: str) -> str | None: ...


class _UnsupportedType(NamedTuple):
    """Operator version, and the types of an input, not all of which the version supports."""

    operator: OperatorVersion
    types: Types


def require_supported_types(result: ComputedRewrite, facts: Facts, constants: _Constants) -> None:
    """Refuse a rewrite if the operator version of a node does not support the type of an input.

    Raises:
        CannotConvert: a type is not supported.
    """
    original, operator = result.original, result.operator
    if len(result.nodes) == 1:
        node, final, _ = result.nodes[0]
        count = len(node.inputs)
        if node is original:
            return
        if node.inputs == original.inputs[:count] and _supports_inputs_of(final, operator, count):
            return
    # Query types only if the nodes do not support all types of the original: inference takes time, and a
    # cached rewrite repeats each query whenever it is reused.
    declared = dict(_declared_types(original.inputs, operator.inputs, operator))
    if _find_problem(result.nodes, dict(declared), constants) is None:
        return
    problem = _find_problem(result.nodes, _exact_types(declared, facts), constants, any_suffices=True)
    if problem is not None:
        types = ", ".join(map(short_type, sorted(problem.types)))
        reason = f"the operator has no equivalent for {types} at the target"
        raise CannotConvert(reason, "type.unsupported", subject=types, remedy=TYPE_REMEDY)


def _exact_types(declared: Mapping[str, Types], facts: Facts) -> dict[str, Types]:
    """Return `declared` with the inferred type of each value that may have several types."""
    known = {name: facts.element_type(name) for name, types in declared.items() if len(types) > 1}
    return {**declared, **{name: _type_set(found) for name, found in known.items() if found}}


def changed_output_type(
    original: ConvertedNode, converted_nodes: Sequence[ConvertedNode], facts: Facts, constants: _Constants
) -> str:
    """Return an output of a node to which the emitted nodes give another type, as text; else `""`."""
    node, operator, _ = original
    before = _exact_types(dict(_declared_types(node.inputs, operator.inputs, operator)), facts)
    after = dict(before)
    for nodes, types in (((original,), before), (converted_nodes, after)):
        _find_problem(nodes, types, constants, any_suffices=True)
    for name in node.outputs:
        old, new = (types.get(name, UNKNOWN) for types in (before, after))
        if old and new and old.isdisjoint(new):
            old_text, new_text = (", ".join(map(short_type, sorted(each))) for each in (old, new))
            return f"computes the output {name!r} with the type {new_text}, expected {old_text}"
    return ""


# Cached shortcut for most rewrites: without it, `_find_problem` takes a tenth of the rewrite's time.
@lru_cache(maxsize=4096)
def _supports_inputs_of(operator: OperatorVersion, original: OperatorVersion, count: int) -> bool:
    """Return whether an operator supports the types of `original`'s first inputs, and holds no graphs."""
    if operator.holds_graphs or not (operator.inputs and original.inputs):
        return not count and not operator.holds_graphs
    return all(
        _supported_types(original, _formal_at(original, position).type)
        <= _supported_types(operator, _formal_at(operator, position).type)
        for position in range(count)
    )


def _formal_at(operator: OperatorVersion, position: int) -> Parameter:
    """Return the parameter of an input; the last parameter may be variadic."""
    return operator.inputs[min(position, len(operator.inputs) - 1)]


@lru_cache(maxsize=1024)
def _type_set(element_type: str) -> Types:
    return frozenset([type_string(element_type)])


@lru_cache(maxsize=4096)
def _supported_types(operator: OperatorVersion, variable: str) -> Types:
    return frozenset(operator.type_constraints.get(variable, (variable,)))


def _declared_types(
    names: Sequence[str], formals: Sequence[Parameter], operator: OperatorVersion
) -> Iterator[tuple[str, Types]]:
    for name, formal in _present(names, formals):
        yield name, _supported_types(operator, formal.type)


def _present(names: Sequence[str], formals: Sequence[Parameter]) -> Iterator[tuple[str, Parameter]]:
    """Yield name and parameter of each present value; the last parameter may be variadic."""
    for position, name in enumerate(names):
        if name and formals:
            yield name, formals[min(position, len(formals) - 1)]


def _find_problem(
    converted_nodes: Sequence[ConvertedNode],
    known: dict[str, Types],
    constants: _Constants,
    *,
    any_suffices: bool = False,
) -> _UnsupportedType | None:
    """Return the first operator that does not support an input, with the types of that input.

    Return `None` if all inputs are supported.

    Args:
        converted_nodes: the nodes, in order.
        known: types of the values that the nodes read, to which those of their outputs are added; empty for
            a value that may have any type.
        constants: types of constants.
        any_suffices: if true, one supported type per input suffices, but inputs with the same type variable
            must share a type; by default, all types of an input must be supported.
    """
    for node, operator, _ in converted_nodes:
        chosen: dict[str, Types] = {}
        for name, formal in _present(node.inputs, operator.inputs):
            if name not in known:
                constant = constants.constant_type(name)
                known[name] = _type_set(constant) if constant else UNKNOWN
            if known[name] and not _choose(known[name], formal, operator, chosen, any_suffices=any_suffices):
                return _UnsupportedType(operator, known[name])
        for graph in emitted_graphs(node):
            inner = {**known, **{each.name: _type_set(each.type) for each in graph.graph.inputs}}
            for nodes in (graph.nodes, graph.after):
                problem = _find_problem(nodes, dict(inner), constants, any_suffices=any_suffices)
                if problem is not None:
                    return problem
        for name, formal in _present(node.outputs, operator.outputs):
            known[name] = _output_types(node, operator, formal, chosen)
    return None


def _choose(
    types: Types,
    formal: Parameter,
    operator: OperatorVersion,
    chosen: dict[str, Types],
    *,
    any_suffices: bool,
) -> bool:
    """Record the types of an input for its type variable; return whether all (any if `any_suffices`) fit."""
    variable, supported = formal.type, _supported_types(operator, formal.type)
    if any_suffices and formal.homogeneous:
        supported = chosen.get(variable, supported)
    common = types & supported
    if formal.homogeneous:
        chosen[variable] = common & chosen.get(variable, common) or common
    return bool(common) if any_suffices else common == types


def _output_types(
    node: Node, operator: OperatorVersion, formal: Parameter, chosen: Mapping[str, Types]
) -> Types:
    """Return the types that an output may have; `UNKNOWN` if they are unknown."""
    supported = _supported_types(operator, formal.type)
    if len(supported) == 1:
        return supported
    if not formal.homogeneous or node.has_attribute_references:
        return UNKNOWN
    if formal.type_attributes or node.op_type == "Constant":
        found = type_from_attributes(operator, node, formal) or type_of_constant(node)
        return _type_set(found) if found else UNKNOWN
    return chosen.get(formal.type, UNKNOWN)
