"""Reads and writes at computed indices: gathers, scatters and ReverseSequence.

GatherND and GatherElements were introduced in opset 11, and `batch_dims` of GatherND in opset 12.
ReverseSequence (introduced in opset 10) becomes a Gather, Scatter (9) a Gather from the concatenation of data
and updates, and TensorScatter (24) a ScatterElements. For `reduction` (16 and 18), a small table of updates
and targets is reduced if the result is exact; otherwise, a Loop applies the updates.
"""

from itertools import product
from math import inf, prod

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.core.rewriter import element_count_of
from opshift.adapters.emit.expression import IEEE_FLOAT_TYPES, Expression, cast, cast_between
from opshift.adapters.emit.indices import (
    INDICES_OPSET,
    INT64_ONE,
    MAX_CONSTANT_INDICES,
    broadcast_element_indices,
    flatten_element_indices,
    flatten_index_tuples,
    gather_blocks,
    index_depth,
    nonnegative_indices,
)
from opshift.adapters.emit.shapes import (
    ALLOWZERO_OPSET,
    MAX_CONSTANT_DATA,
    computed_dimension,
    dimension,
    dimension_tensor,
    index_range,
    reshape,
    reshape_like,
)
from opshift.adapters.emit.subgraphs import LoopBuilder
from opshift.model.element_types import BY_NAME


@adapter("GatherND", 12, 11)
def prepend_batch_indices(node: Node, out: Rewriter) -> None:
    """Prepend to each index tuple the position of the tuple in the `batch_dims` leading dimensions."""
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
    sizes, is_string = out.shape(data), out.known_element_type(data) == "string"
    row_sizes = [size for size in (sizes or ())[depth:] if size]
    if sizes is not None and len(row_sizes) == len(sizes) - depth and not (is_string and prod(row_sizes) > 1):
        rows = reshape(data, (-1, *row_sizes), out)
        out.emit("Gather", [rows, flatten_index_tuples(data, indices, out)], node.outputs, axis=0)
        return
    rows = out.emit("Flatten", [data], axis=depth)
    row_ids = flatten_index_tuples(data, indices, out)
    if is_string:
        # onnxruntime's Gather along the first axis copies only the first string of each row.
        columns = out.emit("Gather", [out.emit("Transpose", [rows], perm=[1, 0]), row_ids], axis=1)
        gathered = out.emit("Transpose", [columns], perm=[*range(1, out.rank(indices)), 0])
    else:
        gathered = out.emit("Gather", [rows, row_ids], axis=0)
    bounds = [out.int64([each]) for each in (depth, 2**31 - 1, 0)]
    row_shape = out.emit("Slice", [out.emit("Shape", [data]), *bounds])
    shape = out.emit("Concat", [out.emit("Shape", [row_ids]), row_shape], axis=0)
    # Without `allowzero`, a 0 in the shape may copy a dimension of the row numbers, or the flattened row.
    if sizes is not None and all(sizes[depth + 1 :]):
        out.emit("Reshape", [gathered, shape], node.outputs)
    else:
        out.emit("Reshape", [gathered, shape], node.outputs, opset=ALLOWZERO_OPSET, allowzero=1)


