"""Rules for the types of the inputs and outputs of nodes, and for their axes."""

from collections.abc import Iterator

from opshift.checker.checked_values import BoundValue, ShapedNode, TypedNode
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.released_schemas import adds_type
from opshift.checker.rule_table import SIGNATURE, Problems, rule
from opshift.inference.infer_types import infer_types
from opshift.inference.node_problems import axis_problem
from opshift.model.node import Node as View
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.models import OperatorVersion, Parameter

CAST_REMEDY = "cast the value, or correct its declared type"


@rule("type.input", ERROR, SIGNATURE, CAST_REMEDY)
def input_type(typed: TypedNode) -> Problems:
    """An input of a node must have a type that its operator accepts."""
    for formal, name, actual in typed.bound_inputs():
        if not _is_accepted(typed, formal, actual):
            yield f"input {formal.name!r}, {name!r}, is {actual}, which {typed.operator.id} does not accept"


@rule("type.output", ERROR, SIGNATURE, "correct the declared type of the value")
def output_type(typed: TypedNode) -> Problems:
    """An output of a node must have a type that its operator can produce."""
    if not _is_old_constant(typed.operator):
        yield from _invalid_outputs(typed)


@rule("type.constant", WARNING, SIGNATURE, "make it an initializer, or raise the opset to 9")
def old_constant(typed: TypedNode) -> Problems:
    """A Constant should be floating-point before opset 9; exporters and runtimes support more types."""
    if _is_old_constant(typed.operator):
        yield from _invalid_outputs(typed)


@rule("type.variable", ERROR, SIGNATURE, CAST_REMEDY)
def type_variables(typed: TypedNode) -> Problems:
    """All values bound to a type variable of the operator must have the same type."""
    first: dict[str, BoundValue] = {}
    for value in (*typed.bound_inputs(), *typed.bound_outputs()):
        if value.formal.homogeneous and value.formal.type in typed.operator.type_constraints:
            other = first.setdefault(value.formal.type, value)
            if other.type != value.type:
                types = f"{other.name!r} is {other.type} and {value.name!r} is {value.type}"
                yield f"{types}; {value.formal.type} of {typed.operator.id} requires the same type for both"


@rule("type.named", ERROR, SIGNATURE, "correct the attribute, or the declared type")
def attribute_types(typed: TypedNode) -> Problems:
    """An output must have the type that an attribute of its node specifies."""
    formals = [output for output in typed.operator.outputs if output.type_attributes]
    if formals:
        view = View.from_proto(typed.node.proto)
        inferred = infer_types(view, typed.operator, typed.node.container.scope)
        rows = zip(typed.operator.outputs, typed.node.outputs, typed.outputs, inferred, strict=False)
        for formal, name, actual, expected in rows:
            if formal in formals and actual and expected and actual != expected:
                stated = formal.type_attributes
                attribute = next((each for each in stated if each in view.attributes), stated[0])
                yield f"{name!r} is {actual}; attribute {attribute!r} specifies {expected}"


@rule("node.axis", ERROR, SIGNATURE, "correct the axis, or the declared shape of the input")
def axis_range(shaped: ShapedNode) -> Problems:
    """An axis must be in the range that the rank of the input permits."""
    scope = shaped.node.container.scope
    problem = axis_problem(shaped.view, shaped.operator, scope, scope.rank)
    if problem:
        yield problem


def _invalid_outputs(typed: TypedNode) -> Iterator[str]:
    for formal, name, actual in typed.bound_outputs():
        if not _is_accepted(typed, formal, actual):
            yield f"output {formal.name!r}, {name!r}, is {actual}, which {typed.operator.id} cannot produce"


def _is_accepted(typed: TypedNode, formal: Parameter, actual: str) -> bool:
    return actual in typed.operator.types_of(formal) or adds_type(typed.node, formal, actual)


def _is_old_constant(operator: OperatorVersion) -> bool:
    return (operator.domain, operator.name) == (DEFAULT_DOMAIN, "Constant") and operator.since_version < 9
