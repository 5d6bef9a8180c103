"""Output shapes of operators that keep the shape of an input, or broadcast several inputs."""

from typing import Final

from opshift.model.types import Shape
from opshift.registry.shapes.dims import broadcast, dim_at, normalize_axis, unknown
from opshift.registry.shapes.rule_table import Shapes, data_rule, rule
from opshift.registry.shapes.shape_context import ShapeContext


@rule("broadcast")
def broadcast_all(node: ShapeContext) -> Shapes:
    """Broadcast all inputs as in NumPy.

    In versions with a `broadcast` attribute, only the second input is broadcast, to the shape of the first.
    """
    return [node.shape(0) if "broadcast" in node.version.attributes else broadcast(node.inputs)]


PER_TENSOR: Final = ("_scale", "_zero_point")
"""Suffixes of the names of inputs that describe how a whole tensor is quantized."""


@rule("broadcast_operands")
def broadcast_operands(node: ShapeContext) -> Shapes:
    """Broadcast the inputs except scales and zero points, which have one element."""
    pairs = zip(node.version.inputs, node.inputs, strict=False)
    return [broadcast([shape for formal, shape in pairs if not formal.name.endswith(PER_TENSOR)])]


@rule("batch_normalization", keeps_rank=True)
def batch_normalization(node: ShapeContext) -> Shapes:
    """Infer the shape of input 0; for statistics, that of input 3 or, if unknown, one element per channel."""
    data, mean = node.shape(0), node.shape(3)
    if mean is None and node.integer("spatial", 1) == 1:
        mean = (dim_at(data, 1),)
    return [data, *[mean] * (node.output_count - 1)]


@data_rule("layer_normalization", keeps_rank=True)
def layer_normalization(node: ShapeContext, data: Shape) -> Shapes:
    """Infer the input's shape, and for statistics this shape with the sizes 1 from `axis` on."""
    start = normalize_axis(node.integer("axis"), len(data))
    reduced = unknown(len(data)) if start is None else data[:start] + (1,) * (len(data) - start)
    return [data, reduced, reduced]


@rule("optimizer")
def optimizer(node: ShapeContext) -> Shapes:
    """Infer the shapes of the updated tensors and states, which equal those before the update.

    The inputs are the learning rate, the update count, n tensors, n gradients, and n tensors of each state.
    """
    tensors = len(node.inputs) - 2 - node.output_count
    if tensors <= 0 or node.output_count % tensors:
        return []
    return [*node.inputs[2 : 2 + tensors], *node.inputs[2 + 2 * tensors :]]