def _batch_indices(indices: str, batch_dims: int, last_axis: int, out: Rewriter) -> str:
    """Return for each index tuple the position of the tuple in the `batch_dims` leading dimensions."""
    outer_sizes = (out.shape(indices) or ())[:last_axis]
    sizes = [size for size in outer_sizes if size is not None]
    if len(sizes) == last_axis and element_count_of(sizes) <= MAX_CONSTANT_INDICES:
        values = (index for position in product(*map(range, sizes)) for index in position[:batch_dims])
        return out.tensor(Tensor("int64", (*sizes, batch_dims), tuple(values)))
    shape = out.emit("Shape", [indices])
    bounds = [out.int64([each]) for each in (0, batch_dims, last_axis)]
    batch_shape = out.emit("Slice", [shape, *bounds[:2], bounds[0]])
    # NonZero of ones lists every position in the batch dimensions in row-major order.
    ones = out.emit("ConstantOfShape", [batch_shape], value=INT64_ONE)
    positions = out.emit("Transpose", [out.emit("NonZero", [ones])], perm=[1, 0])
    trailing = out.int64([*[1] * (last_axis - batch_dims), batch_dims])
    aligned_shape = out.emit("Concat", [batch_shape, trailing], axis=0)
    aligned = out.emit("Reshape", [positions, aligned_shape], opset=ALLOWZERO_OPSET, allowzero=1)
    outer_shape = out.emit("Slice", [shape, bounds[0], bounds[2], bounds[0]])
    return out.emit("Expand", [aligned, out.emit("Concat", [outer_shape, bounds[1]], axis=0)])


@adapter("GatherElements", 11, 10)
def gather_flat_elements(node: Node, out: Rewriter) -> None:
    """Flatten the data to one dimension and gather single elements with Gather."""
    out = out.for_opset(INDICES_OPSET)
    data, indices = node.inputs
    axis, rank = node.attribute("axis", 0), out.rank(data)
    if rank == 1:
        # For 1-D data, Gather computes the result of GatherElements.
        inputs = [data, nonnegative_indices(indices, data, 0, out)]
        out.replace(node, op_type="Gather", inputs=inputs, attributes={"axis": 0}, opset=INDICES_OPSET)
        return
    flat_data = reshape(data, (-1,), out)
    positions = broadcast_element_indices(data, indices, axis % rank, out)
    out.emit("Gather", [flat_data, positions], node.outputs, axis=0)


MAX_TABLE_ELEMENTS = 1 << 20
"""Maximum number of elements of the table in `_reduce_table`: updates times elements of the data."""

COMBINING_OPERATORS = {b"add": "Add", b"mul": "Mul", b"max": "Max", b"min": "Min"}
"""For each reduction, the operator that combines two tensors."""

TABLE_OPERATORS = {b"mul": "ReduceProd", b"max": "ReduceMax", b"min": "ReduceMin"}
"""For each reduction except `add`, the operator that reduces the rows of a table."""

EXTREMUM_TYPES = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), "int32"),
    "uint32": "int64",
    "bfloat16": "float",
}
"""Element types to the types in which maxima and minima are computed."""

SUM_TYPES = {
    **dict.fromkeys(("int8", "uint8", "int16", "uint16"), "int32"),
    **dict.fromkeys(("uint32", "uint64"), "int64"),
}
"""Element types to the types in which sums and products are computed; the cast back keeps the low bits."""

TURNS_OPSET = 13
"""Opset of the nodes of `_apply_in_turns`; all their operators exist since opset 11."""

COMPUTED_TOP_K_OPSET = 10
"""First opset in which K is an input of TopK."""

VALUE_BITS = {"int32": 31, "int64": 63}
"""Number of bits, without the sign bit, of the integer types to compute in."""

TABLE_TYPES = {
    b"add": ("float", "double", *VALUE_BITS),
    b"mul": ("float", "double"),
    **dict.fromkeys((b"max", b"min"), (*IEEE_FLOAT_TYPES, *VALUE_BITS)),
}
"""For each reduction, the element types for which reducing a table gives the same result as applying the
updates one after the other, except for the maximum or minimum of NaN, which differs between runtimes.

Runtimes round a total of float16 only once, and ReduceProd of onnxruntime multiplies integers as doubles.
"""


@adapter("Scatter", 9, 8)
def gather_from_data_and_updates(node: Node, out: Rewriter) -> None:
    """Concatenate the flattened data and updates, and gather each output element from the result."""
    data, _, updates = node.inputs
    sources = _constant_sources(node, out) or _computed_sources(node, out)
    both = out.emit("Concat", [reshape(each, (-1,), out) for each in (data, updates)], axis=0)
    out.emit("Gather", [both, sources], node.outputs, axis=0)


