"""HannWindow, HammingWindow and BlackmanWindow before opset 17, as sums of cosines."""

from __future__ import annotations

import math

from opshift.adapters.node import Node, Tensor
from opshift.adapters.ranges import LONGEST, as_float, positions_below
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME, BY_NUMBER

Weights = tuple[float, ...]
"""Coefficients of 1, the cosine of one turn over the window, and the cosine of two turns."""
HAMMING = 25 / 46
"""Coefficient of the Hamming window in the specification."""
WEIGHTS: dict[str, Weights] = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (HAMMING, HAMMING - 1),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""Coefficients of each operator."""
FLOATS = ("float", "double", "float16", "bfloat16")
"""Output types that are not truncated to integers."""


@adapter(tuple(WEIGHTS), 17, 16)
def window_is_a_sum_of_cosines(node: Node, out: Rewriter) -> None:
    """Replace by a constant if the size is constant, otherwise by a computed sum of cosines.

    Integer output types truncate the values: the last bit of a float decides between 0 and 1.
    """
    element_type = BY_NUMBER[node.attribute("output_datatype", 1)].name
    weights, periodic = WEIGHTS[node.op_type], bool(node.attribute("periodic", 1))
    size = out.constant_value(node.inputs[0])
    if size is not None and size.scalar <= LONGEST:
        values = _window_values(int(size.scalar), weights, periodic)
        if element_type not in FLOATS:
            # Round to float first, like the computed window, because the last bit decides.
            values = tuple(int(as_float(value)) for value in values)
        value = Tensor(element_type, (len(values),), values)
        out.become(node, op_type="Constant", inputs=[], attributes={"value": value})
        return
    window = _emit_window(node.inputs[0], weights, periodic, out)
    if element_type not in FLOATS:
        window = out.emit("Cast", [window], to=BY_NAME["float"].number)
    out.emit("Cast", [window], node.outputs, to=BY_NAME[element_type].number)


def _window_values(size: int, weights: Weights, periodic: bool) -> tuple[float, ...]:
    period = size if periodic else size - 1
    # A symmetric window of one element divides 0 by 0, which is NaN at run time as well.
    angles = (2 * math.pi * index / period if period else math.nan for index in range(size))
    return tuple(
        sum(weight * math.cos(order * angle) for order, weight in enumerate(weights)) for angle in angles
    )


def _emit_window(size: str, weights: Weights, periodic: bool, out: Rewriter) -> str:
    """Return the window, computed in double."""
    double = BY_NAME["double"].number
    count = out.emit("Cast", [size], to=BY_NAME["int64"].number)
    count = out.emit("Reshape", [count, out.constant([1], "int64")])
    period = out.emit("Cast", [count], to=double)
    if not periodic:
        period = out.emit("Sub", [period, out.constant(1.0, "double")])
    position = out.emit("Cast", [positions_below(count, out)], to=double)
    angle = out.emit("Div", [out.emit("Mul", [position, out.constant(2 * math.pi, "double")]), period])
    total = out.constant(weights[0], "double")
    for order, weight in enumerate(weights[1:], 1):
        multiple = angle if order == 1 else out.emit("Mul", [angle, out.constant(float(order), "double")])
        wave = out.emit("Mul", [out.emit("Cos", [multiple]), out.constant(weight, "double")])
        total = out.emit("Add", [wave, total])
    return total
