"""Elementwise operators: from 7 on both inputs are stretched; before, the second if `broadcast` says so."""

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
"""The operator that gives the same of the inputs in the other order."""


@adapter(ARITHMETIC, 7, 6)
@adapter(COMPARISON, 7, 1)
def stretching_is_asked_for(node: Node, out: Rewriter) -> None:
    """By attributes if the second input can be stretched, else in the other order, else by repeating."""
    require_types(node, out)
    first, second = node.inputs
    shapes = out.shape(first), out.shape(second)
    if first == second:
        out.become(node)
    elif found := legacy(*shapes):
        _stretch(node, node.op_type, (first, second), found, out)
    elif (turned := legacy(shapes[1], shapes[0])) and node.op_type in TURNED:
        _stretch(node, TURNED[node.op_type], (second, first), turned, out)
    else:
        out.become(node, inputs=to_one_shape(node.inputs, out))


def _stretch(node: Node, op_type: str, inputs: tuple[str, str], found: Legacy, out: Rewriter) -> None:
    first, second = inputs
    if found.shape is not None:
        second = out.emit("Reshape", [second, out.constant(found.shape, "int64")], opset=OPSET)
    out.become(node, op_type=op_type, inputs=(first, second), attributes=found.attributes)


@adapter("PRelu", 7, 6)
def slope_is_one_or_one_a_channel(node: Node, out: Rewriter) -> None:
    """Other slopes multiply the negative part, which is taken apart from the positive one."""
    require_types(node, out)
    data, slope = node.inputs
    shape, rank = out.shape(slope), out.known_rank(data)
    if shape is None:
        raise CannotConvert(f"the rank of {slope!r} is not known", remedy="add a value_info for it")
    counts = [i for i, dim in enumerate(shape) if dim != 1]
    channel = len(shape) + 1 - rank if rank is not None and rank > 1 else None
    if not counts or counts == [channel]:
        out.become(node, inputs=[data, _listed(slope, shape, out)])
    else:
        negative = out.emit("Relu", [out.emit("Neg", [data])], opset=7)
        below = out.emit("Mul", [negative, slope], opset=7)
        out.emit("Sub", [out.emit("Relu", [data], opset=7), below], node.outputs, opset=7)


def _listed(slope: str, shape: tuple[int | None, ...], out: Rewriter) -> str:
    return slope if len(shape) == 1 else out.emit("Reshape", [slope, out.constant([-1], "int64")], opset=5)


@adapter(("Sum", "Mean"), 8, 6)
def addends_are_added_in_turn(node: Node, out: Rewriter) -> None:
    """Add stretches its inputs, which Sum and Mean do not before 8."""
    if _alike(node, out):
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
    """Those of a smaller shape are repeated; those of unknown shapes are added to stretched zeros."""
    require_types(node, out)
    if _alike(node, out):
        out.become(node)
    elif common_shape([out.shape(name) for name in node.inputs]) is None:
        out.become(node, inputs=_added_to_zeros(node.inputs, out))
    else:
        out.become(node, inputs=to_one_shape(node.inputs, out))


def _added_to_zeros(names: Sequence[str], out: Rewriter) -> list[str]:
    """The values, each plus a zero of every input: negative zeros, which keep even the sign of a zero."""
    number = BY_NAME[out.element_type(names[0])].number
    total = ""
    for name in (each for each in names if out.shape(each) != ()):
        never = out.emit("Less", [name, name], opset=7)
        zeros = out.emit("Neg", [out.emit("Cast", [never], opset=6, to=number)], opset=6)
        total = out.emit("Add", [total, zeros], opset=7) if total else zeros
    return [out.emit("Add", [name, total], opset=7) for name in names]


@adapter(("Max", "Min"), 12, 8)
def wide_integers_are_compared(node: Node, out: Rewriter) -> None:
    """The two of 64 bits, which no float holds, are chosen from pair by pair."""
    if out.element_type(node.inputs[0]) not in ("int64", "uint64"):
        require_types(node, out)
        out.become(node)
        return
    compare = "Greater" if node.op_type == "Max" else "Less"
    chosen, *rest = node.inputs
    for name in rest:
        chosen = out.emit("Where", [out.emit(compare, [chosen, name], opset=11), chosen, name], opset=11)
    out.emit("Identity", [chosen], node.outputs)


def _alike(node: Node, out: Rewriter) -> bool:
    if len(set(node.inputs)) == 1:
        return True
    shapes = {out.shape(name) for name in node.inputs}
    return len(shapes) == 1 and all(shape is not None and None not in shape for shape in shapes)
