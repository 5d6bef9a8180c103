"""BatchNormalization and InstanceNormalization: training, types and ranks that older versions lack."""

from __future__ import annotations

from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.normalization_types import common_type, compute_in
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

HALVES = ("float16", "bfloat16")
"""Types for which version 15 computes the statistics of a batch in float32."""


@adapter("BatchNormalization", 15, 14)
def scale_has_the_type_of_the_data(node: Node, out: Rewriter) -> None:
    """Cast data, scale and bias to one type; statistics of a batch are computed in at least float32."""
    wider = common_type(node.inputs[:3], out)
    if wider is None and node.attribute("training_mode", 0) and out.element_type(node.inputs[0]) in HALVES:
        wider = "float"
    if wider is None:
        out.become(node)
        return
    compute_in(wider, (0, 1, 2), (0,), node, out)


@adapter("BatchNormalization", 14, 9)
def training_is_arithmetic(node: Node, out: Rewriter) -> None:
    """Rewrite training as arithmetic, which runtimes did not compute before version 14; keep inference."""
    wider = common_type(node.inputs, out)
    if wider is not None:
        compute_in(wider, (0, 1, 2, 3, 4), (0, 1, 2), node, out)
        return
    require_types(node, out)
    attributes = node.without("training_mode")
    if not node.attribute("training_mode", 0):
        out.become(node, outputs=node.outputs[:1], attributes=attributes)
        return
    mean, variance = _batch_statistics(node.inputs[0], out)
    inputs = (*node.inputs[:3], mean, variance)
    out.become(node, inputs=inputs, outputs=node.outputs[:1], attributes=attributes)
    for position, current in ((1, mean), (2, variance)):
        if node.output(position):
            _emit_running_statistic(node, position, current, out)


def _batch_statistics(data: str, out: Rewriter) -> tuple[str, str]:
    """Return the mean and the population variance of each channel."""
    flat = out.emit("Reshape", [data, out.constant([0, 0, -1], "int64")])
    means = out.emit("ReduceMean", [flat], axes=[0, 2], keepdims=1)
    deviation = out.emit("Sub", [flat, means])
    squares = out.emit("Mul", [deviation, deviation])
    variance = out.emit("ReduceMean", [squares], axes=[0, 2], keepdims=0)
    return out.emit("Reshape", [means, out.constant([-1], "int64")]), variance


def _emit_running_statistic(node: Node, position: int, current: str, out: Rewriter) -> None:
    """Emit the old statistic times `momentum` plus that of the batch times `1 - momentum`."""
    momentum = node.attribute("momentum", 0.9)
    element_type = out.element_type(node.inputs[0])
    kept = out.emit("Mul", [node.inputs[position + 2], out.constant(momentum, element_type)])
    added = out.emit("Mul", [current, out.constant(1.0 - momentum, element_type)])
    out.emit("Add", [kept, added], [node.outputs[position]])


@adapter("BatchNormalization", 7, 6)
def is_test_is_told(node: Node, out: Rewriter) -> None:
    """Set `is_test` from the number of outputs, which distinguishes training from inference in version 7."""
    is_test = int(not any(node.outputs[1:]))
    out.become(node, attributes={**node.attributes, "is_test": is_test})


@adapter("InstanceNormalization", 6, 1)
def data_has_four_dimensions(node: Node, out: Rewriter) -> None:
    """Reshape data to rank 4, the only rank that version 1 supports, and the result back."""
    data = node.inputs[0]
    if out.known_rank(data) == 4:
        out.become(node)
        return
    image = out.emit("Reshape", [data, out.constant([0, 0, -1, 1], "int64")], opset=5)
    normalized = out.fresh("instance")
    out.become(node, inputs=(image, *node.inputs[1:]), outputs=[normalized])
    out.emit("Reshape", [normalized, out.emit("Shape", [data])], node.outputs, opset=5)
