"""Rules that compare subgraphs of If, Loop, Scan and SequenceMap with inputs and outputs of their nodes."""

from collections.abc import Iterator
from typing import NamedTuple

from opshift.checker.checked_nodes import CheckedAttribute
from opshift.checker.checked_values import TypedNode
from opshift.checker.findings import ERROR
from opshift.checker.rule_table import Problems, rule
from opshift.inference.facts import InferenceScope
from opshift.inference.subgraph_inputs import subgraph_input_shape
from opshift.inference.symbols import without_symbols
from opshift.model.graphs import passed_inputs
from opshift.model.message_text import count_text
from opshift.model.messages import AttributeProto, GraphProto
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.types import Shape, shape_to_string
from opshift.registry.models import OperatorVersion

SOURCE = "the definitions of If, Loop, Scan and SequenceMap"


CONDITION = 1
"""Position of the condition in the inputs of a Loop, and in the inputs of the Loop's body."""


class SubgraphCall(NamedTuple):
    """Correspondence between the inputs and outputs of a node and the inputs and outputs of its subgraph.

    Attributes:
        skipped_inputs: number of leading node inputs that are not passed to the subgraph; `None` for all.
        extra_inputs: number of leading subgraph inputs that are not among the passed node inputs: iteration
            and condition of a Loop.
        extra_outputs: number of leading subgraph outputs that are not node outputs: the condition of a Loop.
        is_exact: whether it is an error if the subgraph has further outputs.
        is_elementwise: whether the subgraph processes elements of the node's sequences.
    """

    skipped_inputs: int | None = 0
    extra_inputs: int = 0
    extra_outputs: int = 0
    is_exact: bool = True
    is_elementwise: bool = False


SUBGRAPH_CALLS = {
    ("If", "then_branch"): SubgraphCall(skipped_inputs=None),
    ("If", "else_branch"): SubgraphCall(skipped_inputs=None),
    ("Loop", "body"): SubgraphCall(skipped_inputs=2, extra_inputs=2, extra_outputs=1, is_exact=False),
    ("Scan", "body"): SubgraphCall(is_exact=False),
    ("SequenceMap", "body"): SubgraphCall(is_elementwise=True),
}

BATCHED_SCAN = SubgraphCall(skipped_inputs=1, is_exact=False)
"""Entry for Scan-8, which does not pass its first input, the sequence lengths, to the subgraph."""


@rule("body.inputs", ERROR, SOURCE, "give the graph exactly the inputs that the operator passes")
def subgraph_inputs(attribute: CheckedAttribute) -> Problems:
    """A subgraph must have the inputs that its node passes."""
    body = _body_of(attribute.node.operator, attribute.proto)
    if body is not None:
        actual = len(passed_inputs(attribute.proto.g))
        passed = [] if body.skipped_inputs is None else attribute.node.inputs[body.skipped_inputs :]
        expected = len(passed) + body.extra_inputs
        if actual != expected:
            yield f"the graph has {count_text(actual, 'input')}; the node passes {expected}"


@rule("body.outputs", ERROR, SOURCE, "return as many values as the node requires")
def subgraph_outputs(attribute: CheckedAttribute) -> Problems:
    """A subgraph must return the values that its node outputs."""
    body = _body_of(attribute.node.operator, attribute.proto)
    if body is not None:
        actual, expected = len(attribute.proto.g.output), len(attribute.node.outputs) + body.extra_outputs
        if actual < expected or (body.is_exact and actual > expected):
            yield f"the graph has {count_text(actual, 'output')}; the node requires {expected}"


@rule("type.body-input", ERROR, SOURCE, "cast the value, or correct the declared type")
def subgraph_input_types(typed: TypedNode) -> Problems:
    """The inputs of a subgraph must declare the element types of the values that the node passes."""
    for name, body, graph in _bodies_of(typed):
        if body.skipped_inputs is not None:
            inner = typed.node.container.scope.child(graph)
            parameters = passed_inputs(graph)[body.extra_inputs :]
            for passed, value in zip(typed.inputs[body.skipped_inputs :], parameters, strict=False):
                declared = inner.element_type(value.name)
                if passed and declared and passed != declared:
                    yield f"{name} declares its input {value.name!r} as {declared}, but receives {passed}"


@rule("shape.body-input", ERROR, SOURCE, "correct the declared shape, or pass another value")
def subgraph_input_shapes(typed: TypedNode) -> Problems:
    """The inputs of a subgraph must declare the shapes of the values that the node passes."""
    container = typed.node.container
    if container.may_not_run:
        return
    for name, body, graph in _bodies_of(typed):
        if body.skipped_inputs is None:
            continue
        inner = container.scope.child(graph)
        inner.owner = typed.node.proto
        for position, value in enumerate(passed_inputs(graph)):
            passed = without_symbols(_passed_shape(typed, inner, position, value.name))
            declared = without_symbols(inner.claimed_shape(value.name))
            if passed is None or declared is None:
                continue
            if len(passed) != len(declared) or any(map(_sizes_differ, passed, declared)):
                shapes = f"{shape_to_string(declared)}, but receives {shape_to_string(passed)}"
                yield f"{name} declares its input {value.name!r} as {shapes}"


def _passed_shape(typed: TypedNode, inner: InferenceScope, position: int, name: str) -> Shape | None:
    """Return the shape that a node passes to a subgraph input; `None` if it is unknown.

    The condition that a Loop passes is the condition of iteration 0.
    """
    if typed.operator.name == "Loop" and position == CONDITION:
        passed = typed.node.inputs[CONDITION] if len(typed.node.inputs) > CONDITION else ""
        return typed.node.container.scope.symbolic_shape(passed) if passed else None
    return subgraph_input_shape(inner, name)


@rule("type.body-output", ERROR, SOURCE, "cast the value in the graph")
def subgraph_output_types(typed: TypedNode) -> Problems:
    """The outputs of a subgraph must have the element types of the node's outputs."""
    for name, body, graph in _bodies_of(typed):
        inner = typed.node.container.scope.child(graph)
        for expected, value in zip(typed.outputs, graph.output[body.extra_outputs :], strict=False):
            actual = inner.element_type(value.name)
            if actual and expected and actual != expected:
                yield f"{name} returns {value.name!r} as {actual}; the output of the node is {expected}"


def _sizes_differ(size: int | None, other: int | None) -> bool:
    return size is not None and other is not None and size != other


def _bodies_of(typed: TypedNode) -> Iterator[tuple[str, SubgraphCall, GraphProto]]:
    """Yield name, `SubgraphCall` and graph of the attributes to which rules apply, except of SequenceMap."""
    for attribute in typed.node.proto.attribute:
        body = _body_of(typed.operator, attribute)
        if body is not None and not body.is_elementwise:
            yield attribute.name, body, attribute.g


def _body_of(operator: OperatorVersion | None, attribute: AttributeProto) -> SubgraphCall | None:
    """Return the `SubgraphCall` of the graph in an attribute; `None` if no rule applies to the attribute."""
    if operator is None or operator.domain != DEFAULT_DOMAIN or not attribute.HasField("g"):
        return None
    is_batched = operator.name == "Scan" and operator.since_version == 8
    return BATCHED_SCAN if is_batched else SUBGRAPH_CALLS.get((operator.name, attribute.name))
