"""CumSum and CumProd as scans that combine elements at distances 1, 2, 4 and so on."""

from opshift.adapters import Node, Rewriter, Tensor, adapter
from opshift.adapters.emit.cast import cast
from opshift.adapters.emit.shapes import computed_dimension, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder

UNSQUEEZE_OPSET = 1
"""Opset of the emitted Unsqueeze, whose axes are an attribute."""

ACCUMULATORS = {"CumSum": ("Add", 0), "CumProd": ("Mul", 1)}
"""Operator that combines two elements, and its neutral element."""


@adapter("CumSum", 11, 10)
@adapter("CumProd", 26, 25)
def accumulate(node: Node, out: Rewriter) -> None:
    """Accumulate along the axis; along a computed axis, accumulate along all and select one result."""
    rank = out.rank(node.inputs[0])
    axis = out.constant_value(node.inputs[1])
    if axis is not None or rank == 1:
        index = int(axis.values[0]) % rank if axis is not None else 0
        out.emit("Identity", [_accumulate_along(index, node, out)], node.outputs)
        return
    results = [_accumulate_along(index, node, out) for index in range(rank)]
    rows = [out.emit("Unsqueeze", [value], opset=UNSQUEEZE_OPSET, axes=(0,)) for value in results]
    # Each result gets a leading dimension of size 1, along which Gather selects one of them.
    stacked = out.emit("Concat", rows, axis=0)
    computed_axis = reshape(cast(node.inputs[1], "int64", out), (), out)
    wrapped_axis = out.emit("Mod", [computed_axis, out.int64(rank)])
    out.emit("Gather", [stacked, wrapped_axis], node.outputs, axis=0)


def _accumulate_along(axis: int, node: Node, out: Rewriter) -> str:
    """Combine elements along one axis with those 1, 2, 4, ... positions before them."""
    value = node.inputs[0]
    op_type, neutral = ACCUMULATORS[node.op_type]
    size = out.known_dimension(value, axis)
    if size is None:
        # The number of rounds depends on the size: a Loop handles an unknown one.
        return _accumulate_in_loop(axis, node, out)
    reverse = bool(node.attribute("reverse", 0))

    def part(value: str, start: int, end: int) -> str:
        first, last = (size - end, size - start) if reverse else (start, end)
        return out.emit("Slice", [value, *(out.int64([each]) for each in (first, last, axis))])

    def join(head: str, tail: str) -> str:
        return out.emit("Concat", [tail, head] if reverse else [head, tail], axis=axis)

    # An exclusive scan is an inclusive one of the input shifted by one position.
    if node.attribute("exclusive", 0) and size:
        fill_value = Tensor(out.element_type(value), (1,), (neutral,))
        head_shape = out.emit("Shape", [part(value, 0, 1)])
        head = out.emit("ConstantOfShape", [head_shape], value=fill_value)
        value = join(head, part(value, 0, size - 1))
    distance = 1
    while distance < size:
        combined = out.emit(op_type, [part(value, distance, size), part(value, 0, size - distance)])
        value = join(part(value, 0, distance), combined)
        distance *= 2
    return value


def _accumulate_in_loop(axis: int, node: Node, out: Rewriter) -> str:
    value = node.inputs[0]
    op_type, neutral = ACCUMULATORS[node.op_type]
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

    shape = out.emit("Gather", [out.emit("Shape", [value]), out.int64(other_axes)], axis=0)
    start = out.emit("ConstantOfShape", [shape], value=Tensor(element_type, (1,), (neutral,)))
    names = [out.fresh("total"), out.fresh("rows"), out.fresh("places")]
    _, rows, indices = body.emit_loop(size, [start], out, names)
    if reverse:
        # The Loop stacks its results from the last element to the first: gathering by the reversed indices
        # restores their order.
        rows = out.emit("Gather", [rows, indices], axis=0)
    # The Loop stacks its results along dimension 0: move it back to the axis.
    return out.emit("Transpose", [rows], perm=[*range(1, axis + 1), 0, *range(axis + 1, rank)])
