"""Where, OneHot and Compress (introduced in opset 9), as Gather.

A selection by arithmetic would be wrong for floating point, because infinity multiplied by 0 is NaN.
"""

import math

from opshift.adapters import Node, Rewriter, Tensor, UnknownShape, adapter
from opshift.adapters.emit.cast import ARITHMETIC_TYPES, FLOAT_TYPES, cast
from opshift.adapters.emit.shapes import (
    ALLOWZERO_OPSET,
    MAX_CONSTANT_DATA,
    broadcast_shape,
    index_range,
    is_nonempty,
    reshape,
)
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
        shape, count, positions = _output_positions(node, out)
        values = [reshape(_expand(name, shape, out), (-1,), out) for name in (first, second)]
        # Elements of the second value follow all elements of the first.
        offsets = out.emit("Mul", [cast(out.emit("Not", [condition]), "int64", out), count])
        both = out.emit("Concat", values, axis=0)
        out.emit("Gather", [both, out.emit("Add", [positions, offsets])], node.outputs, axis=0)


def _chooses_one_value(node: Node, out: Rewriter) -> bool:
    """Emit one of the values if the condition always chooses it; return whether this is the case."""
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
    """Emit a choice between two numbers if each value contains only one; return whether this is the case."""
    condition, *values = node.inputs
    numbers = [each for each in map(out.uniform_element, reversed(values)) if each is not None]
    if len(numbers) < len(values) or numbers[0].element_type == "string":
        return False
    table = Tensor(numbers[0].element_type, (2,), tuple(each.scalar for each in numbers))
    positions = cast(condition, "int64", out)
    dims, *shapes = out.comparable_shapes(node.inputs)
    for value, shape in zip(values, shapes, strict=True):
        if not _broadcasts_to(shape, dims):
            # zeros in the shape of the value
            zeros = out.emit("Mul", [cast(cast(value, "bool", out), "int64", out), out.int64(0)])
            positions = out.emit("Add", [positions, zeros])
    out.emit("Gather", [out.tensor(table), positions], node.outputs, axis=0)
    return True


def _broadcasts_to(shape: Dims, result: Dims) -> bool:
    """Return whether a shape is known to broadcast to another one; equal negative numbers are equal sizes."""
    if shape is None or len(shape) > len(result or ()):
        return shape == ()
    pairs = zip(reversed(shape), reversed(result or ()), strict=False)
    return all(size == 1 or (size is not None and size == other) for size, other in pairs)


def _emit_weighted_sum(node: Node, element_type: str, out: Rewriter) -> None:
    """Emit the sum of both values, one multiplied by 1 and the other by 0."""
    wide = ARITHMETIC_TYPES.get(element_type, element_type)
    weight = cast(node.inputs[0], wide, out)
    other = out.emit("Sub", [out.constant(1, wide), weight])
    pairs = zip(node.inputs[1:], (weight, other), strict=True)
    parts = [out.emit("Mul", [cast(name, wide, out), each]) for name, each in pairs]
    cast(out.emit("Add", parts), element_type, out, node.outputs)


def _output_positions(node: Node, out: Rewriter) -> tuple[Shape | str, str, str]:
    """Return the shape of the output, the number of its elements, and the flat position of each."""
    shape = broadcast_shape(node.inputs, out)
    condition, *values = node.inputs
    is_float = out.element_type(values[0]) in FLOAT_TYPES
    if shape is not None and (math.prod(shape) <= MAX_CONSTANT_DATA or not is_float):
        count = out.require_elements(*shape)
        positions = out.tensor(Tensor("int64", shape, tuple(range(count))))
        return shape, out.int64(count), positions
    if not is_float:
        reason = "the shape of its output is unknown, but a selection by position requires it"
        raise UnknownShape(reason, *node.inputs, otherwise="convert to opset 9 or later")
    # The sum of all inputs has the shape to which they broadcast.
    mixed = cast(condition, out.element_type(values[0]), out)
    for name in values:
        mixed = out.emit("Add", [mixed, name])
    sizes, total = out.emit("Shape", [mixed]), out.emit("Size", [mixed])
    positions = index_range(reshape(total, (1,), out), out)
    # The sizes may contain 0, which Reshape copies by default.
    allowzero = int(not all(is_nonempty(name, out) for name in node.inputs))
    return sizes, total, out.emit("Reshape", [positions, sizes], opset=ALLOWZERO_OPSET, allowzero=allowzero)


def _expand(name: str, shape: Shape | str, out: Rewriter) -> str:
    if isinstance(shape, str):
        return out.emit("Expand", [name, shape])
    return name if out.shape(name) == shape else out.emit("Expand", [name, out.int64(shape)])


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
        # A last dimension can be added without knowing the rank.
        shape = out.emit("Concat", [out.emit("Shape", [indices]), out.int64([1])], axis=0)
        column, trailing = out.emit("Reshape", [numbers, shape]), 0
    else:
        column, trailing = out.emit("Unsqueeze", [numbers], axes=[axis]), out.rank(indices) - axis
    matches = out.emit("Equal", [column, _classes(depth, trailing, out)])
    known = out.constant_value(values)
    if known is not None and _is_zero_and_one(known):
        cast(matches, known.element_type, out, node.outputs)
    else:
        out.emit("Gather", [values, cast(matches, "int64", out)], node.outputs, axis=0)


def _is_zero_and_one(values: Tensor) -> bool:
    """Return whether a Cast of booleans gives these numbers, which excludes -0.0."""
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
    """Gather the positions at which the condition is true."""
    known = out.constant_value(node.inputs[1])
    if known is None:
        positions = reshape(out.emit("NonZero", node.inputs[1:], opset=9), (-1,), out)
    else:
        positions = out.int64([index for index, is_kept in enumerate(known.values) if is_kept])
    axis = node.attribute("axis")
    data = node.inputs[0] if axis is not None else reshape(node.inputs[0], (-1,), out)
    out.emit("Gather", [data, positions], node.outputs, axis=axis or 0)
