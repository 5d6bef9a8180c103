"""Handle values of types that the target version does not support: cast around the node, or refuse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.wider_types import wider_type
from opshift.registry.element_types import BY_NAME
from opshift.registry.models import OperatorVersion, Parameter

Lost = dict[str, frozenset[str]]
"""Type variable to the types that the source version supports and the target version does not."""
NUMBERED_CAST = 6
"""First opset in which `to` of Cast is a number instead of a name."""
Guard = Callable[[Node, Rewriter], bool]
"""A function that returns whether it replaced the node."""


def lost_types(source: OperatorVersion, target: OperatorVersion) -> Lost:
    """Return the types that the source version supports and the target version does not, by type variable."""
    inputs = _lost_by_variable(source, source.inputs, target.inputs, target)
    return inputs | _lost_by_variable(source, source.outputs, target.outputs, target)


def type_guard(source: OperatorVersion, target: OperatorVersion) -> Guard | None:
    """Return the guard between two versions, or `None` if the target supports every type of the source.

    If the operator computes the same result in a wider type that the target supports, the guard casts the
    inputs to that type and the outputs back. Otherwise it raises `CannotConvert`.
    """
    lost = lost_types(source, target)
    if not lost:
        return None

    def guard(node: Node, out: Rewriter) -> bool:
        unsupported = _unsupported(node, lost, out)
        for name, variable, element_type in unsupported:
            if _bridge_type(variable, element_type, lost, source) is None:
                raise CannotConvert(
                    f"{name!r} is {_formatted(element_type)}, which {target.id} does not support",
                    remedy="cast around the node to a supported type, if range and precision allow it",
                )
        return _insert_casts(node, unsupported, lost, out)

    return guard


def type_bridge(source: OperatorVersion, target: OperatorVersion) -> Guard | None:
    """Return a guard like `type_guard` for a step with an adapter: it leaves refusals to the adapter."""
    lost = _lost_by_variable(source, source.inputs, target.inputs, target)
    if not lost or source.bridge is None:
        return None

    def bridge(node: Node, out: Rewriter) -> bool:
        return _insert_casts(node, _unsupported(node, lost, out), lost, out)

    return bridge


def _unsupported(node: Node, lost: Lost, out: Rewriter) -> list[tuple[str, str, str]]:
    """Return the first value of each type variable with an unsupported type: name, variable, element type."""
    found: dict[str, tuple[str, str, str]] = {}
    known: set[str] = set()
    for formals, names in ((out.source.inputs, node.inputs), (out.source.outputs, node.outputs)):
        for name, formal in _present(formals, names):
            variable = formal.type
            element_type = None
            if variable in lost and variable not in known:
                element_type = out.known_element_type(name)
            if element_type is not None and _formatted(element_type) in lost[variable]:
                found.setdefault(variable, (name, variable, element_type))
            # Values of a heterogeneous variadic parameter may differ in type, so check each of them.
            if element_type is not None and formal.homogeneous:
                known.add(variable)
    return list(found.values())


def _bridge_type(variable: str, element_type: str, lost: Lost, source: OperatorVersion) -> str | None:
    remaining = set(source.type_constraints.get(variable, (variable,))) - lost[variable]
    return wider_type(element_type, remaining, source.bridge)


def _formatted(element_type: str) -> str:
    return element_type if "(" in element_type else f"tensor({element_type})"


def _present(formals: tuple[Parameter, ...], names: Sequence[str]) -> list[tuple[str, Parameter]]:
    """Return the names that are not omitted, each with its parameter; the last one may be variadic."""
    last = len(formals) - 1
    return [(name, formals[min(i, last)]) for i, name in enumerate(names) if name and last >= 0]


def _insert_casts(node: Node, unsupported: list[tuple[str, str, str]], lost: Lost, out: Rewriter) -> bool:
    """Emit the node between casts, still in its source version, and return whether a wider type exists."""
    wider = {
        variable: (BY_NAME[element_type].number, BY_NAME[found].number)
        for _, variable, element_type in unsupported
        if (found := _bridge_type(variable, element_type, lost, out.source))
    }
    if not wider:
        return False
    # The node is emitted in its source version: with its wider types, this step applies to it next.
    opset = out.source.since_version
    cast_opset = max(opset, NUMBERED_CAST)
    inputs, outputs = list(node.inputs), list(node.outputs)
    for position, (name, formal) in _positions(out.source.inputs, node.inputs):
        if formal.type in wider:
            to = wider[formal.type][1]
            inputs[position] = out.emit("Cast", [name], domain="", opset=cast_opset, to=to)
    casts_back = []
    for position, (name, formal) in _positions(out.source.outputs, node.outputs):
        if formal.type in wider:
            outputs[position] = out.fresh(f"{name}_wide")
            casts_back.append((outputs[position], name, wider[formal.type][0]))
    out.become(node, inputs=inputs, outputs=outputs, opset=opset)
    for wide, name, narrow in casts_back:
        out.emit("Cast", [wide], [name], domain="", opset=cast_opset, to=narrow)
    return True


def _positions(
    formals: tuple[Parameter, ...], names: Sequence[str]
) -> list[tuple[int, tuple[str, Parameter]]]:
    present = [position for position, name in enumerate(names) if name]
    return list(zip(present, _present(formals, names), strict=True))


def _lost_by_variable(
    source: OperatorVersion,
    old: tuple[Parameter, ...],
    new: tuple[Parameter, ...],
    target: OperatorVersion,
) -> Lost:
    found = {}
    for before, after in zip(old, new, strict=False):
        types = frozenset(source.types_of(before)) - frozenset(target.types_of(after))
        if types:
            found[before.type] = types
    return found
