"""Function bodies as text."""

from collections.abc import Iterable, Iterator

from opshift.model.attributes import graphs_in, read_attribute
from opshift.model.errors import OpshiftError
from opshift.model.messages import AttributeProto, NodeProto, TensorProto
from opshift.model.operator_ids import model_domain
from opshift.model.tensors import require_tensor
from opshift.model.types import short_type
from opshift.registry.bodies import node_text
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.registry import Registry

BUILT_BODY = "The body depends on the node: call function_body(node, input_types) of its schema in Python."
EXAMPLE = "The body depends on the node. With the default attributes and {}:"


def function_lines(version: OperatorVersion, registry: Registry) -> Iterator[str]:
    """Yield the lines of a function body; if it depends on the node, that of an example node."""
    if version.body is not None:
        yield from str(version.body).splitlines()
        return
    inputs, outputs = (
        [each for each in formals if each.option == "single"] for formals in (version.inputs, version.outputs)
    )
    types = [_example_type(each, version) for each in inputs]
    node = NodeProto(
        op_type=version.name,
        domain=model_domain(version.domain),
        input=[each.name for each in inputs],
        output=[each.name for each in outputs],
    )
    try:
        function = version.function_body(node, types, registry=registry)
    except OpshiftError:  # the body depends on a required attribute, or on a shape
        yield BUILT_BODY
        return
    yield EXAMPLE.format(", ".join(f"{each.name}: {kind}" for each, kind in zip(inputs, types, strict=True)))
    yield ", ".join(f"{each.domain or 'ai.onnx'} {each.version}" for each in function.opset_import)
    yield from _node_lines(function.node, "")


def _example_type(parameter: Parameter, version: OperatorVersion) -> str:
    types = version.types_of(parameter)
    chosen = "tensor(float)" if "tensor(float)" in types else types[0]
    return short_type(chosen)


def _node_lines(nodes: Iterable[NodeProto], indent: str) -> Iterator[str]:
    for node in nodes:
        attributes = {each.name: _plain_value(each) for each in node.attribute if not any(graphs_in(each))}
        yield indent + node_text(node.op_type, node.input, node.output, attributes)
        for attribute in node.attribute:
            for graph in graphs_in(attribute):
                yield f"{indent}  {attribute.name}({', '.join(each.name for each in graph.input)}):"
                yield from _node_lines(graph.node, f"{indent}    ")
                yield f"{indent}    return {', '.join(each.name for each in graph.output)}"


def _plain_value(attribute: AttributeProto) -> object:
    value = read_attribute(attribute)
    if isinstance(value, bytes):
        return value.decode()
    return list(require_tensor(value).values) if isinstance(value, TensorProto) else value
