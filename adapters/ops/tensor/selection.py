"""Adapters of Where, OneHot, Compress and NonZero (introduced in opset 9), and of Unique (opset 11).

OneHot, Compress, and Where of floating-point numbers and strings become Gather: a selection by arithmetic
would be wrong, because infinity multiplied by 0 is NaN. NonZero becomes a Loop over all positions, and Unique
compares all pairs of elements or slices.
"""

import math

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.core.rewriter import rename_output
from opshift.adapters.emit.expression import ARITHMETIC_TYPES, FLOAT_TYPES, cast, cast_between, cast_output
from opshift.adapters.emit.indices import COMPARISON_OPSET, gather_blocks
from opshift.adapters.emit.shapes import (
    ALLOWZERO_OPSET,
    MAX_CONSTANT_DATA,
    Dimension,
    broadcast_shape,
    computed_dimension,
    dimension,
    index_range,
    is_nonempty,
    reshape,
    shape_tensor,
)
from opshift.adapters.emit.subgraphs import LoopBuilder
from opshift.inference.constants import INTEGER_RANGES
from opshift.model.node import Dims

Shape = tuple[int, ...]


@adapter("Where", 9, 8)
def select_elements(node: Node, out: Rewriter) -> None:
    """Select booleans by And and Or, integers by arithmetic, and values of other types by Gather."""
    condition, first, second = node.inputs
    element_type = out.element_type(first)
    if _chooses_one_value(node, out) or _choose_number(node, out):
        return
    if element_type == "bool":
        from_second = out.emit("And", [out.emit("Not", [condition]), second])
        out.emit("Or", [out.emit("And", [condition, first]), from_second], node.outputs)
    elif "int" in element_type:
        _emit_weighted_sum(node, element_type, out)
    else:
        _gather_values(node, out)


def _gather_values(node: Node, out: Rewriter) -> None:
    """Gather each element from the concatenation of both values."""
    condition, first, second = node.inputs
    for value, other, is_first in ((first, second, True), (second, first, False)):
        number = out.uniform_element(value)
        if number is not None and number.element_type != "string":
            # The first element of `both` is enough for a value that repeats one number.
            shape, _, positions = _output_positions(node, out, 1)
            single = out.tensor(Tensor(number.element_type, (1,), number.values))
            both = out.emit("Concat", [single, _flat_value(other, shape, node, out)], axis=0)
            is_other = out.emit("Not", [condition]) if is_first else condition
            chosen = out.emit("Mul", [cast(is_other, "int64", out), positions])
            out.emit("Gather", [both, chosen], node.outputs, axis=0)
            return
    shape, count, positions = _output_positions(node, out, 0)
    # In `both`, the elements of the second value follow all elements of the first value.
    both = out.emit("Concat", [_flat_value(name, shape, node, out) for name in (first, second)], axis=0)
    offsets = out.emit("Mul", [cast(out.emit("Not", [condition]), "int64", out), count])
    out.emit("Gather", [both, out.emit("Add", [positions, offsets])], node.outputs, axis=0)


def _chooses_one_value(node: Node, out: Rewriter) -> bool:
    """Emit an Identity of a value that the condition always selects; return whether a node was emitted."""
    chosen = out.uniform_element(node.inputs[0])
    if chosen is None:
        return False
    dims = out.comparable_shapes(node.inputs)
    position = 1 if chosen.scalar else 2
    if not all(_broadcasts_to(shape, dims[position]) for shape in dims):
        return False
    out.emit("Identity", [node.inputs[position]], node.outputs)
    return True


def _choose_number(node: Node, out: Rewriter) -> bool:
    """If each value repeats one number, gather from these two numbers; return whether nodes were emitted."""
    condition, *values = node.inputs
    numbers = [each for each in map(out.uniform_element, reversed(values)) if each is not None]
    if len(numbers) < len(values) or numbers[0].element_type == "string":
        return False
    table = Tensor(numbers[0].element_type, (2,), tuple(each.scalar for each in numbers))
    positions = cast(condition, "int64", out)
    dims, *shapes = out.comparable_shapes(node.inputs)
    for value, shape in zip(values, shapes, strict=True):
        if not _broadcasts_to(shape, dims):
            # Adding zeros in the shape of the value broadcasts the positions to the shape of the output.
            zeros = out.emit("Mul", [cast(cast(value, "bool", out), "int64", out), out.int64(0)])
            positions = out.emit("Add", [positions, zeros])
    out.emit("Gather", [out.tensor(table), positions], node.outputs, axis=0)
    return True


def _broadcasts_to(shape: Dims, result: Dims) -> bool:
    """Return whether a shape is known to broadcast to `result`; negative numbers identify unknown sizes."""
    if shape is None or len(shape) > len(result or ()):
        return shape == ()
    pairs = zip(reversed(shape), reversed(result or ()), strict=False)
    return all(size == 1 or (size is not None and size == other) for size, other in pairs)


