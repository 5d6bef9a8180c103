"""If, Loop and Scan.

Before opset 11, the branches of If must return equal shapes, not only equal types, and Loop requires at
least one loop-carried value. Scan-8 has a batch dimension and scans each sample; Scan-9 has none, but has
scan axes and output directions.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from opshift.adapters import CannotConvert, Node, Rewriter, Tensor, adapter, require_supported_types
from opshift.adapters.core.rewriter import Attributes
from opshift.adapters.emit.indices import gather_blocks, nonnegative_axis
from opshift.adapters.emit.shapes import (
    MAX_CONSTANT_ELEMENTS,
    dimension,
    dimension_tensor,
    index_range,
    reshape,
)
from opshift.adapters.emit.subgraphs import LoopBuilder, SubgraphBuilder, body_output_type
from opshift.model.graphs import passed_inputs
from opshift.model.messages import GraphProto, ValueInfoProto
from opshift.model.node import Dims, Graph, Value
from opshift.model.types import dims_of

EMIT_OPSET = 9
"""Opset of the nodes emitted for If."""

BRANCHES = ("then_branch", "else_branch")

Shape = tuple[int, ...]

DifferingShapes = dict[int, tuple[Shape, Shape]]
"""Shapes in then_branch and else_branch of each output whose shapes differ, by position of the output."""


@adapter("If", 11, 1)
def flatten_different_shapes(node: Node, out: Rewriter) -> None:
    """Flatten and pad outputs whose known shapes differ between the branches, or replace the If by Loops.

    Loops are emitted if a shape is partly unknown or has a 0 after its first dimension, or if an adapter
    emitted a branch. Outputs whose shapes may be equal stay: runtimes do not check unknown dimensions.
    """
    require_supported_types(node, out)
    then_shapes, else_shapes = (_shapes(node.attribute(name), out) for name in BRANCHES)
    differing: DifferingShapes = {}
    for position, (then_dims, else_dims) in enumerate(zip(then_shapes, else_shapes, strict=False)):
        if _shapes_differ(then_dims, else_dims):
            shapes = _known(then_dims), _known(else_dims)
            if shapes[0] is None or shapes[1] is None or not _have_original_branches(node):
                _emit_loops(node, out)
                return
            differing[position] = (shapes[0], shapes[1])
    if differing:
        _emit_padded_if(node, differing, out)
    else:
        out.replace(node)


def _emit_padded_if(node: Node, differing: DifferingShapes, out: Rewriter) -> None:
    """Emit an If with two outputs for each output in `differing`: padded elements, and a layout tensor."""
    outputs: list[str] = []
    for position, name in enumerate(node.outputs):
        outputs += [out.fresh("flat"), out.fresh("layout")] if position in differing else [name]
    branches = {
        name: _padded_branch(
            node, name, {position: pair[number] for position, pair in differing.items()}, differing, out
        )
        for number, name in enumerate(BRANCHES)
    }
    out.replace(node, outputs=outputs, attributes=branches)
    names = iter(outputs)
    for position, name in enumerate(node.outputs):
        first = next(names)
        if position in differing:
            _restore(first, next(names), name, differing[position], out)


def _padded_branch(
    node: Node, attribute: str, own_shapes: dict[int, Shape], differing: DifferingShapes, out: Rewriter
) -> Graph:
    graph = node.attribute(attribute)
    body = SubgraphBuilder(out.for_opset(EMIT_OPSET))
    body.embed(node.attributes[attribute])
    for position, (name, value) in enumerate(zip(node.outputs, graph.output, strict=False)):
        element_type = body_output_type(name, value, out)
        if position not in own_shapes:
            dims = out.facts.nested_shape(graph, value.name)
            body.output(body.emit("Identity", [value.name]), element_type, dims, value)
            continue
        shape, pair = own_shapes[position], differing[position]
        size, rank = max(map(prod, pair)), max(map(len, pair))
        flat = reshape(value.name, (-1,), body)
        if prod(shape) < size:
            flat = body.emit(
                "Concat", [flat, _zeros_of_length(size - prod(shape), element_type, body)], axis=0
            )
        body.output(flat, element_type, (size,), value)
        # The layout has the number of elements, the rank, and the dimensions, padded to the larger rank.
        layout = [prod(shape), len(shape), *shape, *[0] * (rank - len(shape))]
        body.output(body.emit("Identity", [out.int64(layout)]), "int64", (2 + rank,))
    return body.graph()


def _emit_loops(node: Node, out: Rewriter) -> None:
    """Emit a Loop for each branch, which runs once if the branch is selected, and carries the outputs.

    Unlike the outputs of If, the values that a Loop carries may change shape and rank.
    """
    out = out.for_opset(EMIT_OPSET)
    condition = node.inputs[0]
    outputs = [_outputs_of_branch(node.attribute(name)) for name in BRANCHES]
    types = [
        body_output_type(name, value, out) for name, value in zip(node.outputs, outputs[0], strict=False)
    ]
    values: Sequence[str] = [_zeros_of_length(1, each, out) for each in types]
    conditions = condition, out.emit("Not", [condition])
    results: Sequence[int | Sequence[str]] = (len(types), node.outputs)
    for attribute, returned, runs, names in zip(BRANCHES, outputs, conditions, results, strict=True):
        body = LoopBuilder(out)
        for element_type in types:
            body.input(element_type)
        body.embed(node.attributes[attribute])
        for value, element_type in zip(returned, types, strict=False):
            body.output(body.emit("Identity", [value.name]), element_type, origin=value)
        values = body.emit_loop(out.cast(runs, "int64"), values, out, names)


def _restore(flat: str, layout: str, name: str, pair: tuple[Shape, Shape], out: Rewriter) -> None:
    """Emit the output `name`: the elements of `flat` without padding, in the shape that `layout` contains."""
    out = out.for_opset(EMIT_OPSET)
    ranks = {len(shape) for shape in pair}
    count = _slice(layout, 0, 1, out)
    elements = out.emit("Gather", [flat, index_range(count, out)], axis=0)
    shape = _slice(layout, 2, 2 + max(ranks), out)
    if len(ranks) > 1:
        shape = out.emit("Gather", [shape, index_range(_slice(layout, 1, 2, out), out)], axis=0)
    out.emit("Reshape", [elements, shape], [name])


def _slice(value: str, start: int, end: int, out: Rewriter) -> str:
    return out.emit("Slice", [value], axes=[0], starts=[start], ends=[end])


def _zeros_of_length(count: int, element_type: str, out: Rewriter) -> str:
    zero = b"" if element_type == "string" else 0 if "int" in element_type else 0.0
    if element_type == "bool":
        zero = False
    if count <= MAX_CONSTANT_ELEMENTS:
        return out.constant([zero] * count, element_type)
    return out.emit(
        "ConstantOfShape", [out.int64([count])], opset=9, value=Tensor(element_type, (1,), (zero,))
    )


def _have_original_branches(node: Node) -> bool:
    return not any(isinstance(node.attribute(name), Graph) for name in BRANCHES)


def _shapes(graph: Graph | GraphProto, out: Rewriter) -> list[Dims]:
    """Return the shapes of a branch's outputs: inferred, or as declared if an adapter emitted the branch."""
    if isinstance(graph, Graph):
        return [each.dims for each in graph.outputs]
    return [out.facts.nested_shape(graph, value.name) for value in graph.output]


