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
        substitutes: dict[str, tuple[str, str]] = {}
        for formals, names in ((source.inputs, node.inputs), (source.outputs, node.outputs)):
            for name, variable in _bound(formals, names):
                if variable in lost and variable not in substitutes:
                    substitutes |= _substitute(name, variable, lost[variable], source, target, out)
        if substitutes:
            _bridge(node, substitutes, out)
        return bool(substitutes)

    return guard


def _bound(formals: tuple[Parameter, ...], names: Sequence[str]) -> list[tuple[str, str]]:
    """The names that are there, each with the type variable of its parameter."""
    last = len(formals) - 1
    return [(name, formals[min(i, last)].type) for i, name in enumerate(names) if name and last >= 0]


def _substitute(
    name: str,
    variable: str,
    lost: frozenset[str],
    source: OperatorVersion,
    target: OperatorVersion,
    out: Rewriter,
) -> dict[str, tuple[str, str]]:
    """The variable's element type and the wider one to compute in; nothing if the type is not lost."""
    known = out.known_element_type(name)
    spelled = known if known is None or "(" in known else f"tensor({known})"
    if known is None or spelled not in lost:
        return {}
    remaining = set(_types(source, variable)) - lost
    wider = wider_type(known, remaining, source.bridge)
    if wider is None:
        raise CannotConvert(
            f"{name!r} is {spelled}, which {target.id} does not take",
            remedy="cast the value around the node to a type it takes, if that keeps its range and precision",
        )
    return {variable: (known, wider)}


def _bridge(node: Node, substitutes: dict[str, tuple[str, str]], out: Rewriter) -> None:
    """The node between casts; it is emitted as the version it was, and takes the step in its new type."""
    opset = out.source.since_version
    inputs = list(node.inputs)
    for position, (name, variable) in _positions(out.source.inputs, node.inputs):
        if variable in substitutes:
            wider = BY_NAME[substitutes[variable][1]].number
            inputs[position] = out.emit("Cast", [name], domain="", opset=opset, to=wider)
    outputs = list(node.outputs)
    back = []
    for position, (name, variable) in _positions(out.source.outputs, node.outputs):
        if variable in substitutes:
            outputs[position] = out.fresh(f"{name}_wide")
            back.append((outputs[position], name, BY_NAME[substitutes[variable][0]].number))
    out.become(node, inputs=inputs, outputs=outputs, opset=opset)
    for wide, name, narrow in back:
        out.emit("Cast", [wide], [name], domain="", opset=opset, to=narrow)


def _positions(formals: tuple[Parameter, ...], names: Sequence[str]) -> list[tuple[int, tuple[str, str]]]:
    present = [position for position, name in enumerate(names) if name]
    return list(zip(present, _bound(formals, names), strict=True))


def _types(version: OperatorVersion, variable: str) -> tuple[str, ...]:
    return version.type_constraints.get(variable, (variable,))


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