def _emit_weighted_sum(node: Node, element_type: str, out: Rewriter) -> None:
    """Emit the sum of both values: the selected one multiplied by 1, the other one by 0."""
    wide = ARITHMETIC_TYPES.get(element_type, element_type)
    weight = cast(node.inputs[0], wide, out)
    other = out.emit("Sub", [out.constant(1, wide), weight])
    pairs = zip(node.inputs[1:], (weight, other), strict=True)
    parts = [out.emit("Mul", [cast_between(name, element_type, wide, out), each]) for name, each in pairs]
    cast_output(out.emit("Add", parts), wide, element_type, node, out)


def _output_positions(node: Node, out: Rewriter, start: int) -> tuple[Shape | str, str, str]:
    """Return the output shape (a tensor if unknown), the element count, and a number for each element.

    The numbers count from `start`, in row-major order.
    """
    shape = broadcast_shape(node.inputs, out)
    is_float = out.element_type(node.inputs[1]) in FLOAT_TYPES
    if shape is not None and (math.prod(shape) <= MAX_CONSTANT_DATA or not is_float):
        count = out.require_elements(*shape)
        positions = out.tensor(Tensor("int64", shape, tuple(range(start, start + count))))
        return shape, out.int64(count), positions
    if not is_float:
        reason = "the shape of the output is unknown, but Gather by position requires it"
        raise UnknownShape(reason, *node.inputs, otherwise="convert to opset 9 or later")
    largest = _input_of_output_shape(node, out) or _sum_of_inputs(node, out)
    sizes, total = out.emit("Shape", [largest]), out.emit("Size", [largest])
    positions = index_range(reshape(total, (1,), out), out, is_long=True)
    if start:
        positions = out.emit("Add", [positions, out.int64(start)])
    # The sizes may contain 0, for which Reshape would copy the dimension of its input.
    allowzero = int(not all(is_nonempty(name, out) for name in node.inputs))
    return sizes, total, out.emit("Reshape", [positions, sizes], opset=ALLOWZERO_OPSET, allowzero=allowzero)


def _input_of_output_shape(node: Node, out: Rewriter) -> str | None:
    """Return an input with a shape to which all inputs are known to broadcast, or `None`."""
    shapes = out.comparable_shapes(node.inputs)
    return next(
        (
            name
            for name, dims in zip(node.inputs, shapes, strict=True)
            if all(_broadcasts_to(shape, dims) for shape in shapes)
        ),
        None,
    )


def _sum_of_inputs(node: Node, out: Rewriter) -> str:
    """Emit the sum of all inputs, which has the shape to which they broadcast."""
    condition, *values = node.inputs
    mixed = cast(condition, out.element_type(values[0]), out)
    for name in values:
        mixed = out.emit("Add", [mixed, name])
    return mixed


def _flat_value(name: str, shape: Shape | str, node: Node, out: Rewriter) -> str:
    """Emit the elements of a value, expanded to the output shape, as a 1-D tensor."""
    if isinstance(shape, str):
        dims = out.comparable_shapes(node.inputs)
        own = dims[node.inputs.index(name)]
        is_expanded = all(_broadcasts_to(each, own) for each in dims)
    else:
        is_expanded = out.shape(name) == shape
        shape = out.int64(shape)
    return reshape(name if is_expanded else out.emit("Expand", [name, shape]), (-1,), out)


@adapter("OneHot", 9, 8)
def gather_values_by_match(node: Node, out: Rewriter) -> None:
    """Compare each index with every class, and gather the off or on value by the result."""
    indices, depth, values = node.inputs
    axis = node.attribute("axis", -1)
    rank = out.rank(indices) if axis < -1 else out.known_rank(indices)
    if axis < 0 and rank is not None:
        axis += rank + 1
    numbers = indices if out.known_element_type(indices) == "int64" else cast(indices, "int64", out)
    if axis == -1:
        # A last dimension can be added even if the rank is unknown.
        shape = out.emit("Concat", [out.emit("Shape", [indices]), out.int64([1])], axis=0)
        column, trailing = out.emit("Reshape", [numbers, shape]), 0
    else:
        trailing = out.require_rank(out.rank(indices) - axis)
        column = out.emit("Unsqueeze", [numbers], axes=[axis])
    matches = out.emit("Equal", [column, _classes(depth, trailing, out)])
    known = out.constant_value(values)
    if known is not None and _is_zero_and_one(known):
        cast(matches, known.element_type, out, node.outputs)
    else:
        out.emit("Gather", [values, cast(matches, "int64", out)], node.outputs, axis=0)


