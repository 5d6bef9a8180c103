"""Outcomes of running cases, and their comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.numpy_types import Array, array_element_type
from opshift.proposals.evidence.cases import Case
from opshift.proposals.evidence.run import Outputs
from opshift.registry.models import OperatorVersion
from opshift.registry.shapes.rule_table import SHAPE_RULES, Shape

Verdict = Literal["agrees", "differs", "refused", "not run"]


@dataclass(frozen=True)
class Outcome:
    """Outputs of a case, or the reason why running it failed."""

    case: Case
    outputs: Outputs | None
    failure: str = ""


@dataclass(frozen=True)
class OutputComparison:
    """Comparison of two computations of a case.

    Attributes:
        case: the case.
        verdict: whether the outputs agree; `refused` if a conversion was refused, `not run` if no installed
            runtime supports the model.
        reason: description of the difference, or the reason for not running.
    """

    case: Case
    verdict: Verdict
    reason: str = ""


def compare_outputs(
    case: Case, expected: Sequence[Array | None], found: Sequence[object]
) -> OutputComparison:
    """Compare the outputs of a case with the expected ones, up to the first difference."""
    if len(expected) != len(found):
        return OutputComparison(case, "differs", f"expected {len(expected)} outputs, got {len(found)}")
    for position, (expected_value, found_value) in enumerate(zip(expected, found, strict=True)):
        # All further outputs belong to a variadic last one.
        formal = case.version.outputs[min(position, len(case.version.outputs) - 1)]
        result = compare_output(formal.name, [expected_value], [found_value], case.example.tolerance)
        if result.reason:
            type_text = "" if expected_value is None else f" ({array_element_type(expected_value)})"
            return OutputComparison(case, "differs", f"{formal.name}{type_text}: {result.reason}")
    return OutputComparison(case, "agrees")


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

    def attribute(self, name: str) -> object:
        declared = self.version.attributes.get(name)
        value = self._case.attributes.get(name, declared.default if declared else None)
        if isinstance(value, str):
            return value.encode()
        return tuple(value) if isinstance(value, list) else value

    def constant(self, position: int) -> tuple[object, ...] | None:
        array = self._case.inputs[position] if position < self.input_count else None
        return None if array is None else tuple(array.ravel().tolist())

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        return None


def inferred_shapes(case: Case, output_count: int) -> Sequence[Shape | None]:
    """Return the inferred shape of each output; the definition has to name an existing shape rule."""
    shapes = list(SHAPE_RULES[case.version.shape](_CaseContext(case, output_count)))
    return [*shapes, *[None] * (output_count - len(shapes))]
