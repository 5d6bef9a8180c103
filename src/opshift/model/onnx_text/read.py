"""Reader of models, graphs and nodes in ONNX's text syntax, Python calls, or protobuf's text and JSON."""

from __future__ import annotations

import re
from typing import Final

from opshift.model.attributes import ATTRIBUTE_TYPES
from opshift.model.element_types import BY_NAME
from opshift.model.errors import InvalidModel
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    read_text_into,
)
from opshift.model.onnx_text.values import CONSTRUCTORS, SPECIAL_NUMBERS, ValueReader

INTEGERS: Final = ("ir_version", "model_version")
"""Properties of a model that are integers."""

STRINGS: Final = ("producer_name", "producer_version", "domain", "doc_string", "overload")
"""Properties of a model or a function that are strings."""

PYTHON_CONSTANTS: Final = {"True": 1, "False": 0}

Plain = bytes | float | int
AttributeValue = Plain | TensorProto | TypeProto | GraphProto


class Graphs(ValueReader):
    """Reader of the nodes in a text, and of the graphs, functions and models that contain them."""

    def read_model(self, model: ModelProto) -> None:
        """Read a model into an empty message: properties, a graph and functions."""
        self._read_properties(model)
        self.read_graph(model.graph)
        while self.current.kind != "end":
            self._read_function(model.functions.add())

    def read_graph(self, graph: GraphProto) -> None:
        """Read a graph into an empty message."""
        graph.name = self.name("the name of a graph")
        for _ in self.elements("(", ")"):
            graph.input.append(self._read_value(graph))
        self.require("=>")
        for _ in self.elements("(", ")"):
            graph.output.append(self._read_value(graph))
        if self.current.text == "<":
            for _ in self.elements("<", ">"):
                count = len(graph.initializer)
                value = self._read_value(graph)
                if len(graph.initializer) == count:
                    graph.value_info.append(value)
        self._read_nodes(graph)

    def _read_function(self, function: FunctionProto) -> None:
        if self.current.text == "<":
            self._read_properties(function)
        function.name = self.name("the name of a function")
        if self.current.text == "<":
            for _ in self.elements("<", ">"):
                if self.peek().text in (":", "="):
                    self.read_attribute(function.attribute_proto.add())
                else:
                    function.attribute.append(self.name("an attribute"))
        for _ in self.elements("(", ")"):
            function.input.append(self._read_name(function))
        self.require("=>")
        for _ in self.elements("(", ")"):
            function.output.append(self._read_name(function))
        if self.current.text == "<":
            for _ in self.elements("<", ">"):
                self._read_name(function)
        self._read_nodes(function)

    def _read_properties(self, proto: ModelProto | FunctionProto) -> None:
        for _ in self.elements("<", ">"):
            start = self.current
            key = self.name("a property, such as opset_import")
            self.require(":")
            if key == "opset_import":
                for _ in self.elements("[", "]"):
                    opset = proto.opset_import.add(domain=self.string())
                    self.require(":")
                    opset.version = self.integer("an opset")
            elif key == "metadata_props":
                proto.metadata_props.extend(self.read_entries())
            elif key in INTEGERS and hasattr(proto, key):
                setattr(proto, key, self.integer("an integer"))
            elif key in STRINGS and hasattr(proto, key):
                setattr(proto, key, self.string())
            else:
                raise self.error(f"unknown property {key!r}", token=start)

    def _read_value(self, graph: GraphProto) -> ValueInfoProto:
        """Read a value: an optional type, the name, and optional elements, which become an initializer."""
        value = ValueInfoProto()
        if self.is_type():
            self.read_type(value.type)
        value.name = self.name("the name of a value")
        if self.accept("="):
            self.read_elements(graph.initializer.add(name=value.name), value.type)
        return value

    def _read_name(self, parent: GraphProto | FunctionProto) -> str:
        """Read the name of a value; if a type precedes the name, add both to `value_info`."""
        if self.current.kind == "number":
            remedy = f"compute it: c = Constant <value_float = {self.current.text}> ()"
            raise self.error("an input is the name of a value, not a number", remedy)
        if not self.is_type():
            return self.name("the name of a value")
        value = parent.value_info.add()
        self.read_type(value.type)
        value.name = self.name("the name of a value")
        return value.name

    def _read_nodes(self, parent: GraphProto | FunctionProto) -> None:
        with self.brackets("{", "}"):
            while self.current.text != "}":
                self.read_node(parent)

    def read_node(self, parent: GraphProto | FunctionProto, *, may_omit_outputs: bool = False) -> None:
        """Read a node: `y = Softmax <axis = 1> (x)`; attributes may also be among or after the inputs.

        With `may_omit_outputs`, the text may start with the operator: `Softmax <axis = 1> (x)`.
        """
        node = parent.node.add()
        if self.accept("["):
            node.name = self.name("the name of a node")
            self.require("]")
        outputs = self._read_names() if self.is_name() else []
        if self.accept("="):
            node.output.extend(outputs)
            operator = self.name("an operator")
        elif may_omit_outputs and len(outputs) == 1:
            operator = outputs[0]
        else:
            raise self.expected("'=' between outputs and an operator" if outputs else "a node")
        domain, _, node.op_type = operator.rpartition(".")
        if domain:
            node.domain = domain
        if self.accept(":"):
            node.overload = self.name("the name of an overload")
        closing = {"<": ">", "[": "]"}.get(self.current.text)
        if closing:
            self._read_attributes(node, closing)
        for _ in self.elements("(", ")"):
            self._read_argument(node, parent)
        if self.current.text == "<":
            self._read_attributes(node, ">")

    def _read_names(self) -> list[str]:
        names = [self.name("the name of a value")]
        while self.accept(","):
            names.append(self.name("the name of a value"))
        return names

    def _read_argument(self, node: NodeProto, parent: GraphProto | FunctionProto) -> None:
        if self.current.text in (",", ")"):
            node.input.append("")
        elif self.is_name() and self.peek().text in ("=", ":"):
            self.read_attribute(node.attribute.add())
        else:
            node.input.append(self._read_name(parent))

    def _read_attributes(self, node: NodeProto, closing: str) -> None:
        for _ in self.elements(self.current.text, closing):
            self.read_attribute(node.attribute.add())

    def read_attribute(self, attribute: AttributeProto) -> None:
        """Read an attribute; a list that mixes integers and floats has the type FLOATS."""
        start = self.current
        attribute.name = self.name("an attribute")
        declared = None
        if self.accept(":"):
            declared = ATTRIBUTE_TYPES.get(self.current.text.upper())
            if declared is None:
                raise self.expected("a type of attributes, such as int or floats")
            self.take()
        self.require("=")
        if self.accept("@"):
            attribute.ref_attr_name = self.name("an attribute of the function")
            attribute.type = declared.number if declared else 0
            return
        closing = {"[": "]", "(": ")"}.get(self.current.text)
        if closing:
            found = [self._read_attribute_value() for _ in self.elements(self.current.text, closing)]
        else:
            found = [self._read_attribute_value()]
        kinds = {kind for kind, _ in found}
        if declared is None and not kinds:
            raise self.error(f"an empty list needs a type: {attribute.name}: ints = []", token=start)
        is_float = "FLOAT" in kinds or (declared and declared.name in ("FLOAT", "FLOATS"))
        if kinds == {"INT", "FLOAT"} or (is_float and kinds == {"INT"}):
            kinds = {"FLOAT"}
        names = {f"{each}S" if closing else each for each in kinds}
        kind = declared or ATTRIBUTE_TYPES[min(names)]
        if names - {kind.name} or kind.is_repeated != bool(closing):
            what = f"of type {kind.name.lower()}" if declared else "of one type"
            raise self.error(f"the value of attribute {attribute.name!r} is not {what}", token=start)
        attribute.type = kind.number
        values = [value for _, value in found]
        if kind.is_repeated:
            getattr(attribute, kind.field).extend(values)
        elif kind.is_plain:
            setattr(attribute, kind.field, values[0])
        else:
            getattr(attribute, kind.field).CopyFrom(values[0])

    def _read_attribute_value(self) -> tuple[str, AttributeValue]:
        """Read a value; return the name of its attribute type, such as `INT`, and the value."""
        text = self.current.text
        if self.current.kind == "string":
            return "STRING", self.string().encode()
        if self.current.kind == "number" and text.lstrip("+-").isdecimal():
            return "INT", self.integer("an integer")
        if self.current.kind == "number" or text in SPECIAL_NUMBERS:
            return "FLOAT", self.number("a number")
        if text in PYTHON_CONSTANTS:
            self.take()
            return "INT", PYTHON_CONSTANTS[text]
        if text in BY_NAME or text in CONSTRUCTORS:
            type_proto = TypeProto()
            self.read_type(type_proto)
            if self.is_name() or self.current.text in ("{", "="):
                return "TENSOR", self._read_tensor(type_proto)
            return "TYPE_PROTO", type_proto
        if not self.is_name():
            raise self.expected("a number, a string, a list, a tensor, a type or a graph")
        graph = GraphProto()
        self.read_graph(graph)
        return "GRAPH", graph

    def _read_tensor(self, type_proto: TypeProto) -> TensorProto:
        tensor = TensorProto()
        if self.is_name():
            tensor.name = self.name("the name of a tensor")
        self.accept("=")
        self.read_elements(tensor, type_proto)
        return tensor


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
"""NodeProto field of each named parameter of `make_node`, in order; other arguments are attributes."""


