"""Bodies that replace operators in older opsets are valid from the opset that they declare."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, shape_inference
from support.execution import assert_equal, build, run
from support.released import is_released

from opshift.model.element_types import BY_NAME
from opshift.registry.function_protos import function_proto
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import default_registry
from opshift.registry.step_rules import body_problems

MIN_RUNTIME_OPSET = 7
VALUES = np.array([-np.inf, -3.5, -1.0, 0.0, 0.25, 3.0, 40.0, np.inf, np.nan], np.float32)


def _versions_with_body() -> list[OperatorVersion]:
    """Return the versions of operators that older opsets express by their function body."""
    operators = (each for each in default_registry().operators() if each.versions[0].before == "body")
    return [version for operator in operators for version in operator.versions if is_released(version)]


def _declared_opset(version: OperatorVersion) -> int:
    assert version.body is not None
    return version.body.opset_imports["ai.onnx"]


def _nodes(version: OperatorVersion) -> list[onnx.NodeProto]:
    return list(
        onnx.FunctionProto.FromString(function_proto(version, default_registry().at).SerializeToString()).node
    )


def _model(version: OperatorVersion, element: int, opset: int) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(each.name, element, [2]) for each in version.inputs]
    outputs = [onnx.ValueInfoProto(name=each.name) for each in version.outputs]
    graph = helper.make_graph(_nodes(version), "body", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def _is_legal(version: OperatorVersion, opset: int) -> bool:
    """Whether ONNX accepts the nodes with every element type of the operator."""
    types = version.types_of(version.inputs[0])
    elements = [BY_NAME[each.removeprefix("tensor(").removesuffix(")")].number for each in types]
    try:
        for element in elements:
            model = _model(version, element, opset)
            shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except shape_inference.InferenceError:
        return False
    return True


@pytest.mark.parametrize("version", _versions_with_body(), ids=lambda version: str(version.id))
def test_a_body_declares_the_lowest_opset_in_which_it_is_valid(version: OperatorVersion) -> None:
    assert not list(body_problems(version))
    declared = _declared_opset(version)
    assert [opset for opset in range(1, declared + 1) if _is_legal(version, opset)] == [declared]


@pytest.mark.parametrize(
    "version",
    [each for each in _versions_with_body() if _declared_opset(each) >= MIN_RUNTIME_OPSET],
    ids=lambda version: str(version.id),
)
def test_a_body_computes_the_outputs_of_the_operator(version: OperatorVersion) -> None:
    names = [each.name for each in version.inputs]
    feeds = {name: np.roll(VALUES, shift).reshape(3, 3) for shift, name in enumerate(names)}
    outputs = {each.name: _output_element_type(version, each.type) for each in version.outputs}
    node = helper.make_node(version.name, names, list(outputs))
    expected = run(build([node], feeds, outputs, version.since_version), feeds)
    assert_equal(run(build(_nodes(version), feeds, outputs, _declared_opset(version)), feeds), expected)


def _output_element_type(version: OperatorVersion, variable: str) -> int:
    is_bool = version.type_constraints[variable] == ("tensor(bool)",)
    return int(TensorProto.BOOL if is_bool else TensorProto.FLOAT)
