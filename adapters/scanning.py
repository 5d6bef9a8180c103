"""Convert Scan: version 8 runs over each sample of a batch; version 9 has axes and directions instead."""

from __future__ import annotations

from opshift.adapters.negative_axes import from_the_front
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Scan", 8, 9)
@adapter("Scan", 8, 7)
def batch_of_one_is_taken_off(node: Node, out: Rewriter) -> None:
    """Squeeze a batch dimension of 1 from every input, and add it to every output."""
    if node.input(0):
        raise CannotConvert("input sequence_lens is used, which Scan-9 does not have")
    inputs = node.inputs[1:]
    batches = {shape[0] for shape in map(out.shape, inputs) if shape}
    if batches != {1}:
        raise CannotConvert(
            "Scan-9 has no batch dimension, and the batch size is not known to be 1",
            remedy="declare the shapes of the inputs with 1 as their first dimension",
        )
    outputs = [out.fresh("scan") if name else "" for name in node.outputs]
    attributes = node.without("directions")
    if "directions" in node.attributes:
        attributes["scan_input_directions"] = node.attribute("directions")
    singles = [out.emit("Squeeze", [name], axes=[0]) for name in inputs]
    out.become(node, inputs=singles, outputs=outputs, attributes=attributes, opset=9)
    for single, name in zip(outputs, node.outputs, strict=True):
        if name:
            out.emit("Unsqueeze", [single], [name], axes=[0])


@adapter("Scan", 11, 9)
def scanned_axes_count_from_the_front(node: Node, out: Rewriter) -> None:
    """Add the rank to negative axes, which version 9 does not support."""
    attributes = dict(node.attributes)
    for name, values in (("scan_input_axes", node.inputs), ("scan_output_axes", node.outputs)):
        axes = node.attribute(name)
        if axes and min(axes) < 0:
            # Scanned values follow the state variables.
            scanned = values[-len(axes) :]
            attributes[name] = [
                from_the_front(axis, value, out) for axis, value in zip(axes, scanned, strict=True)
            ]
    out.become(node, attributes=attributes)
