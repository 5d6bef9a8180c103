"""DFT: `axis` became an input in version 20, with a new default."""

from __future__ import annotations

from opshift.adapters.bodies import LoopBody
from opshift.adapters.negative_indices import shifted_if_negative
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME

INT64 = BY_NAME["int64"].number
"""The value of TensorProto.DataType that Cast requires."""


@adapter("DFT", 17, 20)
def axis_becomes_an_input(node: Node, out: Rewriter) -> None:
    """Move `axis` to an input and always write it: its default changed from 1 to -2 in version 20."""
    axis = out.constant(node.attribute("axis", 1), "int64")
    out.become(node, inputs=[node.inputs[0], node.input(1), axis], attributes=node.without("axis"))


@adapter("DFT", 20, 17)
def axis_becomes_an_attribute(node: Node, out: Rewriter) -> None:
    """Move the axis to an attribute; for a computed axis, emit one DFT for each possible value."""
    inputs = node.inputs[:2] if node.input(1) else node.inputs[:1]
    without_axis = node.with_(inputs=inputs)
    axis = out.constant_value(node.input(2))
    if axis is None and node.input(2):
        computed_axis = out.emit("Cast", node.inputs[2:3], to=INT64)
        rank = out.constant(out.rank(inputs[0]), "int64")
        _emit_loops(shifted_if_negative(computed_axis, rank, "int64", out), without_axis, out)
    else:
        _emit_dft(-2 if axis is None else int(axis.scalar), without_axis, out)


def _emit_dft(axis: int, node: Node, out: Rewriter) -> None:
    out.emit(node.op_type, node.inputs, node.outputs, **{**node.attributes, "axis": axis})


def _possible_axes(node: Node, out: Rewriter) -> list[int]:
    """Return the axes that a computed axis can name.

    An inverse transform of a one-sided spectrum with one element has length 0, so that axis is not possible.
    """
    shape = out.shape(node.inputs[0]) or ()
    is_half_spectrum = node.attribute("inverse", 0) and node.attribute("onesided", 0) and not node.input(1)
    return [axis for axis, size in enumerate(shape[:-1]) if not (is_half_spectrum and size == 1)]


def _emit_loops(axis: str, node: Node, out: Rewriter) -> None:
    """Emit a Loop for each possible axis, with one iteration if the axis has this value, else with none.

    A Loop may change the shape of a loop-carried value. An If cannot replace it: before version 11 the shapes
    of its branches must be equal.
    """
    value, element_type = node.inputs[0], out.element_type(node.inputs[0])
    candidates = _possible_axes(node, out)
    for candidate in candidates:
        is_axis = out.emit("Equal", [axis, out.constant(candidate, "int64")])
        body = LoopBody(out)
        body.input(element_type)
        result = out.fresh("dft")
        _emit_dft(candidate, node.with_(outputs=[result]), body)
        body.output(result, element_type)
        outputs = node.outputs if candidate == candidates[-1] else 1
        (value,) = body.run(out.emit("Cast", [is_axis], to=INT64), [value], out, outputs)
