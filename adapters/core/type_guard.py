"""Handle values of types that the target version does not support: cast around the node, or refuse."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from opshift.adapters.core.rewriter import Rewriter
from opshift.model.element_types import BY_NAME
from opshift.model.errors import CannotConvert
from opshift.model.node import Node
from opshift.registry.models import Bridge, OperatorVersion, Parameter

LostTypes = dict[str, frozenset[str]]
"""Type variable to the types that the source version supports and the target version does not."""

NUMERIC_CAST_OPSET = 6
"""First opset in which `to` of Cast is a number instead of a name."""

TypeGuard = Callable[[Node, Rewriter], bool]
"""A function that returns whether it replaced the node."""


def lost_types(source: OperatorVersion, target: OperatorVersion) -> LostTypes:
    """Return the types that the source version supports and the target version does not, by type variable."""
    inputs = _lost_by_variable(source, source.inputs, target.inputs, target)
    return inputs | _lost_by_variable(source, source.outputs, target.outputs, target)


def type_guard(source: OperatorVersion, target: OperatorVersion) -> TypeGuard | None:
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


def type_bridge(source: OperatorVersion, target: OperatorVersion) -> TypeGuard | None:
    """Return a guard like `type_guard` for a step with an adapter: it leaves refusals to the adapter."""
    lost = _lost_by_variable(source, source.inputs, target.inputs, target)
    if not lost or source.bridge is None:
        return None

    def bridge(node: Node, out: Rewriter) -> bool:
        return _insert_casts(node, _unsupported(node, lost, out), lost, out)

    return bridge


def _unsupported(node: Node, lost: LostTypes, out: Rewriter) -> list[tuple[str, str, str]]:
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


def _bridge_type(variable: str, element_type: str, lost: LostTypes, source: OperatorVersion) -> str | None:
    remaining = set(source.type_constraints.get(variable, (variable,))) - lost[variable]
    return wider_type(element_type, remaining, source.bridge)


def _formatted(element_type: str) -> str:
    return element_type if "(" in element_type else f"tensor({element_type})"


def _present(formals: tuple[Parameter, ...], names: Sequence[str]) -> list[tuple[str, Parameter]]:
    """Return the names that are not omitted, each with its parameter; the last one may be variadic."""
    last = len(formals) - 1
    return [(name, formals[min(i, last)]) for i, name in enumerate(names) if name and last >= 0]


def _insert_casts(
    node: Node, unsupported: list[tuple[str, str, str]], lost: LostTypes, out: Rewriter
) -> bool:
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
    cast_opset = max(opset, NUMERIC_CAST_OPSET)
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
    out.replace(node, inputs=inputs, outputs=outputs, opset=opset)
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
) -> LostTypes:
    found = {}
    for before, after in zip(old, new, strict=False):
        types = frozenset(source.types_of(before)) - frozenset(target.types_of(after))
        if types:
            found[before.type] = types
    return found


def require_supported_types(node: Node, out: Rewriter) -> None:
    """Refuse a node with a value of a type that the target version does not support.

    Raises:
        CannotConvert: a value has such a type.
    """
    target = out.target
    assert target is not None, "an operator without a target version has no types to check"
    for formals, names in ((target.inputs, node.inputs), (target.outputs, node.outputs)):
        for name, formal in zip(names, formals, strict=False):
            known = out.known_element_type(name)
            type_text = known if known is None or "(" in known else f"tensor({known})"
            if type_text is not None and type_text not in target.types_of(formal):
                raise CannotConvert(
                    f"{name!r} is {type_text}, which {target.id} does not support",
                    remedy="cast around the node to a supported type, if range and precision allow it",
                )


WIDER_FLOATS = {"float16": ("float", "double"), "bfloat16": ("float", "double")}

WIDER_INTEGERS = {
    "int8": ("int32", "int64", "int16"),
    "int16": ("int32", "int64"),
    "int32": ("int64",),
    "uint8": ("int32", "int64", "int16", "uint16", "uint32", "uint64"),
    "uint16": ("int32", "int64", "uint32", "uint64"),
    "uint32": ("int64", "uint64"),
}
"""Integer types to wider integer types; the types that runtimes support most widely come first."""

FLOATS_FOR_INTEGERS = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), ("float", "double")),
    **dict.fromkeys(("int32", "uint32"), ("double",)),
}
"""Integer types to the float types that represent all their values exactly."""

TYPES_FOR_BOOL = ("uint8", "int32", "int64", "float")
"""Types for operators that only move, select or compare booleans."""

TYPES_FOR_EXTREMA = {
    "bool": ("uint8",),
    "uint8": ("int32", "int64"),
    "uint16": ("int32", "int64"),
    "uint32": ("int64",),
}
"""Types for minima and maxima, where empty input results in a limit of the type. A cast to the narrow type
keeps the low bits, which turns a limit of these types into the same limit of the narrow type."""


def wider_type(element_type: str, allowed: Collection[str], bridge: Bridge | None) -> str | None:
    """Return the preferred wider type to compute in.

    Args:
        element_type: the element type to replace.
        allowed: the supported types, such as `tensor(float)`.
        bridge: the operator's use of its values, which determines the equivalent wider types.

    Returns:
        The element type, or `None` if no wider type is equivalent and supported.
    """
    return next((each for each in _candidates(element_type, bridge) if f"tensor({each})" in allowed), None)


def _candidates(element_type: str, bridge: Bridge | None) -> tuple[str, ...]:
    if bridge is None:
        return ()
    if element_type in WIDER_FLOATS:
        return WIDER_FLOATS[element_type]
    if bridge == "extreme":
        return TYPES_FOR_EXTREMA.get(element_type, ())
    integers = WIDER_INTEGERS.get(element_type, ()) if bridge in ("order", "ring") else ()
    if bridge != "order":
        return integers
    return (
        *integers,
        *FLOATS_FOR_INTEGERS.get(element_type, ()),
        *(TYPES_FOR_BOOL if element_type == "bool" else ()),
    )
