"""Split: where the sizes of the parts stand, and how their number is told."""

from __future__ import annotations

from opshift.adapters.legal_types import require_types
from opshift.adapters.node import Node
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Split", 1, 2)
def sizes_become_an_attribute(node: Node, out: Rewriter) -> None:
    """Version 1 took the sizes as an input, too, in the data's own type; version 2 as an attribute only."""
    sizes = node.input(1)
    attributes = {"axis": 0, **node.attributes}
    if sizes:
        attributes["split"] = tuple(map(int, out.require_constant(sizes, "input split").values))
    out.become(node, inputs=node.inputs[:1], attributes=attributes)


@adapter("Split", 13, 18)
def parts_are_counted(node: Node, out: Rewriter) -> None:
    """Without sizes, the number of outputs told the number of parts; from 18 on `num_outputs` does."""
    if node.input(1):
        out.become(node)
        return
    attributes = {**node.attributes, "num_outputs": len(node.outputs)}
    out.become(node, inputs=node.inputs[:1], attributes=attributes)


@adapter("Split", 18, 13)
def number_of_parts_becomes_sizes(node: Node, out: Rewriter) -> None:
    """Parts of equal size need no `num_outputs`; of an uneven division each has its size stated."""
    attributes = node.without("num_outputs")
    if node.input(1):
        out.become(node, attributes=attributes)
        return
    data, axis, parts = node.inputs[0], node.attribute("axis", 0), len(node.outputs)
    shape = out.shape(data)
    size = shape[axis] if shape is not None else None
    if size is None:
        out.become(node, inputs=[data, _computed_sizes(data, axis, parts, out)], attributes=attributes)
        return
    part = -(-size // parts)
    rest = size - part * (parts - 1)
    if rest < 0:
        raise CannotConvert(f"{size} elements in parts of {part} do not reach the last of {parts} parts")
    inputs = [data] if part == rest else [data, out.constant([*[part] * (parts - 1), rest], "int64")]
    out.become(node, inputs=inputs, attributes=attributes)


@adapter("Split", 13, 11)
def sizes_are_written_out(node: Node, out: Rewriter) -> None:
    """Constant sizes become an attribute again; parts of computed sizes are cut out one after another."""
    data, sizes = node.inputs[0], node.input(1)
    known = out.constant_value(sizes)
    if not sizes or known is not None:
        stated = {} if known is None else {"split": known.values}
        out.become(node, inputs=[data], attributes={**node.attributes, **stated})
        return
    axis = out.constant([node.attribute("axis", 0)], "int64")
    end = out.constant([0], "int64")
    for position, part in enumerate(node.outputs):
        start, place = end, out.constant([position], "int64")
        end = out.emit("Add", [start, out.emit("Gather", [sizes, place], axis=0)])
        if part:
            out.emit("Slice", [data, start, end, axis], [part])


@adapter("Split", 2, 1)
def axis_is_stated(node: Node, out: Rewriter) -> None:
    """Version 1 names no default `axis`."""
    require_types(node, out)
    out.become(node, attributes={"axis": 0, **node.attributes})


def _computed_sizes(data: str, axis: int, parts: int, out: Rewriter) -> str:
    """The size of each part but the last is the axis' over the number of parts, rounded up."""
    bounds = [out.constant([each], "int64") for each in (axis, axis + 1 or 2**31 - 1, 0)]
    size = out.emit("Slice", [out.emit("Shape", [data]), *bounds])
    above = out.emit("Add", [size, out.constant([parts - 1], "int64")])
    part = out.emit("Div", [above, out.constant([parts], "int64")])
    rest = out.emit("Sub", [size, out.emit("Mul", [part, out.constant([parts - 1], "int64")])])
    return out.emit("Concat", [*[part] * (parts - 1), rest], axis=0)