def _outputs_of_branch(graph: Graph | GraphProto) -> Sequence[ValueInfoProto | Value]:
    return graph.outputs if isinstance(graph, Graph) else graph.output


def _known(dims: Dims) -> Shape | None:
    """Return a shape that Reshape can restore: known, and only the first dimension may be 0; else `None`."""
    known = tuple(dim for dim in dims or () if isinstance(dim, int))
    return known if dims is not None and len(known) == len(dims) and 0 not in known[1:] else None


def _shapes_differ(first: Dims, second: Dims) -> bool:
    if first is None or second is None:
        return False
    pairs = zip(first, second, strict=False)
    return len(first) != len(second) or any(a != b and None not in (a, b) for a, b in pairs)


@adapter("Loop", 11, 1)
def add_carried_value(node: Node, out: Rewriter) -> None:
    """Add an unused loop-carried value to a Loop that has no loop-carried values."""
    if len(node.inputs) > 2:
        out.replace(node)
        return
    graph = node.attribute("body")
    body = SubgraphBuilder(out)
    for value, element_type in zip(passed_inputs(graph), ("int64", "bool"), strict=True):
        body.input(element_type, _declared_dims(value), value.name, value)
    unused = body.input("int64", ())
    body.embed(node.attributes["body"])
    condition, *scan_outputs = graph.output
    body.output(body.emit("Identity", [condition.name]), "bool", _declared_dims(condition), condition)
    body.output(body.emit("Identity", [unused]), "int64", ())
    for name, value in zip(node.outputs, scan_outputs, strict=False):
        element_type = body_output_type(name, value, out)
        body.output(body.emit("Identity", [value.name]), element_type, _declared_dims(value), value)
    inputs = (node.input(0), node.input(1), out.int64(0))
    outputs = (out.fresh("idle"), *node.outputs)
    out.replace(node, inputs=inputs, outputs=outputs, attributes={"body": body.graph()})


