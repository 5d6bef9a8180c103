"""HannWindow, HammingWindow and BlackmanWindow: sums of cosines over the window's length."""

from __future__ import annotations

import math

from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import LONGEST, as_float, positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME, BY_NUMBER

Weights = tuple[float, ...]
"""What 1, the cosine of one turn over the window, and that of two turns are multiplied by."""
HAMMING = 25 / 46
WEIGHTS: dict[str, Weights] = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (HAMMING, HAMMING - 1),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
FLOATS = ("float", "double", "float16", "bfloat16")


@adapter(tuple(WEIGHTS), 17, 16)
def window_is_a_sum_of_cosines(node: Node, out: Rewriter) -> None:
    """A constant where the size is; else the cosines of as many angles.

    Whether a whole number is 0 or 1 hangs on the last bit of a float.
    """
    element_type = BY_NUMBER[node.attribute("output_datatype", 1)].name
    weights, periodic = WEIGHTS[node.op_type], bool(node.attribute("periodic", 1))
    size = out.constant_value(node.inputs[0])
    if size is not None and size.scalar <= LONGEST:
        values = _window(int(size.scalar), weights, periodic)
        if element_type not in FLOATS:
            values = tuple(int(as_float(value)) for value in values)
        value = Tensor(element_type, (len(values),), values)
        out.become(node, op_type="Constant", inputs=[], attributes={"value": value})
        return
    window = _computed(node.inputs[0], weights, periodic, out)
    if element_type not in FLOATS:
        window = out.emit("Cast", [window], to=BY_NAME["float"].number)
    out.emit("Cast", [window], node.outputs, to=BY_NAME[element_type].number)


def _window(size: int, weights: Weights, periodic: bool) -> tuple[float, ...]:
    turn = size if periodic else size - 1
    angles = (2 * math.pi * index / turn if turn else math.nan for index in range(size))
    return tuple(
        sum(weight * math.cos(order * angle) for order, weight in enumerate(weights)) for angle in angles
    )


def _computed(size: str, weights: Weights, periodic: bool, out: Rewriter) -> str:
    """The window in double precision."""
    double = BY_NAME["double"].number
    count = out.emit("Cast", [size], to=BY_NAME["int64"].number)
    count = out.emit("Reshape", [count, out.constant([1], "int64")])
    turn = out.emit("Cast", [count], to=double)
    if not periodic:
        turn = out.emit("Sub", [turn, out.constant(1.0, "double")])
    position = out.emit("Cast", [positions_below(count, out)], to=double)
    angle = out.emit("Div", [out.emit("Mul", [position, out.constant(2 * math.pi, "double")]), turn])
    total = out.constant(weights[0], "double")
    for order, weight in enumerate(weights[1:], 1):
        multiple = angle if order == 1 else out.emit("Mul", [angle, out.constant(float(order), "double")])
        wave = out.emit("Mul", [out.emit("Cos", [multiple]), out.constant(weight, "double")])
        total = out.emit("Add", [wave, total])
    return total
