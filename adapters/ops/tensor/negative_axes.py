"""Adapters that make axes and indices nonnegative: operators allow negative ones only since opset 11."""

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.indices import (
    INDICES_OPSET,
    UNSIGNED_INTEGERS,
    add_to_negative_indices,
    is_negative,
    nonnegative_axis,
    nonnegative_indices,
)
from opshift.adapters.emit.shapes import reshape

REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip


@adapter(("ArgMax", "ArgMin", "Softmax", "LogSoftmax", "Hardmax"), 11, 1)
@adapter("Split", 11, 2)
@adapter("Concat", 11, 4)
@adapter(("Compress", "Flatten"), 11, 9)
def make_axis_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the rank to a negative `axis`."""
    axis = node.attribute("axis")
    if axis is None or axis >= 0:
        out.replace(node)
    else:
        axis = nonnegative_axis(axis, node.inputs[0], out)
        out.replace(node, attributes={**node.attributes, "axis": axis})


@adapter((*REDUCTIONS, "Squeeze", "Unsqueeze"), 11, 1)
def make_axes_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the rank (for Unsqueeze that of the output) to negative `axes`, and sort the axes.

    Squeeze and Unsqueeze of the last axes become Reshape if the rank is unknown.
    """
    axes = node.attribute("axes") or ()
    if all(axis >= 0 for axis in axes):
        out.replace(node)
        return
    is_reshape = node.op_type in ("Squeeze", "Unsqueeze") and sorted(axes) == list(range(-len(axes), 0))
    if is_reshape and out.known_rank(node.inputs[0]) is None:
        _reshape_last_axes(node, len(axes), out)
        return
    rank = out.rank(node.inputs[0]) + (len(axes) if node.op_type == "Unsqueeze" else 0)
    if node.op_type in REDUCTIONS:
        # Declare the shape: onnxruntime fuses a normalization only if it knows that the axes are last.
        out.workspace.declare_shape(node.inputs[0], rank)
    axes = sorted(axis + rank if axis < 0 else axis for axis in axes)
    out.replace(node, attributes={**node.attributes, "axes": axes})


def _reshape_last_axes(node: Node, count: int, out: Rewriter) -> None:
    """Add or remove the last `count` dimensions by Reshape; a 0 in the shape copies a 0."""
    out = out.for_opset(INDICES_OPSET)
    shape = out.emit("Shape", [node.inputs[0]])
    if node.op_type == "Unsqueeze":
        shape = out.emit("Concat", [shape, out.int64([1] * count)], axis=0)
    else:
        shape = out.emit("Slice", [shape], opset=9, axes=[0], starts=[0], ends=[-count])
    out.emit("Reshape", [node.inputs[0], shape], node.outputs)


@adapter("Gather", 11, 1)
def make_gather_indices_nonnegative(node: Node, out: Rewriter) -> None:
    """Add the size of the dimension to negative indices."""
    data, indices = node.inputs
    indices = nonnegative_indices(indices, data, node.attribute("axis", 0), out)
    out.replace(node, inputs=[data, indices])


@adapter("Scatter", 11, 9)
@adapter("ScatterElements", 11, 10)
def make_scatter_indices_nonnegative(node: Node, out: Rewriter) -> None:
    """Emit Scatter, the former name of ScatterElements, with the size added to negative indices."""
    data, indices, updates = node.inputs
    indices = nonnegative_indices(indices, data, node.attribute("axis", 0), out)
    out.replace(node, op_type="Scatter", inputs=[data, indices, updates], opset=INDICES_OPSET)


@adapter("OneHot", 11, 9)
def make_one_hot_indices_nonnegative(node: Node, out: Rewriter) -> None:
    """Add `depth` to negative indices; indices below `-depth` remain out of range."""
    indices, depth, values = node.inputs
    axis = node.attribute("axis", -1)
    if axis < -1:
        # Opset 9 allows only -1 as a negative axis; the output has one more dimension than the indices.
        axis += out.rank(indices) + 1
    if out.element_type(indices) not in UNSIGNED_INTEGERS:
        indices, depth = _nonnegative_classes(indices, depth, out)
    out.replace(node, inputs=[indices, depth, values], attributes={"axis": axis})


def _nonnegative_classes(indices: str, depth: str, out: Rewriter) -> tuple[str, str]:
    """Return nonnegative indices and the depth; an index below `-depth` becomes `depth`: out of range."""
    known_indices, known_depth = out.constant_value(indices), out.constant_value(depth)
    # OneHot truncates fractions, so indices between -1 and 0 mean 0.
    if known_indices is not None and all(value > -1 for value in known_indices.values):
        return indices, depth
    if known_indices is not None and known_depth is not None:
        count = int(known_depth.values[0])
        shifted = (value + count if value < 0 else value for value in map(int, known_indices.values))
        in_range = tuple(count if value < 0 else value for value in shifted)
        return out.tensor(Tensor("int64", known_indices.dims, in_range)), out.int64(count)
    out = out.for_opset(INDICES_OPSET)
    indices = _to_int64(indices, out)
    if known_depth is None:
        # The depth is a scalar, or a tensor of one element.
        depth = out.emit("Squeeze", [reshape(_to_int64(depth, out), (1,), out)], axes=[0])
    else:
        depth = out.int64(int(known_depth.values[0]))
    indices = add_to_negative_indices(indices, depth, "int64", out)
    below_range = is_negative(indices, "int64", out)
    missing = out.emit("Mul", [below_range, out.emit("Sub", [depth, indices])])
    return out.emit("Add", [indices, missing]), depth


def _to_int64(indices: str, out: Rewriter) -> str:
    """Return the indices or the depth of OneHot as int64; the cast truncates fractions, as OneHot does."""
    return indices if out.element_type(indices) == "int64" else out.cast(indices, "int64")
