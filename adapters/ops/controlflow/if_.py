"""If: before opset 11 the branches must return equal shapes, not only equal types."""

from collections.abc import Sequence
from math import prod

from opshift.adapters import Node, Rewriter, Tensor, adapter, require_supported_types
from opshift.adapters.emit.shapes import MAX_CONSTANT_ELEMENTS, index_range, reshape
from opshift.adapters.emit.subgraphs import LoopBuilder, SubgraphBuilder, body_output_type
from opshift.model.messages import GraphProto, ValueInfoProto
from opshift.model.node import Dims, Graph, Value

EMIT_OPSET = 9
"""Opset of the emitted nodes."""

BRANCHES = ("then_branch", "else_branch")

Shape = tuple[int, ...]

Merged = dict[int, tuple[Shape, Shape]]
"""Shapes of the outputs that differ between the branches, by position."""


@adapter("If", 11, 1)
def flatten_different_shapes(node: Node, out: Rewriter) -> None:
    """Return known different shapes flattened and padded to one size; replace other branches by Loops.

    Runtimes do not check unknown shapes.
    """
    require_supported_types(node, out)
    then_shapes, else_shapes = (_shapes(node.attribute(name), out) for name in BRANCHES)
    merged: Merged = {}
    for position, (then_dims, else_dims) in enumerate(zip(then_shapes, else_shapes, strict=False)):
        if _differ(then_dims, else_dims):
            shapes = _known(then_dims), _known(else_dims)
            if shapes[0] is None or shapes[1] is None or not _are_emitted_by_model(node):
                _emit_loops(node, out)
                return
            merged[position] = (shapes[0], shapes[1])
    if merged:
        _merge(node, merged, out)
    else:
        out.replace(node)


def _merge(node: Node, merged: Merged, out: Rewriter) -> None:
    """Emit an If with two values for each merged output: padded elements, and their layout."""
    outputs: list[str] = []
    for position, name in enumerate(node.outputs):
        outputs += [out.fresh("flat"), out.fresh("layout")] if position in merged else [name]
    branches = {
        name: _branch(node, name, {position: pair[number] for position, pair in merged.items()}, merged, out)
        for number, name in enumerate(BRANCHES)
    }
    out.replace(node, outputs=outputs, attributes=branches)
    names = iter(outputs)
    for position, name in enumerate(node.outputs):
        first = next(names)
        if position in merged:
            _restore(first, next(names), name, merged[position], out)


def _branch(node: Node, attribute: str, shapes: dict[int, Shape], merged: Merged, out: Rewriter) -> Graph:
    graph = node.attribute(attribute)
    body = SubgraphBuilder(out.for_opset(EMIT_OPSET))
    body.embed(node.attributes[attribute])
    for position, (name, value) in enumerate(zip(node.outputs, graph.output, strict=False)):
        element_type = body_output_type(name, value, out)
        if position not in shapes:
            dims = out.facts.nested_shape(graph, value.name)
            body.output(body.emit("Identity", [value.name]), element_type, dims)
            continue
        shape, pair = shapes[position], merged[position]
        size, rank = max(map(prod, pair)), max(map(len, pair))
        flat = reshape(value.name, (-1,), body)
        if prod(shape) < size:
            flat = body.emit("Concat", [flat, _zeros(size - prod(shape), element_type, body)], axis=0)
        body.output(flat, element_type, (size,))
        # The number of elements, the number of dimensions, and these.
        layout = [prod(shape), len(shape), *shape, *[0] * (rank - len(shape))]
        body.output(body.emit("Identity", [out.int64(layout)]), "int64", (2 + rank,))
    return body.graph()


def _emit_loops(node: Node, out: Rewriter) -> None:
    """Emit a Loop for each branch: it runs once or never, and replaces the outputs of the other branch.

    Unlike the outputs of If, the values that a Loop carries may change shape and rank.
    """
    out = out.for_opset(EMIT_OPSET)
    condition = node.inputs[0]
    outputs = [_outputs(node.attribute(name)) for name in BRANCHES]
    types = [
        body_output_type(name, value, out) for name, value in zip(node.outputs, outputs[0], strict=False)
    ]
    values: Sequence[str] = [_zeros(1, each, out) for each in types]
    conditions = condition, out.emit("Not", [condition])
    results: Sequence[int | Sequence[str]] = (len(types), node.outputs)
    for attribute, returned, runs, names in zip(BRANCHES, outputs, conditions, results, strict=True):
        body = LoopBuilder(out)
        for element_type in types:
            body.input(element_type)
        body.embed(node.attributes[attribute])
        for value, element_type in zip(returned, types, strict=False):
            body.output(body.emit("Identity", [value.name]), element_type)
        values = body.emit_loop(out.cast(runs, "int64"), values, out, names)


def _restore(flat: str, layout: str, name: str, pair: tuple[Shape, Shape], out: Rewriter) -> None:
    """Emit the elements without padding, in their shape."""
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


def _zeros(count: int, element_type: str, out: Rewriter) -> str:
    zero = b"" if element_type == "string" else 0 if "int" in element_type else 0.0
    if element_type == "bool":
        zero = False
    if count <= MAX_CONSTANT_ELEMENTS:
        return out.constant([zero] * count, element_type)
    return out.emit(
        "ConstantOfShape", [out.int64([count])], opset=9, value=Tensor(element_type, (1,), (zero,))
    )


def _are_emitted_by_model(node: Node) -> bool:
    return not any(isinstance(node.attribute(name), Graph) for name in BRANCHES)


def _shapes(graph: Graph | GraphProto, out: Rewriter) -> list[Dims]:
    """Return the shapes of a branch's outputs, inferred unless an adapter emitted the branch."""
    if isinstance(graph, Graph):
        return [each.dims for each in graph.outputs]
    return [out.facts.nested_shape(graph, value.name) for value in graph.output]


def _outputs(graph: Graph | GraphProto) -> Sequence[ValueInfoProto | Value]:
    return graph.outputs if isinstance(graph, Graph) else graph.output


def _known(dims: Dims) -> Shape | None:
    """Return a shape that Reshape can restore: all dimensions are known, and only the first may be 0."""
    known = tuple(dim for dim in dims or () if isinstance(dim, int))
    return known if dims is not None and len(known) == len(dims) and 0 not in known[1:] else None


def _differ(first: Dims, second: Dims) -> bool:
    if first is None or second is None:
        return False
    pairs = zip(first, second, strict=False)
    return len(first) != len(second) or any(a != b and None not in (a, b) for a, b in pairs)
