"""Coverage of an operator version by the examples of a proposal."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from opshift.analysis.verification.numpy_types import Array, array_element_type
from opshift.proposals.evidence.cases import Case, bound_type
from opshift.proposals.evidence.evidence import Evidence
from opshift.proposals.evidence.outcomes import Outcome
from opshift.registry.models import OperatorVersion

CoverageKind = Literal["output", "attribute", "input", "type", "corner"]


class CoverageItem(NamedTuple):
    """Requirement for the examples of an operator version, and the names of the cases that meet it.

    The requirements: cases with each output, with each attribute and optional input, without each attribute
    and input that is optional, with each type of each type variable, and with each corner case.
    """

    kind: CoverageKind
    item: str
    examples: tuple[str, ...]


def coverage_of(version: OperatorVersion, evidence: Evidence) -> tuple[CoverageItem, ...]:
    """Return all coverage items of a version, each with the successful cases that cover the item."""
    ran = [each for each in evidence.outcomes if each.outputs is not None and each.case.version is version]
    return tuple(
        CoverageItem(kind, item, tuple(each.case.name for each in ran if covers(each)))
        for kind, item, covers in _coverage_tests(version)
    )


CoverageTest = Callable[[Outcome], bool]


def _coverage_tests(version: OperatorVersion) -> Iterator[tuple[CoverageKind, str, CoverageTest]]:
    for position, formal in enumerate(version.outputs):
        yield "output", formal.name, partial(_has_output, position)
    for name, attribute in version.attributes.items():
        yield "attribute", f"{name} present", partial(_has_attribute, name, True)
        if not attribute.required:
            yield "attribute", f"{name} omitted", partial(_has_attribute, name, False)
    for position, formal in enumerate(version.inputs):
        if formal.option == "optional":
            yield "input", f"{formal.name} present", partial(_has_input, position, True)
            yield "input", f"{formal.name} omitted", partial(_has_input, position, False)
    for variable, types in version.type_constraints.items():
        for each in types:
            yield "type", f"{variable} = {each}", partial(_binds_type, variable, each)
    for name, test in _corner_cases(version):
        yield "corner", name, partial(_is_corner_case, test)


def _has_output(position: int, run: Outcome) -> bool:
    outputs = run.outputs or ()
    return position < len(outputs) and outputs[position] is not None


def _has_attribute(name: str, is_present: bool, run: Outcome) -> bool:
    return (name in run.case.attributes) is is_present


def _has_input(position: int, is_present: bool, run: Outcome) -> bool:
    inputs = run.case.inputs
    return (position < len(inputs) and inputs[position] is not None) is is_present


def _binds_type(variable: str, type_text: str, run: Outcome) -> bool:
    # An empty tensor does not test the arithmetic of its type.
    has_elements = any(array.size for array in _present_arrays(run.case))
    return has_elements and f"tensor({_type_of(run, variable)})" == type_text


def _type_of(run: Outcome, variable: str) -> str | None:
    """Return the element type of a type variable in the inputs, else in the outputs of a run, or `None`."""
    formals = zip(run.case.version.outputs, run.outputs or (), strict=False)
    arrays = (array for formal, array in formals if formal.type == variable and array is not None)
    return bound_type(run.case, variable) or next(map(array_element_type, arrays), None)


def _is_corner_case(test: Callable[[Case], bool], run: Outcome) -> bool:
    return not run.case.retyped and test(run.case)


def _corner_cases(version: OperatorVersion) -> Iterator[tuple[str, Callable[[Case], bool]]]:
    yield "empty tensor", lambda case: any(array.size == 0 for array in _present_arrays(case))
    yield "scalar", lambda case: bool(case.inputs) and case.inputs[0] is not None and case.inputs[0].ndim == 0
    axes = [name for name in version.attributes if name in ("axis", "axes")]
    if axes:
        yield "negative axis", lambda case: any(_is_negative(case.attributes.get(name)) for name in axes)
    floats = {"tensor(float)", "tensor(double)", "tensor(float16)", "tensor(bfloat16)"}
    if any(floats & set(version.types_of(formal)) for formal in version.inputs):
        yield "nan", lambda case: any(bool(np.isnan(array).any()) for array in _float_arrays(case))
        yield "inf", lambda case: any(bool(np.isinf(array).any()) for array in _float_arrays(case))


def _is_negative(value: object) -> bool:
    listed = value if isinstance(value, list | tuple) else (value,)
    return any(isinstance(each, int) and each < 0 for each in listed)


def _present_arrays(case: Case) -> Iterator[Array]:
    return (each for each in case.inputs if each is not None)


def _float_arrays(case: Case) -> Iterator[Array]:
    return (each.astype(np.float64) for each in _present_arrays(case) if each.dtype.kind in "fV")
