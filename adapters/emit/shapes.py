"""Emit dimensions and shapes: constants for known dimensions, and nodes that compute unknown ones."""

import math
from collections.abc import Sequence

from opshift.adapters import Rewriter, Tensor
from opshift.adapters.emit.subgraphs import LoopBuilder, SubgraphBuilder
from opshift.model.element_types import round_to_float32

MAX_CONSTANT_ELEMENTS = 1 << 16
"""Maximum number of elements of an emitted constant; a larger constant would bloat the model."""

MAX_CONSTANT_DATA = 1 << 20
"""Maximum number of elements of an emitted constant with as many elements as the data of the node."""

ALLOWZERO_OPSET = 14
"""First opset in which Reshape has `allowzero`, which makes a 0 a size instead of a copied dimension."""

REDUCTION_OPSET = 11
"""Opset of emitted reductions of sizes, in which `axes` is an attribute."""

NON_ZERO_OPSET = 9
"""Opset that introduced NonZero, which lists indices; in older opsets, MaxPool, an RNN or a Loop does so."""

POOL_INDICES_OPSET = 8
"""First opset in which MaxPool returns the indices of the maxima."""

BLOCK_SIZE = 1 << 10
"""Number of indices in a block of `_count_in_blocks`, which lists up to 2**34 indices (128 GiB)."""

RNN_LIMIT = float(1 << 24)
"""Limit of the indices that an RNN lists in float, which represents integers up to 2**24 exactly."""

Dimension = int | str
"""A number if the dimension is known, else the name of an int64 tensor of shape (1,)."""

INT64_MAX = 2**63 - 1
"""Largest int64. A Slice with this `ends` reaches the end of a dimension; with this `starts`, its result is
empty."""

SLICE_END = 2**31 - 1
"""`ends` of a Slice up to the end of a dimension; larger than any rank and any realistic dimension."""


def index_column(count: str, out: Rewriter, trailing: int) -> str:
    """Emit the indices of `index_range` in the shape (count, 1, ..., 1), with `trailing` ones."""
    indices = index_range(count, out)
    shape = out.int64([-1, *[1] * trailing])
    last = out.emitted[-1].node
    if last.op_type == "Reshape" and last.outputs == (indices,):
        # Change the last Reshape, which flattens the indices, to emit the column at once.
        out.emitted[-1] = out.emitted[-1]._replace(node=last.with_(inputs=(last.inputs[0], shape)))
        return indices
    return out.emit("Reshape", [indices, shape], opset=5, domain="")


def index_range(count: str, out: Rewriter, *, is_compact: bool = False, is_long: bool = False) -> str:
    """Emit the 1-D int64 indices from 0 to `count - 1`; `count` is an int64 tensor of shape (1,).

    Below opset 8, options choose the emitted nodes. Times are for 10 and 100,000 indices in onnxruntime:
        default       an If that selects an RNN or a Loop    9 us and 27 ms
        `is_long`     two RNNs, with more nodes             40 us and 0.1 ms
        `is_compact`  a Loop, with the fewest nodes         60 us and 300 ms
    """
    if out.default_opset >= NON_ZERO_OPSET:
        ones = out.emit("ConstantOfShape", [count], value=Tensor("int64", (1,), (1,)), opset=9, domain="")
        found = out.emit("NonZero", [ones], opset=9, domain="")
        return out.emit("Reshape", [found, out.int64([-1])], opset=9, domain="")
    if out.default_opset >= POOL_INDICES_OPSET:
        return _count_with_pool(count, out)
    if is_compact:
        return _count_with_loop(count, out)
    if is_long:
        return _count_in_blocks(count, out)
    number = out.cast(count, "float")
    is_exact = out.emit("Less", [number, out.constant(RNN_LIMIT, "float")], opset=7, domain="")
    counted, listed = SubgraphBuilder(out), SubgraphBuilder(out)
    counted.output(_count_with_rnn(count, counted), "int64", (None,))
    listed.output(_count_with_loop(count, listed), "int64", (None,))
    return out.emit(
        "If", [is_exact], opset=1, domain="", then_branch=counted.graph(), else_branch=listed.graph()
    )


