"""Rules for nodes against the definitions of their operators: resolution, arity and required attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opshift.checker.checked_nodes import CheckedCall
from opshift.checker.findings import ERROR, WARNING, Problem
from opshift.checker.rule_table import Problems, rule
from opshift.model.operator_ids import canonical_domain
from opshift.registry.models import UNBOUNDED, Parameter

SIGNATURE = "IR: Nodes; the operator's definition"


@rule("node.op-type", ERROR, source="IR: Nodes", remedy="set op_type, or remove the node")
def op_type(call: CheckedCall) -> Problems:
    """A node must name its operator."""
    node = call.node
    if not node.proto.op_type:
        yield "has no op_type"


@rule("node.values", ERROR, source="IR: Graphs", remedy="remove the node")
def values(call: CheckedCall) -> Problems:
    """A node must have inputs or outputs."""
    node = call.node
    if not node.inputs and not node.outputs:
        yield "has no inputs and no outputs"


@rule(
    "node.domain",
    ERROR,
    source="IR: Operators",
    remedy="add an opset import for the domain; a function has its own imports",
)
def domain(call: CheckedCall) -> Problems:
    """The domain of a node's operator or function must be imported."""
    node = call.node
    node_domain = canonical_domain(node.proto.domain)
    if node_domain not in node.container.opsets:
        yield f"domain {node_domain} has no opset import"


@rule("node.operator", ERROR, source="IR: Operators", remedy="check the name, the domain and the opset")
def operator(call: CheckedCall) -> Problems:
    """The operator must exist in the imported opset."""
    node = call.node
    if node.error is not None and node.proto.op_type:
        yield Problem(node.error.reason, node.error.remedy)


@rule(
    "node.deprecated",
    ERROR,
    source="IR: Operators; Versioning: Operator versioning",
    remedy="convert the model with opshift convert, which replaces the operator",
)
def deprecated(call: CheckedCall) -> Problems:
    """The operator must not be deprecated in the imported opset."""
    node = call.node
    if node.operator is not None and node.operator.deprecation is not None:
        replacement = node.operator.deprecation.replaced_by
        is_new = replacement is not None and replacement != node.operator.name
        remedy = f"use {replacement}, or convert the model with opshift convert" if is_new else ""
        yield Problem(f"{node.operator.id} is deprecated", remedy)


@rule(
    "node.experimental",
    WARNING,
    source="IR: Operators",
    remedy="raise the opset to one that has a stable version of the operator",
)
def experimental(call: CheckedCall) -> Problems:
    """The operator should not be experimental."""
    node = call.node
    if node.operator is not None and node.operator.status == "EXPERIMENTAL":
        yield f"{node.operator.id} is experimental; runtimes may not support it"


@rule("node.overload", WARNING, source="IR: Functions", remedy="add the function, or clear the overload")
def overload(call: CheckedCall) -> Problems:
    """A node with an overload should call a function of the model."""
    node = call.node
    if node.proto.overload and node.function is None:
        yield f"overload {node.proto.overload!r} does not match a function of the model"


@rule("node.input-count", ERROR, source=SIGNATURE, remedy="provide the inputs that the operator defines")
def input_count(call: CheckedCall) -> Problems:
    """A node must have a number of inputs that its operator accepts."""
    node = call.node
    if node.operator is not None:
        minimum, maximum = node.operator.min_input, node.operator.max_input
        if not minimum <= len(node.inputs) <= maximum:
            yield _wrong_count("input", len(node.inputs), minimum, maximum, str(node.operator.id))


@rule("node.output-count", ERROR, source=SIGNATURE, remedy="list the outputs that the operator defines")
def output_count(call: CheckedCall) -> Problems:
    """A node must have a number of outputs that its operator defines."""
    node = call.node
    if node.operator is None:
        return
    minimum, maximum = node.operator.min_output, node.operator.max_output
    if not minimum <= len(node.outputs) <= maximum:
        yield _wrong_count("output", len(node.outputs), minimum, maximum, str(node.operator.id))
    # A range of counts cannot express that it has either one output or, in training, all of them.
    elif node.operator.name == "BatchNormalization" and len(node.outputs) not in (1, maximum):
        yield f"has {len(node.outputs)} outputs; {node.operator.id} has 1, or {maximum} in training"


@rule("node.input-missing", ERROR, source="IR: Static Optional", remedy="name the input")
def input_missing(call: CheckedCall) -> Problems:
    """A required input must not be omitted."""
    node = call.node
    if node.operator is not None and "" in node.inputs:
        for parameter in _omitted(node.operator.inputs, node.inputs):
            yield f"omits the input {parameter.name!r}, which {node.operator.id} requires"


@rule("node.output-missing", ERROR, source="IR: Static Optional", remedy="name the output")
def output_missing(call: CheckedCall) -> Problems:
    """A required output must not be omitted."""
    node = call.node
    if node.operator is not None and "" in node.outputs:
        for parameter in _omitted(node.operator.outputs, node.outputs):
            yield f"omits the output {parameter.name!r}, which {node.operator.id} requires"


@rule("node.attribute-unique", ERROR, source="IR: Attributes", remedy="keep one of them")
def attribute_unique(call: CheckedCall) -> Problems:
    """The attributes of a node must have unique names."""
    node = call.node
    attributes = node.proto.attribute
    if len(attributes) > 1:
        for name, count in Counter(attribute.name for attribute in attributes).items():
            if count > 1:
                yield f"has {count} attributes with the name {name!r}"


@rule("node.attribute-missing", ERROR, source=SIGNATURE, remedy="add the attribute")
def attribute_missing(call: CheckedCall) -> Problems:
    """A node must have the attributes that its operator requires."""
    node = call.node
    if node.operator is not None and node.operator.required_attributes:
        present = {attribute.name for attribute in node.proto.attribute}
        for name in node.operator.required_attributes:
            if name not in present:
                yield f"does not have the attribute {name!r}, which {node.operator.id} requires"


def _wrong_count(kind: str, count: int, low: int, high: int, operator: str) -> str:
    expected = f"{low} or more" if high == UNBOUNDED else str(high) if low == high else f"{low} to {high}"
    return f"has {count} {kind}s; {operator} has {expected}"


def _omitted(parameters: tuple[Parameter, ...], names: Sequence[str]) -> Iterator[Parameter]:
    return (
        parameter
        for parameter, name in zip(parameters, names, strict=False)
        if not name and parameter.option == "single"
    )
