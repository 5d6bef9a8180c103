"""Checks of the input shapes that operators require, by the name of the operator's shape rule."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest

from opshift.model.types import Shape, shape_to_string
from opshift.registry.shapes.dims import dim_at, normalize_axes, normalize_axis, product
from opshift.registry.shapes.einsum import ELLIPSIS, parse_equation
from opshift.registry.shapes.fused import transposed_operand
from opshift.registry.shapes.shape_context import ShapeContext

Requirement = Callable[[ShapeContext], Iterator[str]]
"""Function that yields problems of a node's input shapes; sizes that are not certain are `None`."""


def _broadcast_problems(node: ShapeContext) -> Iterator[str]:
    # Skip versions with an attribute `broadcast`, which align the second input by a different rule.
    if "broadcast" not in node.version.attributes:
        yield from _unequal_shape_problems(node.inputs)


def _unequal_shape_problems(shapes: Sequence[Shape | None]) -> Iterator[str]:
    """Yield a problem if the known shapes do not broadcast by NumPy's rules."""
    known = [shape for shape in shapes if shape is not None]
    # Fast path for equal shapes, the most common case.
    if len(set(known)) < 2:
        return
    for column in zip_longest(*(shape[::-1] for shape in known), fillvalue=1):
        if len({size for size in column if size not in (None, 1)}) > 1:
            yield f"{_shapes_text(known)} cannot be broadcast"
            return


def _product_problems(first: Shape | None, second: Shape | None) -> Iterator[str]:
    """Yield a problem if MatMul cannot multiply the two shapes."""
    if first is None or second is None:
        return
    if not first or not second:
        yield "an operand of the matrix product is a scalar"
    elif _sizes_differ(first[-1], second[-2:][0]):
        yield f"{_shapes_text([first, second])} cannot be multiplied"
    else:
        yield from _unequal_shape_problems([first[:-2], second[:-2]])


def _gemm_problems(node: ShapeContext) -> Iterator[str]:
    first, second, added = (node.shape(position) for position in range(3))
    if "broadcast" in node.version.attributes or first is None or second is None:
        return
    if len(first) != 2 or len(second) != 2:
        yield f"{_shapes_text([first, second])} are not both matrices"
        return
    first = first[::-1] if node.integer("transA", 0) else first
    second = second[::-1] if node.integer("transB", 0) else second
    if _sizes_differ(first[1], second[0]):
        yield f"{_shapes_text([first, second])}, after transposition, cannot be multiplied"
    result = (first[0], second[1])
    padded = added if added is None else (1,) * (2 - len(added)) + added
    if padded is not None and any(
        size != 1 and _sizes_differ(size, target) for size, target in zip_longest(padded, result, fillvalue=1)
    ):
        yield f"the product has the shape {shape_to_string(result)}; C has {shape_to_string(padded)}"


def _concat_problems(node: ShapeContext, inputs: Sequence[Shape | None] | None = None) -> Iterator[str]:
    # Skip inputs without elements: runtimes ignore them, whatever their rank.
    shapes = node.inputs if inputs is None else inputs
    known = [shape for shape in shapes if shape is not None and 0 not in shape]
    rank = len(known[0]) if known else 0
    axis = normalize_axis(node.integer("axis"), rank)
    if () in known:
        yield "an input is a scalar"
    elif known and axis is None and node.integer("axis") is not None:
        yield f"axis {node.integer('axis')} is out of range for {rank} dimensions"
    elif any(len(shape) != rank for shape in known):
        yield f"{_shapes_text(known)} have different ranks"
    elif axis is not None and any(
        len({*sizes} - {None}) > 1 for other, sizes in enumerate(zip(*known, strict=True)) if other != axis
    ):
        yield f"{_shapes_text(known)} differ in axes other than {axis}"


def _convolution_problems(node: ShapeContext, weights_at: int = 1) -> Iterator[str]:
    data, weights, group = node.shape(0), node.shape(weights_at), node.integer("group", 1)
    if data is None or weights is None:
        return
    if len(data) != len(weights) or len(data) < 3:
        yield f"{_shapes_text([data, weights])} of data and weights must have the same rank, at least 3"
        return
    if weights[1] is not None and group and _sizes_differ(data[1], weights[1] * group):
        yield f"the data has {data[1]} channels; weights and group require {weights[1] * group}"
    if weights[0] is not None and group and weights[0] % group:
        yield f"{weights[0]} output channels cannot be divided into {group} groups"
    yield from _kernel_problems(node, weights)


def _conv_transpose_problems(node: ShapeContext) -> Iterator[str]:
    data, weights = node.shape(0), node.shape(1)
    if data is None or weights is None:
        return
    if len(data) != len(weights) or len(data) < 3:
        yield f"{_shapes_text([data, weights])} of data and weights must have the same rank, at least 3"
    elif _sizes_differ(data[1], weights[0]):
        yield f"the data has {data[1]} channels; the weights require {weights[0]}"
    else:
        yield from _kernel_problems(node, weights)


def _kernel_problems(node: ShapeContext, weights: Shape) -> Iterator[str]:
    kernel = node.integers("kernel_shape")
    if kernel and (len(kernel) != len(weights) - 2 or any(map(_sizes_differ, kernel, weights[2:]))):
        yield f"kernel_shape is {shape_to_string(kernel)}; the weights have {shape_to_string(weights[2:])}"


def _pool_problems(node: ShapeContext) -> Iterator[str]:
    data, kernel = node.shape(0), node.integers("kernel_shape")
    if data is not None and kernel and len(data) != len(kernel) + 2:
        yield f"the kernel has {len(kernel)} dimensions; data of rank {len(data)} requires {len(data) - 2}"


