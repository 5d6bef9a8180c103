"""Loop: a loop may carry no value at all from 11 on."""

from __future__ import annotations

from typing import Any

from opshift.adapters.bodies import Body, Dims, returned_type
from opshift.adapters.dimensions import sizes_of
from opshift.adapters.node import Node
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter


@adapter("Loop", 11, 1)
def one_value_is_carried(node: Node, out: Rewriter) -> None:
    """Version 1 wants at least one; if there is none, the body passes on one that serves nothing."""
    if len(node.inputs) > 2:
        out.become(node)
        return
    graph = node.attribute("body")
    body = Body(out)
    for value, element_type in zip(graph.input, ("int64", "bool"), strict=True):
        body.input(element_type, _dims(value), value.name)
    idle = body.input("int64", ())
    body.enclose(node.attributes["body"])
    goes_on, *rows = graph.output
    body.output(body.emit("Identity", [goes_on.name]), "bool", _dims(goes_on))
    body.output(body.emit("Identity", [idle]), "int64", ())
    for name, value in zip(node.outputs, rows, strict=False):
        body.output(body.emit("Identity", [value.name]), returned_type(name, value, out), _dims(value))
    inputs = (node.input(0), node.input(1), out.constant(0, "int64"))
    outputs = (out.fresh("idle"), *node.outputs)
    out.become(node, inputs=inputs, outputs=outputs, attributes={"body": body.graph()})


def _dims(value: Any) -> Dims:
    """The shape that a ValueInfoProto states."""
    tensor = value.type.tensor_type
    return sizes_of(tensor.shape) if tensor.HasField("shape") else None
