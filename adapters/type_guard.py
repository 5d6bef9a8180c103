"""Nodes whose values have types that the other version lacks: bridged by casts, or refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.wider_types import wider_type
from opshift.registry.element_types import BY_NAME
from opshift.registry.models import OperatorVersion, Parameter

Lost = dict[str, frozenset[str]]
"""By type variable: the types that the source takes and the target does not."""
NUMBERED_CAST = 6
"""From this opset on Cast names a type by its number."""
Guard = Callable[[Node, Rewriter], bool]


def lost_types(source: OperatorVersion, target: OperatorVersion) -> Lost:
    """By type variable: the types that the source takes and the target does not."""
    inputs = _lost(source, source.inputs, target.inputs, target)
    return inputs | _lost(source, source.outputs, target.outputs, target)


def type_guard(source: OperatorVersion, target: OperatorVersion) -> Guard | None:
    """The guard between two versions; `None` if the target takes every type that the source takes.

    It tells whether it has replaced the node: where the operator computes the same in a wider type that
    the target has, its inputs are cast to that type and its outputs back. Otherwise it refuses.
    """
    lost = lost_types(source, target)
    if not lost:
        return None

    def guard(node: Node, out: Rewriter) -> bool:
        wanting = _wanting(node, lost, out)
        for name, variable, element_type in wanting:
            if _wider(variable, element_type, lost, source) is None:
                raise CannotConvert(
                    f"{name!r} is {_spelled(element_type)}, which {target.id} does not take",
                    remedy="cast around the node to a type it takes, if that keeps range and precision",
                )
        return _bridge(node, wanting, lost, out)

    return guard


def type_bridge(source: OperatorVersion, target: OperatorVersion) -> Guard | None:
    """As `type_guard`, for a step with an adapter: it replaces what casts can and refuses nothing."""
    lost = _lost(source, source.inputs, target.inputs, target)
    if not lost or source.bridge is None:
        return None

    def bridge(node: Node, out: Rewriter) -> bool:
        return _bridge(node, _wanting(node, lost, out), lost, out)

    return bridge


def _wanting(node: Node, lost: Lost, out: Rewriter) -> list[tuple[str, str, str]]:
    """The values whose type is lost: the first of each type variable, with its element type."""
    found: dict[str, tuple[str, str, str]] = {}
    known: set[str] = set()
    for formals, names in ((out.source.inputs, node.inputs), (out.source.outputs, node.outputs)):
        for name, formal in _bound(formals, names):
            variable = formal.type
            element_type = None
            if variable in lost and variable not in known:
                element_type = out.known_element_type(name)
            if element_type is not None and _spelled(element_type) in lost[variable]:
                found.setdefault(variable, (name, variable, element_type))
            if element_type is not None and formal.homogeneous:
                known.add(variable)
    return list(found.values())


def _wider(variable: str, element_type: str, lost: Lost, source: OperatorVersion) -> str | None:
    remaining = set(source.type_constraints.get(variable, (variable,))) - lost[variable]
    return wider_type(element_type, remaining, source.bridge)


def _spelled(element_type: str) -> str:
    return element_type if "(" in element_type else f"tensor({element_type})"


def _bound(formals: tuple[Parameter, ...], names: Sequence[str]) -> list[tuple[str, Parameter]]:
    """The names that are there, each with its parameter."""
    last = len(formals) - 1
    return [(name, formals[min(i, last)]) for i, name in enumerate(names) if name and last >= 0]


def _bridge(node: Node, wanting: list[tuple[str, str, str]], lost: Lost, out: Rewriter) -> bool:
    """Emit the node between casts, as the version it was; in its new type it takes the step."""
    wider = {
        variable: (BY_NAME[element_type].number, BY_NAME[found].number)
        for _, variable, element_type in wanting
        if (found := _wider(variable, element_type, lost, out.source))
    }
    if not wider:
        return False
    opset = out.source.since_version
    cast_opset = max(opset, NUMBERED_CAST)
    inputs, outputs = list(node.inputs), list(node.outputs)
    for position, (name, formal) in _positions(out.source.inputs, node.inputs):
        if formal.type in wider:
            to = wider[formal.type][1]
            inputs[position] = out.emit("Cast", [name], domain="", opset=cast_opset, to=to)
    back = []
    for position, (name, formal) in _positions(out.source.outputs, node.outputs):
        if formal.type in wider:
            outputs[position] = out.fresh(f"{name}_wide")
            back.append((outputs[position], name, wider[formal.type][0]))
    out.become(node, inputs=inputs, outputs=outputs, opset=opset)
    for wide, name, narrow in back:
        out.emit("Cast", [wide], [name], domain="", opset=cast_opset, to=narrow)
    return True


def _positions(
    formals: tuple[Parameter, ...], names: Sequence[str]
) -> list[tuple[int, tuple[str, Parameter]]]:
    present = [position for position, name in enumerate(names) if name]
    return list(zip(present, _bound(formals, names), strict=True))


def _lost(
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
