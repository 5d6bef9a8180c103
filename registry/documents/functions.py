"""Convert function bodies to FunctionProto messages."""

from __future__ import annotations

from opshift.registry.function_bodies import BodyNode, FromAttribute
from opshift.registry.messages import AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto
from opshift.registry.models import OperatorVersion, Value
from opshift.registry.names import DEFAULT_DOMAIN


def function_proto(version: OperatorVersion) -> FunctionProto:
    """Return the body of a function operator as a FunctionProto.

    Attributes without a default are listed by name only, so a call has to set them.
    """
    assert version.body is not None
    defaults = {name: each.default for name, each in version.attributes.items()}
    return FunctionProto(
        name=version.name,
        domain=version.domain,
        doc_string=version.description,
        input=[each.name for each in version.inputs],
        output=[each.name for each in version.outputs],
        attribute=[name for name, default in defaults.items() if default is None],
        attribute_proto=[_attribute(name, value) for name, value in defaults.items() if value is not None],
        opset_import=[
            OperatorSetIdProto(domain=_model_domain(domain), version=opset)
            for domain, opset in version.body.opset_imports.items()
        ],
        node=[_node(each, version) for each in version.body.nodes],
    )


def _node(node: BodyNode, version: OperatorVersion) -> NodeProto:
    return NodeProto(
        op_type=node.op_type,
        domain=_model_domain(node.domain),
        input=node.inputs,
        output=node.outputs,
        attribute=[
            _reference(name, value, version) if isinstance(value, FromAttribute) else _attribute(name, value)
            for name, value in node.attributes.items()
        ],
    )


def _model_domain(domain: str) -> str:
    """Return the spelling of a domain in models: the default domain is the empty string."""
    return "" if domain == DEFAULT_DOMAIN else domain


def _reference(name: str, value: FromAttribute, version: OperatorVersion) -> AttributeProto:
    kind = AttributeProto.AttributeType.Value(version.attributes[value.attribute].type)
    return AttributeProto(name=name, type=kind, ref_attr_name=value.attribute)


def _attribute(name: str, value: Value) -> AttributeProto:
    if isinstance(value, str):
        return AttributeProto(name=name, type=AttributeProto.STRING, s=value.encode())
    if isinstance(value, int):
        return AttributeProto(name=name, type=AttributeProto.INT, i=value)
    if isinstance(value, float):
        return AttributeProto(name=name, type=AttributeProto.FLOAT, f=value)
    if all(isinstance(each, int) for each in value):
        return AttributeProto(name=name, type=AttributeProto.INTS, ints=[int(each) for each in value])
    if all(isinstance(each, str) for each in value):
        texts = [str(each).encode() for each in value]
        return AttributeProto(name=name, type=AttributeProto.STRINGS, strings=texts)
    return AttributeProto(name=name, type=AttributeProto.FLOATS, floats=[float(each) for each in value])