def _constant_sources(node: Node, out: Rewriter) -> str | None:
    """Return the source index of each output element if the indices are constant and the shape is known."""
    indices = out.constant_value(node.inputs[1])
    shape = out.known_shape(node.inputs[0])
    if indices is None or not shape or prod(shape) > MAX_CONSTANT_DATA:
        return None
    strides = [prod(shape[position + 1 :]) for position in range(len(shape))]
    axis = node.attribute("axis", 0) % len(shape)
    sources = list(range(prod(shape)))
    for number, index in enumerate(indices.values):
        target, rest = 0, number
        for position in reversed(range(len(shape))):
            rest, coordinate = divmod(rest, indices.dims[position])
            target += strides[position] * (index % shape[axis] if position == axis else coordinate)
        # Updates follow the data in the concatenated tensor, and the last update of an element wins.
        sources[target] = len(sources) + number
    return out.tensor(Tensor("int64", shape, tuple(sources)))


def _computed_sources(node: Node, out: Rewriter) -> str:
    """Return the source index of each output element, computed in a Loop over the updates."""
    data, indices = node.inputs[:2]
    axis = node.attribute("axis", 0) % out.rank(data)
    targets = flatten_element_indices(data, indices, axis, out)
    count = reshape(out.emit("Size", [data]), (1,), out)
    positions = index_range(count, out, is_compact=True)
    body = LoopBuilder(out)
    sources = body.input("int64", (None,))
    target = body.emit("Gather", [targets, body.iteration])
    is_here = cast(body.emit("Equal", [positions, target]), "int64", body)
    change = body.emit("Sub", [body.emit("Add", [count, body.iteration]), sources])
    body.output(body.emit("Add", [sources, body.emit("Mul", [is_here, change])]), "int64", (None,))
    (flat_sources,) = body.emit_loop(computed_dimension(targets, 0, out), [positions], out)
    return reshape_like(flat_sources, data, out.emit("Shape", [data]), out)


@adapter(("ScatterND", "ScatterElements"), 18, 16)
def combine_max_min_updates(node: Node, out: Rewriter) -> None:
    """Rewrite the reductions `max` and `min`; leave other nodes unchanged."""
    if node.attribute("reduction", b"none") in (b"max", b"min"):
        _combine(node, out)
    else:
        out.replace(node)


@adapter(("ScatterND", "ScatterElements"), 16, 13)
def combine_add_mul_updates(node: Node, out: Rewriter) -> None:
    """Rewrite the reductions `add` and `mul`; drop the default `none`, which overwrites elements."""
    if node.attribute("reduction", b"none") == b"none":
        out.replace(node, attributes=node.without("reduction"))
    else:
        _combine(node, out)


@adapter("ScatterND", 11, 10)
def scatter_rows(node: Node, out: Rewriter) -> None:
    """Flatten the data to rows, one for each possible index tuple, and write the rows with Scatter."""
    out = out.for_opset(INDICES_OPSET)
    data, indices, updates = node.inputs
    last_axis = out.rank(indices) - 1
    rows = out.emit("Flatten", [data], axis=index_depth(indices, out))
    new_rows = out.emit("Flatten", [updates], axis=last_axis)
    column = out.int64([-1, 1])
    row_indices = out.emit("Reshape", [flatten_index_tuples(data, indices, out), column])
    # Scatter requires one index for each element of the updates.
    expanded = out.emit("Expand", [row_indices, out.emit("Shape", [new_rows])])
    scattered = out.emit("Scatter", [rows, expanded, new_rows], axis=0)
    reshape_like(scattered, data, out.emit("Shape", [data]), out, node.outputs)


