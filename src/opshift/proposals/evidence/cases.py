"""Test cases from the examples: as written, and in every other element type that the definition allows."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opshift.adapters.emit.expression import FLOAT_TYPES
from opshift.analysis.verification.numpy_types import ML_DTYPES_TYPES, Array, array_element_type, dtype_of
from opshift.model.element_types import BY_NAME
from opshift.model.errors import OpshiftError
from opshift.model.message_text import did_you_mean
from opshift.model.process_state import WARNINGS_IGNORED
from opshift.proposals.content.models import Example, ExampleTensor, attribute_value_problem
from opshift.registry.models import Operator, OperatorVersion, Parameter

Arrays = tuple[Array | None, ...]
"""Inputs or outputs by position; `None` for an omitted value."""


class BadValue(OpshiftError):
    """Error for an example that is not a valid node, or has values that do not match their type or shape."""


@dataclass(frozen=True)
class Case:
    """Node to run with its inputs, from the example at index `position` in `examples.yaml`."""

    example: Example
    position: int
    version: OperatorVersion
    inputs: Arrays
    expected: Arrays | None = None
    """Outputs that the example declares; `None` if it declares none or the types were changed."""
    retyped: str = ""
    """Element type that the values were converted to; empty for the types of the example."""

    @property
    def name(self) -> str:
        """Name of the example, with the element type if it was changed."""
        return f"{self.example.name} ({self.retyped})" if self.retyped else self.example.name

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the node, without defaults."""
        return self.example.attributes


def case_of_example(example: Example, position: int, operator: Operator, default: OperatorVersion) -> Case:
    """Return the case of an example with its own element types; without a version, it tests `default`.

    Raises:
        BadValue: the example is not a valid node of its version.
    """
    version: OperatorVersion | None = default
    if example.version is not None:
        version = next((each for each in operator.versions if each.since_version == example.version), None)
    if version is None:
        versions = ", ".join(str(each.since_version) for each in operator.versions)
        raise BadValue(f"{operator.name} has no version {example.version}, only {versions}")
    expected = None if example.outputs is None else _arrays_of(example.outputs)
    case = Case(example, position, version, _arrays_of(example.inputs), expected)
    _require_valid(case)
    return case


def _arrays_of(listed: tuple[ExampleTensor | None, ...]) -> Arrays:
    return tuple(None if each is None else _array_of(each) for each in listed)


def cases_in_other_types(case: Case) -> Iterator[Case]:
    """Yield the case with each type variable bound to each other element type that it allows.

    Types to which `_convert_values` cannot convert the values are skipped.
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
    """Return the element type of a case's inputs that have the type variable, or `None`."""
    for formal, array in _inputs_with_parameters(case):
        if formal.type == variable and array is not None:
            return array_element_type(array)
    return None


def parameter_at(parameters: tuple[Parameter, ...], position: int) -> Parameter | None:
    """Return the parameter at a position, or `None`; a variadic last parameter covers all later positions."""
    if position < len(parameters):
        return parameters[position]
    return parameters[-1] if parameters and parameters[-1].option == "variadic" else None


def _inputs_with_parameters(case: Case) -> Iterator[tuple[Parameter, Array | None]]:
    for position, array in enumerate(case.inputs):
        formal = parameter_at(case.version.inputs, position)
        assert formal is not None
        yield formal, array


def _convert_inputs(case: Case, variable: str, element: str) -> Arrays | None:
    inputs: list[Array | None] = []
    for formal, array in _inputs_with_parameters(case):
        if array is None or formal.type != variable:
            inputs.append(array)
            continue
        converted = _convert_values(array, element)
        if converted is None:
            return None
        inputs.append(converted)
    return tuple(inputs)


def _require_valid(case: Case) -> None:
    """Raise BadValue unless the inputs and attributes of the case match its operator version."""
    version, count = case.version, len(case.inputs)
    if not version.min_input <= count <= version.max_input:
        allowed = f"it has {len(version.inputs)}, at least {version.min_input} of them required"
        raise BadValue(f"{version.id} does not accept {count} inputs: {allowed}")
    _require_attributes(case)
    for formal, array in _inputs_with_parameters(case):
        if array is None:
            if formal.option == "single":
                raise BadValue(f"the input {formal.name!r} is required")
        elif f"tensor({array_element_type(array)})" not in version.types_of(formal):
            raise BadValue(f"the input {formal.name!r} does not allow type {array_element_type(array)}")


