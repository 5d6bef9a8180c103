"""Shapes of operators that keep a shape or broadcast their inputs."""

from __future__ import annotations

from collections.abc import Sequence

from opshift.registry.shapes.dims import broadcast, normalize_axis, unknown
from opshift.registry.shapes.node_reading import input_shape, integer_attribute
from opshift.registry.shapes.rule_table import Shape, ShapeContext, rule


@rule("same_as_first", keeps_rank=True)
def same_as_first(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the first input's shape for the first output."""
    return [input_shape(node, 0)]


@rule("same_as_second")
def same_as_second(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the second input's shape for the first output."""
    return [input_shape(node, 1)]


@rule("all_same_as_first", keeps_rank=True)
def all_same_as_first(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the first input's shape for every output."""
    return [input_shape(node, 0)] * node.output_count


@rule("pairwise", keeps_rank=True)
def pairwise(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the shape of the input at the same position for every output."""
    return [input_shape(node, position) for position in range(node.output_count)]


@rule("broadcast")
def broadcast_all(node: ShapeContext) -> Sequence[Shape | None]:
    """Broadcast all inputs as in NumPy.

    In versions with a `broadcast` attribute, only the second input is broadcast.
    """
    if "broadcast" in node.version.attributes:
        return [input_shape(node, 0)]
    return [broadcast([input_shape(node, position) for position in range(node.input_count)])]


@rule("batch_normalization", keeps_rank=True)
def batch_normalization(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the input's shape, and the shape of the mean for statistics, with one value per channel."""
    data, mean = input_shape(node, 0), input_shape(node, 3)
    if mean is None and integer_attribute(node, "spatial", 1) == 1:
        mean = (data[1],) if data is not None and len(data) > 1 else (None,)
    return [data, *[mean] * (node.output_count - 1)]


@rule("layer_normalization", keeps_rank=True)
def layer_normalization(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the input's shape, and statistics with 1 for the axis and all later dimensions."""
    data = input_shape(node, 0)
    if data is None:
        return []
    start = normalize_axis(integer_attribute(node, "axis"), len(data))
    reduced = unknown(len(data)) if start is None else data[:start] + (1,) * (len(data) - start)
    return [data, reduced, reduced]


@rule("dynamic_quantize")
def dynamic_quantize(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer the quantized input, and a scalar scale and zero point."""
    return [input_shape(node, 0), (), ()]


@rule("optimizer")
def optimizer(node: ShapeContext) -> Sequence[Shape | None]:
    """Infer updated tensors and states.

    The inputs are the learning rate, the update count, n tensors, n gradients, and n tensors of each state.
    The outputs omit the gradients.
    """
    tensors = node.input_count - 2 - node.output_count
    if tensors <= 0 or node.output_count % tensors:
        return []
    sources = (
        position if position < tensors else position + tensors for position in range(node.output_count)
    )
    return [input_shape(node, 2 + source) for source in sources]
