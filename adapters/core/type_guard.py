"""Handle nodes with element types that the target version does not support: insert casts, or refuse."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from opshift.adapters.core.rewriter import Attributes, Rewriter
from opshift.model.element_types import BY_NAME, integer_range, round_to_float32, type_string
from opshift.model.errors import CannotConvert
from opshift.model.node import Node, Tensor
from opshift.model.tensors import require_tensor
from opshift.registry.attribute_values import Bridge
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.step_rules import LostTypes, lost_input_types, lost_types

NUMERIC_CAST_OPSET = 6
"""First opset in which `to` of Cast is a number instead of a name."""

FLOAT8_WITH_INFINITIES = {"float8e5m2"}
"""8-bit types with infinity; a Cast to them gets `saturate` 0, which keeps infinity."""

TYPE_REMEDY = "choose another target, or cast the values to a supported type if range and precision allow it"

WHOLE_MODEL_REMEDY = (
    "convert the element type of the whole model, too: --types {old}={new}, or types= in Python"
)

TypeGuard = Callable[[Node, Rewriter], bool]
"""Function that returns True if it emitted a replacement of the node, and False if it emitted nothing."""


def type_guard(source: OperatorVersion, target: OperatorVersion) -> TypeGuard | None:
    """Return the guard between two versions, or `None` if the target supports every type of the source.

    For a node with an unsupported type, the guard casts inputs to a wider type with the same result, and
    outputs back. If the target supports no wider type, the guard raises `CannotConvert`.
    """
    lost = lost_types(source, target)
    return partial(_cast_to_wider_types, lost=lost, refuses=True) if lost else None


def lenient_type_guard(source: OperatorVersion, target: OperatorVersion) -> TypeGuard | None:
    """Return a guard that casts like `type_guard`, but leaves values without a wider type to the adapter.

    Return `None` if the target supports all input types, or the source declares no `bridge`.
    """
    lost = lost_input_types(source, target)
    return partial(_cast_to_wider_types, lost=lost, refuses=False) if lost and source.bridge else None


def _cast_to_wider_types(node: Node, out: Rewriter, *, lost: LostTypes, refuses: bool) -> bool:
    wider = {}
    for variable, (name, element_type) in unsupported_types(node, lost, out).items():
        remaining = set(out.source.type_constraints.get(variable, (variable,))) - lost[variable]
        found = wider_type(element_type, remaining, out.source.bridge)
        if found is not None:
            wider[variable] = (element_type, found)
        elif refuses:
            raise _unsupported_type_error(name, element_type, out)
    if wider:
        emit_in_types(node, wider, out)
    return bool(wider)


def unsupported_types(node: Node, lost: LostTypes, out: Rewriter) -> dict[str, tuple[str, str]]:
    """Return, by type variable, the name and element type of the first value with a type in `lost`."""
    found: dict[str, tuple[str, str]] = {}
    known: set[str] = set()
    for formals, names in ((out.source.inputs, node.inputs), (out.source.outputs, node.outputs)):
        for _, name, formal in _present(formals, names):
            variable = formal.type
            if variable not in lost or variable in known:
                continue
            element_type = out.known_element_type(name)
            if element_type is None:
                continue
            if type_string(element_type) in lost[variable]:
                found.setdefault(variable, (name, element_type))
            # The values of a heterogeneous variadic parameter may differ in type: check each value.
            if formal.homogeneous:
                known.add(variable)
    return found


def _present(formals: Sequence[Parameter], names: Sequence[str]) -> Iterator[tuple[int, str, Parameter]]:
    """Yield position, name and parameter of each present value; the last parameter may be variadic."""
    for position, name in enumerate(names):
        if name and formals:
            yield position, name, formals[min(position, len(formals) - 1)]


def _unsupported_type_error(name: str, element_type: str, out: Rewriter) -> CannotConvert:
    assert out.target is not None, "an operator without a target version has no types to check"
    reason = f"{name!r} is {type_string(element_type)}, which {out.target.id} does not support"
    wider = WIDER_FLOATS.get(element_type, ())
    remedy = WHOLE_MODEL_REMEDY.format(old=element_type, new=wider[0]) if wider else TYPE_REMEDY
    return CannotConvert(reason, "type.unsupported", subject=element_type, remedy=remedy)


def emit_in_types(node: Node, types: Mapping[str, tuple[str, str]], out: Rewriter) -> None:
    """Emit casts, the node, and casts back; `types` maps a type variable to (element type, replacement)."""
    # Emit the node in its source version, so that this step runs again on the node with the new types.
    opset = out.source.since_version
    cast_opset = max(opset, NUMERIC_CAST_OPSET)
    inputs, outputs = list(node.inputs), list(node.outputs)
    for position, name, formal in _present(out.source.inputs, node.inputs):
        if formal.type in types:
            inputs[position] = out.cast(name, types[formal.type][1], opset=cast_opset)
    casts_back = []
    attributes = None
    for position, name, formal in _present(out.source.outputs, node.outputs):
        if formal.type_attribute:
            attributes = _with_type_attribute(node, formal, types, out.source)
        if formal.type in types:
            outputs[position] = out.fresh(f"{name}_wide")
            casts_back.append((outputs[position], types[formal.type][0], [name]))
    out.replace(node, inputs=inputs, outputs=outputs, attributes=attributes, opset=opset)
    for wide, element_type, names in casts_back:
        number, saturate = BY_NAME[element_type].number, 0 if element_type in FLOAT8_WITH_INFINITIES else None
        out.emit("Cast", [wide], names, domain="", opset=cast_opset, to=number, saturate=saturate)


def _with_type_attribute(
    node: Node, formal: Parameter, types: Mapping[str, tuple[str, str]], source: OperatorVersion
) -> Attributes | None:
    """Return the attributes with the new type of an output; `None` if they do not change."""
    assert formal.type_attribute is not None
    name, is_output = formal.type_attribute, formal.type in types
    given = node.attribute(name)
    # Without the attribute, the output has the type of an input, which may change.
    followed = next((each.type for each in source.inputs if each.name == formal.absent_type), "")
    if not is_output and (given is not None or followed not in types):
        return None
    element_type = types[formal.type][1] if is_output else types[followed][0]
    if source.attributes[name].type == "INT":
        return {**node.without(name), name: BY_NAME[element_type].number}
    tensor = require_tensor(Tensor("float", (1,), (0.0,)) if given is None else given)
    values = tuple(_exact_value(each, element_type) for each in tensor.values)
    return {**node.without(name), name: Tensor(element_type, tensor.dims, values)}


def _exact_value(value: Any, element_type: str) -> int | float:
    """Return a value in another element type.

    Raises:
        CannotConvert: the type does not represent the value.
    """
    bounds = integer_range(element_type)
    if bounds is not None and isinstance(value, int) and value in bounds:
        return int(value)
    if bounds is None and isinstance(value, int | float):
        number = round_to_float32(value) if element_type == "float" else float(value)
        if number == value or math.isnan(value):
            return number
    reason = f"{type_string(element_type)} does not represent {value!r}"
    raise CannotConvert(reason, "type.unsupported", subject=element_type)


def require_supported_types(node: Node, out: Rewriter) -> None:
    """Refuse a node with a value of a known type that the target version does not support.

    Raises:
        CannotConvert: the target version does not support the type of a value.
    """
    target = out.target
    assert target is not None, "an operator without a target version has no types to check"
    for formals, names in ((target.inputs, node.inputs), (target.outputs, node.outputs)):
        for name, formal in zip(names, formals, strict=False):
            element_type = out.known_element_type(name)
            if element_type is not None and type_string(element_type) not in target.types_of(formal):
                raise _unsupported_type_error(name, element_type, out)


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

OTHER_EXACT_TYPES = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), ("float", "double")),
    **dict.fromkeys(("int32", "uint32"), ("double",)),
    "bool": ("uint8", "int32", "int64", "float"),
}
"""Integer types to float types that represent all integers of the type, and `bool` to types for operators
that only move, select or compare booleans."""

TYPES_FOR_EXTREMA = {
    "bool": ("uint8",),
    "uint8": ("int32", "int64"),
    "uint16": ("int32", "int64"),
    "uint32": ("int64",),
}
"""Narrow types to wider types for minima and maxima. For empty input, the result is a limit of the wider
type, which the cast back (of low bits, or to bool) turns into the limit of the narrow type."""

TYPES_FOR_BRIDGE: dict[Bridge, tuple[Mapping[str, tuple[str, ...]], ...]] = {
    "real": (WIDER_FLOATS,),
    "extreme": (WIDER_FLOATS, TYPES_FOR_EXTREMA),
    "ring": (WIDER_FLOATS, WIDER_INTEGERS),
    "order": (WIDER_FLOATS, WIDER_INTEGERS, OTHER_EXACT_TYPES),
}
"""Tables of wider types with the same result, by the `bridge` field of an operator version; best first."""


def wider_type(element_type: str, allowed: Collection[str], bridge: Bridge | None) -> str | None:
    """Return the preferred wider type, such as `float`, with its type string in `allowed`, or `None`."""
    return next((each for each in wider_types(element_type, bridge) if f"tensor({each})" in allowed), None)


def wider_types(element_type: str, bridge: Bridge | None) -> Iterator[str]:
    """Yield the wider types with the same result, such as `float`, in order of preference."""
    for table in TYPES_FOR_BRIDGE[bridge] if bridge else ():
        yield from table.get(element_type, ())
