"""MelWeightMatrix before opset 17, as a constant: triangles over frequencies, spaced on the mel scale."""

from __future__ import annotations

import math

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NUMBER

INPUTS = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
"""Names of the inputs in the specification, for messages."""


@adapter("MelWeightMatrix", 17, 16)
def matrix_is_a_constant(node: Node, out: Rewriter) -> None:
    """Replace by a constant; all inputs must be constant."""
    pairs = zip(node.inputs, INPUTS, strict=True)
    values = [out.require_constant(name, f"input {meaning}").values[0] for name, meaning in pairs]
    bins, length, rate, lower, upper = values
    element_type = BY_NUMBER[node.attribute("output_datatype", 1)].name
    edges = _edges(int(bins), int(length), int(rate), float(lower), float(upper))
    rows, columns = int(length) // 2 + 1, int(bins)
    number_type = int if "int" in element_type else float
    weights = tuple(
        number_type(_triangle_weight(row, *edges[column : column + 3]))
        for row in range(rows)
        for column in range(columns)
    )
    value = Tensor(element_type, (rows, columns), weights)
    out.become(node, op_type="Identity", inputs=[out.tensor(value)], attributes={})


def _edges(bins: int, length: int, rate: int, lower: float, upper: float) -> list[int]:
    """Return the rows at which the triangles start, peak and end.

    The mel scale is `2595 * log10(1 + hertz / 700)`.
    """
    low, high = (2595 * math.log10(1 + edge / 700) for edge in (lower, upper))
    step = (high - low) / (bins + 2)
    frequencies = [700 * (10 ** ((low + step * index) / 2595) - 1) for index in range(bins + 2)]
    return [math.floor((length + 1) * frequency / rate) for frequency in frequencies]


def _triangle_weight(row: int, start: int, peak: int, end: int) -> float:
    if row == peak:
        return 1.0
    if start <= row < peak:
        return (row - start) / (peak - start)
    return (end - row) / (end - peak) if peak < row < end else 0.0
