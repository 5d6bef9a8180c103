"""Rewrite CumSum and CumProd as Scan or Loop, or CumSum of integers, whose order is free, as MatMul."""

import math

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.expression import FLOAT_TYPES, cast
from opshift.adapters.emit.indices import is_less
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    POOL_INDICES_OPSET,
    computed_dimension,
    index_range,
    reshape,
)
from opshift.adapters.emit.subgraphs import LoopBuilder, SubgraphBuilder

UNSQUEEZE_OPSET = 1
"""Opset of the emitted Unsqueeze, whose axes are an attribute."""

RESHAPE_OPSET = 5
"""First opset in which the shape is an input of Reshape."""

ACCUMULATORS = {"CumSum": ("Add", 0), "CumProd": ("Mul", 1)}
"""Binary operator that accumulates, and its neutral element, by operator."""

MATRIX_TYPES = frozenset(("int32", "int64", "uint32", "uint64"))
MATRIX_OPSET = 9
"""First opset in which MatMul supports integers."""

WRAPPING_TYPES = frozenset(("int32", "int64"))
"""Element types whose sums do not depend on the order, and which runtimes add and multiply."""

POWERS_OF_TWO = tuple(1 << exponent for exponent in range(53))
"""Distances between elements that `_accumulate_by_doubling` adds.

The limit is 2**52, because functions below opset 9 cast integer constants from double, which is exact up to
2**53.
"""

MAX_ROWS = 32
"""Maximum number of rows for which `_accumulate_by_doubling` takes less time than `_accumulate_in_loop`."""


@adapter("CumSum", 11, 10)
@adapter("CumProd", 26, 25)
def accumulate(node: Node, out: Rewriter) -> None:
    """Accumulate along a constant axis; for a computed axis, accumulate along every axis and select one."""
    rank = out.rank(node.inputs[0])
    axis = out.constant_value(node.inputs[1])
    if axis is not None or rank == 1:
        index = int(axis.values[0]) % rank if axis is not None else 0
        _accumulate_along(index, node, out, node.outputs[0])
        return
    results = [_accumulate_along(index, node, out, out.fresh("totals")) for index in range(rank)]
    rows = [out.emit("Unsqueeze", [value], opset=UNSQUEEZE_OPSET, axes=(0,)) for value in results]
    # The results are concatenated along a new leading dimension, from which Gather selects one result.
    stacked = out.emit("Concat", rows, axis=0)
    computed_axis = reshape(cast(node.inputs[1], "int64", out), (), out)
    wrapped_axis = out.emit("Mod", [computed_axis, out.int64(rank)])
    out.emit("Gather", [stacked, wrapped_axis], node.outputs, axis=0)


def _accumulate_along(axis: int, node: Node, out: Rewriter, output: str) -> str:
    """Emit nodes that accumulate along one axis into the value `output`; return this name."""
    value = node.inputs[0]
    size = out.known_dimension(value, axis)
    if size is not None and _is_product_of_matrices(axis, size, node, out):
        return out.emit("MatMul", [value, _triangle(size, node, out)], [output])
    shape = out.known_shape(value)
    if shape is None:
        if _has_few_rows(axis, node, out):
            return _accumulate_by_doubling(axis, node, out, output)
        # No Scan: onnxruntime crashes if a Scan has no iterations, or if the scanned elements are empty.
        return _accumulate_in_loop(axis, node, out, output)
    if not all(shape):
        return out.emit("Identity", [value], [output])
    return _accumulate_in_scan(axis, shape, node, out, output)


def _has_few_rows(axis: int, node: Node, out: Rewriter) -> bool:
    """Return whether to add integers by doubling: fewer iterations, each of which adds all elements."""
    value = node.inputs[0]
    sizes = [out.known_dimension(value, each) for each in range(out.rank(value)) if each != axis]
    known = [size for size in sizes if size is not None]
    return (
        node.op_type == "CumSum"
        and out.element_type(value) in WRAPPING_TYPES
        # Below this opset, `index_range` emits an RNN, which OpenVINO does not run.
        and out.default_opset >= POOL_INDICES_OPSET
        and len(known) == len(sizes)
        and math.prod(known) <= MAX_ROWS
    )


def _is_product_of_matrices(axis: int, size: int, node: Node, out: Rewriter) -> bool:
    """Return whether to use MatMul with a matrix of 0 and 1; False for floats, because inf * 0 is NaN."""
    return (
        node.op_type == "CumSum"
        and out.element_type(node.inputs[0]) in MATRIX_TYPES
        and out.default_opset >= MATRIX_OPSET
        and axis == out.rank(node.inputs[0]) - 1
        and size * size <= MAX_CONSTANT_ELEMENTS
    )


def _triangle(size: int, node: Node, out: Rewriter) -> str:
    """Return a square matrix with 1 at (row, column) if the sum at `column` includes the element at `row`."""
    reverse, exclusive = node.attribute("reverse", 0), node.attribute("exclusive", 0)
    positions = [-each if reverse else each for each in range(size)]
    values = tuple(
        int(row < column if exclusive else row <= column) for row in positions for column in positions
    )
    return out.tensor(Tensor(out.element_type(node.inputs[0]), (size, size), values))