def _is_zero_and_one(values: Tensor) -> bool:
    """Return whether a Cast of booleans yields the two values: 0 (but not -0.0) and 1."""
    is_number = values.element_type in FLOAT_TYPES or values.element_type in INTEGER_RANGES
    return is_number and values.values == (0, 1) and math.copysign(1, values.values[0]) > 0


def _classes(depth: str, trailing: int, out: Rewriter) -> str:
    """Return the integers from 0 to `depth - 1`, followed by `trailing` dimensions of 1."""
    known = out.constant_value(depth)
    if known is not None and known.values[0] <= MAX_CONSTANT_DATA:
        count = int(known.values[0])
        return out.tensor(Tensor("int64", (count, *[1] * trailing), tuple(range(count))))
    limit = reshape(cast(depth, "int64", out), (1,), out)
    shape = out.int64([-1, *[1] * trailing])
    return out.emit("Reshape", [index_range(limit, out), shape])


@adapter("Compress", 9, 8)
def gather_kept_positions(node: Node, out: Rewriter) -> None:
    """Gather the elements for which the condition is true."""
    known = out.constant_value(node.inputs[1])
    if known is None:
        positions = reshape(out.emit("NonZero", node.inputs[1:], opset=9), (-1,), out)
    else:
        positions = out.int64([index for index, is_kept in enumerate(known.values) if is_kept])
    data, axis = node.inputs[0], node.attribute("axis")
    if axis is None:
        out.emit("Gather", [reshape(data, (-1,), out), positions], node.outputs, axis=0)
        return
    element_type = out.known_element_type(data)
    rank = out.known_rank(data) if element_type == "string" else None
    rename_output(gather_blocks(data, rank, element_type, positions, axis, out), node, out)


@adapter("NonZero", 9, 8)
def collect_positions_in_loop(node: Node, out: Rewriter) -> None:
    """Collect flat positions of nonzero elements in a Loop, and split each into a position per dimension."""
    data = node.inputs[0]
    rank = out.rank(data)
    if not rank:
        reason = f"{data!r} is a scalar; NonZero can be rewritten only for rank 1 or higher"
        raise CannotConvert(reason, "shape.unsupported")
    if out.known_element_type(data) == "string":
        # Runtimes accept only numbers in casts of strings to bool.
        reason = f"{data!r} has strings; ONNX does not define which strings are zero"
        raise CannotConvert(reason, "type.unsupported", subject="string")
    number = out.uniform_element(data)
    if number is not None and number.scalar:
        count = out.emit("Shape", [data]) if rank == 1 else reshape(out.emit("Size", [data]), (1,), out)
        quotient = index_range(count, out, is_long=True)
    else:
        # A Cast to bool first turns every nonzero element into 1.
        flat = reshape(cast(cast(data, "bool", out), "int64", out), (-1,), out)
        quotient = _nonzero_positions(flat, out)
    rows = []
    for axis in reversed(range(1, rank)):
        size = _at_least_one(dimension(data, axis, out), out)
        next_quotient = out.emit("Div", [quotient, size])
        rows.append(out.emit("Sub", [quotient, out.emit("Mul", [next_quotient, size])]))
        quotient = next_quotient
    lists = [out.emit("Unsqueeze", [row], axes=[0]) for row in (quotient, *reversed(rows))]
    if rank == 1:
        rename_output(lists[0], node, out)
    else:
        out.emit("Concat", lists, node.outputs, axis=0)


def _nonzero_positions(flags: str, out: Rewriter) -> str:
    """Return the positions of the ones in a 1-D tensor of ones and zeros, collected by a Loop."""
    body = LoopBuilder(out)
    found = body.input("int64", (None,))
    position = reshape(body.iteration, (1,), body)
    # Tile repeats the position 0 times or once, so a position is appended only if the flag is 1.
    repeated = body.emit("Tile", [position, body.emit("Gather", [flags, position])])
    body.output(body.emit("Concat", [found, repeated], axis=0), "int64", (None,))
    empty = out.tensor(Tensor("int64", (0,), ()))
    (positions,) = body.emit_loop(computed_dimension(flags, 0, out), [empty], out)
    return positions


def _at_least_one(size: Dimension, out: Rewriter) -> str:
    """Return a size as a divisor, with 0 replaced by 1."""
    # Runtimes refuse a divisor of 0 even if the dividend is empty.
    if isinstance(size, int):
        return out.int64([max(size, 1)])
    is_zero = cast(out.emit("Equal", [size, out.int64([0])]), "int64", out)
    return out.emit("Add", [size, is_zero])


