"""Test cases from the examples: as written, and in every other element type that the definition allows."""

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
    """Node to run, with its inputs.

    Attributes:
        example: example that the case is derived from.
        position: index of the example in its file.
        version: operator version of the node.
        inputs: inputs by position; `None` for an omitted one.
        expected: outputs that the example declares; `None` if it declares none or the types were changed.
        retyped: element type that the values were converted to; empty for the types of the example.
    """

    example: Example
    position: int
    version: OperatorVersion
    inputs: tuple[Array | None, ...]
    expected: tuple[Array | None, ...] | None = None
    retyped: str = ""

    @property
    def name(self) -> str:
        """Name of the example, with the element type if it was changed."""
        return f"{self.example.name} ({self.retyped})" if self.retyped else self.example.name

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the node, without defaults."""
        return self.example.attributes

    @property
    def keys(self) -> tuple[int | str, ...]:
        """Path of the example in its YAML file."""
        return ("examples", self.position)


def stated_case(example: Example, position: int, operator: Operator, default: OperatorVersion) -> Case:
    """Return the case of an example with its own element types.

    Args:
        example: the example.
        position: index of the example in its file.
        operator: operator with all its versions.
        default: version for an example that names none.

    Raises:
        BadValue: the example is not a valid node of its version.
    """
    version = default
    if example.version is not None:
        matching = next((each for each in operator.versions if each.since_version == example.version), None)
        if matching is None:
            raise BadValue(f"{operator.name} has no version {example.version}")
        version = matching
    inputs = tuple(None if each is None else array_of(each) for each in example.inputs)
    outputs = example.outputs
    expected = (
        None if outputs is None else tuple(None if each is None else array_of(each) for each in outputs)
    )
    case = Case(example, position, version, inputs, expected)
    _require_valid(case)
    return case


def _arrays(listed: tuple[Given | None, ...]) -> tuple[Array | None, ...]:
    return tuple(None if each is None else array_of(each) for each in listed)


def other_types(case: Case) -> Iterator[Case]:
    """Yield the case with each type variable bound to each other element type that it allows.

    Types that cannot represent the values are skipped.
    """
    for variable, types in case.version.type_constraints.items():
        current = bound_type(case, variable)
        for each in types:
            element = each.removeprefix("tensor(").removesuffix(")")
            if current is not None and element != current and each == f"tensor({element})":
                inputs = _convert_inputs(case, variable, element)
                if inputs is not None:
                    yield replace(case, inputs=inputs, expected=None, retyped=element)


def bound_type(case: Case, variable: str) -> str | None:
    """Return the element type that a type variable is bound to in a case, or `None`."""
    for formal, array in _inputs_with_parameters(case):
        if formal.type == variable and array is not None:
            return element_type_of(array)
    return None


def formal_of(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    """Return the parameter of the value at a position; a variadic last one accepts any number of values."""
    if position < len(parameters):
        return parameters[position]
    return parameters[-1] if parameters and parameters[-1].option == "variadic" else None


def _inputs_with_parameters(case: Case) -> Iterator[tuple[Parameter, Array | None]]:
    for position, array in enumerate(case.inputs):
        formal = formal_of(case.version.inputs, position)
        assert formal is not None
        yield formal, array


def _convert_inputs(case: Case, variable: str, element: str) -> tuple[Array | None, ...] | None:
    inputs: list[Array | None] = []
    for formal, array in _inputs_with_parameters(case):
        if array is None or formal.type != variable:
            inputs.append(array)
            continue
        converted = retyped(array, element)
        if converted is None:
            return None
        inputs.append(converted)
    return tuple(inputs)


def _require_valid(case: Case) -> None:
    """Raise unless the inputs and attributes of the case match its operator version."""
    version, count = case.version, len(case.inputs)
    if not version.min_input <= count <= version.max_input:
        raise BadValue(
            f"{version.id} does not accept {count} inputs: it has {len(version.inputs)}, "
            f"at least {version.min_input} of them required"
        )
    _require_attributes(case)
    for formal, array in _inputs_with_parameters(case):
        if array is None:
            if formal.option == "single":
                raise BadValue(f"the input {formal.name!r} is required")
        elif f"tensor({element_type_of(array)})" not in version.types_of(formal):
            raise BadValue(f"the input {formal.name!r} does not allow type {element_type_of(array)}")


def _require_attributes(case: Case) -> None:
    version = case.version
    for name, value in case.attributes.items():
        if name not in version.attributes:
            raise BadValue(f"{version.id} has no attribute {name!r}")
        if not is_of(value, version.attributes[name]):
            raise BadValue(
                f"expected a value of type {version.attributes[name].type} for {name!r}, got {value!r}"
            )
    for name in version.required_attributes:
        if name not in case.attributes:
            raise BadValue(f"{version.id} requires the attribute {name!r}")
