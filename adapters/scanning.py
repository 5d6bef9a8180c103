"""Scan: version 8 ran over every sample of a batch; version 9 knows no batch, but axes and directions."""

from __future__ import annotations

from opshift.adapters.negative_axes import from_the_front
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Scan", 8, 9)
def batch_of_one_is_taken_off(node: Node, out: Rewriter) -> None:
    """With one sample, the batch dimension comes off every input and goes back on every output."""
    if node.input(0):
        raise CannotConvert("sequence_lens is used, which Scan-9 does not have")
    inputs = node.inputs[1:]
    batches = {shape[0] for shape in map(out.shape, inputs) if shape}
    if batches != {1}:
        raise CannotConvert(
            "the batch is not known to be one sample; Scan-9 runs over one",
            remedy="state the inputs' shapes, with 1 as their first dimension",
        )
    outputs = [out.fresh("scan") if name else "" for name in node.outputs]
    attributes = node.without("directions")
    if "directions" in node.attributes:
        attributes["scan_input_directions"] = node.attribute("directions")
    singles = [out.emit("Squeeze", [name], axes=[0]) for name in inputs]
    out.become(node, inputs=singles, outputs=outputs, attributes=attributes)
    for single, name in zip(outputs, node.outputs, strict=True):
        if name:
            out.emit("Unsqueeze", [single], [name], axes=[0])


@adapter("Scan", 11, 9)
def scanned_axes_count_from_the_front(node: Node, out: Rewriter) -> None:
    """The rank is added to negative axes."""
    attributes = dict(node.attributes)
    for name, values in (("scan_input_axes", node.inputs), ("scan_output_axes", node.outputs)):
        axes = node.attribute(name)
        if axes and min(axes) < 0:
            scanned = values[-len(axes) :]
            attributes[name] = [
                from_the_front(axis, value, out) for axis, value in zip(axes, scanned, strict=True)
            ]
    out.become(node, attributes=attributes)


@adapter("Scan", 9, 8)
def batch_of_one_is_put_on(node: Node, out: Rewriter) -> None:
    """A sample for itself is a batch of one; what is scanned is brought to the front, and back behind."""
    if any(node.attribute("scan_output_directions", ())):
        raise CannotConvert("an output is built from its end, which Scan-8 does not do")
    count = node.attribute("num_scan_inputs")
    carried = len(node.inputs) - count
    attributes = {"body": node.attributes["body"], "num_scan_inputs": count}
    if "scan_input_directions" in node.attributes:
        attributes["directions"] = node.attribute("scan_input_directions")
    inputs = [""]
    for position, name in enumerate(node.inputs):
        front = _turned(name, _axis(node, "scan_input_axes", position - carried), out)
        inputs.append(out.emit("Unsqueeze", [front], axes=[0]))
    outputs = [out.fresh("scan") if name else "" for name in node.outputs]
    out.become(node, inputs=inputs, outputs=outputs, attributes=attributes)
    for position, (batched, name) in enumerate(zip(outputs, node.outputs, strict=True)):
        if name:
            _unbatched(batched, name, _axis(node, "scan_output_axes", position - carried), out)


def _axis(node: Node, attribute: str, position: int) -> int:
    axes = node.attribute(attribute, ())
    return int(axes[position]) if 0 <= position < len(axes) else 0


def _turned(name: str, axis: int, out: Rewriter) -> str:
    """The value with one dimension brought to the front."""
    if axis == 0:
        return name
    rest = [each for each in range(out.rank(name)) if each != axis]
    return out.emit("Transpose", [name], perm=[axis, *rest])


def _unbatched(batched: str, name: str, axis: int, out: Rewriter) -> None:
    """The only sample, with its first dimension put where `axis` says."""
    if axis == 0:
        out.emit("Squeeze", [batched], [name], axes=[0])
        return
    rest = list(range(1, out.rank(name)))
    single = out.emit("Squeeze", [batched], axes=[0])
    out.emit("Transpose", [single], [name], perm=[*rest[:axis], 0, *rest[axis:]])