def _require_attributes(case: Case) -> None:
    version = case.version
    for name, value in case.attributes.items():
        if name not in version.attributes:
            known = ", ".join(version.attributes) or "none"
            advice = did_you_mean(name, version.attributes, f"it has {known}")
            raise BadValue(f"{version.id} has no attribute {name!r}; {advice}")
        problem = attribute_value_problem(name, value, version.attributes[name])
        if problem:
            raise BadValue(problem)
    for name in version.required_attributes:
        if name not in case.attributes:
            raise BadValue(f"{version.id} requires the attribute {name!r}")


_EXACT_TYPE = re.compile(r"u?int\d+|bool")
"""Element types whose values a cast must not round."""

_SPECIAL_VALUES = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def _array_of(given: ExampleTensor) -> Array:
    """Return the values of an example as an array.

    Raises:
        BadValue: the element type is unknown, or the values do not match the type or the shape.
    """
    if given.type not in BY_NAME:
        advice = did_you_mean(given.type, BY_NAME, "use a name such as float")
        raise BadValue(f"unknown element type {given.type!r}; {advice}")
    try:
        # Array of objects, because an array of integers up to 2**64 would otherwise have the type float64.
        exact = object if _EXACT_TYPE.fullmatch(given.type) else None
        values = np.asarray(_parse_values(given.values, given.type), exact)
        with np.errstate(all="ignore"), WARNINGS_IGNORED:  # the comparison below detects values out of range
            found = values.astype(dtype_of(given.type))
        _require_equal(values, found, given.type)
        return found if given.shape is None else found.reshape(given.shape)
    except (ValueError, TypeError, OverflowError) as error:
        raise BadValue(f"invalid values for type {given.type} or for the shape: {error}") from error


def _parse_values(values: object, element_type: str) -> object:
    if isinstance(values, list | tuple):
        return [_parse_values(each, element_type) for each in values]
    if element_type == "string" or values is None:
        if not isinstance(values, str):
            raise ValueError(f"{values!r} is not a {'string' if element_type == 'string' else 'number'}")
        return values
    value = _SPECIAL_VALUES.get(values, values) if isinstance(values, str) else values
    return int(value) if isinstance(value, str) and _EXACT_TYPE.fullmatch(element_type) else value


def _require_equal(values: Array, found: Array, element_type: str) -> None:
    """Raise ValueError if the cast changed a value; casts to floating-point types may round."""
    if element_type == "string":
        return
    if _EXACT_TYPE.fullmatch(element_type):
        is_equal = np.asarray(values == found.astype(object))
    else:
        is_equal = _are_rounded(values, found, element_type)
    if not is_equal.all():
        position = int(np.argmin(is_equal))
        value, changed = (each.ravel()[position : position + 1].tolist()[0] for each in (values, found))
        raise ValueError(f"{value!r} would become {changed!r}")


def _are_rounded(values: Array, found: Array, element_type: str) -> Array:
    """Return which values a cast to a floating-point type keeps or rounds.

    Other values become NaN or infinite, or are too large and become the largest value.
    """
    old, new = values.astype(np.complex128), found.astype(np.complex128)
    is_equal = (old == new) | (np.isnan(old) & np.isnan(new))
    is_finite = np.isfinite(old) & np.isfinite(new)
    if element_type in ML_DTYPES_TYPES:
        from ml_dtypes import finfo  # optional package, which `dtype_of` needs for these types

        # In types without NaN and infinity, a cast turns these, and all large values, into the largest value.
        limits = finfo(found.dtype)
        step = float(limits.eps) * 2.0 ** (int(limits.maxexp) - 1)
        is_finite &= abs(old) <= float(limits.max) + step / 2
    return np.asarray(is_equal | is_finite)


def _convert_values(array: Array, element_type: str) -> Array | None:
    """Return the values in another element type; only conversions to floating-point types may round.

    Return `None` if a type is not numeric, or if the new type, such as int8, cannot represent the values.
    """
    if element_type not in BY_NAME or array.dtype.kind in "OSUb" or element_type in ("string", "bool"):
        return None
    # Casts of NaN and of values out of range warn; the comparison below detects them.
    with np.errstate(all="ignore"), WARNINGS_IGNORED:
        found = np.asarray(array.astype(dtype_of(element_type)))
        if element_type in FLOAT_TYPES:
            is_equal = _are_rounded(array, found, element_type)
        else:  # complex128 represents the values of all numeric types, for the comparison
            is_equal = found.astype(np.complex128) == array.astype(np.complex128)
    return found if bool(is_equal.all()) else None
