"""Convert function bodies to FunctionProto messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opshift.model.attributes import ATTRIBUTE_TYPES, write_attribute
from opshift.model.errors import UsageError
from opshift.model.messages import AttributeProto, FunctionProto, NodeProto
from opshift.model.operator_ids import model_domain
from opshift.registry.function_builder import function_builder
from opshift.registry.steps import Literals

if TYPE_CHECKING:
    from opshift.model.types import InputFacts, SerializableMessage
    from opshift.registry.bodies import BodyNode, FromAttribute
    from opshift.registry.models import OperatorVersion
    from opshift.registry.registry import Registry


def function_body(
    version: OperatorVersion,
    node: SerializableMessage | None,
    input_types: Sequence[InputFacts | None],
    opset: int | None,
    registry: Registry | None,
) -> FunctionProto:
    """Return the function body of a version; see `OperatorVersion.function_body`."""
    if version.body is not None and opset is None:
        return function_proto(version)
    if not version.has_function:
        raise UsageError(f"{version.id} is not a function", remedy="check has_function first")
    if node is None:
        at_opset = f" at opset {opset}" if opset else ""
        reason = f"the function body of {version.id}{at_opset} depends on the node"
        raise UsageError(reason, remedy="pass a NodeProto and the types of its inputs")
    return function_builder()(version, node, input_types, opset, registry)


def function_proto(version: OperatorVersion) -> FunctionProto:
    """Return the body of a function operator as a FunctionProto.

    Attributes without a default are listed by name only, so a call has to set them.
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
        attribute_proto=[
            _attribute(name, each, version) for name, each in defaults.items() if each is not None
        ],
        node=[_node(each, version) for each in version.body.nodes],
    )
    add_imports(function, version.body.opset_imports)
    return function


def add_imports(function: FunctionProto, opsets: Mapping[str, int]) -> None:
    """Add opset imports to a function."""
    for domain, opset in opsets.items():
        function.opset_import.add(domain=model_domain(domain), version=opset)


def _node(node: BodyNode, version: OperatorVersion) -> NodeProto:
    return NodeProto(
        op_type=node.op_type,
        domain=model_domain(node.domain),
        input=node.inputs,
        output=node.outputs,
        attribute=[_attribute(*each, version) for each in node.attributes.items()],
    )


def _attribute(name: str, value: Literals | FromAttribute, version: OperatorVersion) -> AttributeProto:
    if not isinstance(value, int | float | str | tuple):
        kind = ATTRIBUTE_TYPES[version.attributes[value.attribute].type]
        return AttributeProto(name=name, type=kind.number, ref_attr_name=value.attribute)
    values = value if isinstance(value, tuple) else (value,)
    types = {"INT": int, "STRING": str}
    element = next((each for each in types if all(isinstance(v, types[each]) for v in values)), "FLOAT")
    attribute = AttributeProto()
    kind = ATTRIBUTE_TYPES[f"{element}S" if isinstance(value, tuple) else element]
    write_attribute(attribute, name, kind, value)
    return attribute
