"""Rules for the shapes of node inputs, and for the shapes that a model declares for values."""

from collections.abc import Iterator
from typing import NamedTuple

from opshift.checker.checked_values import ShapedNode
from opshift.checker.containers import CheckedContainer, CheckedFunction, CheckedGraph
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.rule_table import SIGNATURE, Problems, rule
from opshift.checker.shape_requirements import REQUIREMENTS
from opshift.inference.symbols import symbol_named
from opshift.model.types import SMALLEST_SYMBOL, Symbol
from opshift.registry.requirements import requirement_problems
from opshift.registry.shapes.shape_context import InvalidFlag

SOURCE = "IR: Static tensor shapes"
REMEDY = "correct the declared shape, or remove it"


class VariableUse(NamedTuple):
    """Dimension that a model declares as a variable (`dim_param`), and its actual size.

    Attributes:
        place: the dimension in messages, such as `dimension 0 of 'x'`.
        variable: the name of the variable.
        declared: the `Symbol` of the variable.
        found: the size that inference or an initializer gives: a number, or another `Symbol`.
    """

    place: str
    variable: str
    declared: int
    found: int


@rule("shape.inputs", ERROR, SIGNATURE, "correct the shape of an input, or the node")
def input_shapes(shaped: ShapedNode) -> Problems:
    """The inputs of a node must have shapes that its operator accepts."""
    requirement, container = REQUIREMENTS.get(shaped.operator.shape), shaped.node.container
    if requirement is None or container.may_not_run or shaped.view.has_attribute_references:
        return
    try:
        yield from list(requirement(shaped.context))
    except InvalidFlag:
        return  # the rule node.attribute-flag reports an invalid value


@rule("node.requires", ERROR, SIGNATURE, "correct the attribute, or the shape or value of the input")
def requirements(shaped: ShapedNode) -> Problems:
    """A node must meet the requirements of its operator for ranks, lengths and values."""
    container = shaped.node.container
    if shaped.operator.requires and not container.may_not_run and not shaped.view.has_attribute_references:
        yield from requirement_problems(shaped.context)


@rule("shape.inferred", ERROR, SOURCE, REMEDY)
def inferred_shape(container: CheckedGraph | CheckedFunction) -> Problems:
    """The declared shape of a value must not contradict the one that follows from its node."""
    for name, declared, inferred in container.wrong_claims:
        if len(declared) != len(inferred):
            yield f"{name!r} is declared with rank {len(declared)}, but has rank {len(inferred)}"
            continue
        for axis, (size, found) in enumerate(zip(declared, inferred, strict=True)):
            if _is_number(size) and _is_number(found) and size != found:
                yield f"dimension {axis} of {name!r} is declared as {size}, but is {found}"


@rule("shape.variable", WARNING, SOURCE, REMEDY)
def variable_dimension(container: CheckedGraph | CheckedFunction) -> Problems:
    """A dimension should be declared as a variable if, and only if, it varies with the inputs."""
    for name, declared, inferred in container.wrong_claims:
        for axis, (size, found) in enumerate(zip(declared, inferred, strict=False)):
            if _is_number(size) and type(found) is Symbol and len(declared) == len(inferred):
                yield f"dimension {axis} of {name!r} is declared as {size}, but varies with the inputs"
    for use in _variable_uses(container):
        if type(use.found) is not Symbol and _is_input_variable(use.variable, container):
            yield f"{use.place} is declared as {use.variable!r}, but is always {use.found}"


@rule("shape.variable-value", ERROR, SOURCE, REMEDY)
def variable_value(container: CheckedGraph | CheckedFunction) -> Problems:
    """A dimension variable must have the same value in all declarations."""
    first: dict[str, VariableUse] = {}
    for use in (*_variable_uses(container), *_initializer_uses(container)):
        if type(use.found) is Symbol:
            factor, rest = divmod(use.found, use.declared)
            # Only sizes that are computed from the variable are multiples of its symbol.
            if not rest and factor < SMALLEST_SYMBOL:
                yield f"{use.place} is declared as {use.variable!r}, but is {factor} times that size"
        else:
            other = first.setdefault(use.variable, use)
            if use.found != other.found:
                yield f"{use.variable!r} is {other.found} for {other.place}, but {use.found} for {use.place}"


def _variable_uses(container: CheckedGraph | CheckedFunction) -> Iterator[VariableUse]:
    for name, declared, inferred in container.wrong_claims:
        proto = container.scope.declared_type_proto(name)
        dims = proto.tensor_type.shape.dim if proto is not None and len(declared) == len(inferred) else ()
        for axis, (dim, size, found) in enumerate(zip(dims, declared, inferred, strict=False)):
            if type(size) is Symbol and found is not None and size != found:
                yield VariableUse(f"dimension {axis} of {name!r}", dim.dim_param, size, found)


def _initializer_uses(container: CheckedGraph | CheckedFunction) -> Iterator[VariableUse]:
    if isinstance(container, CheckedGraph):
        for tensor in container.proto.initializer:
            declared = container.declared_types.get(tensor.name)
            dims = declared.tensor_type.shape.dim if declared is not None else ()
            for axis, (dim, found) in enumerate(zip(dims, tensor.dims, strict=False)):
                if dim.dim_param:
                    place, symbol = f"dimension {axis} of {tensor.name!r}", symbol_named(dim.dim_param)
                    yield VariableUse(place, dim.dim_param, symbol, found)


def _is_input_variable(variable: str, container: CheckedContainer) -> bool:
    """Return whether an input of the enclosing main graph or training graph declares a dimension variable.

    Inputs of subgraphs do not count: their sizes come from the values that nodes pass.
    """
    return any(
        variable in each.input_variables
        for each in container.with_enclosing()
        if isinstance(each, CheckedGraph) and each.is_top
    )


def _is_number(size: int | None) -> bool:
    return size is not None and type(size) is not Symbol
