"""Scan: version 8 runs over each sample of a batch; version 9 has axes and directions instead."""

from collections.abc import Sequence
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.indices import nonnegative_axis
from opshift.adapters.emit.shapes import dimension, dimension_tensor, index_range, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder, body_output_type
from opshift.model.node import Graph


class ScannedValue(NamedTuple):
    """A scanned input or output: its name, its scan axis, and whether it is scanned in reverse."""

    name: str
    axis: int
    is_reversed: bool


@adapter("Scan", 11, 9)
def normalize_scan_axes(node: Node, out: Rewriter) -> None:
    """Add the rank to negative axes, which version 9 does not support."""
    attributes = dict(node.attributes)
    for name, values in (("scan_input_axes", node.inputs), ("scan_output_axes", node.outputs)):
        axes = node.attribute(name)
        if axes and min(axes) < 0:
            # Scanned values follow the state variables.
            scanned = values[-len(axes) :]
            attributes[name] = [
                nonnegative_axis(axis, value, out) for axis, value in zip(axes, scanned, strict=True)
            ]
    out.replace(node, attributes=attributes)


@adapter("Scan", 9, 8)
def replace_scan_by_loop(node: Node, out: Rewriter) -> None:
    """Replace Scan by Loop: version 8 has neither axes nor reversed outputs."""
    scanned = _scanned_values(node, "input", node.inputs[-node.attribute("num_scan_inputs") :])
    states = node.inputs[: len(node.inputs) - len(scanned)]
    built = _scanned_values(node, "output", node.outputs[len(states) :])
    length = dimension_tensor(dimension(scanned[0].name, scanned[0].axis, out), out)
    last = out.emit("Sub", [length, out.int64([1])])
    body = _body(node, scanned, reshape(last, (), out), out)
    stacked = [out.fresh("stacked") for _ in built]
    body.emit_loop(length, states, out, [*node.outputs[: len(states)], *stacked])
    for name, lane in zip(stacked, built, strict=True):
        if lane.is_reversed:
            backward = out.emit("Sub", [last, index_range(length, out)])
            name = out.emit("Gather", [name, backward], axis=0)
        if lane.name:
            _move_scan_axis(name, lane, out)


@adapter("Scan", 8, 9)
@adapter("Scan", 8, 7)
def remove_batch_dimension(node: Node, out: Rewriter) -> None:
    """Squeeze a batch dimension of 1; for other batches, emit a Loop that scans one sample per turn."""
    if node.input(0):
        reason = "input sequence_lens is used, which Scan-9 does not have"
        remedy = "omit sequence_lens if all samples have the full length"
        raise CannotConvert(reason, "input.unsupported", remedy=remedy)
    inputs = node.inputs[1:]
    attributes = node.without("directions")
    if "directions" in node.attributes:
        attributes["scan_input_directions"] = node.attribute("directions")
    if {shape[0] for shape in map(out.shape, inputs) if shape} != {1}:
        _scan_samples(node, attributes, out)
        return
    outputs = [out.fresh("scan") if name else "" for name in node.outputs]
    singles = [out.emit("Squeeze", [name], axes=[0]) for name in inputs]
    out.replace(node, inputs=singles, outputs=outputs, attributes=attributes, opset=9)
    for single, name in zip(outputs, node.outputs, strict=True):
        if name:
            out.emit("Unsqueeze", [single], [name], axes=[0])


def _scan_samples(node: Node, attributes: Attributes, out: Rewriter) -> None:
    """Emit a Loop that scans one sample of the batch per turn and stacks the results."""
    inputs = node.inputs[1:]
    out = out.for_opset(9)
    body = LoopBuilder(out)
    samples = [body.emit("Gather", [name, body.iteration], axis=0) for name in inputs]
    results = body.emit_all("Scan", samples, len(node.outputs), **attributes)
    for name, result, value in zip(node.outputs, results, node.attribute("body").output, strict=True):
        body.output(result, body_output_type(name, value, out))
    batch = dimension_tensor(dimension(inputs[0], 0, out), out)
    body.emit_loop(batch, (), out, [name or out.fresh("unused") for name in node.outputs])


def _scanned_values(node: Node, kind: str, names: Sequence[str]) -> list[ScannedValue]:
    axes, directions = (node.attribute(f"scan_{kind}_{option}", ()) for option in ("axes", "directions"))
    return [
        ScannedValue(name, axes[position] if axes else 0, bool(directions and directions[position]))
        for position, name in enumerate(names)
    ]


def _body(node: Node, scanned: Sequence[ScannedValue], last: str, out: Rewriter) -> LoopBuilder:
    graph = node.attribute("body")
    emitted = isinstance(graph, Graph)
    inputs, outputs = (graph.inputs, graph.outputs) if emitted else (graph.input, graph.output)
    body = LoopBuilder(out)
    states = len(inputs) - len(scanned)
    for name, inner in zip(node.inputs, inputs[:states], strict=False):
        body.input(out.element_type(name), name=body.provide(inner.name))
    for lane, inner in zip(scanned, inputs[states:], strict=True):
        index = body.emit("Sub", [last, body.iteration]) if lane.is_reversed else body.iteration
        body.emit("Gather", [lane.name, index], [body.provide(inner.name)], axis=lane.axis)
    body.embed(node.attributes["body"])
    for position, value in enumerate(outputs):
        result = body.emit("Identity", [body.embedded_name(value.name)])
        body.output(result, body_output_type(node.output(position), value, out))
    return body


def _move_scan_axis(stacked: str, lane: ScannedValue, out: Rewriter) -> None:
    """Move the first dimension of a stacked output to the scan axis."""
    if not lane.axis:
        out.emit("Identity", [stacked], [lane.name])
        return
    remaining = list(range(1, out.rank(lane.name)))
    out.emit("Transpose", [stacked], [lane.name], perm=[*remaining[: lane.axis], 0, *remaining[lane.axis :]])
