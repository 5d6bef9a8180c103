"""Comparison of constants in patterns with constants in a graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from opshift.converter.recognition.graph_view import round_to
from opshift.converter.recognition.patterns import FUNCTIONS, Constant, Element, Hole, solved
from opshift.model.element_types import round_to_float32
from opshift.model.node import Tensor
from opshift.model.tensors import pack_tensor
from opshift.registry.models import OperatorVersion

TOLERANCE: Final = {"float16": 2e-3, "bfloat16": 1e-2}
"""Maximum relative difference of constants whose rounding may differ, by type; 2e-6 for other types."""

SOLVED_TOLERANCE: Final = 1e-3
"""Maximum relative difference between a constant and the value that the attribute found from it gives."""


class Comparison(NamedTuple):
    """Comparison of the constants of a pattern with constants in a graph.

    Attributes:
        operator: operator of the pattern; constants determine its attributes.
        is_complete: whether lists must have equal lengths; otherwise, matches are only candidates, which
            another comparison verifies.
        is_close: whether numbers may differ in rounding.
    """

    operator: OperatorVersion
    is_complete: bool
    is_close: bool

    def matches(
        self, constant: Constant, actual: Any, attributes: dict[str, Any] | None, element_type: str | None
    ) -> bool:
        """Return whether a constant matches a tensor or attribute; add attributes that it determines.

        If `attributes` is `None`, a constant that determines an attribute does not match.
        """
        elements = elements_of(actual)
        if constant.whole:
            return attributes is not None and self._set(attributes, constant.whole, tuple(elements))
        if constant.elements is None:
            return True
        if constant.is_filled:
            constant = constant._replace(elements=constant.elements * len(elements))
        if self.is_complete and len(elements) != len(constant.elements or ()):
            return False
        return all(
            self._solve(expected, element, attributes, element_type)
            if isinstance(expected, Hole)
            else expected is None or self._is_equal(expected, element, element_type)
            for expected, element in zip(constant.elements or (), elements, strict=False)
        )

    def _is_equal(self, expected: Element, element: Any, element_type: str | None) -> bool:
        if isinstance(element, bytes):
            return isinstance(expected, str) and element == expected.encode()
        if not isinstance(expected, float) or not isinstance(element, float):
            return bool(expected == element)
        rounded = round_to_float32(expected) if element_type is None else round_to(expected, element_type)
        if rounded == element:
            return True
        # A number such as 2.0 is never rounded, and the power 2.0000002 of a negative number is NaN.
        if not self.is_close or round_to_float32(expected) == expected:
            return False
        return math.isclose(expected, element, rel_tol=TOLERANCE.get(element_type or "", 2e-6))

    def _solve(
        self, hole: Hole, element: Any, attributes: dict[str, Any] | None, element_type: str | None
    ) -> bool:
        attribute = self.operator.attributes.get(hole.attribute.partition(" / ")[0])
        if attributes is None or attribute is None or isinstance(element, bytes):
            return False
        if attribute.type not in ("FLOAT", "INT"):
            return False
        value = solved(element, hole.function, attribute.type)
        if value is None or (
            attribute.type == "FLOAT" and not self._gives(value, hole, element, element_type)
        ):
            return False
        # Many attribute values round to this element; the one with few digits is the likely original.
        short = round_to_float32(float(f"{value:.6g}")) if attribute.type == "FLOAT" else value
        exact = self._replace(is_close=False)
        is_short = short != value and exact._gives(short, hole, element, element_type)
        return self._set(attributes, hole.attribute, short if is_short else value)

    def _gives(self, value: float, hole: Hole, element: float, element_type: str | None) -> bool:
        """Return whether `hole.function` maps an attribute value to the element, or near it if `is_close`."""
        try:
            again = FUNCTIONS[hole.function].apply(value)
        except (ArithmeticError, ValueError):
            return False
        if round_to(again, element_type or "float") == element:
            return True
        return self.is_close and math.isclose(again, element, rel_tol=SOLVED_TOLERANCE)

    def _set(self, attributes: dict[str, Any], name: str, value: Any) -> bool:
        known = attributes.setdefault(name, value)
        if known == value:
            return True
        is_number = isinstance(known, float) and isinstance(value, float)
        return is_number and self.is_close and math.isclose(known, value, rel_tol=1e-6)


def elements_of(constant: Any) -> Sequence[Any]:
    """Return the elements of a tensor, or of the value of an attribute."""
    if isinstance(constant, Tensor):
        return constant.values
    return constant if isinstance(constant, tuple) else (constant,)


def is_identical(expected: Any, actual: Any) -> bool:
    """Return whether a constant equals the expected one.

    Tensors must have equal bits and shapes; one element matches any expected shape if `actual` has at most
    one dimension. A tensor and a list are compared by their elements.
    """
    if isinstance(expected, Tensor) and isinstance(actual, Tensor):
        count = len(expected.values)
        if expected.element_type != actual.element_type or count != len(actual.values):
            return False
        is_shape_equal = expected.dims == actual.dims or (count == 1 and len(actual.dims) <= 1)
        return is_shape_equal and pack_tensor(expected) == pack_tensor(actual)
    if isinstance(expected, Tensor) or isinstance(actual, Tensor):
        # A list may be an attribute in one operator version, and an input in another: compare elements only.
        return tuple(elements_of(expected)) == tuple(elements_of(actual))
    return bool(expected == actual)
