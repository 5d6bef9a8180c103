"""Split: the sizes of the outputs as an attribute or input, and the attribute `num_outputs` (opset 18)."""

from opshift.adapters import CannotConvert, Node, Rewriter, adapter
from opshift.adapters.core.type_guard import require_supported_types
from opshift.adapters.emit.expression import Expression
from opshift.adapters.emit.indices import slice_dimension


@adapter("Split", 1, 2)
def move_split_input_to_attribute(node: Node, out: Rewriter) -> None:
    """Move the input `split`, which version 1 has in addition to the attribute, to the attribute."""
    sizes = node.input(1)
    attributes = {"axis": 0, **node.attributes}
    if sizes:
        # The input has the element type of the data, so it can hold floats.
        attributes["split"] = tuple(map(int, out.require_constant(sizes, "input split").values))
    out.replace(node, inputs=node.inputs[:1], attributes=attributes)


@adapter("Split", 13, 18)
def add_num_outputs(node: Node, out: Rewriter) -> None:
    """Without sizes, set `num_outputs` to the number of outputs."""
    data, parts = node.inputs[0], len(node.outputs)
    if node.input(1):
        out.replace(node)
    elif out.known_dimension(data, node.attribute("axis", 0)) == 0:
        # onnxruntime accepts no `num_outputs` that exceeds the size.
        out.replace(node, inputs=[data, out.int64([0] * parts)])
    else:
        # Many runtimes read constant sizes only, so they are not computed in case the size is 0.
        out.replace(node, inputs=[data], attributes={**node.attributes, "num_outputs": parts})


@adapter("Split", 18, 13)
def replace_num_outputs_with_sizes(node: Node, out: Rewriter) -> None:
    """Drop `num_outputs` if all outputs have the same size; otherwise replace it with the sizes."""
    attributes = node.without("num_outputs")
    if node.input(1):
        out.replace(node, attributes=attributes)
        return
    data, axis, parts = node.inputs[0], node.attribute("axis", 0), len(node.outputs)
    size = out.known_dimension(data, axis)
    if size is None:
        out.replace(node, inputs=[data, _computed_sizes(data, axis, parts, out)], attributes=attributes)
        return
    # In Split-18 the sizes are rounded up, so the last output is the smallest.
    part = -(-size // parts)
    last = size - part * (parts - 1)
    if last < 0:
        reason = f"{size} elements in parts of {part} fill fewer than {parts} outputs"
        raise CannotConvert(reason, "node.invalid")
    inputs = [data] if part == last else [data, out.int64([*[part] * (parts - 1), last])]
    out.replace(node, inputs=inputs, attributes=attributes)


@adapter("Split", 13, 11)
def move_sizes_to_attribute(node: Node, out: Rewriter) -> None:
    """Move constant sizes to the attribute; for computed sizes, emit one Slice for each output."""
    data, sizes = node.inputs[0], node.input(1)
    known = out.constant_value(sizes)
    if not sizes or known is not None:
        split = {} if known is None else {"split": known.values}
        out.replace(node, inputs=[data], attributes={**node.attributes, **split})
        return
    axis = out.int64([node.attribute("axis", 0)])
    end = out.int64([0])
    for position, part in enumerate(node.outputs):
        start, index = end, out.int64([position])
        end = out.emit("Add", [start, out.emit("Gather", [sizes, index], axis=0)])
        # An omitted output has an empty name; its size still counts for the start of the next one.
        if part:
            out.emit("Slice", [data, start, end, axis], [part])


@adapter("Split", 2, 1)
def add_default_axis(node: Node, out: Rewriter) -> None:
    """Add the default `axis` of 0, which version 1 does not define."""
    require_supported_types(node, out)
    out.replace(node, attributes={"axis": 0, **node.attributes})


def _computed_sizes(data: str, axis: int, parts: int, out: Rewriter) -> str:
    """Return the sizes of the parts: the dimension divided by their number, rounded up, and the rest."""
    size = Expression(slice_dimension(data, axis, out), "int64", out, rank=1)
    part = (size + (parts - 1)) / parts
    last = size - part * (parts - 1)
    return out.emit("Concat", [*[part.name] * (parts - 1), last.name], axis=0)
