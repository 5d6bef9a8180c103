"""Rules for the functions of a model, and for the nodes that call them."""

from __future__ import annotations

from collections import Counter
from graphlib import CycleError, TopologicalSorter

from opshift.converter.legality.containers import Function, Key, Model, function_key
from opshift.converter.legality.findings import ERROR, WARNING
from opshift.converter.legality.names import repeated
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import Call
from opshift.registry.names import canonical_domain

DOMAINS = 8
"""From this IR version on a function states its domain."""


@rule("function.name", ERROR, source="IR: Functions", remedy="name the function")
def name(function: Function) -> Flaws:
    """A function has a name."""
    if not function.proto.name:
        yield "has no name"


@rule("function.domain", ERROR, source="IR: Functions", remedy="state the domain, and import it")
def domain(function: Function) -> Flaws:
    """A function says which domain it belongs to."""
    if function.model.ir_version >= DOMAINS and not function.proto.HasField("domain"):
        yield "has no domain"


@rule("function.unique", ERROR, source="IR: Functions", remedy="rename one, or give it an overload")
def unique(model: Model) -> Flaws:
    """Domain, name and overload belong to one function."""
    for key, count in Counter(map(function_key, model.proto.functions)).items():
        if count > 1:
            yield f"{count} functions are {_named(key)}"


@rule(
    "function.recursion",
    ERROR,
    source="onnx.proto: ModelProto.functions",
    remedy="express the repetition as a Loop",
)
def recursion(model: Model) -> Flaws:
    """A function does not call itself, nor by way of others."""
    try:
        TopologicalSorter(model.calls).prepare()
    except CycleError as error:
        yield f"functions call each other in a circle: {' -> '.join(map(_named, error.args[1]))}"


@rule(
    "function.standard", WARNING, source="onnx.proto: ModelProto.functions", remedy="use a domain of your own"
)
def standard(function: Function) -> Flaws:
    """A function is none of ONNX's operators: runtimes differ in which of the two they take."""
    registry, named = function.model.registry, canonical_domain(function.proto.domain)
    opset = function.model.all_opsets.get(named)
    if opset is not None and named in registry.domains() and registry.has(function.proto.name, opset, named):
        yield f"{named}.{function.proto.name} is an operator too"


@rule("function.input-unique", ERROR, source="IR: Names Within a Graph", remedy="rename all but one")
def input_unique(function: Function) -> Flaws:
    """The inputs of a function have names of their own."""
    yield from repeated("input", function.proto.input)


@rule("function.output-unique", ERROR, source="IR: Functions", remedy="return the value once")
def output_unique(function: Function) -> Flaws:
    """A function returns each value once."""
    yield from repeated("output", function.proto.output)


@rule(
    "function.attribute-unique", ERROR, source="IR: Functions", remedy="keep one, with or without a default"
)
def attribute_unique(function: Function) -> Flaws:
    """Attributes with a default and without have names of their own."""
    named = (*function.proto.attribute, *(each.name for each in function.proto.attribute_proto))
    yield from repeated("attribute", named)


@rule("function.output-made", ERROR, source="IR: Functions", remedy="correct the name")
def output_made(function: Function) -> Flaws:
    """What a function returns is made in it."""
    for each in function.proto.output:
        if each and each not in function.scope.known:
            yield f"output {each!r} is made by no node and is no input"


@rule(
    "function.opset",
    ERROR,
    source="IR: Functions",
    remedy="import the opset of the model, or inline the function",
)
def opset(call: Call) -> Flaws:
    """The operators in a function are those that the model's own imports mean by the same names."""
    node = call.node
    container, operator = node.container, node.operator
    if container.key is None or operator is None:
        return
    other = container.model.all_opsets.get(operator.domain)
    if other is not None and other != container.opsets.get(operator.domain):
        found = container.model.registry.at(operator.name, other, operator.domain)
        if found is not operator:
            there = found.id if found else "nothing"
            yield f"is {operator.id} by the function's imports and {there} by the model's"


@rule("function.call-inputs", ERROR, source="IR: Functions", remedy="give the inputs that the function has")
def call_inputs(call: Call) -> Flaws:
    """A call gives no more inputs than its function has."""
    node = call.node
    if node.function is not None and len(node.inputs) > len(node.function.input):
        yield f"has {len(node.inputs)} inputs; the function has {len(node.function.input)}"


@rule("function.call-outputs", ERROR, source="IR: Functions", remedy="name the outputs that the function has")
def call_outputs(call: Call) -> Flaws:
    """A call names no more outputs than its function has."""
    node = call.node
    if node.function is not None and len(node.outputs) > len(node.function.output):
        yield f"has {len(node.outputs)} outputs; the function has {len(node.function.output)}"


@rule("function.call-attribute", WARNING, source="IR: Functions", remedy="remove it, or correct its name")
def call_attribute(call: Call) -> Flaws:
    """A call has only attributes that its function has."""
    node = call.node
    if node.function is not None:
        known = {*node.function.attribute, *(each.name for each in node.function.attribute_proto)}
        for each in node.proto.attribute:
            if each.name not in known:
                yield f"the function has no attribute {each.name!r}"


def _named(key: Key) -> str:
    domain, name, overload = key
    return f"{domain}.{name}:{overload}" if overload else f"{domain}.{name}"
