"""Outputs that keep a shape, or into which the inputs broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.context import Shape, ShapeContext
from opshift.registry.shapes.dims import axis_in, broadcast, unknown
from opshift.registry.shapes.reading import input_shape, integer
from opshift.registry.shapes.table import rule


@rule("same_as_first", keeps_rank=True)
def same_as_first(node: ShapeContext) -> Sequence[Shape | None]:
    """The first output has the first input's shape."""
    return [input_shape(node, 0)]


@rule("same_as_second")
def same_as_second(node: ShapeContext) -> Sequence[Shape | None]:
    """The first output has the second input's shape."""
    return [input_shape(node, 1)]


@rule("all_same_as_first", keeps_rank=True)
def all_same_as_first(node: ShapeContext) -> Sequence[Shape | None]:
    """Every output has the first input's shape."""
    return [input_shape(node, 0)] * node.output_count


@rule("pairwise", keeps_rank=True)
def pairwise(node: ShapeContext) -> Sequence[Shape | None]:
    """Every output has the shape of the input at its position."""
    return [input_shape(node, position) for position in range(node.output_count)]


@rule("broadcast")
def broadcast_all(node: ShapeContext) -> Sequence[Shape | None]:
    """Numpy's broadcasting; where it is an attribute, the second input adapts to the first."""
    if "broadcast" in node.version.attributes:
        return [input_shape(node, 0)]
    return [broadcast([input_shape(node, position) for position in range(node.input_count)])]


@rule("batch_normalization", keeps_rank=True)
def batch_normalization(node: ShapeContext) -> Sequence[Shape | None]:
    """The output keeps the input's shape; statistics have that of the mean, one value a channel."""
    data, mean = input_shape(node, 0), input_shape(node, 3)
    if mean is None and integer(node, "spatial", 1) == 1:
        mean = (data[1],) if data is not None and len(data) > 1 else (None,)
    return [data, *[mean] * (node.output_count - 1)]


@rule("layer_normalization", keeps_rank=True)
def layer_normalization(node: ShapeContext) -> Sequence[Shape | None]:
    """The output keeps the input's shape; statistics have 1 from the axis on."""
    data = input_shape(node, 0)
    if data is None:
        return []
    first = axis_in(integer(node, "axis"), len(data))
    reduced = unknown(len(data)) if first is None else data[:first] + (1,) * (len(data) - first)
    return [data, reduced, reduced]


@rule("dynamic_quantize")
def dynamic_quantize(node: ShapeContext) -> Sequence[Shape | None]:
    """The quantized input, and the scale and zero point of all of it."""
    return [input_shape(node, 0), (), ()]


@rule("optimizer")
def optimizer(node: ShapeContext) -> Sequence[Shape | None]:
    """After rate and count come n tensors, n gradients, n of every state; outputs leave out gradients."""
    tensors = node.input_count - 2 - node.output_count
    if tensors <= 0 or node.output_count % tensors:
        return []
    sources = (at if at < tensors else at + tensors for at in range(node.output_count))
    return [input_shape(node, 2 + source) for source in sources]
