"""GatherND and GatherElements (introduced in opset 11), and `batch_dims` of GatherND (opset 12)."""

from itertools import product

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.core.limits import positions_of
from opshift.adapters.emit.indices import (
    INDICES_OPSET,
    INT64_ONE,
    MAX_CONSTANT_INDICES,
    flatten_element_indices,
    flatten_index_tuples,
    index_depth,
    nonnegative_indices,
)
from opshift.adapters.emit.shapes import reshape, reshape_like


@adapter("GatherND", 12, 11)
def prepend_batch_indices(node: Node, out: Rewriter) -> None:
    """Prepend to each index tuple its own position in the `batch_dims` leading dimensions."""
    batch_dims = node.attribute("batch_dims", 0)
    if not batch_dims:
        out.replace(node, attributes={})
        return
    data, indices = node.inputs
    last_axis = out.rank(indices) - 1
    batch_indices = _batch_indices(indices, batch_dims, last_axis, out)
    tuples = out.emit("Concat", [batch_indices, indices], axis=last_axis)
    out.replace(node, inputs=[data, tuples], attributes={})


@adapter("GatherND", 11, 10)
def gather_rows(node: Node, out: Rewriter) -> None:
    """Flatten the data to rows, one for each possible index tuple, and gather the rows with Gather."""
    out = out.for_opset(INDICES_OPSET)
    data, indices = node.inputs
    depth = index_depth(indices, out)
    rows = out.emit("Flatten", [data], axis=depth)
    row_ids = flatten_index_tuples(data, indices, out)
    gathered = out.emit("Gather", [rows, row_ids], axis=0)
    bounds = [out.int64([each]) for each in (depth, 2**31 - 1, 0)]
    row_shape = out.emit("Slice", [out.emit("Shape", [data]), *bounds])
    shape = out.emit("Concat", [out.emit("Shape", [row_ids]), row_shape], axis=0)
    out.emit("Reshape", [gathered, shape], node.outputs)


def _batch_indices(indices: str, batch_dims: int, last_axis: int, out: Rewriter) -> str:
    """Return the positions of the index tuples in the leading dimensions, one coordinate in each column."""
    outer_sizes = (out.shape(indices) or ())[:last_axis]
    sizes = [size for size in outer_sizes if size is not None]
    if len(sizes) == last_axis and positions_of(sizes) <= MAX_CONSTANT_INDICES:
        values = (index for position in product(*map(range, sizes)) for index in position[:batch_dims])
        return out.tensor(Tensor("int64", (*sizes, batch_dims), tuple(values)))
    shape = out.emit("Shape", [indices])
    bounds = [out.int64([each]) for each in (0, batch_dims, last_axis)]
    batch_shape = out.emit("Slice", [shape, *bounds[:2], bounds[0]])
    # NonZero of a tensor of ones lists every position of the batch dimensions in row-major order.
    ones = out.emit("ConstantOfShape", [batch_shape], value=INT64_ONE)
    positions = out.emit("Transpose", [out.emit("NonZero", [ones])], perm=[1, 0])
    trailing = out.int64([*[1] * (last_axis - batch_dims), batch_dims])
    aligned = out.emit("Reshape", [positions, out.emit("Concat", [batch_shape, trailing], axis=0)])
    outer_shape = out.emit("Slice", [shape, bounds[0], bounds[2], bounds[0]])
    return out.emit("Expand", [aligned, out.emit("Concat", [outer_shape, bounds[1]], axis=0)])


@adapter("GatherElements", 11, 10)
def gather_flat_elements(node: Node, out: Rewriter) -> None:
    """Flatten the data to one dimension and gather single elements with Gather."""
    out = out.for_opset(INDICES_OPSET)
    data, indices = node.inputs
    axis, rank = node.attribute("axis", 0), out.rank(data)
    if rank == 1:
        # Gather and GatherElements are the same operation on one dimension.
        inputs = [data, nonnegative_indices(indices, data, 0, out)]
        out.replace(node, op_type="Gather", inputs=inputs, attributes={"axis": 0}, opset=INDICES_OPSET)
        return
    flat_data = reshape(data, (-1,), out)
    flat_indices = flatten_element_indices(data, indices, axis % rank, out)
    gathered = out.emit("Gather", [flat_data, flat_indices], axis=0)
    reshape_like(gathered, indices, out.emit("Shape", [indices]), out, node.outputs)
