"""Clip: `min` and `max` are inputs of the data's type since opset 11; integers are allowed since 12."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, Tensor, adapter, function_body, require_supported_types
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import LARGEST_FINITE
from opshift.model.element_types import FLOAT_MAX

SMALL_INTEGER_TYPES = ("int8", "uint8", "int16", "uint16")
"""Integer types that float represents exactly."""

BROADCASTING_OPSET = 8
"""First opset in which Max and Min broadcast a bound to the shape of the data."""


LEGACY_OPSET = 6
"""Last opset in which Add has `broadcast`, which adds a scalar to data of any shape."""


class Bound(NamedTuple):
    """A bound of Clip: `min` or `max`."""

    name: str
    position: int
    """Position among the inputs."""
    sign: int
    """Sign of the default, which is a limit of the element type."""
    limiter: str
    """Operator that applies the bound."""
    comparison: str
    """Operator that finds the values beyond the bound."""


BOUNDS = (Bound("min", 1, -1, "Max", "Less"), Bound("max", 2, 1, "Min", "Greater"))


@adapter("Clip", 6, 11)
def move_bounds_to_inputs(node: Node, out: Rewriter) -> None:
    """Move the bounds to inputs; omit a bound if the data is float and the bound is the default.

    The default bounds are the limits of float in version 6, and the limits of the data's type in version 11.
    """
    data = node.inputs[0]
    element_type = out.element_type(data)
    inputs = [data]
    for bound in BOUNDS:
        limit = bound.sign * FLOAT_MAX
        if element_type == "float" and out.has_default(node, bound.name, limit):
            inputs.append("")
        else:
            inputs.append(out.constant_of_attribute(node, bound.name, limit, element_type))
    while not inputs[-1]:
        inputs.pop()
    out.replace(node, inputs=inputs, attributes=node.without("min", "max"))


@function_body("Clip", 13)
def apply_bounds(node: Node, out: Rewriter) -> None:
    """Rewrite as Max for the lower bound and Min for the upper bound, if present."""
    _apply_bounds(node, [node.input(bound.position) for bound in BOUNDS], False, 13, out)


@adapter("Clip", 12, 11)
def clip_integers(node: Node, out: Rewriter) -> None:
    """Clip integers of 8 and 16 bits as float, of 32 bits by Max and Min, and of 64 bits by Where."""
    element_type = out.element_type(node.inputs[0])
    if element_type in SMALL_INTEGER_TYPES:
        _clip_as_float(node, element_type, out)
    elif element_type in ("int32", "uint32", "int64", "uint64"):
        limits = [node.input(bound.position) for bound in BOUNDS]
        is_wide = element_type.endswith("64")
        _apply_bounds(node, limits, is_wide, out.opset if is_wide else 12, out)
    else:
        require_supported_types(node, out)
        out.replace(node)


@adapter("Clip", 11, 6)
def move_bounds_to_attributes(node: Node, out: Rewriter) -> None:
    """Move constant bounds to float attributes; apply computed or double bounds by separate nodes."""
    require_supported_types(node, out)
    element_type = out.element_type(node.inputs[0])
    largest = LARGEST_FINITE[element_type]
    attributes = {}
    for bound in BOUNDS:
        name = node.input(bound.position)
        value = out.constant_value(name)
        # In version 6, the attributes are float, which does not represent every bound of type double.
        if element_type == "double" or (name and value is None):
            limits = [
                node.input(each.position) or out.constant(each.sign * largest, element_type)
                for each in BOUNDS
            ]
            _apply_float_bounds(node, limits, element_type, out)
            return
        # In version 6, the defaults are the limits of float: omit them.
        if value is not None or element_type != "float":
            attributes[bound.name] = value.scalar if value is not None else bound.sign * largest
    # If `min` exceeds `max`, `max` applies, but runtimes refuse such attributes: set both to `max`.
    if attributes.get("min", -math.inf) > attributes.get("max", math.inf):
        attributes["min"] = attributes["max"]
    out.replace(node, inputs=node.inputs[:1], attributes=attributes)


def _apply_float_bounds(node: Node, limits: Sequence[str], element_type: str, out: Rewriter) -> None:
    if out.default_opset >= BROADCASTING_OPSET:
        _apply_bounds(node, limits, False, BROADCASTING_OPSET, out)
    elif out.default_opset > LEGACY_OPSET and element_type != "float":
        # Runtimes implement Max-6 and Min-6 only for float.
        _apply_bounds(node, limits, True, 9, out)
    else:
        _apply_bounds(
            node, _expand_bounds(node.inputs[0], element_type, limits, out), False, LEGACY_OPSET, out
        )


def _expand_bounds(data: str, element_type: str, limits: Sequence[str], out: Rewriter) -> list[str]:
    """Broadcast scalar bounds to the data, whose shape may be unknown, with operators of opset 6."""
    out = out.for_opset(LEGACY_OPSET)
    # Less of equal inputs is False everywhere, in the shape of the data. Adding -0.0 changes no number.
    zeros = out.emit("Neg", [out.cast(out.emit("Less", [data, data]), element_type)])
    return [out.emit("Add", [zeros, limit], broadcast=1) for limit in limits]


def _clip_as_float(node: Node, element_type: str, out: Rewriter) -> None:
    names = []
    for name in node.inputs:
        constant = out.constant_value(name)
        if constant is not None:
            names.append(out.tensor(Tensor("float", constant.dims, tuple(map(float, constant.values)))))
        else:
            names.append(out.cast(name, "float") if name else "")
    clipped = out.fresh("clip")
    out.replace(node, inputs=names, outputs=[clipped])
    out.cast(clipped, element_type, node.outputs)


def _apply_bounds(node: Node, limits: Sequence[str], by_comparison: bool, opset: int, out: Rewriter) -> None:
    """Apply the lower bound, then the upper one, which takes precedence if it is below the lower one."""
    value = node.inputs[0]
    for bound, limit in zip(BOUNDS, limits, strict=True):
        if limit and by_comparison:
            is_beyond = out.emit(bound.comparison, [value, limit], opset=opset)
            value = out.emit("Where", [is_beyond, limit, value], opset=opset)
        elif limit:
            value = out.emit(bound.limiter, [value, limit], opset=opset)
    rename_output(value, node, out)
