"""Random models of every operator go to another opset, and back, and give what they gave; or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import onnx
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.graphs.graph import MIN_OPSET_ANY_CONSTANT
from support.graphs.models import MIN_OPSET, ML, Case, cases
from support.graphs.running import NoRuntime, run_both
from support.graphs.sameness import assert_same, tolerance_of
from support.running import opset_of

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused

LAST = 28
"""The newest opset of the default domain."""
OLDEST_CHECKED = 9
"""ONNX infers no types of some operators of older opsets, and objects to what reads them."""
MISTAKEN = {"MeanVarianceNormalization"}
"""Operators with whose function bodies ONNX itself finds fault."""
Target = dict[str, int]
PROFILE = settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])


class Journey(NamedTuple):
    """A model, where to take it, and what need not be exact."""

    case: Case
    target: Target
    allow: tuple[str, ...]

    @property
    def back(self) -> Target:
        """The opsets from which it came."""
        imports = self.case.model.opset_import
        return {each.domain: each.version for each in imports if each.domain in ("", ML)}

    def convert(self, model: onnx.ModelProto, target: Target, *, reversible: bool = False) -> onnx.ModelProto:
        """The model at a target; one that is refused is not looked at further."""
        try:
            result = convert_version(model, target, allow=self.allow, reversible=reversible)
        except ConversionRefused:
            assume(False)
        assert opset_of(result) == target[""]
        return result


@st.composite
def journeys(draw: Callable[[st.SearchStrategy[Any]], Any], *, up: bool) -> Journey:
    """Journeys to newer opsets, or to older ones; they may take the domain of classical operators along."""
    case = draw(cases())
    opset = opset_of(case.model)
    # A function has no initializers, and a Constant held floats only.
    lowest = MIN_OPSET_ANY_CONSTANT if case.model.functions else 1
    assume(up or opset > lowest)
    target = {"": draw(st.integers(opset + 1, LAST) if up else st.integers(lowest, opset - 1))}
    if any(each.domain == ML for each in case.model.opset_import) and draw(st.booleans()):
        target[ML] = draw(st.integers(1, 5))
    return Journey(case, target, draw(st.sampled_from([(), ("approximate",)])))


def _assert_as_before(result: onnx.ModelProto, case: Case) -> None:
    """The same outputs in a runtime that runs both, if there is one, and as valid as before."""
    try:
        before, after = run_both(case.model, result, case.feeds)
    except NoRuntime:
        return
    assert_same(after, before, tolerance_of(case.values.values()))


def _assert_as_valid(result: onnx.ModelProto, original: onnx.ModelProto) -> None:
    if min(opset_of(result), opset_of(original)) >= OLDEST_CHECKED and _is_valid(original):
        assert _is_valid(result)


def _is_valid(model: onnx.ModelProto) -> bool:
    nodes = (*model.graph.node, *(node for function in model.functions for node in function.node))
    if any(node.op_type in MISTAKEN for node in nodes):
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def _travel(journey: Journey) -> None:
    original = journey.case.model
    result = journey.convert(original, journey.target)
    _assert_as_valid(result, original)
    if opset_of(result) >= MIN_OPSET:
        _assert_as_before(result, journey.case)
    returned = journey.convert(result, journey.back)
    _assert_as_before(returned, journey.case)


@given(journeys(up=False))
@PROFILE
def test_down_and_up_again(journey: Journey) -> None:
    _travel(journey)


@given(journeys(up=True))
@PROFILE
def test_up_and_down_again(journey: Journey) -> None:
    _travel(journey)


@given(journeys(up=False) | journeys(up=True), st.integers(1, LAST))
@PROFILE
def test_a_way_with_a_stop_gives_the_same(journey: Journey, stop: int) -> None:
    """Wherever the stop is: on the way, before it, or beyond its end."""
    assume(not journey.case.model.functions or stop >= MIN_OPSET_ANY_CONSTANT)
    halfway = journey.convert(journey.case.model, {"": stop})
    result = journey.convert(halfway, journey.target)
    assume(opset_of(result) >= MIN_OPSET)
    _assert_as_before(result, journey.case)


@given(journeys(up=False) | journeys(up=True))
@PROFILE
def test_a_reversible_conversion_gives_the_same_nodes_back(journey: Journey) -> None:
    result = journey.convert(journey.case.model, journey.target, reversible=True)
    returned = journey.convert(result, journey.back)
    assert _nodes(returned) == _nodes(journey.case.model)


def _nodes(model: onnx.ModelProto) -> list[list[bytes]]:
    containers = (model.graph, *model.functions)
    return [[node.SerializeToString(deterministic=True) for node in each.node] for each in containers]
