"""HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix before opset 17, as cosines and constants."""

import math

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.cast import FLOAT_TYPES
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS, index_range, reshape
from opshift.model.element_types import BY_NUMBER, round_to_float32

CosineWeights = tuple[float, ...]
"""Coefficients of 1, the cosine of one turn over the window, and the cosine of two turns."""

HAMMING_COEFFICIENT = 25 / 46
"""Coefficient of the Hamming window in the specification."""

COSINE_WEIGHTS: dict[str, CosineWeights] = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (HAMMING_COEFFICIENT, HAMMING_COEFFICIENT - 1),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""Coefficients of each operator."""

MEL_INPUT_NAMES = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
"""Names of the inputs in the specification, for messages."""


@adapter(tuple(COSINE_WEIGHTS), 17, 16)
def expand_window(node: Node, out: Rewriter) -> None:
    """Replace by a constant if the size is constant, otherwise by a computed sum of cosines.

    Integer output types truncate the values: the last bit of a float decides between 0 and 1.
    """
    element_type = BY_NUMBER[node.attribute("output_datatype", 1)].name
    weights, periodic = COSINE_WEIGHTS[node.op_type], bool(node.attribute("periodic", 1))
    size = out.constant_value(node.inputs[0])
    if size is not None and size.scalar <= MAX_CONSTANT_ELEMENTS:
        values = _window_values(int(size.scalar), weights, periodic)
        if element_type not in FLOAT_TYPES:
            # Round to float first, like the computed window, because the last bit decides.
            values = tuple(int(round_to_float32(value)) for value in values)
        value = Tensor(element_type, (len(values),), values)
        out.replace(node, op_type="Constant", inputs=[], attributes={"value": value})
        return
    window = _emit_window(node.inputs[0], weights, periodic, out)
    if element_type not in FLOAT_TYPES:
        window = out.cast(window, "float")
    out.cast(window, element_type, node.outputs)


def _window_values(size: int, weights: CosineWeights, periodic: bool) -> tuple[float, ...]:
    period = size if periodic else size - 1
    # A symmetric window of one element divides 0 by 0, which is NaN at run time as well.
    angles = (2 * math.pi * index / period if period else math.nan for index in range(size))
    return tuple(
        sum(weight * math.cos(order * angle) for order, weight in enumerate(weights)) for angle in angles
    )


def _emit_window(size: str, weights: CosineWeights, periodic: bool, out: Rewriter) -> str:
    """Return the window, computed in double."""
    count = reshape(out.cast(size, "int64"), (1,), out)
    period = Expression(out.cast(count, "double"), "double", out)
    if not periodic:
        period = period - 1
    position = Expression(out.cast(index_range(count, out), "double"), "double", out)
    angle = position * (2 * math.pi) / period
    total = angle.constant(weights[0])
    for order, weight in enumerate(weights[1:], 1):
        multiple = angle if order == 1 else angle * order
        total = multiple.apply("Cos") * weight + total
    return total.name


@adapter("MelWeightMatrix", 17, 16)
def compute_mel_weight_matrix(node: Node, out: Rewriter) -> None:
    """Replace by a constant; all inputs must be constant."""
    pairs = zip(node.inputs, MEL_INPUT_NAMES, strict=True)
    values = [out.require_constant(name, f"input {meaning}").values[0] for name, meaning in pairs]
    bins, length, rate, lower, upper = values
    element_type = BY_NUMBER[node.attribute("output_datatype", 1)].name
    rows, columns = int(length) // 2 + 1, int(bins)
    out.require_elements(max(rows, 1), columns)
    edges = _edges(int(bins), int(length), int(rate), float(lower), float(upper))
    number_type = int if "int" in element_type else float
    weights = tuple(
        number_type(_triangle_weight(row, *edges[column : column + 3]))
        for row in range(rows)
        for column in range(columns)
    )
    value = Tensor(element_type, (rows, columns), weights)
    out.replace(node, op_type="Identity", inputs=[out.tensor(value)], attributes={})


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
