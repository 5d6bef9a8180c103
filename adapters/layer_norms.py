"""LayerNormalization, RMSNormalization and MeanVarianceNormalization: means over some of the dimensions.

The first two work in the type that `stash_type` names, and scale in that of their data.
"""

from __future__ import annotations

from collections.abc import Sequence

from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME, BY_NUMBER

PLAIN = 8
"""An opset with the oldest form of the arithmetic used here; axes from the back came with 11."""


@adapter("LayerNormalization", 17, 16)
def distance_over_deviation(node: Node, out: Rewriter) -> None:
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias`."""
    data, scale, bias = node.inputs[0], node.inputs[1], node.input(2)
    element_type = out.element_type(data)
    stash_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    axes = _axes_from(node, out)
    mean, inverse = (node.output(at) or out.fresh("statistic") for at in (1, 2))
    wide = _cast(data, element_type, stash_type, out)
    _mean(wide, axes, out, mean)
    distance = out.emit("Sub", [wide, mean])
    deviation = _root(_mean(out.emit("Mul", [distance, distance]), axes, out), node, stash_type, out)
    out.emit("Reciprocal", [deviation], [inverse])
    normal = _cast(out.emit("Mul", [distance, inverse]), stash_type, element_type, out)
    if not bias:
        out.emit("Mul", [normal, scale], node.outputs[:1])
        return
    out.emit("Add", [out.emit("Mul", [normal, scale]), bias], node.outputs[:1])


@adapter("RMSNormalization", 23, 22)
def data_over_root_mean_square(node: Node, out: Rewriter) -> None:
    """`x / sqrt(mean(x * x) + epsilon) * scale`; the result has the type of the scale."""
    data, scale = node.inputs
    element_type, scale_type = out.element_type(data), out.element_type(scale)
    stash_type = BY_NUMBER[node.attribute("stash_type", 1)].name
    wide = _cast(data, element_type, stash_type, out)
    square = _mean(out.emit("Mul", [wide, wide]), _axes_from(node, out), out)
    normal = out.emit("Div", [wide, _root(square, node, stash_type, out)])
    normal = _cast(_cast(normal, stash_type, element_type, out), element_type, scale_type, out)
    out.emit("Mul", [normal, scale], node.outputs)


@adapter("MeanVarianceNormalization", 9, 1)
def any_axes_and_a_deviation_that_is_never_zero(node: Node, out: Rewriter) -> None:
    """`(x - mean) / (deviation + 1e-9)` over `axes`; runtimes do not have the experimental version 1."""
    data, rank = node.inputs[0], out.known_rank(node.inputs[0])
    axes = [axis % rank if rank else axis for axis in node.attribute("axes", (0, 2, 3))]
    distance = out.emit("Sub", [data, _mean(data, axes, out)], opset=PLAIN)
    square = out.emit("Mul", [distance, distance], opset=PLAIN)
    deviation = out.emit("Sqrt", [_mean(square, axes, out)], opset=PLAIN)
    above = out.constant(1e-9, out.element_type(data))
    deviation = out.emit("Add", [deviation, above], opset=PLAIN)
    out.emit("Div", [distance, deviation], node.outputs, opset=PLAIN)


def _axes_from(node: Node, out: Rewriter) -> Sequence[int]:
    """The dimensions from `axis` on, counted from the back where that needs no rank."""
    axis, rank = node.attribute("axis", -1), out.known_rank(node.inputs[0])
    if axis < 0 and rank is None:
        return range(axis, 0)
    rank = out.rank(node.inputs[0])
    return range(axis % rank, rank)


def _mean(data: str, axes: Sequence[int], out: Rewriter, name: str = "") -> str:
    outputs = [name] if name else 1
    opset = 11 if min(axes, default=0) < 0 else PLAIN
    return out.emit("ReduceMean", [data], outputs, axes=tuple(axes), keepdims=1, opset=opset)


def _root(square: str, node: Node, stash_type: str, out: Rewriter) -> str:
    epsilon = out.constant(node.attribute("epsilon", 1e-5), stash_type)
    return out.emit("Sqrt", [out.emit("Add", [square, epsilon])])


def _cast(value: str, source: str, target: str, out: Rewriter) -> str:
    return value if source == target else out.emit("Cast", [value], to=BY_NAME[target].number)