EXAMPLE_REMEDY: Final = "write a node as y = Softmax <axis = 1> (float[N, 10] x), or Softmax(x, axis=1)"


def read_text(text: str) -> ModelProto | GraphProto:
    """Read a model, a graph or nodes: in ONNX's syntax, as Python calls, or as text or JSON of protobuf.

    Nodes without a graph become the nodes of a graph without name, inputs and outputs; their outputs may be
    omitted, as in `Softmax(x, axis=1)`.

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
    """Read a model, a graph or nodes in ONNX's syntax, or nodes as Python calls."""
    reader = _PastedText(text)
    found = ModelProto() if reader.current.text == "<" else GraphProto()
    if isinstance(found, ModelProto):
        reader.read_model(found)
    elif reader.is_graph():
        reader.read_graph(found)
    else:
        reader.read_nodes(found)
    if reader.current.kind != "end":
        raise reader.expected("the end of the text")
    return found


def _read_protobuf(text: str) -> ModelProto | GraphProto:
    """Read a model, a graph or a node; the field names in the text determine the message type."""
    if re.search(r"""\b(graph|irVersion|ir_version)["']?\s*[:{]""", text):
        model = ModelProto()
        read_text_into(model, text)
        return model
    graph = GraphProto()
    has_nodes = re.search(r"""\bnode["']?\s*[:{]""", text)
    read_text_into(graph if has_nodes else graph.node.add(), text)
    return graph


