"""Function bodies in the text format of ONNX, which `onnx.parser.parse_function` reads.

Source: https://onnx.ai/onnx/repo-docs/Syntax.html.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from opshift.analysis.model_text import model_of_text
from opshift.catalogue.examples import example_of
from opshift.model.attributes import GRAPH, read_attribute, type_name
from opshift.model.element_types import NAME_BY_NUMBER, float_text
from opshift.model.errors import OpshiftError
from opshift.model.messages import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    ValueInfoProto,
)
from opshift.model.operator_ids import canonical_domain, model_domain, opset_imports
from opshift.model.tensors import require_tensor
from opshift.model.types import InputFacts, short_type
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry

BUILT_BODY = "The body depends on the node: call `function_body(node, input_types)` of its schema in Python."
DEFAULT_NODE = "The body depends on the node. With the default attributes and {}:"
EXAMPLE_NODE = "The body depends on the node. For `{}` with {}:"


class FunctionText(NamedTuple):
    """Text of a function body; if the body depends on the node, with a note about the node."""

    note: str
    text: str
    function: FunctionProto | None = None
    """The function for the example node, if the body depends on the node and can be built."""

    @property
    def lines(self) -> list[str]:
        """The lines of the note and of the body."""
        return [*filter(None, [self.note]), *self.text.splitlines()]


def function_text(version: OperatorVersion, registry: Registry) -> FunctionText:
    """Return the function body of an operator; if it depends on the node, for an example node, or a note."""
    if version.body is not None:
        return FunctionText("", "\n".join(_function_lines(version.function_body())))
    for note, node, types in _example_nodes(version, registry):
        try:
            function = version.function_body(node, types, registry=registry)
        except OpshiftError:  # the body depends on a required attribute or a shape, which this node lacks
            continue
        return FunctionText(note, "\n".join(_function_lines(function)), function)
    return FunctionText(BUILT_BODY, "")


def _example_nodes(
    version: OperatorVersion, registry: Registry
) -> Iterator[tuple[str, NodeProto, Sequence[InputFacts | None]]]:
    """Yield note, node and input types for a node without attributes, and for an example of this version."""
    inputs, outputs = (
        [each for each in formals if each.option == "single"] for formals in (version.inputs, version.outputs)
    )
    types = [_example_type(each, version) for each in inputs]
    stated = ", ".join(f"`{kind} {each.name}`" for each, kind in zip(inputs, types, strict=True))
    node = NodeProto(
        op_type=version.name,
        domain=model_domain(version.domain),
        input=[each.name for each in inputs],
        output=[each.name for each in outputs],
    )
    yield DEFAULT_NODE.format(stated), node, types
    if example := example_of(version):
        model = model_of_text(example.model, version.since_version, registry)
        if opset_imports(model.opset_import, model.ir_version)[version.domain] == version.since_version:
            tensors = (each for each in model.graph.input if each.type.HasField("tensor_type"))
            facts = {each.name: _type_and_shape(each) for each in tensors}
            stated = ", ".join(f"`{kind}{list(shape)} {name}`" for name, (kind, shape) in facts.items())
            node = model.graph.node[0]
            yield EXAMPLE_NODE.format(example.node, stated), node, [facts.get(name) for name in node.input]


def _type_and_shape(value: ValueInfoProto) -> tuple[str, tuple[int, ...]]:
    tensor = value.type.tensor_type
    return NAME_BY_NUMBER[tensor.elem_type], tuple(each.dim_value for each in tensor.shape.dim)


def _example_type(parameter: Parameter, version: OperatorVersion) -> str:
    types = version.types_of(parameter)
    chosen = "tensor(float)" if "tensor(float)" in types else types[0]
    return short_type(chosen)


def _function_lines(function: FunctionProto) -> Iterator[str]:
    imports = ", ".join(f'"{each.domain}" : {each.version}' for each in function.opset_import)
    yield f'<domain: "{canonical_domain(function.domain)}", opset_import: [{imports}]>'
    attributes = ", ".join((*function.attribute, *map(_attribute_text, function.attribute_proto)))
    stated = f" <{attributes}>" if attributes else ""
    yield f"{function.name}{stated} ({', '.join(function.input)}) => ({', '.join(function.output)}) {{"
    yield from _node_lines(function.node)
    yield "}"


def _node_lines(nodes: Iterable[NodeProto]) -> Iterator[str]:
    for node in nodes:
        domain = f"{node.domain}." if node.domain else ""
        texts = [_attribute_text(each) for each in node.attribute]
        stated = f" <{', '.join(texts)}>" if texts else ""
        inputs = ", ".join(each or '""' for each in node.input)
        outputs = ", ".join(each or '""' for each in node.output)
        # a node with a subgraph has several lines
        yield from f"  {outputs} = {domain}{node.op_type}{stated} ({inputs})".splitlines()


def _attribute_text(attribute: AttributeProto) -> str:
    name = f"{attribute.name}: {type_name(attribute.type).lower()}"
    if attribute.ref_attr_name:
        return f"{name} = @{attribute.ref_attr_name}"
    if attribute.type == GRAPH:
        lines = list(_graph_lines(attribute.g))
        return f"{name} = " + "\n    ".join(lines)
    return f"{name} = {_value_text(read_attribute(attribute))}"


def _graph_lines(graph: GraphProto) -> Iterator[str]:
    inputs, outputs = (
        ", ".join(f"{_type_name(each.type.tensor_type.elem_type)}{each.name}" for each in values)
        for values in (graph.input, graph.output)
    )
    yield f"{graph.name} ({inputs}) => ({outputs}) {{"
    yield from _node_lines(graph.node)
    yield "}"


def _type_name(number: int) -> str:
    return f"{NAME_BY_NUMBER[number]} " if number else ""


def _value_text(value: object) -> str:
    match value:
        case TensorProto():
            tensor = require_tensor(value)
            dims = f"[{', '.join(map(str, tensor.dims))}]" if tensor.dims else ""
            return f"{tensor.element_type}{dims} {{{', '.join(map(_value_text, tensor.values))}}}"
        case bytes():
            return json.dumps(value.decode())
        case str():
            return json.dumps(value)
        case float():
            return float_text(value)
        case int():
            return str(value)
    assert isinstance(value, Iterable)
    return f"[{', '.join(map(_value_text, value))}]"
