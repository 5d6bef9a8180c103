"""BatchNormalization and InstanceNormalization: training, types and ranks that older versions do not have."""

from __future__ import annotations

from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.normalization_types import common_type, compute_in
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

HALVES = ("float16", "bfloat16")


@adapter("BatchNormalization", 15, 14)
def scale_has_the_type_of_the_data(node: Node, out: Rewriter) -> None:
    """Data, scale and bias are of one type; statistics of a batch are float32 at least, as from 15 on."""
    wider = common_type(node.inputs[:3], out)
    if wider is None and node.attribute("training_mode", 0) and out.element_type(node.inputs[0]) in HALVES:
        wider = "float"
    if wider is None:
        out.become(node)
        return
    compute_in(wider, (0, 1, 2), (0,), node, out)


@adapter("BatchNormalization", 14, 9)
def training_is_arithmetic(node: Node, out: Rewriter) -> None:
    """Inference stays; statistics of a batch, which runtimes never computed before 14, are written out."""
    wider = common_type(node.inputs, out)
    if wider is not None:
        compute_in(wider, (0, 1, 2, 3, 4), (0, 1, 2), node, out)
        return
    require_types(node, out)
    attributes = node.without("training_mode")
    if not node.attribute("training_mode", 0):
        out.become(node, outputs=node.outputs[:1], attributes=attributes)
        return
    mean, variance = _statistics(node.inputs[0], out)
    inputs = (*node.inputs[:3], mean, variance)
    out.become(node, inputs=inputs, outputs=node.outputs[:1], attributes=attributes)
    for position, current in ((1, mean), (2, variance)):
        if node.output(position):
            _running(node, position, current, out)


def _statistics(data: str, out: Rewriter) -> tuple[str, str]:
    """The mean and the population variance of each channel."""
    flat = out.emit("Reshape", [data, out.constant([0, 0, -1], "int64")])
    means = out.emit("ReduceMean", [flat], axes=[0, 2], keepdims=1)
    deviation = out.emit("Sub", [flat, means])
    squares = out.emit("Mul", [deviation, deviation])
    variance = out.emit("ReduceMean", [squares], axes=[0, 2], keepdims=0)
    return out.emit("Reshape", [means, out.constant([-1], "int64")]), variance


def _running(node: Node, position: int, current: str, out: Rewriter) -> None:
    """What was kept of it before, by `momentum`, and the batch's own for the rest."""
    momentum = node.attribute("momentum", 0.9)
    element_type = out.element_type(node.inputs[0])
    kept = out.emit("Mul", [node.inputs[position + 2], out.constant(momentum, element_type)])
    added = out.emit("Mul", [current, out.constant(1.0 - momentum, element_type)])
    out.emit("Add", [kept, added], [node.outputs[position]])


@adapter("BatchNormalization", 7, 6)
def is_test_is_told(node: Node, out: Rewriter) -> None:
    """The number of outputs told training; `is_test` did before."""
    is_test = int(not any(node.outputs[1:]))
    out.become(node, attributes={**node.attributes, "is_test": is_test})


@adapter("InstanceNormalization", 6, 1)
def data_has_four_dimensions(node: Node, out: Rewriter) -> None:
    """Version 1 took images only; a channel's elements are laid out as one."""
    data = node.inputs[0]
    if out.known_rank(data) == 4:
        out.become(node)
        return
    image = out.emit("Reshape", [data, out.constant([0, 0, -1, 1], "int64")], opset=5)
    normal = out.fresh("instance")
    out.become(node, inputs=(image, *node.inputs[1:]), outputs=[normal])
    out.emit("Reshape", [normal, out.emit("Shape", [data])], node.outputs, opset=5)