def _combine(node: Node, out: Rewriter) -> None:
    """Combine updates and data, in a type with the same result that older operators support."""
    data, _, updates = node.inputs
    element_type = out.element_type(data)
    reduction = node.attribute("reduction")
    types = EXTREMUM_TYPES if reduction in (b"max", b"min") else SUM_TYPES
    compute_type = types.get(element_type, element_type)
    if compute_type not in (*VALUE_BITS, *IEEE_FLOAT_TYPES):
        reason = f"reduction {reduction.decode()!r} cannot be rewritten for elements of type {element_type}"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    has_table = compute_type in TABLE_TYPES[reduction]
    sizes = _table_sizes(node, out) if has_table else None
    if sizes is None:
        _require_computed_top_k(node, has_table, out)
    wide_data, wide_updates = (
        cast_between(name, element_type, compute_type, out) for name in (data, updates)
    )
    outputs = node.outputs if compute_type == element_type else [out.fresh("scattered")]
    targets = _targets(node, out)
    wide = node.with_(inputs=[wide_data, node.inputs[1], wide_updates], outputs=outputs)
    if sizes is not None:
        _reduce_table(wide, targets, sizes, compute_type, out)
    else:
        _apply_in_turns(wide, targets, compute_type, out)
    if compute_type != element_type:
        cast(outputs[0], element_type, out, node.outputs)


def _targets(node: Node, out: Rewriter) -> str:
    """Return the number of the target row of each update, as a tensor of any shape.

    A row is the slice of the data that one index tuple selects, or for ScatterElements one element.
    """
    data, indices, _ = node.inputs
    if node.op_type == "ScatterND":
        return flatten_index_tuples(data, indices, out)
    return flatten_element_indices(data, indices, node.attribute("axis", 0) % out.rank(data), out)


def _reduce_table(
    node: Node, targets: str, sizes: tuple[int, int, int], element_type: str, out: Rewriter
) -> None:
    """Reduce a table to one value per data element; the table has a row for the data, and one per update."""
    data, _, updates = node.inputs
    reduction = node.attribute("reduction")
    rows, row_length, count = sizes
    is_target = out.emit("Equal", [reshape(targets, (count, 1), out), out.int64(range(rows))])
    numbers = out.tensor(Tensor("int64", (count, 1), tuple(range(1, count + 1))))
    # Gather chooses the neutral row 0 or an update, because Where of onnxruntime turns -0.0 into 0.
    neutral = out.tensor(Tensor(element_type, (1, 1), (_neutral_element(reduction, element_type),)))
    if row_length > 1:
        neutral = out.emit("Expand", [neutral, out.int64([1, row_length])])
    choices = out.emit("Concat", [neutral, reshape(updates, (count, row_length), out)], axis=0)
    chosen = out.emit("Where", [is_target, numbers, out.int64(0)])
    # The dimensions are: update, target row, element of the row.
    table = out.emit("Gather", [choices, chosen], axis=0)
    table = out.emit("Concat", [reshape(data, (1, rows, row_length), out), table], axis=0)
    if reduction == b"add":
        # Not ReduceSum: its initial 0 changes -0.0, and onnxruntime adds integers as doubles.
        totals = out.emit("CumSum", [table, out.int64(0)], opset=11)
        result = out.emit("Gather", [totals, out.int64(count)], axis=0)
    else:
        # In opset 11, `axes` of reductions is an attribute.
        result = out.emit(TABLE_OPERATORS[reduction], [table], opset=11, axes=[0], keepdims=0)
    reshape_like(result, data, out.emit("Shape", [data]), out, node.outputs)


def _require_computed_top_k(node: Node, has_table: bool, out: Rewriter) -> None:
    """Refuse a node that requires `_apply_in_turns` if the target opset has no TopK with a computed K.

    With `has_table`, the refusal asks for known sizes, because `_reduce_table` serves small sizes.
    """
    if out.default_opset >= COMPUTED_TOP_K_OPSET:
        return
    reason = "updates that are applied in turns need TopK with a computed K"
    remedy = "convert to opset 10 or later"
    if has_table and None in map(out.known_shape, node.inputs[:2]):
        raise UnknownShape(reason, *node.inputs[:2], otherwise=remedy)
    raise CannotConvert(reason, "limit.exceeded", remedy=remedy)