def _batch_normalization_problems(node: ShapeContext) -> Iterator[str]:
    data = node.shape(0)
    if data is None or node.integer("spatial", 1) != 1:
        return
    channels = dim_at(data, 1) if len(data) > 1 else 1
    for position in range(1, 5):
        shape = node.shape(position)
        if shape is not None and (len(shape) != 1 or _sizes_differ(shape[0], channels)):
            expected = "one dimension" if channels is None else f"[{channels}]"
            yield f"input {position} has the shape {shape_to_string(shape)}; expected {expected}"


def _reshape_problems(node: ShapeContext) -> Iterator[str]:
    data, target = node.shape(0), node.setting("shape").values
    if data is None or target is None:
        return
    copies = not node.integer("allowzero", 0)
    copied = {position for position, size in enumerate(target) if size == 0 and copies}
    if any(position >= len(data) for position in copied):
        yield f"shape {shape_to_string(target)} copies a dimension that {shape_to_string(data)} does not have"
        return
    if target.count(-1) > 1:
        yield f"shape {shape_to_string(target)} has more than one size to infer"
        return
    count = product(data)
    sizes = [data[position] if position in copied else size for position, size in enumerate(target)]
    others = product(size for size in sizes if size != -1)
    # A count may be unknown; for a tensor without elements, runtimes infer different sizes.
    if not count or not others:
        return
    if count % others if -1 in sizes else count != others:
        yield f"{shape_to_string(data)} cannot be reshaped to {shape_to_string(target)}"


def _expand_problems(node: ShapeContext) -> Iterator[str]:
    return _unequal_shape_problems([node.shape(0), node.setting("shape").values])


def _transpose_problems(node: ShapeContext) -> Iterator[str]:
    data, order = node.shape(0), node.integers("perm")
    if data is not None and order is not None and sorted(order) != list(range(len(data))):
        yield f"perm {list(order)} is not a permutation of the {len(data)} axes"


def _squeeze_problems(node: ShapeContext) -> Iterator[str]:
    data = node.shape(0)
    for axis in normalize_axes(node.setting("axes").values, len(data)) or () if data else ():
        size = dim_at(data, axis)
        if size not in (1, None):
            yield f"axis {axis} has the size {size}, and cannot be removed"


def _split_problems(node: ShapeContext) -> Iterator[str]:
    data, lengths = node.shape(0), node.setting("split").values
    axis = normalize_axis(node.integer("axis"), None if data is None else len(data))
    if axis is None and data == ():
        yield "a scalar cannot be split"
    if lengths is None:
        yield from _even_split_problems(node, dim_at(data, axis or 0) if axis is not None else None)
        return
    if None in lengths:
        return
    if len(lengths) != node.output_count:
        yield f"split has {len(lengths)} lengths; the node has {node.output_count} outputs"
    elif axis is not None and _sizes_differ(dim_at(data, axis), sum(filter(None, lengths))):
        yield f"the lengths {list(lengths)} do not sum up to {dim_at(data, axis)}, the size of axis {axis}"


def _even_split_problems(node: ShapeContext, size: int | None) -> Iterator[str]:
    """Yield a problem if a Split without lengths is invalid; only `num_outputs` allows unequal parts."""
    if not node.setting("split").absent:
        return
    if "num_outputs" in node.version.attributes:
        count = node.integer("num_outputs")
        if count is None:
            yield "has neither the input split nor the attribute num_outputs"
        elif count != node.output_count:
            yield f"num_outputs is {count}; the node has {node.output_count} outputs"
    elif size is not None and node.output_count and size % node.output_count:
        yield f"{size} elements cannot be split into {node.output_count} equal parts"


def _einsum_problems(node: ShapeContext) -> Iterator[str]:
    equation = parse_equation(node.string("equation"))
    if problem := equation.problem([None if shape is None else len(shape) for shape in node.inputs]):
        yield problem
        return
    sizes: dict[str, int] = {}
    for term, shape in zip(equation.operands, node.inputs, strict=True):
        if shape is None:
            continue
        start, _, end = term.partition(ELLIPSIS)
        pairs = (*zip(start, shape, strict=False), *zip(end, shape[len(shape) - len(end) :], strict=True))
        for letter, size in pairs:
            if size not in (None, 1) and sizes.setdefault(letter, size) != size:
                yield f"the subscript {letter!r} has the sizes {sizes[letter]} and {size}"


def _sizes_differ(first: int | None, second: int | None) -> bool:
    return first is not None and second is not None and first != second


def _shapes_text(shapes: Sequence[Shape]) -> str:
    return f"the shapes {', '.join(map(shape_to_string, dict.fromkeys(shapes)))}"


REQUIREMENTS: Mapping[str, Requirement] = {
    "broadcast": _broadcast_problems,
    "matmul": lambda node: _product_problems(node.shape(0), node.shape(1)),
    "fused_matmul": lambda node: _product_problems(transposed_operand(node, 0), transposed_operand(node, 1)),
    "quantized_matmul": lambda node: _product_problems(node.shape(0), node.shape(3)),
    "gemm": _gemm_problems,
    "concat": _concat_problems,
    "convolution": _convolution_problems,
    "quantized_convolution": lambda node: _convolution_problems(node, weights_at=3),
    "conv_transpose": _conv_transpose_problems,
    "pool": _pool_problems,
    "batch_normalization": _batch_normalization_problems,
    "reshape": _reshape_problems,
    "expand": _expand_problems,
    "transpose": _transpose_problems,
    "squeeze": _squeeze_problems,
    "split": _split_problems,
    "einsum": _einsum_problems,
    "quantized_concat": lambda node: _concat_problems(node, node.inputs[2::3]),
}
"""Checks by the name of the shape rule; only for the requirements that invalid models break most often."""