def _accumulate_in_scan(axis: int, shape: tuple[int, ...], node: Node, out: Rewriter, output: str) -> str:
    value, element_type = node.inputs[0], out.element_type(node.inputs[0])
    op_type, _ = ACCUMULATORS[node.op_type]
    dims = (*shape[:axis], *shape[axis + 1 :])
    body = SubgraphBuilder(out)
    previous, element = body.input(element_type, dims), body.input(element_type, dims)
    total = body.emit(op_type, [previous, element])
    body.output(total, element_type, dims)
    element = body.emit("Identity", [previous if node.attribute("exclusive", 0) else total])
    body.output(element, element_type, dims)
    direction = (int(bool(node.attribute("reverse", 0))),)
    out.emit_all(
        "Scan",
        [_neutral_elements(axis, node, out), value],
        [out.fresh("total"), output],
        body=body.graph(),
        num_scan_inputs=1,
        scan_input_axes=(axis,),
        scan_output_axes=(axis,),
        scan_input_directions=direction,
        scan_output_directions=direction,
    )
    return output


def _neutral_elements(axis: int, node: Node, out: Rewriter) -> str:
    """Return the initial total: neutral elements in the shape of the data without dimension `axis`."""
    value = node.inputs[0]
    element_type = out.element_type(value)
    number: float = ACCUMULATORS[node.op_type][1]
    if not number and element_type in FLOAT_TYPES and not node.attribute("exclusive", 0):
        number = -0.0  # -0.0, because a 0 would change a sum of -0.0
    neutral = Tensor(element_type, (1,), (number,))
    if shape := out.known_shape(value):
        dims = (*shape[:axis], *shape[axis + 1 :])
        if (count := math.prod(dims)) <= MAX_CONSTANT_ELEMENTS:
            return out.tensor(Tensor(neutral.element_type, dims, neutral.values * count))
    other_axes = [each for each in range(out.rank(value)) if each != axis]
    sizes = out.emit("Gather", [out.emit("Shape", [value]), out.int64(other_axes)], axis=0)
    return out.emit("ConstantOfShape", [sizes], value=neutral)


def _accumulate_by_doubling(axis: int, node: Node, out: Rewriter, output: str) -> str:
    """Add to each element the sum of the 1, 2, 4, ... elements before it, in one iteration of a Loop each."""
    value, element_type = node.inputs[0], out.element_type(node.inputs[0])
    rank, reverse = out.rank(value), node.attribute("reverse", 0)
    size, powers = computed_dimension(value, axis, out), out.int64(POWERS_OF_TWO)
    is_shorter = cast(is_less(powers, size, "int64", out), "int64", out)
    iterations = out.emit("ReduceSum", [is_shorter], axes=(0,), keepdims=0)
    positions = index_range(size, out)

    body = LoopBuilder(out)
    total = body.input(element_type, (None,) * rank)
    step = body.emit("Gather", [powers, body.iteration], axis=0)
    source = body.emit("Add" if reverse else "Sub", [positions, step])
    bounds: tuple[str | int, str] = (source, size) if reverse else (-1, source)
    weights = cast(is_less(*bounds, "int64", body), "int64", body)
    sums = body.emit("Gather", [total, body.emit("Mul", [source, weights])], axis=axis)
    weights = cast(weights, element_type, body) if element_type != "int64" else weights
    if axis < rank - 1:
        weights = body.emit("Unsqueeze", [weights], opset=UNSQUEEZE_OPSET, axes=range(1, rank - axis))
    sums = body.emit("Mul", [sums, weights])
    body.output(body.emit("Add", [total, sums]), element_type, (None,) * rank)
    if not node.attribute("exclusive", 0):
        body.emit_loop(iterations, [value], out, [output])
        return output
    (inclusive,) = body.emit_loop(iterations, [value], out)
    return out.emit("Sub", [inclusive, value], [output])


def _accumulate_in_loop(axis: int, node: Node, out: Rewriter, output: str) -> str:
    value = node.inputs[0]
    op_type, _ = ACCUMULATORS[node.op_type]
    size = computed_dimension(value, axis, out)
    reverse, exclusive = node.attribute("reverse", 0), node.attribute("exclusive", 0)
    rank = out.rank(value)
    other_axes = [each for each in range(rank) if each != axis]
    dims, element_type = (None,) * len(other_axes), out.element_type(value)

    body = LoopBuilder(out)
    previous = body.input(element_type, dims)
    index = body.iteration
    if reverse:
        count = reshape(size, (), out)
        last = out.emit("Sub", [count, out.int64(1)])
        index = body.emit("Sub", [last, body.iteration])
    total = body.emit(op_type, [previous, body.emit("Gather", [value, index], axis=axis)])
    body.output(total, element_type, dims)
    body.output(body.emit("Identity", [previous if exclusive else total]), element_type, dims)
    body.output(body.emit("Identity", [index]), "int64", ())

    start = _neutral_elements(axis, node, out)
    names = [out.fresh("total"), out.fresh("rows"), out.fresh("places")]
    _, rows, indices = body.emit_loop(size, [start], out, names)
    if reverse:
        # The Loop stacks results from the last element to the first: restore the order by a Gather.
        rows = out.emit("Gather", [rows, indices], axis=0)
    # The Loop stacks results along dimension 0: move this dimension back to the axis.
    order = (*range(1, axis + 1), 0, *range(axis + 1, rank))
    if out.known_dimension(value, axis):
        return out.emit("Transpose", [rows], [output], perm=order)
    # A Loop without iterations has results of unknown sizes: restore the shape of the data.
    moved = out.emit("Transpose", [rows], perm=order)
    return out.emit("Reshape", [moved, out.emit("Shape", [value])], [output], opset=RESHAPE_OPSET)