def _apply_in_turns(node: Node, targets: str, element_type: str, out: Rewriter) -> None:
    """Apply the updates in order, in a Loop: each turn applies at most one update to each target.

    The number of turns is the largest number of updates of one target.
    """
    out = out.for_opset(TURNS_OPSET)
    data, indices, updates = node.inputs
    combine = COMBINING_OPERATORS[node.attribute("reduction")]
    if node.op_type == "ScatterND":
        rows = out.emit("Flatten", [data], axis=index_depth(indices, out))
        new_rows = out.emit("Flatten", [updates], axis=out.rank(indices) - 1)
    else:
        rows, new_rows = (reshape(each, (-1, 1), out) for each in (data, updates))
    count = reshape(out.emit("Size", [targets]), (1,), out)
    # TopK keeps the order of equal values. Before version 11, TopK does not support integers.
    sorted_type = "int64" if out.default_opset >= 11 else "double"
    flat = cast_between(reshape(targets, (-1,), out), "int64", sorted_type, out)
    ordered, order = out.emit_all("TopK", [flat, count], 2, axis=0, largest=0)
    ordered = cast_between(ordered, sorted_type, "int64", out)
    turns = _turns(ordered, count, out)
    body = LoopBuilder(out)
    current = body.input(element_type, (None, None))
    is_due = body.emit("Equal", [turns, body.iteration])
    due = reshape(body.emit("NonZero", [is_due]), (-1,), body)
    target = body.emit("Gather", [ordered, due], axis=0)
    update = body.emit("Gather", [new_rows, body.emit("Gather", [order, due], axis=0)], axis=0)
    combined = body.emit(combine, [body.emit("Gather", [current, target], axis=0), update])
    written = body.emit("ScatterND", [current, reshape(target, (-1, 1), body), combined])
    body.output(written, element_type, (None, None))
    # Without updates, the -1 is the maximum, which leads to 0 turns.
    last = out.emit("ReduceMax", [out.emit("Concat", [out.int64([-1]), turns], axis=0)], axes=[0])
    (result,) = body.emit_loop(out.emit("Add", [last, out.int64([1])]), [rows], out)
    reshape_like(result, data, out.emit("Shape", [data]), out, node.outputs)


def _turns(ordered: str, count: str, out: Rewriter) -> str:
    """Return how many equal numbers precede each number in `ordered`, which is sorted and nonnegative."""
    shifted = out.emit("Concat", [out.int64([-1]), ordered], axis=0)
    previous = out.emit("Slice", [shifted, out.int64([0]), out.int64([-1])])
    is_first = out.emit("Not", [out.emit("Equal", [ordered, previous])])
    starts = reshape(out.emit("NonZero", [is_first]), (-1,), out)
    groups = out.emit("CumSum", [cast(is_first, "int64", out), out.int64(0)])
    start = out.emit("Gather", [starts, out.emit("Sub", [groups, out.int64(1)])], axis=0)
    return out.emit("Sub", [index_range(count, out), start])


def _table_sizes(node: Node, out: Rewriter) -> tuple[int, int, int] | None:
    """Return the number of target rows, the length of a row, and the number of updates.

    Return `None` if a dimension of data or indices is unknown or 0, or if the table would be large.
    """
    data, indices = (out.known_shape(name) for name in node.inputs[:2])
    if not data or not indices or 0 in (*data, *indices):
        return None
    if node.op_type == "ScatterND":
        depth, count = indices[-1], prod(indices[:-1])
    else:
        depth, count = len(data), prod(indices)
    is_large = count * prod(data) > MAX_TABLE_ELEMENTS
    return None if is_large else (prod(data[:depth]), prod(data[depth:]), count)


def _neutral_element(reduction: bytes, element_type: str) -> float:
    """Return the number that leaves every other value unchanged in a reduction."""
    zero, lowest, highest = -0.0, -inf, inf
    if element_type in VALUE_BITS:
        zero, lowest, highest = 0, -(2 ** VALUE_BITS[element_type]), 2 ** VALUE_BITS[element_type] - 1
    return {b"add": zero, b"mul": 1, b"max": lowest, b"min": highest}[reduction]