def _count_with_pool(count: str, out: Rewriter) -> str:
    """Emit the indices by a MaxPool with windows of one element, which returns indices of maxima."""
    # Pooling refuses empty dimensions: pool one element more, and remove the last index.
    shape = out.emit("Concat", [out.int64([1, 1]), count], opset=4, domain="", axis=0)
    longer = out.emit("Add", [shape, out.int64([0, 0, 1])], opset=7, domain="")
    zero = out.tensor(Tensor("float", (1, 1, 1), (0.0,)))
    zeros = out.emit("Expand", [zero, longer], opset=8, domain="")
    _, indices = out.emit_all("MaxPool", [zeros], 2, opset=8, domain="", kernel_shape=[1])
    kept = out.emit("Slice", [indices], opset=1, domain="", axes=[2], starts=[0], ends=[-1])
    return out.emit("Reshape", [kept, out.int64([-1])], opset=5, domain="")


def _count_in_blocks(count: str, out: Rewriter) -> str:
    """Emit the indices of all complete blocks, followed by the indices of the last block."""
    out = out.for_opset(7, domain="")
    # The last block may be empty: list one index more, and remove it: onnx.reference runs no empty RNN.
    size, one = out.int64([BLOCK_SIZE]), out.int64([1])
    blocks = out.emit("Div", [out.emit("Add", [count, size]), size])
    firsts = out.emit("Mul", [_count_with_rnn(blocks, out), size])
    column = out.emit("Unsqueeze", [_without_last(firsts, out)], axes=[1])
    complete = out.emit("Add", [column, out.int64(range(BLOCK_SIZE))])
    start = out.emit("Slice", [firsts], axes=[0], starts=[-1], ends=[SLICE_END])
    steps = out.emit("Add", [out.emit("Sub", [count, start]), one])
    last = out.emit("Add", [_without_last(_count_with_rnn(steps, out), out), start])
    return out.emit("Concat", [reshape(complete, (-1,), out), last], axis=0)


def _without_last(values: str, out: Rewriter) -> str:
    return out.emit("Slice", [values], axes=[0], starts=[0], ends=[-1])


def _count_with_rnn(count: str, out: Rewriter) -> str:
    """Emit the indices as states of an RNN that adds 1 in each step: a Loop takes about ten times as long."""
    one = out.tensor(Tensor("float", (1, 1, 1), (1.0,)))
    before = out.tensor(Tensor("float", (1, 1, 1), (-1.0,)))
    repeats = out.emit("Concat", [count, out.int64([1, 1])], opset=4, domain="", axis=0)
    sequence = out.emit("Tile", [one, repeats], opset=6, domain="")
    # The activation of the RNN is the identity.
    states = out.emit(
        "RNN",
        [sequence, one, one, "", "", before],
        opset=7,
        domain="",
        hidden_size=1,
        activations=["Affine"],
        activation_alpha=[1.0],
        activation_beta=[0.0],
    )
    return out.cast(out.emit("Reshape", [states, out.int64([-1])], opset=5, domain=""), "int64")


def _count_with_loop(count: str, out: Rewriter) -> str:
    body = LoopBuilder(out)
    # Scan outputs have the shape (1,), because onnx.reference stacks scalars to a wrong rank.
    body.output(body.emit("Unsqueeze", [body.iteration], opset=1, domain="", axes=[0]), "int64", (1,))
    return out.emit("Reshape", [*body.emit_loop(count, (), out), out.int64([-1])], opset=9, domain="")


def fits_float32(number: float) -> bool:
    """Return whether float32 represents a number exactly; True for NaN."""
    return math.isnan(number) or round_to_float32(number) == number


def broadcast_shape(names: Sequence[str], out: Rewriter) -> tuple[int, ...] | None:
    """Return the shape to which values broadcast as in NumPy, or `None` if a dimension is unknown."""
    shapes = [out.known_shape(name) for name in names]
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple(next((dim for dim in dims if dim != 1), 1) for dims in zip(*padded, strict=True))


def dimension(value: str, axis: int, out: Rewriter) -> Dimension:
    """Return one dimension of a value as a number, or emit nodes that compute an unknown dimension."""
    known = out.known_dimension(value, axis)
    return computed_dimension(value, axis, out) if known is None else known


def computed_dimension(value: str, axis: int, out: Rewriter) -> str:
    """Emit nodes that compute a dimension, for values of unknown shape such as emitted values."""
    return out.emit("Gather", [out.emit("Shape", [value]), out.int64([axis])], axis=0)


def is_nonempty(value: str, out: Rewriter) -> bool:
    """Return whether all dimensions of a value are known and nonzero."""
    shape = out.shape(value)
    return shape is not None and all(shape)