@adapter("Unique", 11, 10)
def compare_all_pairs(node: Node, out: Rewriter) -> None:
    """Compare all pairs of elements or slices, and select the first of equal ones, in the output order."""
    axis = node.attribute("axis")
    rows = _rows(node.inputs[0], axis, out)
    numbers = index_range(computed_dimension(rows, 0, out), out)
    is_float = out.element_type(node.inputs[0]) in FLOAT_TYPES
    less, same = _compare(rows, is_float, axis is not None, out)
    earliest = out.emit("ArgMax", [same], axis=0, keepdims=0)
    is_first = out.emit("Equal", [earliest, numbers])
    firsts = reshape(out.emit("NonZero", [is_first]), (-1,), out)
    precedes = less
    if not node.attribute("sorted", 1):
        is_earlier = out.emit("Less", [reshape(numbers, (-1, 1), out), earliest], opset=COMPARISON_OPSET)
        precedes = cast(is_earlier, "float", out)
    # The output position of an element is the number of distinct elements that precede it.
    firsts_before = out.emit("Gather", [precedes, firsts], axis=0)
    positions = cast(out.emit("ReduceSum", [firsts_before], axes=[0], keepdims=0), "int64", out)
    indices = _in_output_order(firsts, positions, out)
    if node.output(0):
        data = node.inputs[0]
        values, axis = (reshape(data, (-1,), out), 0) if axis is None else (data, axis % out.rank(data))
        out.emit("Gather", [values, indices], [node.output(0)], axis=axis)
    for value, name in ((indices, node.output(1)), (positions, node.output(2))):
        if name:
            out.emit("Identity", [value], [name])
    if node.output(3):
        counts = cast(out.emit("ReduceSum", [same], axes=[0], keepdims=0), "int64", out)
        out.emit("Gather", [counts, indices], [node.output(3)], axis=0)


def _rows(data: str, axis: int | None, out: Rewriter) -> str:
    """Return a matrix with one row for each element, or for each slice along the axis."""
    element_type = out.element_type(data)
    if element_type not in FLOAT_TYPES and "int" not in element_type:
        reason = f"{data!r} has element type {element_type}, which the operator Less does not support"
        raise CannotConvert(reason, "type.unsupported", subject=element_type)
    if axis is None:
        return reshape(data, (-1, 1), out)
    rank = out.rank(data)
    order = [axis % rank, *(other for other in range(rank) if other != axis % rank)]
    rows = out.emit("Flatten", [out.emit("Transpose", [data], perm=order)], axis=1)
    if all(out.known_dimension(data, other) for other in order[1:]):
        return rows
    # Slices without elements are equal; a column of zeros adds one element to compare.
    shape = shape_tensor((dimension(data, order[0], out), 1), out)
    zeros = out.emit("ConstantOfShape", [shape], value=Tensor(element_type, (1,), (0,)))
    return out.emit("Concat", [rows, zeros], axis=1)


def _compare(rows: str, is_float: bool, has_columns: bool, out: Rewriter) -> tuple[str, str]:
    """Return two float matrices: 1 where row i is less than row j, and 1 where row i equals row j.

    The first different element determines the order of rows with several elements. NaN equals NaN, and is
    greater than all numbers.
    """
    sides = [out.emit("Unsqueeze", [rows], axes=[axis]) for axis in (1, 0)]
    below = cast(out.emit("Less", sides, opset=COMPARISON_OPSET), "float", out)
    above = cast(out.emit("Greater", sides, opset=COMPARISON_OPSET), "float", out)
    sign = out.emit("Sub", [below, above])
    if is_float:
        row_nan, column_nan = (cast(out.emit("IsNaN", [side], opset=9), "float", out) for side in sides)
        sign = out.emit("Add", [sign, out.emit("Sub", [column_nan, row_nan])])
    if has_columns:
        # Keep only the sign of the first column that differs.
        column = out.emit("ArgMax", [out.emit("Abs", [sign])], axis=2, keepdims=0)
        choice = out.constant([0.0, 1.0], "float")
        is_first = out.emit("OneHot", [column, computed_dimension(rows, 1, out), choice])
        sign = out.emit("Mul", [sign, is_first])
    order = out.emit("ReduceSum", [sign], axes=[2], keepdims=0)
    differs = out.emit("Abs", [order])
    return out.emit("Relu", [order]), out.emit("Sub", [out.constant(1.0, "float"), differs])


def _in_output_order(firsts: str, positions: str, out: Rewriter) -> str:
    """Return the indices of the distinct elements in the order of the output."""
    column = reshape(index_range(computed_dimension(firsts, 0, out), out), (-1, 1), out)
    is_here = out.emit("Equal", [column, out.emit("Gather", [positions, firsts], axis=0)])
    order = out.emit("ArgMax", [cast(is_here, "float", out)], axis=1, keepdims=0)
    return out.emit("Gather", [firsts, order], axis=0)