class _PastedText(Graphs):
    """Reader of a pasted text, which may list nodes without a graph."""

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
        while self.current.kind != "end" or not graph.node:
            start = self.position
            if self.is_name() and self.peek().text == "=":
                self.position += 2
            if self.current.text.rpartition(".")[2] == MAKE_NODE:
                self._read_make_node(graph.node.add())
                continue
            self.position = start
            self.read_node(graph, may_omit_outputs=True)
            node = graph.node[-1]
            # names of opset modules in onnxscript code, such as `op`
            if re.fullmatch(r"op|opset\d+", node.domain):
                node.ClearField("domain")

    def _read_make_node(self, node: NodeProto) -> None:
        self.take()
        positional = iter(ARGUMENTS.values())
        for _ in self.elements("(", ")"):
            is_keyword = self.peek().text == "="
            if is_keyword and self.current.text not in ARGUMENTS:
                self.read_attribute(node.attribute.add())
                continue
            field = ARGUMENTS[self.current.text] if is_keyword else next(positional, None)
            if field is None:
                raise self.expected("an attribute")
            self.position += 2 * is_keyword
            if field in ("input", "output"):
                getattr(node, field).extend(self.string() for _ in self.elements("[", "]"))
            else:
                setattr(node, field, self.string())
        if not node.op_type:
            raise self.expected("an operator")
