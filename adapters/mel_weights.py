"""MelWeightMatrix: triangles over frequencies, evenly spaced on the mel scale; a constant before it came."""

from __future__ import annotations

import math

from opshift.adapters.node import Node, Tensor
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NUMBER

INPUTS = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")


@adapter("MelWeightMatrix", 17, 16)
def matrix_is_a_constant(node: Node, out: Rewriter) -> None:
    """All that it is made of has to be constant."""
    pairs = zip(node.inputs, INPUTS, strict=True)
    values = [out.require_constant(name, f"input {meaning}").values[0] for name, meaning in pairs]
    bins, length, rate, lower, upper = values
    element_type = BY_NUMBER[node.attribute("output_datatype", 1)].name
    edges = _edges(int(bins), int(length), int(rate), float(lower), float(upper))
    rows, columns = int(length) // 2 + 1, int(bins)
    of = int if "int" in element_type else float
    weights = tuple(of(_weight(row, *edges[at : at + 3])) for row in range(rows) for at in range(columns))
    value = Tensor(element_type, (rows, columns), weights)
    out.become(node, op_type="Identity", inputs=[out.tensor(value)], attributes={})


def _edges(bins: int, length: int, rate: int, lower: float, upper: float) -> list[int]:
    """The rows where the triangles begin, have their peaks, and end."""
    low, high = (2595 * math.log10(1 + edge / 700) for edge in (lower, upper))
    step = (high - low) / (bins + 2)
    tones = [700 * (10 ** ((low + step * at) / 2595) - 1) for at in range(bins + 2)]
    return [math.floor((length + 1) * tone / rate) for tone in tones]


def _weight(row: int, begin: int, peak: int, end: int) -> float:
    if row == peak:
        return 1.0
    if begin <= row < peak:
        return (row - begin) / (peak - begin)
    return (end - row) / (end - peak) if peak < row < end else 0.0
