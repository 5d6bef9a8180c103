"""What a shape rule says of a case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opshift.proposals.evidence.cases import Case
from opshift.registry.models import OperatorVersion
from opshift.registry.shapes import RULES, Shape


class _Context:
    """A case as shape rules see it; every input may be a constant."""

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
        found = self._case.inputs[position] if position < self.input_count else None
        return None if found is None else tuple(found.ravel().tolist())

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        return None


def inferred_shapes(case: Case, output_count: int) -> Sequence[Shape | None]:
    """The shape of each output by the rule that the definition names; it has one."""
    found = list(RULES[case.version.shape](_Context(case, output_count)))
    return [*found, *[None] * (output_count - len(found))]
