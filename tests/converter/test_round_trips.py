"""Random models of every operator go to another opset, and back, and give what they gave; or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import onnx
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.graphs.graph import FIRST_WITH_ANY_CONSTANT
from support.graphs.models import ML, NEWEST, OLDEST, Case, cases
from support.graphs.running import NoRuntime, run_alike
from support.graphs.sameness import assert_same, tolerance_of
from support.running import opset_of

from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused

LAST = 28
"""The newest opset of the default domain."""
Target = dict[str, int]
PROFILE = settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[*HealthCheck])


class Journey(NamedTuple):
    """A model, where to take it, and what need not be exact."""

    case: Case
    target: Target
    allow: tuple[str, ...]

    @property
    def opset(self) -> int:
        """Where it starts."""
        return opset_of(self.case.model)

    @property
    def back(self) -> Target:
        """The opsets from which it came."""
        imports = self.case.model.opset_import
        return {each.domain: each.version for each in imports if each.domain in ("", ML)}


@st.composite
def journeys(draw: Callable[[st.SearchStrategy[Any]], Any], *, up: bool) -> Journey:
    """Journeys to newer opsets, or to older ones; they may take the domain of classical operators along."""
    case = draw(cases())
    opset = opset_of(case.model)
    target = {"": draw(st.integers(opset + 1, LAST) if up else st.integers(1, opset - 1))}
    if any(each.domain == ML for each in case.model.opset_import) and draw(st.booleans()):
        target[ML] = draw(st.integers(1, 5))
    return Journey(case, target, draw(st.sampled_from([(), ("approximate",)])))


def _converted(
    model: onnx.ModelProto, target: Target, journey: Journey, *, reversible: bool = False
) -> onnx.ModelProto:
    """The model at the target; one that is refused is not looked at further."""
    assume(target[""] >= FIRST_WITH_ANY_CONSTANT or not model.functions)
    try:
        result: onnx.ModelProto = convert_version(model, target, allow=journey.allow, reversible=reversible)
    except ConversionRefused:
        assume(False)
    assert opset_of(result) == target[""]
    return result


def _assert_as_before(result: onnx.ModelProto, journey: Journey) -> None:
    """The same outputs as at the start; a model that no runtime here runs is not looked at further."""
    try:
        before, after = run_alike(journey.case.model, result, journey.case.feeds)
    except NoRuntime:
        assume(False)
        raise
    assert_same(after, before, tolerance_of(journey.case.values.values()))


def _is_valid(model: onnx.ModelProto) -> bool:
    nodes = (*model.graph.node, *(node for function in model.functions for node in function.node))
    if any(node.op_type in MISTAKEN for node in nodes):
        return False
    try:
        onnx.checker.check_model(model, full_check=opset_of(model) >= OLDEST_CHECKED)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


MISTAKEN = {"MeanVarianceNormalization"}
"""Operators whose function bodies ONNX itself finds fault with."""
OLDEST_CHECKED = 9
"""ONNX infers no types of some operators of older opsets, and objects to what reads them."""


@given(journeys(up=False))
@PROFILE
def test_down_and_up_again(journey: Journey) -> None:
    result = _converted(journey.case.model, journey.target, journey)
    returned = _converted(result, journey.back, journey)
    _assert_as_before(returned, journey)


@given(journeys(up=True))
@PROFILE
def test_up_and_down_again(journey: Journey) -> None:
    result = _converted(journey.case.model, journey.target, journey)
    returned = _converted(result, journey.back, journey)
    _assert_as_before(returned, journey)


@given(journeys(up=False) | journeys(up=True))
@PROFILE
def test_there(journey: Journey) -> None:
    assume(OLDEST <= journey.target[""] <= NEWEST)
    result = _converted(journey.case.model, journey.target, journey)
    _assert_as_before(result, journey)


@given(journeys(up=False) | journeys(up=True))
@PROFILE
def test_what_is_valid_stays_so(journey: Journey) -> None:
    assume(_is_valid(journey.case.model))
    assert _is_valid(_converted(journey.case.model, journey.target, journey))


@given(journeys(up=False) | journeys(up=True))
@PROFILE
def test_a_reversible_conversion_gives_the_same_nodes_back(journey: Journey) -> None:
    result = _converted(journey.case.model, journey.target, journey, reversible=True)
    returned = _converted(result, journey.back, journey)
    assert _nodes(returned) == _nodes(journey.case.model)


def _nodes(model: onnx.ModelProto) -> list[list[bytes]]:
    containers = (model.graph, *model.functions)
    return [[node.SerializeToString(deterministic=True) for node in each.node] for each in containers]