@adapter("TensorScatter", 24, 23)
def scatter_at_explicit_indices(node: Node, out: Rewriter) -> None:
    """Emit ScatterElements with indices that count from the write index of each batch entry."""
    cache, update = node.inputs[:2]
    element_type = out.element_type(cache)
    # ScatterElements supports types up to bfloat16; later TensorProto numbers are float8 and narrower types.
    if BY_NAME[element_type].number > BY_NAME["bfloat16"].number:
        reason = f"{cache!r} has element type {element_type}, which ScatterElements does not support"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    rank = out.rank(cache)
    axis = node.attribute("axis", -2) % rank
    count = dimension(update, axis, out)
    offsets = index_range(count, out) if isinstance(count, str) else out.int64(range(count))
    if node.input(2):
        starts = reshape(node.input(2), (-1, 1), out)
        offsets = out.emit("Add", [starts, offsets])
    if node.attribute("mode", b"linear") == b"circular":
        offsets = out.emit("Mod", [offsets, dimension_tensor(dimension(cache, axis, out), out)])
    # Only the sequence dimension and, with write indices, the batch dimension differ from 1.
    axes = [*range(1 if node.input(2) else 0, axis), *range(axis + 1, rank)]
    offsets = out.emit("Unsqueeze", [offsets, out.int64(axes)]) if axes else offsets
    indices = out.emit("Expand", [offsets, out.emit("Shape", [update])])
    out.emit("ScatterElements", [cache, indices, update], node.outputs, axis=axis)


@adapter("ReverseSequence", 10, 9)
def gather_reversed_steps(node: Node, out: Rewriter) -> None:
    """Merge the time and batch dimensions into one, and gather the rows in the reversed order."""
    data, lengths = node.inputs
    time_axis = node.attribute("time_axis", 0)
    steps, entries = (out.known_dimension(data, axis) for axis in (time_axis, 1 - time_axis))
    if steps is None or entries is None:
        reason = f"the first two dimensions of {data!r} are unknown"
        raise UnknownShape(reason, data)
    first, second = (entries, steps) if time_axis else (steps, entries)
    if not out.require_elements(first, second):
        out.emit("Identity", [data], node.outputs)
        return
    pairs = [divmod(row, second) for row in range(first * second)]
    step = out.tensor(Tensor("int64", (first, second), tuple(pair[time_axis] for pair in pairs)))
    aligned = out.emit("Reshape", [lengths, out.int64([-1, 1] if time_axis else [1, -1])])
    source = _source_step(step, aligned, out)
    # Strides of one time step and of one batch entry, in rows.
    strides = (1, steps) if time_axis else (entries, 1)
    offsets = tuple(pair[1 - time_axis] * strides[1] for pair in pairs)
    offset = out.tensor(Tensor("int64", (first, second), offsets))
    source_rows = out.emit("Add", [out.emit("Mul", [source, out.int64(strides[0])]), offset])
    rows = reshape(data, (first * second, -1), out)
    indices = reshape(source_rows, (-1,), out)
    gathered = gather_blocks(rows, 2, out.known_element_type(data), indices, 0, out)
    reshape_like(gathered, data, out.emit("Shape", [data]), out, node.outputs)


def _source_step(step: str, length: str, out: Rewriter) -> str:
    """Return `length - 1 - step` for steps below `length`, and `step` for other steps."""
    # Less supports integers only since opset 9; float32 represents step counts up to 2**24 exactly.
    below = out.emit("Less", [cast(each, "float", out) for each in (step, length)])
    is_reversed = Expression(cast(below, "int64", out), "int64", out)
    distance = Expression(length, "int64", out) - 1 - Expression(step, "int64", out) * 2
    return out.emit("Add", [step, (is_reversed * distance).name])