def product_of_dimensions(value: str, axes: Sequence[int], out: Rewriter) -> Dimension:
    """Return the product of dimensions, computed by nodes if one of them is unknown.

    A -1 in the shape of a Reshape cannot replace the product: Reshape cannot infer a size for empty data.
    """
    sizes = [out.known_dimension(value, axis) for axis in axes]
    known = [size for size in sizes if size is not None]
    if len(known) == len(sizes):
        return math.prod(known)
    sizes_name = out.emit("Gather", [out.emit("Shape", [value]), out.int64(axes)], axis=0)
    if len(axes) == 1:
        return sizes_name
    return out.emit("ReduceProd", [sizes_name], domain="", opset=REDUCTION_OPSET, axes=(0,), keepdims=1)


def divide_dimension(size: Dimension, divisor: int, out: Rewriter) -> Dimension:
    """Return the quotient of a dimension and a number, rounded down."""
    if isinstance(size, int):
        return size // divisor
    return size if divisor == 1 else out.emit("Div", [size, out.int64([divisor])])


def multiply_dimension(size: Dimension, factor: int, out: Rewriter) -> Dimension:
    """Return the product of a dimension and a number."""
    if isinstance(size, int):
        return size * factor
    return size if factor == 1 else out.emit("Mul", [size, out.int64([factor])])


def double_sizes(value: str, axes: Sequence[int], out: Rewriter) -> str:
    """Return the sizes of some dimensions as a double tensor of rank 1: a constant if all are known."""
    known = [size for size in (out.known_dimension(value, axis) for axis in axes) if size is not None]
    if len(known) == len(axes):
        return out.constant([float(size) for size in known], "double")
    return out.cast(out.emit("Gather", [out.emit("Shape", [value]), out.int64(axes)], axis=0), "double")


def add_dimensions(first: Dimension, second: Dimension, out: Rewriter) -> Dimension:
    """Return the sum of two dimensions."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    return out.emit("Add", [dimension_tensor(first, out), dimension_tensor(second, out)])


def dimension_tensor(size: Dimension, out: Rewriter) -> str:
    """Return the name of an int64 tensor of shape (1,) that holds a dimension."""
    return size if isinstance(size, str) else out.int64([size])


def shape_tensor(sizes: Sequence[Dimension], out: Rewriter) -> str:
    """Return the name of a 1-D int64 tensor of dimensions: a constant if all are known."""
    numbers = tuple(size for size in sizes if isinstance(size, int))
    if len(numbers) == len(sizes):
        return out.int64(numbers)
    return out.emit("Concat", [dimension_tensor(size, out) for size in sizes], axis=0)


def reshape(
    value: str,
    sizes: Sequence[Dimension],
    out: Rewriter,
    outputs: int | Sequence[str] = 1,
    *,
    opset: int | None = None,
) -> str:
    """Emit a Reshape; as in Reshape, 0 copies a dimension of the input and one -1 is inferred."""
    return out.emit("Reshape", [value, shape_tensor(sizes, out)], outputs, opset=opset)


def reshape_with_zeros(
    value: str, sizes: Sequence[Dimension], out: Rewriter, outputs: int | Sequence[str] = 1
) -> str:
    """Emit a Reshape in which a size of 0 is an empty dimension; in `reshape`, 0 copies a dimension."""
    known = [size if isinstance(size, int) and size else -1 for size in sizes]
    if known.count(-1) > 1:
        shape = shape_tensor(sizes, out)
        return out.emit("Reshape", [value, shape], outputs, domain="", opset=ALLOWZERO_OPSET, allowzero=1)
    # Reshape infers one size, even a 0, if no other size is 0.
    return reshape(value, known, out, outputs)


def merge_dimensions(
    value: str, groups: Sequence[Sequence[int]], like: str, out: Rewriter, outputs: int | Sequence[str] = 1
) -> str:
    """Emit a Reshape that merges each group of axes of `value`, which has the shape of `like`, into one.

    An empty group becomes a dimension of 1.
    """
    known = [[out.known_dimension(like, axis) or 0 for axis in group] for group in groups]
    sizes: list[Dimension] = [math.prod(group) for group in known]
    if sizes.count(0) > 1:
        sizes = [product_of_dimensions(like, group, out) for group in groups]
    return reshape_with_zeros(value, sizes, out, outputs)


def reshape_like(value: str, like: str, shape: str, out: Rewriter, outputs: int | Sequence[str] = 1) -> str:
    """Emit a Reshape of a value to the shape of `like`, which the tensor `shape` holds; sizes may be 0."""
    if is_nonempty(like, out):
        return out.emit("Reshape", [value, shape], outputs, domain="")
    return out.emit("Reshape", [value, shape], outputs, domain="", opset=ALLOWZERO_OPSET, allowzero=1)
