"""Rules for nodes against their operators' definitions: which operator, how many inputs, which attributes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from opshift.converter.legality.findings import ERROR, WARNING, Flaw
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Call
from opshift.registry.models import UNBOUNDED, Parameter
from opshift.registry.names import canonical_domain

SIGNATURE = "IR: Nodes; the operator's definition"


@rule("node.op-type", ERROR, source="IR: Nodes", remedy="name the operator, or remove the node")
def op_type(call: Call) -> Flaws:
    """A node names its operator."""
    node = call.node
    if not node.proto.op_type:
        yield "names no operator"


@rule("node.values", ERROR, source="IR: Graphs", remedy="remove the node")
def values(call: Call) -> Flaws:
    """A node has inputs or outputs."""
    node = call.node
    if not node.inputs and not node.outputs:
        yield "has no inputs and no outputs"


@rule(
    "node.domain",
    ERROR,
    source="IR: Operators",
    remedy="add an opset import for the domain; a function has imports of its own",
)
def domain(call: Call) -> Flaws:
    """The domain of a node's operator, or of the function it calls, is imported."""
    node = call.node
    named = canonical_domain(node.proto.domain)
    if named not in node.container.opsets:
        yield f"domain {named} has no opset import"


@rule("node.operator", ERROR, source="IR: Operators", remedy="check the name, the domain and the opset")
def operator(call: Call) -> Flaws:
    """The operator is in the imported opset."""
    node = call.node
    if node.error is not None and node.proto.op_type:
        yield Flaw(node.error.reason, node.error.remedy)


@rule(
    "node.deprecated",
    ERROR,
    source="IR: Operators; Versioning: Operator versioning",
    remedy="convert the model: opshift convert knows what replaced it",
)
def deprecated(call: Call) -> Flaws:
    """The operator is not deprecated in the imported opset."""
    node = call.node
    if node.operator is not None and node.operator.deprecation is not None:
        other = node.operator.deprecation.replaced_by
        is_new = other is not None and other != node.operator.name
        instead = f"use {other}, or convert the model: opshift convert knows how" if is_new else ""
        yield Flaw(f"{node.operator.id} is deprecated", instead)


@rule(
    "node.experimental",
    WARNING,
    source="IR: Operators",
    remedy="raise the opset to one that has a stable operator for it",
)
def experimental(call: Call) -> Flaws:
    """The operator is stable."""
    node = call.node
    if node.operator is not None and node.operator.status == "EXPERIMENTAL":
        yield f"{node.operator.id} is experimental; runtimes need not have it"


@rule("node.overload", WARNING, source="IR: Functions", remedy="add the function, or drop the overload")
def overload(call: Call) -> Flaws:
    """A node with an overload calls a function of the model."""
    node = call.node
    if node.proto.overload and node.function is None:
        yield f"overload {node.proto.overload!r} names no function of the model"


@rule("node.input-count", ERROR, source=SIGNATURE, remedy="give the inputs that the operator has")
def input_count(call: Call) -> Flaws:
    """A node lists as many inputs as its operator has."""
    node = call.node
    if node.operator is not None:
        least, most = node.operator.min_input, node.operator.max_input
        if not least <= len(node.inputs) <= most:
            yield _miscounted("input", len(node.inputs), least, most, str(node.operator.id))


@rule("node.output-count", ERROR, source=SIGNATURE, remedy="name the outputs that the operator has")
def output_count(call: Call) -> Flaws:
    """A node lists as many outputs as its operator has."""
    node = call.node
    if node.operator is None:
        return
    least, most = node.operator.min_output, node.operator.max_output
    if not least <= len(node.outputs) <= most:
        yield _miscounted("output", len(node.outputs), least, most, str(node.operator.id))
    elif node.operator.name == "BatchNormalization" and len(node.outputs) not in (1, most):
        yield f"has {len(node.outputs)} outputs; {node.operator.id} has 1, or in training {most}"


@rule("node.input-missing", ERROR, source="IR: Static Optional", remedy="name the input")
def input_missing(call: Call) -> Flaws:
    """An input that is not optional is not left out."""
    node = call.node
    if node.operator is not None and "" in node.inputs:
        for formal in _left_out(node.operator.inputs, node.inputs):
            yield f"leaves out the input {formal.name!r}, which {node.operator.id} needs"


@rule("node.output-missing", ERROR, source="IR: Static Optional", remedy="name the output")
def output_missing(call: Call) -> Flaws:
    """An output that is not optional is not left out."""
    node = call.node
    if node.operator is not None and "" in node.outputs:
        for formal in _left_out(node.operator.outputs, node.outputs):
            yield f"leaves out the output {formal.name!r}, which {node.operator.id} always makes"


@rule("node.attribute-unique", ERROR, source="IR: Attributes", remedy="keep one of them")
def attribute_unique(call: Call) -> Flaws:
    """A node has each attribute once."""
    node = call.node
    attributes = node.proto.attribute
    if len(attributes) > 1:
        for name, count in Counter(each.name for each in attributes).items():
            if count > 1:
                yield f"has {count} attributes {name!r}"


@rule("node.attribute-missing", ERROR, source=SIGNATURE, remedy="add the attribute")
def attribute_missing(call: Call) -> Flaws:
    """A node has the attributes that its operator requires."""
    node = call.node
    if node.operator is not None and node.operator.required_attributes:
        there = {each.name for each in node.proto.attribute}
        for name in node.operator.required_attributes:
            if name not in there:
                yield f"has no attribute {name!r}, which {node.operator.id} requires"


def _miscounted(kind: str, count: int, least: int, most: int, operator: str) -> str:
    counts = f"{least} or more" if most == UNBOUNDED else str(most) if least == most else f"{least} to {most}"
    return f"has {count} {kind}s; {operator} has {counts}"


def _left_out(formals: tuple[Parameter, ...], names: Sequence[str]) -> Iterator[Parameter]:
    return (
        formal for formal, name in zip(formals, names, strict=False) if not name and formal.option == "single"
    )