def _declared_dims(value: ValueInfoProto) -> Dims:
    tensor = value.type.tensor_type
    return dims_of(tensor.shape) if tensor.HasField("shape") else None


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
    body = _loop_body(node, scanned, reshape(last, (), out), out)
    stacked = [out.fresh("stacked") for _ in built]
    body.emit_loop(length, states, out, [*node.outputs[: len(states)], *stacked])
    for name, output in zip(stacked, built, strict=True):
        if output.is_reversed:
            backward = out.emit("Sub", [last, index_range(length, out)])
            element_type = out.known_element_type(output.name)
            rank = out.known_rank(output.name) if element_type == "string" else None
            name = gather_blocks(name, rank, element_type, backward, 0, out)
        if output.name:
            _move_scan_axis(name, output, out)


@adapter("Scan", 8, 9)
@adapter("Scan", 8, 7)
def remove_batch_dimension(node: Node, out: Rewriter) -> None:
    """Squeeze a batch dimension of 1; for other batches, emit a Loop that scans one sample per iteration."""
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
    """Emit a Loop that scans one sample of the batch per iteration and stacks the results."""
    inputs = node.inputs[1:]
    out = out.for_opset(9)
    body = LoopBuilder(out)
    samples = [_gather_slice(name, body.iteration, 0, body, out) for name in inputs]
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


def _gather_slice(
    name: str, index: str, axis: int, body: LoopBuilder, out: Rewriter, outputs: int | Sequence[str] = 1
) -> str:
    """Emit a Gather of one slice in a loop body; strings are transposed before the loop, by nodes of `out`.

    If dimensions follow the axis, onnxruntime's Gather copies only one string of the slice.
    """
    rank = out.known_rank(name) if out.known_element_type(name) == "string" else None
    if rank is not None and axis != rank - 1:
        order = [*(each for each in range(rank) if each != axis), axis]
        name, axis = out.emit("Transpose", [name], perm=order), rank - 1
    return body.emit("Gather", [name, index], outputs, axis=axis)


def _loop_body(node: Node, scanned: Sequence[ScannedValue], last: str, out: Rewriter) -> LoopBuilder:
    graph = node.attribute("body")
    emitted = isinstance(graph, Graph)
    inputs, outputs = (graph.inputs, graph.outputs) if emitted else (passed_inputs(graph), graph.output)
    body = LoopBuilder(out)
    states = len(inputs) - len(scanned)
    for name, inner in zip(node.inputs, inputs[:states], strict=False):
        body.input(out.element_type(name), name=body.provide(inner.name), origin=inner)
    for scanned_input, inner in zip(scanned, inputs[states:], strict=True):
        index = body.emit("Sub", [last, body.iteration]) if scanned_input.is_reversed else body.iteration
        _gather_slice(scanned_input.name, index, scanned_input.axis, body, out, [body.provide(inner.name)])
    body.embed(node.attributes["body"])
    for position, value in enumerate(outputs):
        result = body.emit("Identity", [body.embedded_name(value.name)])
        body.output(result, body_output_type(node.output(position), value, out), origin=value)
    return body


def _move_scan_axis(stacked: str, scanned: ScannedValue, out: Rewriter) -> None:
    """Move the first dimension of a stacked output to the scan axis."""
    if not scanned.axis:
        out.emit("Identity", [stacked], [scanned.name])
        return
    order = list(range(1, out.rank(scanned.name)))
    order.insert(scanned.axis, 0)
    out.emit("Transpose", [stacked], [scanned.name], perm=order)
