"""Outcomes of running cases, and their comparison."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opshift.analysis.verification.compare import compare_output
from opshift.analysis.verification.numpy_types import Array, array_element_type
from opshift.analysis.verification.runtimes import CannotRun
from opshift.model.extensions import ExtensionFailed
from opshift.model.messages import ModelProto
from opshift.model.types import Shape
from opshift.proposals.evidence.cases import Arrays, Case
from opshift.proposals.evidence.node_models import feeds_of
from opshift.proposals.evidence.run import References, run_model
from opshift.registry.shapes.all_rules import SHAPE_RULES
from opshift.registry.shapes.shape_context import ShapeContext

Verdict = Literal["agrees", "differs", "refused", "not run"]
"""Result of a comparison: `refused` by the converter, or `not run` if one side cannot be computed.

A conversion that fails in private code, such as an adapter that raises an exception, `differs`."""


@dataclass(frozen=True)
class Outcome:
    """Outputs of a case, or `None` and the reason why running it failed."""

    case: Case
    outputs: Arrays | None
    failure: str = ""


@dataclass(frozen=True)
class OutputComparison:
    """Comparison of two computations of a case; `reason` gives the difference, or the error."""

    case: Case
    verdict: Verdict
    reason: str = ""


def compare_outputs(
    case: Case, expected: Sequence[Array | None], found: Sequence[object]
) -> OutputComparison:
    """Compare the outputs of a case with the expected outputs, up to the first difference."""
    if len(expected) != len(found):
        return OutputComparison(case, "differs", f"expected {len(expected)} outputs, got {len(found)}")
    for position, (expected_value, found_value) in enumerate(zip(expected, found, strict=True)):
        # The last parameter may be variadic: all further outputs belong to this parameter.
        formal = case.version.outputs[min(position, len(case.version.outputs) - 1)]
        result = compare_output(formal.name, [expected_value], [found_value], case.example.tolerance)
        if result.reason:
            type_text = "" if expected_value is None else f" ({array_element_type(expected_value)})"
            return OutputComparison(case, "differs", f"{formal.name}{type_text}: {result.reason}")
    return OutputComparison(case, "agrees")


def run_and_compare(
    case: Case, outputs: Arrays, model: ModelProto, references: References
) -> OutputComparison:
    """Run a model of a case, and compare its outputs with the expected `outputs`."""
    input_names = {each.name for each in model.graph.input}
    feeds = {name: array for name, array in feeds_of(case).items() if name in input_names}
    try:
        found = run_model(model, feeds, references)
    except CannotRun as error:
        return OutputComparison(case, "not run" if error.unsupported else "differs", error.reason)
    results = iter(found)  # the model has no outputs for omitted ones
    return compare_outputs(case, outputs, [None if each is None else next(results) for each in outputs])


class _CaseContext(ShapeContext):
    """Context of a shape rule for a case; every input counts as a constant."""

    def __init__(self, case: Case, output_count: int) -> None:
        self.inputs = [None if each is None else tuple(each.shape) for each in case.inputs]
        self.version = case.version
        self.output_count = output_count
        self._case = case

    def attribute(self, name: str) -> object:
        declared = self.version.attributes.get(name)
        value = self._case.attributes.get(name, declared.default if declared else None)
        if isinstance(value, str):
            return value.encode()
        return tuple(value) if isinstance(value, list) else value

    def constant(self, position: int) -> tuple[object, ...] | None:
        array = self._case.inputs[position] if position < len(self.inputs) else None
        return None if array is None else tuple(array.ravel().tolist())

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        return None

    def has_input(self, position: int) -> bool:
        return super().has_input(position) and self._case.inputs[position] is not None


def inferred_shapes(case: Case, output_count: int) -> list[Shape | None] | ExtensionFailed:
    """Return the inferred shape of each output, or the error if the shape rule fails.

    The case's operator version must name an existing shape rule.
    """
    try:
        shapes = list(SHAPE_RULES[case.version.shape](_CaseContext(case, output_count)))
    except ExtensionFailed as error:
        return error
    return [*shapes, *[None] * (output_count - len(shapes))]
