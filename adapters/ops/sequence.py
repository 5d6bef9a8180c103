"""Rewrite SequenceMap (introduced in opset 17) as a Loop that appends to each result sequence."""

from opshift.adapters import Node, Rewriter, adapter
from opshift.adapters.emit.subgraphs import LoopBuilder, body_output_type
from opshift.model.element_types import BY_NAME
from opshift.model.graphs import passed_inputs


@adapter("SequenceMap", 17, 16)
def replace_sequence_map_by_loop(node: Node, out: Rewriter) -> None:
    """Replace SequenceMap by a Loop over the first input; tensor inputs are passed to every iteration."""
    graph = node.attribute("body")
    is_sequence = [out.element_type(name).startswith("seq(") for name in node.inputs]
    types = [body_output_type("", value, out) for value in graph.output]
    body = LoopBuilder(out)
    states = [body.input(f"seq(tensor({name}))") for name in types]
    for name, inner, indexed in zip(node.inputs, passed_inputs(graph), is_sequence, strict=True):
        provided = body.provide(inner.name)
        if indexed:
            body.emit("SequenceAt", [name, body.iteration], [provided])
        else:
            body.emit("Identity", [name], [provided])
    body.embed(node.attributes["body"])
    for state, value, element_type in zip(states, graph.output, types, strict=True):
        appended = body.emit("SequenceInsert", [state, body.embedded_name(value.name)])
        body.output(appended, f"seq(tensor({element_type}))", origin=value)
    empty = [out.emit("SequenceEmpty", [], dtype=BY_NAME[name].number) for name in types]
    body.emit_loop(out.emit("SequenceLength", node.inputs[:1]), empty, out, node.outputs)
