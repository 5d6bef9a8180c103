"""Convert random models of every operator and convert them back; compare the outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.execution import opset_of
from support.random_models import cases
from support.runtimes import needs_newest_onnx

from opshift.converter.convert import convert_version, plan_version
from opshift.converter.refusals import ConversionRefused
from opshift.registry.steps import Allow
from random_graphs.execution import NoRuntime, run_both
from random_graphs.graph import MIN_OPSET_ANY_CONSTANT
from random_graphs.models import MIN_OPSET, ML, Case
from random_graphs.sameness import assert_same, tolerance_of

NEWEST_OPSET = 28
"""The newest opset of the default domain."""
OLDEST_CHECKED = 9
"""In older opsets, ONNX infers no types for some operators and then rejects their consumers."""
INVALID_FOR_ONNX = {"MeanVarianceNormalization"}
"""Operators with function bodies that the checker of ONNX rejects."""
Target = dict[str, int]
PROFILE = settings(max_examples=120, derandomize=True, suppress_health_check=[*HealthCheck])


class Journey(NamedTuple):
    """A model, its target, and the allowed inexactness."""

    case: Case
    target: Target
    allow: tuple[Allow, ...]

    @property
    def source(self) -> Target:
        """Return the original opsets of the model."""
        imports = self.case.model.opset_import
        return {each.domain: each.version for each in imports if each.domain in ("", ML)}

    def convert(self, model: onnx.ModelProto, target: Target, *, reversible: bool = False) -> onnx.ModelProto:
        """Convert a model; discard the example if the conversion is refused."""
        try:
            result = convert_version(model, target, allow=self.allow, reversible=reversible)
        except ConversionRefused:
            assume(False)
        assert opset_of(result) == target[""]
        return result


@st.composite
def journeys(draw: Callable[[st.SearchStrategy[Any]], Any], *, up: bool) -> Journey:
    """Draw journeys to newer or to older opsets, some of which also convert ai.onnx.ml."""
    case = draw(cases())
    opset = opset_of(case.model)
    # Functions have no initializers, and Constant held only floats in older opsets.
    lowest = MIN_OPSET_ANY_CONSTANT if case.model.functions else 1
    assume(up or opset > lowest)
    target = {"": draw(st.integers(opset + 1, NEWEST_OPSET) if up else st.integers(lowest, opset - 1))}
    if any(each.domain == ML for each in case.model.opset_import) and draw(st.booleans()):
        target[ML] = draw(st.integers(1, 5))
    return Journey(case, target, draw(st.sampled_from([(), ("approximate",)])))


def _assert_same_outputs(result: onnx.ModelProto, case: Case) -> None:
    """Compare the outputs in a runtime that supports both models, if one exists."""
    try:
        before, after = run_both(case.model, result, case.feeds)
    except NoRuntime:
        return
    assert_same(after, before, tolerance_of(case.values.values(), case.model))


def _assert_still_valid(result: onnx.ModelProto, original: onnx.ModelProto) -> None:
    if min(opset_of(result), opset_of(original)) >= OLDEST_CHECKED and _is_valid(original):
        assert _is_valid(result)


def _is_valid(model: onnx.ModelProto) -> bool:
    nodes = (*model.graph.node, *(node for function in model.functions for node in function.node))
    if any(node.op_type in INVALID_FOR_ONNX for node in nodes):
        return False
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


def _check_round_trip(journey: Journey) -> None:
    original = journey.case.model
    result = journey.convert(original, journey.target)
    _assert_still_valid(result, original)
    if opset_of(result) >= MIN_OPSET:
        _assert_same_outputs(result, journey.case)
    returned = journey.convert(result, journey.source)
    _assert_same_outputs(returned, journey.case)


@pytest.mark.full
@given(journeys(up=False))
@PROFILE
def test_downgrade_and_return_preserve_outputs(journey: Journey) -> None:
    _check_round_trip(journey)


@pytest.mark.full
@needs_newest_onnx
@given(journeys(up=True))
@PROFILE
def test_upgrade_and_return_preserve_outputs(journey: Journey) -> None:
    _check_round_trip(journey)


@pytest.mark.full
@needs_newest_onnx
@given(journeys(up=False) | journeys(up=True), st.integers(1, NEWEST_OPSET))
@PROFILE
def test_intermediate_opset_preserves_outputs(journey: Journey, intermediate: int) -> None:
    """The intermediate opset may lie anywhere, even outside the range from source to target."""
    assume(not journey.case.model.functions or intermediate >= MIN_OPSET_ANY_CONSTANT)
    halfway = journey.convert(journey.case.model, {"": intermediate})
    result = journey.convert(halfway, journey.target)
    assume(opset_of(result) >= MIN_OPSET)
    _assert_same_outputs(result, journey.case)


@pytest.mark.full
@given(journeys(up=False) | journeys(up=True))
@PROFILE
def test_reversible_conversion_restores_the_nodes(journey: Journey) -> None:
    plan = plan_version(journey.case.model, journey.target, allow=journey.allow)
    # Types that the target lacks, such as sequences, are replaced for good.
    assume(not plan.repairs)
    result = journey.convert(journey.case.model, journey.target, reversible=True)
    returned = journey.convert(result, journey.source)
    assert _nodes(returned) == _nodes(journey.case.model)


def _nodes(model: onnx.ModelProto) -> list[list[bytes]]:
    containers = (model.graph, *model.functions)
    return [[node.SerializeToString(deterministic=True) for node in each.node] for each in containers]
