"""Reader of models and nodes that people paste."""

from __future__ import annotations

import re
from typing import Final

from opshift.model.errors import InvalidModel
from opshift.model.messages import GraphProto, ModelProto, NodeProto, read_text_into
from opshift.model.onnx_text.graphs import Graphs

MAKE_NODE: Final = "make_node"
"""Function of onnx.helper that builds a node."""

ARGUMENTS: Final = {
    "op_type": "op_type",
    "inputs": "input",
    "outputs": "output",
    "name": "name",
    "doc_string": "doc_string",
    "domain": "domain",
    "overload": "overload",
}
"""Fields of the first parameters of `make_node`, in their order; further ones are attributes."""


EXAMPLE_REMEDY: Final = "write a node as y = Softmax <axis = 1> (float[N, 10] x), or Softmax(x, axis=1)"


def read_text(text: str) -> ModelProto | GraphProto:
    """Read a model, a graph or nodes: in ONNX's syntax, as calls of Python, or as text or JSON of protobuf.

    The result for nodes without a graph is a graph without a name, inputs and outputs, and calls of operators
    may lack outputs, too.

    Raises:
        InvalidModel: the text cannot be read.
    """
    if re.search("[\ud800-\udfff]", text):
        raise InvalidModel("the text has bytes that are not UTF-8", remedy="save or paste it as UTF-8")
    if re.match(r"\s*+(#[^\n]*+\n\s*+)*+(\{|\w++\s*+[:{])", text):
        return _read_protobuf(text)
    try:
        return _read_syntax(text)
    except InvalidModel as error:
        error.remedy = error.remedy or EXAMPLE_REMEDY
        raise


def _read_syntax(text: str) -> ModelProto | GraphProto:
    """Read a model, a graph or nodes in ONNX's syntax, or nodes as calls of Python."""
    reader = _Pasted(text)
    found = ModelProto() if reader.next.text == "<" else GraphProto()
    if isinstance(found, ModelProto):
        reader.read_model(found)
    elif reader.is_graph():
        reader.read_graph(found)
    else:
        reader.read_nodes(found)
    if reader.next.kind != "end":
        raise reader.expected("the end of the text")
    return found


def _read_protobuf(text: str) -> ModelProto | GraphProto:
    """Read a model, a graph or a node, by the names of the fields in the text."""
    if re.search(r"""\b(graph|irVersion|ir_version)["']?\s*[:{]""", text):
        model = ModelProto()
        read_text_into(model, text)
        return model
    graph = GraphProto()
    has_nodes = re.search(r"""\bnode["']?\s*[:{]""", text)
    read_text_into(graph if has_nodes else graph.node.add(), text)
    return graph


class _Pasted(Graphs):
    """Position in a text, with functions that read nodes outside of a graph."""

    def is_graph(self) -> bool:
        """Return whether a graph comes next: its name, inputs in parentheses, and an arrow."""
        depth = distance = 0
        while self.peek(distance).kind != "end":
            text = self.peek(distance).text
            depth += (text == "(") - (text == ")")
            distance += 1
            if distance > 1 and depth == 0:
                break
        return self.peek().text == "(" and self.peek(distance).text == "=>"

    def read_nodes(self, graph: GraphProto) -> None:
        """Read at least one node."""
        while self.next.kind != "end" or not graph.node:
            start = self.position
            if self.is_name() and self.peek().text == "=":
                self.position += 2
            if self.next.text.rpartition(".")[2] == MAKE_NODE:
                self._read_make_node(graph.node.add())
                continue
            self.position = start
            self.read_node(graph, may_omit_outputs=True)
            node = graph.node[-1]
            if re.fullmatch(r"op|opset\d+", node.domain):  # names that onnxscript's users give its modules
                node.ClearField("domain")

    def _read_make_node(self, node: NodeProto) -> None:
        self.take()
        positional = iter(ARGUMENTS.values())
        for _ in self.elements("(", ")"):
            is_keyword = self.peek().text == "="
            if is_keyword and self.next.text not in ARGUMENTS:
                self.read_attribute(node.attribute.add())
                continue
            field = ARGUMENTS[self.next.text] if is_keyword else next(positional, None)
            if field is None:
                raise self.expected("an attribute")
            self.position += 2 * is_keyword
            if field in ("input", "output"):
                getattr(node, field).extend(self.string() for _ in self.elements("[", "]"))
            else:
                setattr(node, field, self.string())
        if not node.op_type:
            raise self.expected("an operator")
