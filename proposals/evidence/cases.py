"""The examples as cases to run: as they are stated, and in every element type that the definition allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from opshift.converter.verification.arrays import Array, element_type_of
from opshift.proposals.evidence.arrays import BadValue, array_of, retyped
from opshift.proposals.models import Example, Given
from opshift.proposals.values import is_of
from opshift.registry.models import Operator, OperatorVersion, Parameter


@dataclass(frozen=True)
class Case:
    """One node to run.

    Attributes:
        example: what it comes from.
        position: which of the examples that is.
        version: the operator version that the node is of.
        inputs: by position; `None` for one left out.
        expected: the outputs that the example states, if it does and its types are as stated.
        retyped: the type that its values were brought to; empty where they are as stated.
    """

    example: Example
    position: int
    version: OperatorVersion
    inputs: tuple[Array | None, ...]
    expected: tuple[Array | None, ...] | None = None
    retyped: str = ""

    @property
    def name(self) -> str:
        """The example's name, and the type if it is another."""
        return f"{self.example.name} ({self.retyped})" if self.retyped else self.example.name

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Those that the node states."""
        return self.example.attributes

    @property
    def keys(self) -> tuple[int | str, ...]:
        """Where the example stands in its file."""
        return ("examples", self.position)


def stated_case(example: Example, position: int, operator: Operator, default: OperatorVersion) -> Case:
    """An example as it is.

    Raises:
        BadValue: it is no node of its version.
    """
    version = default
    if example.version is not None:
        found = next((each for each in operator.versions if each.since_version == example.version), None)
        if found is None:
            raise BadValue(f"there is no version {example.version} of {operator.name}")
        version = found
    inputs = tuple(None if each is None else array_of(each) for each in example.inputs)
    outputs = example.outputs
    expected = (
        None if outputs is None else tuple(None if each is None else array_of(each) for each in outputs)
    )
    case = Case(example, position, version, inputs, expected)
    _require_legal(case)
    return case


def _arrays(listed: tuple[Given | None, ...]) -> tuple[Array | None, ...]:
    return tuple(None if each is None else array_of(each) for each in listed)


def other_types(case: Case) -> Iterator[Case]:
    """The same case with each type variable bound to each other type that it may stand for."""
    for variable, types in case.version.type_constraints.items():
        own = bound_type(case, variable)
        for each in types:
            element = each.removeprefix("tensor(").removesuffix(")")
            if own is not None and element != own and each == f"tensor({element})":
                inputs = _rebound(case, variable, element)
                if inputs is not None:
                    yield replace(case, inputs=inputs, expected=None, retyped=element)


def bound_type(case: Case, variable: str) -> str | None:
    """The element type that a type variable stands for in a case."""
    for formal, array in _bound(case):
        if formal.type == variable and array is not None:
            return element_type_of(array)
    return None


def formal_of(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    """The parameter that a value at a position belongs to; the last may take many."""
    if position < len(parameters):
        return parameters[position]
    return parameters[-1] if parameters and parameters[-1].option == "variadic" else None


def _bound(case: Case) -> Iterator[tuple[Parameter, Array | None]]:
    for position, array in enumerate(case.inputs):
        formal = formal_of(case.version.inputs, position)
        assert formal is not None
        yield formal, array


def _rebound(case: Case, variable: str, element: str) -> tuple[Array | None, ...] | None:
    inputs: list[Array | None] = []
    for formal, array in _bound(case):
        if array is None or formal.type != variable:
            inputs.append(array)
            continue
        found = retyped(array, element)
        if found is None:
            return None
        inputs.append(found)
    return tuple(inputs)


def _require_legal(case: Case) -> None:
    """The example has inputs of the types, and attributes of the names, that its version takes."""
    version, count = case.version, len(case.inputs)
    if not version.min_input <= count <= version.max_input:
        raise BadValue(
            f"it has {count} inputs; {version.id} takes {version.min_input} to {version.max_input}"
        )
    _require_attributes(case)
    for formal, array in _bound(case):
        if array is None:
            if formal.option == "single":
                raise BadValue(f"the input {formal.name!r} cannot be left out")
        elif f"tensor({element_type_of(array)})" not in version.types_of(formal):
            raise BadValue(f"the input {formal.name!r} cannot be {element_type_of(array)}")


def _require_attributes(case: Case) -> None:
    version = case.version
    for name, value in case.attributes.items():
        if name not in version.attributes:
            raise BadValue(f"{version.id} has no attribute {name!r}")
        if not is_of(value, version.attributes[name]):
            raise BadValue(f"{name} is {version.attributes[name].type}; {value!r} is not")
    for name in version.required_attributes:
        if name not in case.attributes:
            raise BadValue(f"{version.id} requires the attribute {name!r}")
