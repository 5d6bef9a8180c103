"""Expand a node into the function body of its operator."""

from opshift.adapters.core.rewriter import Attributes, Rewriter, StepFunction
from opshift.model.node import Node
from opshift.registry.bodies import BodyNode, FromAttribute
from opshift.registry.models import OperatorVersion


def make_body_step(version: OperatorVersion) -> StepFunction:
    """Return a step that replaces a node by the function body of `version`, which must have a valid body.

    Each body node is emitted for the opset that the function body imports for the domain of the body node.
    """
    assert version.body is not None
    body = version.body

    def expand(node: Node, out: Rewriter) -> None:
        names = {formal.name: node.input(position) for position, formal in enumerate(version.inputs)}
        results = {formal.name: node.output(position) for position, formal in enumerate(version.outputs)}
        # Read all attributes before emitting, because reading an attribute may raise CannotConvert.
        attributes = [_attributes(each, node, version) for each in body.nodes]
        for each, values in zip(body.nodes, attributes, strict=True):
            inputs = [names[name] if name else "" for name in each.inputs]
            outputs = [results.get(name) or out.fresh(name or each.op_type.lower()) for name in each.outputs]
            opset = body.opset_imports[each.domain]
            out.emit_all(each.op_type, inputs, outputs, domain=each.domain, opset=opset, **values)
            names.update(zip(each.outputs, outputs, strict=True))

    return expand


def _attributes(each: BodyNode, node: Node, version: OperatorVersion) -> Attributes:
    """Return the attributes of body node `each`; references to absent values without default give `None`."""
    return {
        name: node.attribute(value.attribute, version.attributes[value.attribute].default)
        if isinstance(value, FromAttribute)
        else value
        for name, value in each.attributes.items()
    }
