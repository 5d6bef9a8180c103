"""Loop: before opset 11 it requires at least one loop-carried value."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.subgraphs import SubgraphBuilder, body_output_type
from opshift.model.messages import ValueInfoProto
from opshift.model.node import Dims
from opshift.model.types import dims_of


@adapter("Loop", 11, 1)
def add_carried_value(node: Node, out: Rewriter) -> None:
    """Add an unused loop-carried value to a Loop without any."""
    if len(node.inputs) > 2:
        out.replace(node)
        return
    graph = node.attribute("body")
    body = SubgraphBuilder(out)
    for value, element_type in zip(graph.input, ("int64", "bool"), strict=True):
        body.input(element_type, _declared_dims(value), value.name)
    unused = body.input("int64", ())
    body.embed(node.attributes["body"])
    condition, *scan_outputs = graph.output
    body.output(body.emit("Identity", [condition.name]), "bool", _declared_dims(condition))
    body.output(body.emit("Identity", [unused]), "int64", ())
    for name, value in zip(node.outputs, scan_outputs, strict=False):
        body.output(
            body.emit("Identity", [value.name]), body_output_type(name, value, out), _declared_dims(value)
        )
    inputs = (node.input(0), node.input(1), out.int64(0))
    outputs = (out.fresh("idle"), *node.outputs)
    out.replace(node, inputs=inputs, outputs=outputs, attributes={"body": body.graph()})


def _declared_dims(value: ValueInfoProto) -> Dims:
    """Return the shape declared by a ValueInfoProto."""
    tensor = value.type.tensor_type
    return dims_of(tensor.shape) if tensor.HasField("shape") else None
