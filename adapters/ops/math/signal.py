"""Signal processing: DFT, STFT, HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix.

`axis` of DFT is an input since opset 20. Before opset 17, DFT is rewritten as MatMul with a constant matrix,
and windows as constants or sums of cosines.
"""

import math
from typing import NamedTuple

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import FLOAT_TYPES, Expression, cast, cast_between
from opshift.adapters.emit.indices import add_to_negative_indices
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS, index_range, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder
from opshift.model.element_types import BY_NUMBER, round_to_float32


class _Transform(NamedTuple):
    """DFT of `length` along an axis of `size` elements; `input_parts` is 1 for real, 2 for complex inputs."""

    size: int
    input_parts: int
    length: int
    is_inverse: bool
    is_onesided: bool

    @property
    def is_real(self) -> bool:
        """Whether the transform restores a real signal from half of its spectrum."""
        return self.is_inverse and self.is_onesided

    @property
    def input_count(self) -> int:
        """Number of elements along the axis that the transform reads, without zeros that extend the data."""
        return min(self.size, self.length // 2 + 1 if self.is_real else self.length)

    @property
    def output_count(self) -> int:
        """Number of results along the axis: `length // 2 + 1` if forward and one-sided, else `length`."""
        return self.length // 2 + 1 if self.is_onesided and not self.is_inverse else self.length

    def matrix(self, out: Rewriter) -> Tensor:
        """Return the matrix: a row for each real or imaginary input part, a column for each output part.

        Raises:
            CannotConvert: the matrix is too large.
        """
        output_parts = 1 if self.is_real else 2
        dims = self.input_count * self.input_parts, self.output_count * output_parts
        out.require_elements(self.length)
        out.require_elements(*dims)
        turn = 2 * math.pi / self.length if self.length else 0.0
        angles = [turn * step for step in range(self.length)]
        cosines, sines = list(map(math.cos, angles)), list(map(math.sin, angles))
        rows: list[float] = []
        for index in range(self.input_count):
            weight = self._weight(index)
            # Cosines and sines repeat after `length` steps, so one table serves all rows.
            steps = [index * output_index % self.length for output_index in range(self.output_count)]
            real = [weight * cosines[step] for step in steps]
            imaginary = [(weight if self.is_inverse else -weight) * sines[step] for step in steps]
            rows += real if output_parts == 1 else _interleave(real, imaginary)
            if self.input_parts == 2:
                opposite = [-each for each in imaginary]
                rows += opposite if output_parts == 1 else _interleave(opposite, real)
        return Tensor("float", dims, tuple(rows))

    def _weight(self, index: int) -> float:
        """Return the factor of an input: 1, or 1 / length if inverse, doubled if its conjugate is omitted."""
        if not self.is_inverse:
            return 1.0
        is_mirrored = self.is_real and index > 0 and 2 * index < self.length
        return (2.0 if is_mirrored else 1.0) / self.length


@adapter("DFT", 17, 20)
def move_axis_to_input(node: Node, out: Rewriter) -> None:
    """Move `axis` to an input, even if absent, because version 20 changed the default from 1 to -2."""
    axis = out.int64(node.attribute("axis", 1))
    out.replace(node, inputs=[node.inputs[0], node.input(1), axis], attributes=node.without("axis"))


@adapter("DFT", 20, 17)
def move_axis_to_attribute(node: Node, out: Rewriter) -> None:
    """Move the axis to an attribute; for a computed axis, emit one DFT for each possible value."""
    inputs = node.inputs[:2] if node.input(1) else node.inputs[:1]
    axis = out.constant_value(node.input(2))
    if axis is None and node.input(2):
        computed_axis = out.cast(node.inputs[2], "int64")
        rank = out.int64(out.rank(inputs[0]))
        axis_index = add_to_negative_indices(computed_axis, rank, "int64", out)
        _emit_loops(axis_index, node.with_(inputs=inputs), out)
    else:
        constant_axis = -2 if axis is None else int(axis.scalar)
        out.emit("DFT", inputs, node.outputs, **{**node.attributes, "axis": constant_axis})


@adapter("DFT", 17, 16)
def expand_dft(node: Node, out: Rewriter) -> None:
    """Multiply by a constant matrix of cosines and sines.

    The axis is moved next to the dimension of real and imaginary parts, and both are flattened into one.
    """
    data = node.inputs[0]
    rank = out.rank(data)
    axis = node.attribute("axis", 1) % rank
    transform = _transform_of(node, axis, out)
    matrix = transform.matrix(out)
    element_type = out.element_type(data)
    compute_type = "double" if element_type == "double" else "float"
    order = [*(dimension for dimension in range(rank - 1) if dimension != axis), axis, rank - 1]
    value = out.emit("Transpose", [cast_between(data, element_type, compute_type, out)], perm=order)
    # Inputs beyond the length of the transform are ignored.
    if transform.input_count < transform.size:
        bounds = [out.int64([each]) for each in (0, transform.input_count, rank - 2)]
        value = out.emit("Slice", [value, *bounds])
    # In Reshape, 0 copies a dimension, whose size need not be known.
    copied = [0] * (rank - 2)
    value = reshape(value, (*copied, matrix.dims[0]), out)
    value = out.emit("MatMul", [value, out.tensor(matrix._replace(element_type=compute_type))])
    shape = out.int64([*copied, transform.output_count, matrix.dims[1] // transform.output_count])
    value = out.emit("Reshape", [value, shape])
    inverse_order = [order.index(dimension) for dimension in range(rank)]
    outputs = node.outputs if compute_type == element_type else 1
    result = out.emit("Transpose", [value], outputs, perm=inverse_order)
    if compute_type != element_type:
        cast(result, element_type, out, node.outputs)


def _emit_loops(axis: str, node: Node, out: Rewriter) -> None:
    """Emit a Loop for each possible axis, with one iteration if the axis has this value, else with none.

    A Loop may change the shape of a loop-carried value. An If cannot replace the Loop: before version 11 the
    outputs of its branches must have equal shapes.
    """
    value, element_type = node.inputs[0], out.element_type(node.inputs[0])
    candidates = _possible_axes(node, out)
    for candidate in candidates:
        is_axis = out.emit("Equal", [axis, out.int64(candidate)])
        body = LoopBuilder(out)
        body.input(element_type)
        result = out.fresh("dft")
        body.emit("DFT", node.inputs, [result], **{**node.attributes, "axis": candidate})
        body.output(result, element_type)
        outputs = node.outputs if candidate == candidates[-1] else 1
        (value,) = body.emit_loop(out.cast(is_axis, "int64"), [value], out, outputs)


def _possible_axes(node: Node, out: Rewriter) -> list[int]:
    """Return the values that a computed axis can have.

    Without `dft_length`, the inverse of a one-sided spectrum of one element has length 0: exclude this axis.
    """
    shape = out.shape(node.inputs[0]) or ()
    is_half_spectrum = node.attribute("inverse", 0) and node.attribute("onesided", 0) and not node.input(1)
    return [axis for axis, size in enumerate(shape[:-1]) if not (is_half_spectrum and size == 1)]


def _transform_of(node: Node, axis: int, out: Rewriter) -> _Transform:
    data = node.inputs[0]
    size, parts = (out.dimension(data, each) for each in (axis, out.rank(data) - 1))
    is_inverse, is_onesided = (bool(node.attribute(name, 0)) for name in ("inverse", "onesided"))
    length = 2 * (size - 1) if is_inverse and is_onesided else size
    if node.input(1):
        length = int(out.require_constant(node.input(1), "input dft_length").values[0])
    return _Transform(size, parts, length, is_inverse, is_onesided)


@adapter("STFT", 17, 16)
def expand_stft(node: Node, out: Rewriter) -> None:
    """Gather the frames, multiply them by the window, and transform them by DFT."""
    signal, window = node.inputs[0], node.input(2)
    if node.input(3):
        size = int(out.require_constant(node.input(3), "input frame_length").values[0])
    else:
        size = out.dimension(window, 0) if window else out.dimension(signal, 1)
    positions = _frame_positions(node.inputs[1], signal, size, out)
    if out.rank(signal) == 2:
        signal = out.emit("Unsqueeze", [signal, out.int64([2])])
    frames = out.emit("Gather", [signal, positions], axis=1)
    if window:
        column = reshape(window, (-1, 1), out)
        frames = out.emit("Mul", [frames, column])
    onesided = node.attribute("onesided", 1)
    out.emit("DFT", [frames], node.outputs, opset=17, axis=2, onesided=onesided)


def _frame_positions(step: str, signal: str, size: int, out: Rewriter) -> str:
    """Return the positions of the elements of each frame in the signal."""
    constant_step = out.constant_value(step)
    length = out.known_dimension(signal, 1)
    if constant_step is not None and length is not None:
        starts = range(0, length - size + 1, int(constant_step.values[0]))
        out.require_elements(len(starts), size)
        positions = tuple(start + offset for start in starts for offset in range(size))
        return out.tensor(Tensor("int64", (len(starts), size), positions))
    end = _start_limit(signal, length, size, out)
    scalar_step = reshape(cast(step, "int64", out), (), out)
    start_list = out.emit("Range", [out.int64(0), end, scalar_step])
    column = reshape(start_list, (-1, 1), out)
    return out.emit("Add", [column, out.int64(range(size))])


def _start_limit(signal: str, length: int | None, size: int, out: Rewriter) -> str:
    """Return the exclusive upper limit of the positions at which frames start."""
    if length is not None:
        return out.int64(length - size + 1)
    computed_length = out.emit("Gather", [out.emit("Shape", [signal]), out.int64(1)], axis=0)
    return out.emit("Sub", [computed_length, out.int64(size - 1)])


def _interleave(first: list[float], second: list[float]) -> list[float]:
    return [value for pair in zip(first, second, strict=True) for value in pair]


CosineWeights = tuple[float, ...]
"""Coefficients (a, b) or (a, b, c) of a window, a + b * cos(x) + c * cos(2 x), with x from 0 to 2 pi."""

HAMMING_COEFFICIENT = 25 / 46
"""Coefficient of the Hamming window in the specification."""

COSINE_WEIGHTS: dict[str, CosineWeights] = {
    "HannWindow": (0.5, -0.5),
    "HammingWindow": (HAMMING_COEFFICIENT, HAMMING_COEFFICIENT - 1),
    "BlackmanWindow": (0.42, -0.5, 0.08),
}
"""Coefficients of the windows, by operator."""

MEL_INPUT_NAMES = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
"""Names of the inputs of MelWeightMatrix in the specification, for messages."""


@adapter(tuple(COSINE_WEIGHTS), 17, 16)
def expand_window(node: Node, out: Rewriter) -> None:
    """Replace by a constant if the size is constant and small, otherwise by a computed sum of cosines.

    Integer output types truncate the values, so the last bit of a float may decide between 0 and 1.
    """
    element_type = BY_NUMBER[node.attribute("output_datatype", 1)].name
    weights, periodic = COSINE_WEIGHTS[node.op_type], bool(node.attribute("periodic", 1))
    size = out.constant_value(node.inputs[0])
    if size is not None and size.scalar <= MAX_CONSTANT_ELEMENTS:
        values = _window_values(int(size.scalar), weights, periodic)
        if element_type not in FLOAT_TYPES:
            # Round to float before the truncation, like the computed window: the last bit may decide.
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
    # A symmetric window of one element is NaN, as at run time, where 0 is divided by 0.
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
    edges = _mel_band_edges(int(bins), int(length), int(rate), float(lower), float(upper))
    number_type = int if "int" in element_type else float
    weights = [number_type(0)] * (rows * columns)
    for column in range(columns):
        start, peak, end = edges[column : column + 3]
        for row in range(max(min(start, peak), 0), min(max(peak, end) + 1, rows)):
            weights[row * columns + column] = number_type(_triangle_weight(row, start, peak, end))
    value = Tensor(element_type, (rows, columns), tuple(weights))
    out.replace(node, op_type="Identity", inputs=[out.tensor(value)], attributes={})


def _mel_band_edges(bins: int, length: int, rate: int, lower: float, upper: float) -> list[int]:
    """Return `bins + 2` row numbers; triangle i starts, peaks and ends at elements i, i + 1 and i + 2.

    The numbers are evenly spaced on the mel scale, `2595 * log10(1 + hertz / 700)`.
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
