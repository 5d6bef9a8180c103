"""Rules for the functions of a model, and for the nodes that call them."""

from bisect import bisect_left

from opshift.checker.checked_model import CheckedModel, attribute_names
from opshift.checker.checked_nodes import CheckedAttribute, CheckedCall
from opshift.checker.containers import CheckedFunction
from opshift.checker.findings import ERROR, WARNING, duplicate_names, repeated
from opshift.checker.rule_table import Problems, rule
from opshift.model.attributes import type_name
from opshift.model.message_text import count_text
from opshift.model.operator_ids import called_function, canonical_domain, function_id

SOURCE = "IR: Functions"

DOMAINS_SINCE = 8
"""First IR version in which a function must declare its domain."""


@rule("function.name", ERROR, SOURCE, "name the function")
def name(function: CheckedFunction) -> Problems:
    """A function must have a name."""
    if not function.proto.name:
        yield "has no name"


@rule("function.domain", ERROR, SOURCE, "set and import the domain")
def domain(function: CheckedFunction) -> Problems:
    """A function must declare its domain, since IR version 8."""
    if function.model.ir_version >= DOMAINS_SINCE and not function.proto.HasField("domain"):
        yield "has no domain"


@rule("function.unique", ERROR, SOURCE, "rename one of the functions, or give it a different overload")
def unique(model: CheckedModel) -> Problems:
    """No two functions may have the same domain, name and overload."""
    for key, count in repeated(map(function_id, model.proto.functions)):
        yield f"{count} functions have the identity {key}"


@rule("function.recursion", ERROR, "onnx.proto: ModelProto.functions", "express the repetition as a Loop")
def recursion(model: CheckedModel) -> Problems:
    """A function must not call itself, directly or through other functions."""
    if model.call_cycle:
        yield f"functions call each other in a cycle: {' -> '.join(map(str, model.call_cycle))}"


@rule(
    "function.standard", WARNING, "onnx.proto: ModelProto.functions", "move the function to a custom domain"
)
def operator_name(function: CheckedFunction) -> Problems:
    """A function should not have the name of an ONNX operator: runtimes differ in which they use."""
    domain, name = canonical_domain(function.proto.domain), function.proto.name
    registry, opset = function.model.registry, function.model.all_opsets.get(domain)
    if opset is not None and registry.has(name, opset, domain):
        yield f"has the name of the operator {domain}.{name}"


@rule("function.input-unique", ERROR, "IR: Names Within a Graph", "give each input a unique name")
def input_unique(function: CheckedFunction) -> Problems:
    """The inputs of a function must have unique names."""
    yield from duplicate_names("input", function.proto.input)


@rule("function.output-unique", ERROR, SOURCE, "return the value once")
def output_unique(function: CheckedFunction) -> Problems:
    """A function must not return a value more than once."""
    yield from duplicate_names("output", function.proto.output)


@rule("function.attribute-unique", ERROR, SOURCE, "keep one attribute, with or without a default")
def attribute_unique(function: CheckedFunction) -> Problems:
    """The attributes of a function, with and without a default, must have unique names."""
    yield from duplicate_names("attribute", attribute_names(function.proto))


@rule("function.output-made", ERROR, SOURCE, "correct the name")
def output_produced(function: CheckedFunction) -> Problems:
    """An output of a function must be an input or the output of a node of the function."""
    for output in function.proto.output:
        if output and output not in function.scope.defined_names:
            yield f"output {output!r} is not an input or a node output of the function"


@rule("function.opset", ERROR, SOURCE, "import the opset of the model, or inline the function")
def opset(node: CheckedCall) -> Problems:
    """An operator in a function must have the same version under the opset imports of the model."""
    container, operator = node.container, node.operator
    if container.key is None or operator is None:
        return
    model_opset = container.model.all_opsets.get(operator.domain)
    if model_opset is not None and model_opset != container.opsets.get(operator.domain):
        model_operator = container.model.registry.known_at(operator.name, model_opset, operator.domain)
        if model_operator is None or model_operator.id != operator.id:
            by_model = model_operator.id if model_operator else "undefined"
            yield f"is {operator.id} by the imports of the function, but {by_model} by the model's imports"


@rule("function.call-inputs", ERROR, SOURCE, "pass only inputs that the function has")
def call_inputs(node: CheckedCall) -> Problems:
    """A call must not pass more inputs than the function has."""
    if node.function is not None and len(node.inputs) > len(node.function.input):
        yield f"has {count_text(len(node.inputs), 'input')}; the function has {len(node.function.input)}"


@rule("function.call-input-missing", ERROR, SOURCE, "pass the input")
def call_input_missing(node: CheckedCall) -> Problems:
    """A call must pass the inputs that nodes of the function require."""
    if node.function is None:
        return
    required = node.container.model.required_inputs[called_function(node.proto)]
    listed = bisect_left(required, len(node.inputs))
    omitted = [*(each for each in required[:listed] if not node.inputs[each]), *required[listed : listed + 1]]
    if omitted:
        first = f"input {omitted[0]}, {node.function.input[omitted[0]]!r}"
        count = len(omitted) + max(len(required) - listed - 1, 0)
        yield (
            f"omits {first}, which the function requires"
            if count == 1
            else f"omits {count:,} inputs that the function requires; the first one is {first}"
        )


@rule("function.call-outputs", ERROR, SOURCE, "list only outputs that the function has")
def call_outputs(node: CheckedCall) -> Problems:
    """A call must not have more outputs than the function."""
    if node.function is not None and len(node.outputs) > len(node.function.output):
        yield f"has {count_text(len(node.outputs), 'output')}; the function has {len(node.function.output)}"


@rule("function.call-attribute", WARNING, SOURCE, "remove the attribute, or correct its name")
def call_attribute(node: CheckedCall) -> Problems:
    """A call may only have attributes of the function."""
    if node.function is not None:
        known = node.container.model.attribute_names[called_function(node.proto)]
        for attribute in node.proto.attribute:
            if attribute.name not in known:
                yield f"has the attribute {attribute.name!r}, which the function does not have"


@rule("function.attribute-type", ERROR, SOURCE, "use the type of the attribute in the function")
def attribute_type(attribute: CheckedAttribute) -> Problems:
    """An attribute of a function must have the same type in its default, in references and in calls."""
    proto, node = attribute.proto, attribute.node
    called = called_function(node.proto) if node.function is not None else None
    for key, name in ((called, proto.name), (node.container.key, proto.ref_attr_name)):
        if key is not None and name:
            expected = node.container.model.attribute_types[key].get(name, 0)
            if proto.type and expected and proto.type != expected:
                actual = f"is {type_name(proto.type)}"
                yield f"{actual}; attribute {name!r} of function {key} is {type_name(expected)}"
