"""Shapes that a shape rule infers for a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opshift.proposals.evidence.cases import Case
from opshift.registry.models import OperatorVersion
from opshift.registry.shapes import RULES, Shape


class _CaseContext:
    """Context of a shape rule for a case; every input counts as a constant."""

    def __init__(self, case: Case, output_count: int) -> None:
        self.inputs = [None if each is None else tuple(each.shape) for each in case.inputs]
        self.input_count = len(case.inputs)
        self.output_count = output_count
        self._case = case

    @property
    def version(self) -> OperatorVersion:
        return self._case.version

    def attribute(self, name: str) -> Any:
        declared = self.version.attributes.get(name)
        value = self._case.attributes.get(name, declared.default if declared else None)
        if isinstance(value, str):
            return value.encode()
        return tuple(value) if isinstance(value, list) else value

    def constant(self, position: int) -> tuple[Any, ...] | None:
        array = self._case.inputs[position] if position < self.input_count else None
        return None if array is None else tuple(array.ravel().tolist())

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        return None


def inferred_shapes(case: Case, output_count: int) -> Sequence[Shape | None]:
    """Return the inferred shape of each output; the definition has to name an existing shape rule."""
    shapes = list(RULES[case.version.shape](_CaseContext(case, output_count)))
    return [*shapes, *[None] * (output_count - len(shapes))]
