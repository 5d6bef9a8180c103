"""Output shapes of matrix products, Einsum and Fourier transforms."""

from collections import defaultdict

from opshift.model.types import Shape
from opshift.registry.shapes.dims import broadcast, normalize_axis, of_rank, unknown, with_dims
from opshift.registry.shapes.einsum import ELLIPSIS, parse_equation
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext
from opshift.registry.shapes.sizes import floor_quotient


@rule("matmul", rank_inputs=(0, 1))
def matmul(node: ShapeContext) -> Shapes:
    """Infer the product of the first two inputs, as in NumPy."""
    return [matmul_shape(node.shape(0), node.shape(1))]


@rule("quantized_matmul")
def quantized_matmul(node: ShapeContext) -> Shapes:
    """Infer the product of inputs 0 and 3: inputs 1 and 2 are the scale and zero point of input 0."""
    return [matmul_shape(node.shape(0), node.shape(3))]


@rule("gemm", rank=2)
def gemm(node: ShapeContext) -> Shapes:
    """Infer the rows of the first input and the columns of the second, after optional transposition."""
    first, second = of_rank(node.shape(0), 2), of_rank(node.shape(1), 2)
    rows = first[1 if node.integer("transA", 0) else 0]
    columns = second[0 if node.integer("transB", 0) else 1]
    return [(rows, columns)]


def matmul_shape(first: Shape | None, second: Shape | None) -> Shape | None:
    """Return the shape of a matrix product, as in NumPy, or `None`; 1-D operands add no dimension."""
    if not first or not second:
        return None
    batch = broadcast([first[:-2], second[:-2]]) or ()
    columns = second[-1:] if len(second) > 1 else ()
    return (*batch, *first[-2:-1], *columns)


@rule("einsum")
def einsum(node: ShapeContext) -> Shapes:
    """Infer one dimension per label of the output term, and the dimensions of the ellipsis."""
    equation = parse_equation(node.string("equation"))
    shapes = [node.shape(position) for position in range(len(node.inputs))]
    if equation.problem([None if shape is None else len(shape) for shape in shapes]):
        return [None]
    labels: defaultdict[str, list[Shape | None]] = defaultdict(list)
    ellipsis_shapes: list[Shape | None] = []
    for term, shape in zip(equation.operands, shapes, strict=True):
        _bind_labels(term, shape, labels, ellipsis_shapes)
    before, dots, after = equation.result.partition(ELLIPSIS)
    middle = broadcast(ellipsis_shapes) if dots else ()
    if middle is None:
        return [None]
    # Broadcast the sizes of a label: it may have size 1 in one term and another size in other terms.
    sizes = {label: of_rank(broadcast(dims), 1)[0] for label, dims in labels.items()}
    return [(*map(sizes.get, before), *middle, *map(sizes.get, after))]


def _bind_labels(
    term: str,
    shape: Shape | None,
    labels: defaultdict[str, list[Shape | None]],
    ellipsis_shapes: list[Shape | None],
) -> None:
    """Add the dimension of each label to `labels` as a 1-D shape, and the ellipsis to `ellipsis_shapes`."""
    before, dots, after = term.partition(ELLIPSIS)
    end = 0 if shape is None else len(shape) - len(after)
    if dots:
        ellipsis_shapes.append(None if shape is None else shape[len(before) : end])
    dims = unknown(len(before) + len(after)) if shape is None else shape[: len(before)] + shape[end:]
    for label, dim in zip(before + after, dims, strict=True):
        labels[label].append((dim,))


@data_rule("dft")
def dft(node: ShapeContext, data: Shape) -> Shapes:
    """Set the size of the axis to the length n of the transform, or n // 2 + 1 for a one-sided spectrum.

    The last dimension is 1 for real and 2 for complex results.
    """
    if not data:
        return [None]
    onesided = node.integer("onesided", 0)
    real = bool(onesided and node.integer("inverse", 0))
    last = len(data) - 1
    # Since DFT-20, the axis is an input.
    declared = node.constant_integer(2) if node.has_input(2) else node.integer("axis", -2)
    axis = normalize_axis(declared, len(data))
    if axis is None or axis == last:
        return [(*unknown(last), 1 if real else 2)]
    size = _transform_length(node, data[axis], real)
    if onesided and not real and size is not None:
        size = floor_quotient(size, 2) + 1
    return [with_dims(data, {axis: size, last: 1 if real else 2})]


@rule("stft")
def stft(node: ShapeContext) -> Shapes:
    """Infer batch, frames, frequency bins, and 2 for the real and the imaginary part."""
    batch, signal, _ = of_rank(node.shape(0), 3)
    frame, step = _frame_length(node, signal), node.constant_integer(1)
    if frame is None:
        return [(batch, None, None, 2)]
    frames = None if signal is None or not step or step < 0 else floor_quotient(signal - frame, step) + 1
    bins = floor_quotient(frame, 2) + 1 if node.integer("onesided", 1) else frame
    return [(batch, frames, bins, 2)]


def _transform_length(node: ShapeContext, dim: int | None, real: bool) -> int | None:
    """Return `dft_length`, or by default the axis length n; for a one-sided inverse (`real`), 2 * (n - 1)."""
    if node.has_input(1):
        return node.constant_integer(1)
    return dim if dim is None or not real else 2 * (dim - 1)


def _frame_length(node: ShapeContext, signal: int | None) -> int | None:
    """Return `frame_length`, or else the length of the window, or else of the signal; `None` if unknown."""
    declared, shape = node.constant_integer(3), node.shape(2)
    if declared is not None:
        return declared
    if shape is not None:
        return of_rank(shape, 1)[0]
    return None if node.has_input(2) or node.has_input(3) else signal
