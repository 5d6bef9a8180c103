"""Convert function bodies to FunctionProto messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from opshift.model.attributes import ATTRIBUTE_TYPES, AttributeType, write_attribute
from opshift.model.messages import FunctionProto, NodeProto
from opshift.model.operator_ids import model_domain
from opshift.registry.steps import Literals

if TYPE_CHECKING:
    from opshift.registry.bodies import BodyNode
    from opshift.registry.models import OperatorVersion

    FindVersion = Callable[[str, int, str], OperatorVersion | None]
    """Function that returns the version of an operator by name, opset and domain, such as `Registry.at`."""


def function_proto(version: OperatorVersion, find: FindVersion) -> FunctionProto:
    """Return the body of a function operator as a FunctionProto.

    Attributes without a default are listed by name only. `find` returns the operator versions of the body's
    nodes, which declare the types of attributes.
    """
    assert version.body is not None
    defaults = {name: each.default for name, each in version.attributes.items()}
    function = FunctionProto(
        name=version.name,
        domain=version.domain,
        doc_string=version.description,
        input=[each.name for each in version.inputs],
        output=[each.name for each in version.outputs],
        attribute=[name for name, default in defaults.items() if default is None],
        node=[_node_proto(each, version, find) for each in version.body.nodes],
    )
    for name, default in defaults.items():
        if default is not None:
            kind = ATTRIBUTE_TYPES[version.attributes[name].type]
            write_attribute(function.attribute_proto.add(), name, kind, default)
    add_imports(function, version.body.opset_imports)
    return function


def add_imports(function: FunctionProto, opsets: Mapping[str, int]) -> None:
    """Add opset imports to a function."""
    for domain, opset in opsets.items():
        function.opset_import.add(domain=model_domain(domain), version=opset)


def _node_proto(node: BodyNode, version: OperatorVersion, find: FindVersion) -> NodeProto:
    assert version.body is not None
    opset = version.body.opset_imports.get(node.domain)
    operator = None if opset is None else find(node.op_type, opset, node.domain)
    declared = operator.attributes if operator else {}
    proto = NodeProto(
        op_type=node.op_type, domain=model_domain(node.domain), input=node.inputs, output=node.outputs
    )
    for name, value in node.attributes.items():
        attribute = proto.attribute.add()
        if isinstance(value, int | float | str | tuple):
            kind = _kind_of(value, declared[name].type if name in declared else "")
            write_attribute(attribute, name, kind, value)
        else:
            kind = ATTRIBUTE_TYPES[version.attributes[value.attribute].type]
            attribute.name, attribute.type, attribute.ref_attr_name = name, kind.number, value.attribute
    return proto


_CLASSES: Mapping[str, type | tuple[type, ...]] = {"INT": int, "FLOAT": (int, float), "STRING": str}
"""Python classes of the values of an attribute type."""


def _kind_of(value: Literals, declared: str) -> AttributeType:
    """Return the declared type of an attribute if it fits the value, or else a type that fits."""
    values, suffix = (value, "S") if isinstance(value, tuple) else ((value,), "")
    possible = [
        f"{name}{suffix}"
        for name, classes in _CLASSES.items()
        if all(isinstance(each, classes) for each in values)
    ]
    return ATTRIBUTE_TYPES[declared if declared in possible else possible[0]]
