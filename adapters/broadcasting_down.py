"""Elementwise operators, downgrade: before opset 7 only the second input is broadcast, by attributes."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.broadcasting import ARITHMETIC, COMPARISON
from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.stretching import OPSET, Legacy, common_shape, legacy, to_one_shape
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

TURNED = {
    **{name: name for name in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}
"""The operator that computes the same with its inputs swapped."""


@adapter(ARITHMETIC, 7, 6)
@adapter(COMPARISON, 7, 1)
def stretching_is_asked_for(node: Node, out: Rewriter) -> None:
    """Set `broadcast` and `axis`, with swapped inputs if necessary; otherwise tile to one shape."""
    require_types(node, out)
    first, second = node.inputs
    shapes = out.shape(first), out.shape(second)
    if first == second:
        out.become(node)
    elif broadcast := legacy(*shapes):
        _broadcast_second(node, node.op_type, (first, second), broadcast, out)
    elif (swapped := legacy(shapes[1], shapes[0])) and node.op_type in TURNED:
        _broadcast_second(node, TURNED[node.op_type], (second, first), swapped, out)
    else:
        out.become(node, inputs=to_one_shape(node.inputs, out))


def _broadcast_second(
    node: Node, op_type: str, inputs: tuple[str, str], broadcast: Legacy, out: Rewriter
) -> None:
    first, second = inputs
    if broadcast.shape is not None:
        second = out.emit("Reshape", [second, out.constant(broadcast.shape, "int64")], opset=OPSET)
    out.become(node, op_type=op_type, inputs=(first, second), attributes=broadcast.attributes)


@adapter("PRelu", 7, 6)
def slope_is_one_or_one_a_channel(node: Node, out: Rewriter) -> None:
    """Keep a slope per tensor or channel; rewrite others as `Relu(x) - slope * Relu(-x)`."""
    require_types(node, out)
    data, slope = node.inputs
    shape, rank = out.shape(slope), out.known_rank(data)
    if shape is None:
        raise CannotConvert(f"the rank of {slope!r} is unknown", remedy=f"add a value_info for {slope!r}")
    non_unit = [i for i, dim in enumerate(shape) if dim != 1]
    channel = len(shape) + 1 - rank if rank is not None and rank > 1 else None
    if not non_unit or non_unit == [channel]:
        out.become(node, inputs=[data, _flatten_slope(slope, shape, out)])
    else:
        negative = out.emit("Relu", [out.emit("Neg", [data])], opset=7)
        below = out.emit("Mul", [negative, slope], opset=7)
        out.emit("Sub", [out.emit("Relu", [data], opset=7), below], node.outputs, opset=7)


def _flatten_slope(slope: str, shape: tuple[int | None, ...], out: Rewriter) -> str:
    return slope if len(shape) == 1 else out.emit("Reshape", [slope, out.constant([-1], "int64")], opset=5)


@adapter(("Sum", "Mean"), 8, 6)
def addends_are_added_in_turn(node: Node, out: Rewriter) -> None:
    """Rewrite as Add nodes, which broadcast; before version 8 Sum and Mean do not."""
    if _have_equal_shapes(node, out):
        out.become(node)
        return
    require_types(node, out)
    total, *rest = node.inputs
    for name in rest[:-1]:
        total = out.emit("Add", [total, name], opset=7)
    if node.op_type == "Sum":
        out.emit("Add", [total, rest[-1]], node.outputs, opset=7)
        return
    count = out.constant(len(node.inputs), out.element_type(node.inputs[0]))
    out.emit("Div", [out.emit("Add", [total, rest[-1]], opset=7), count], node.outputs, opset=7)


@adapter(("Max", "Min"), 8, 6)
def inputs_are_of_one_shape(node: Node, out: Rewriter) -> None:
    """Tile the inputs to one shape; if shapes are unknown, add zeros of the broadcast shape."""
    require_types(node, out)
    if _have_equal_shapes(node, out):
        out.become(node)
    elif common_shape([out.shape(name) for name in node.inputs]) is None:
        out.become(node, inputs=_broadcast_by_adding_zeros(node.inputs, out))
    else:
        out.become(node, inputs=to_one_shape(node.inputs, out))


def _broadcast_by_adding_zeros(names: Sequence[str], out: Rewriter) -> list[str]:
    """Return the values, each plus a negative zero of every input.

    Adding -0.0 changes no number, not even the sign of a zero.
    """
    number = BY_NAME[out.element_type(names[0])].number
    total = ""
    for name in (each for each in names if out.shape(each) != ()):
        # No value is less than itself, NaN included: this yields False in the shape of the input.
        always_false = out.emit("Less", [name, name], opset=7)
        zeros = out.emit("Neg", [out.emit("Cast", [always_false], opset=6, to=number)], opset=6)
        total = out.emit("Add", [total, zeros], opset=7) if total else zeros
    return [out.emit("Add", [name, total], opset=7) for name in names]


@adapter(("Max", "Min"), 12, 8)
def wide_integers_are_compared(node: Node, out: Rewriter) -> None:
    """Rewrite Max and Min of 64-bit integers as comparisons and Where: no float represents them all."""
    if out.element_type(node.inputs[0]) not in ("int64", "uint64"):
        require_types(node, out)
        out.become(node)
        return
    comparison = "Greater" if node.op_type == "Max" else "Less"
    selected, *rest = node.inputs
    for name in rest:
        selected = out.emit(
            "Where", [out.emit(comparison, [selected, name], opset=11), selected, name], opset=11
        )
    out.emit("Identity", [selected], node.outputs)


def _have_equal_shapes(node: Node, out: Rewriter) -> bool:
    if len(set(node.inputs)) == 1:
        return True
    shapes = {out.shape(name) for name in node.inputs}
    return len(shapes) == 1 and all(shape is not None and None not in shape for shape in shapes)
