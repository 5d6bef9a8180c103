"""Rules for the functions of a model, and for the nodes that call them."""

from __future__ import annotations

from collections import Counter
from graphlib import CycleError, TopologicalSorter

from opshift.checker.checked_nodes import CheckedCall
from opshift.checker.containers import CheckedFunction, CheckedModel
from opshift.checker.findings import ERROR, WARNING, duplicate_names
from opshift.checker.rule_table import Problems, rule
from opshift.model.operator_ids import canonical_domain, function_id

DOMAINS_SINCE = 8
"""First IR version in which a function must declare its domain."""


@rule("function.name", ERROR, source="IR: Functions", remedy="name the function")
def name(function: CheckedFunction) -> Problems:
    """A function must have a name."""
    if not function.proto.name:
        yield "has no name"


@rule("function.domain", ERROR, source="IR: Functions", remedy="set the domain, and import it")
def domain(function: CheckedFunction) -> Problems:
    """A function must declare its domain, since IR version 8."""
    if function.model.ir_version >= DOMAINS_SINCE and not function.proto.HasField("domain"):
        yield "has no domain"


@rule("function.unique", ERROR, source="IR: Functions", remedy="rename one, or give it an overload")
def unique(model: CheckedModel) -> Problems:
    """No two functions may have the same domain, name and overload."""
    for key, count in Counter(map(function_id, model.proto.functions)).items():
        if count > 1:
            yield f"{count} functions have the identity {key}"


@rule(
    "function.recursion",
    ERROR,
    source="onnx.proto: ModelProto.functions",
    remedy="express the repetition as a Loop",
)
def recursion(model: CheckedModel) -> Problems:
    """A function must not call itself, directly or through other functions."""
    try:
        TopologicalSorter(model.calls).prepare()
    except CycleError as error:
        yield f"functions call each other in a cycle: {' -> '.join(map(str, error.args[1]))}"


@rule(
    "function.standard",
    WARNING,
    source="onnx.proto: ModelProto.functions",
    remedy="move the function to a custom domain",
)
def operator_name(function: CheckedFunction) -> Problems:
    """A function should not have the name of an ONNX operator: runtimes differ in which they use."""
    registry, function_domain = function.model.registry, canonical_domain(function.proto.domain)
    opset = function.model.all_opsets.get(function_domain)
    if (
        opset is not None
        and function_domain in registry.domains()
        and registry.has(function.proto.name, opset, function_domain)
    ):
        yield f"has the name of the operator {function_domain}.{function.proto.name}"


@rule("function.input-unique", ERROR, source="IR: Names Within a Graph", remedy="rename all but one")
def input_unique(function: CheckedFunction) -> Problems:
    """The inputs of a function must have unique names."""
    yield from duplicate_names("input", function.proto.input)


@rule("function.output-unique", ERROR, source="IR: Functions", remedy="return the value once")
def output_unique(function: CheckedFunction) -> Problems:
    """A function must not return a value more than once."""
    yield from duplicate_names("output", function.proto.output)


@rule(
    "function.attribute-unique", ERROR, source="IR: Functions", remedy="keep one, with or without a default"
)
def attribute_unique(function: CheckedFunction) -> Problems:
    """The attributes of a function, with and without a default, must have unique names."""
    names = (*function.proto.attribute, *(attribute.name for attribute in function.proto.attribute_proto))
    yield from duplicate_names("attribute", names)


@rule("function.output-made", ERROR, source="IR: Functions", remedy="correct the name")
def output_produced(function: CheckedFunction) -> Problems:
    """An output of a function must be an input or the output of a node of the function."""
    for output in function.proto.output:
        if output and output not in function.scope.defined_names:
            yield f"output {output!r} is not an input or a node output of the function"


@rule(
    "function.opset",
    ERROR,
    source="IR: Functions",
    remedy="import the opset of the model, or inline the function",
)
def opset(call: CheckedCall) -> Problems:
    """An operator in a function must have the same version as by the opset imports of the model."""
    node = call.node
    container, operator = node.container, node.operator
    if container.key is None or operator is None:
        return
    model_opset = container.model.all_opsets.get(operator.domain)
    if model_opset is not None and model_opset != container.opsets.get(operator.domain):
        model_operator = container.model.registry.at(operator.name, model_opset, operator.domain)
        if model_operator is not operator:
            by_model = model_operator.id if model_operator else "undefined"
            yield f"is {operator.id} by the imports of the function, but {by_model} by the model's"


@rule("function.call-inputs", ERROR, source="IR: Functions", remedy="pass only inputs that the function has")
def call_inputs(call: CheckedCall) -> Problems:
    """A call must not pass more inputs than the function has."""
    node = call.node
    if node.function is not None and len(node.inputs) > len(node.function.input):
        yield f"has {len(node.inputs)} inputs; the function has {len(node.function.input)}"


@rule(
    "function.call-outputs", ERROR, source="IR: Functions", remedy="list only outputs that the function has"
)
def call_outputs(call: CheckedCall) -> Problems:
    """A call must not have more outputs than the function."""
    node = call.node
    if node.function is not None and len(node.outputs) > len(node.function.output):
        yield f"has {len(node.outputs)} outputs; the function has {len(node.function.output)}"


@rule(
    "function.call-attribute",
    WARNING,
    source="IR: Functions",
    remedy="remove the attribute, or correct its name",
)
def call_attribute(call: CheckedCall) -> Problems:
    """A call may only have attributes of the function."""
    node = call.node
    if node.function is not None:
        known = {*node.function.attribute, *(attribute.name for attribute in node.function.attribute_proto)}
        for attribute in node.proto.attribute:
            if attribute.name not in known:
                yield f"has the attribute {attribute.name!r}, which the function does not have"
