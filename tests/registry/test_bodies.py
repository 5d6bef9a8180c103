"""Bodies in the definitions: legal in the opset that they state and in none before, and the same to run."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, shape_inference
from support.running import assert_equal, build, run

from opshift.registry.bodies import body_flaws
from opshift.registry.catalogue import default_registry
from opshift.registry.documents.functions import function_proto
from opshift.registry.element_types import BY_NAME
from opshift.registry.models import OperatorVersion

OLDEST_IN_RUNTIMES = 7
NUMBERS = np.array([-np.inf, -3.5, -1.0, 0.0, 0.25, 3.0, 40.0, np.inf, np.nan], np.float32)


def _with_body() -> list[OperatorVersion]:
    versions = (version for operator in default_registry().operators() for version in operator.versions)
    return [version for version in versions if version.body]


def _stated(version: OperatorVersion) -> int:
    assert version.body is not None
    return version.body.opset_imports["ai.onnx"]


def _nodes(version: OperatorVersion) -> list[onnx.NodeProto]:
    return list(onnx.FunctionProto.FromString(function_proto(version).SerializeToString()).node)


def _model(version: OperatorVersion, element: int, opset: int) -> onnx.ModelProto:
    given = [helper.make_tensor_value_info(each.name, element, [2]) for each in version.inputs]
    made = [onnx.ValueInfoProto(name=each.name) for each in version.outputs]
    graph = helper.make_graph(_nodes(version), "body", given, made)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _is_legal(version: OperatorVersion, opset: int) -> bool:
    """Whether ONNX lets the nodes take every element type of the operator."""
    types = version.types_of(version.inputs[0])
    elements = [BY_NAME[each.removeprefix("tensor(").removesuffix(")")].number for each in types]
    try:
        for element in elements:
            model = _model(version, element, opset)
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except shape_inference.InferenceError:
        return False
    return True


@pytest.mark.parametrize("version", _with_body(), ids=lambda version: str(version.id))
def test_a_body_is_written_for_the_lowest_opset_that_it_is_legal_in(version: OperatorVersion) -> None:
    assert not list(body_flaws(version))
    stated = _stated(version)
    assert [opset for opset in range(1, stated + 1) if _is_legal(version, opset)] == [stated]


@pytest.mark.parametrize(
    "version",
    [each for each in _with_body() if _stated(each) >= OLDEST_IN_RUNTIMES],
    ids=lambda version: str(version.id),
)
def test_a_body_computes_what_the_operator_does(version: OperatorVersion) -> None:
    names = [each.name for each in version.inputs]
    feeds = {name: np.roll(NUMBERS, turn).reshape(3, 3) for turn, name in enumerate(names)}
    outputs = {each.name: _element(version, each.type) for each in version.outputs}
    node = helper.make_node(version.name, names, list(outputs))
    expected = run(build([node], feeds, outputs, version.since_version), feeds)
    assert_equal(run(build(_nodes(version), feeds, outputs, _stated(version)), feeds), expected)


def _element(version: OperatorVersion, variable: str) -> int:
    is_bool = version.type_constraints[variable] == ("tensor(bool)",)
    return int(TensorProto.BOOL if is_bool else TensorProto.FLOAT)
