"""Function bodies in documents are valid for ONNX tools and compute the outputs of the operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper
from support.execution import run

from opshift.registry.documents.document import DocumentHeader, OperatorSet
from opshift.registry.documents.files import DocumentFormat, write_document
from opshift.registry.documents.onnxopset import to_onnxopset
from opshift.registry.function_protos import function_proto
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry

SQUASH: dict[str, Any] = {
    "domain": "com.acme",
    "name": "Squash",
    "since_version": 1,
    "inputs": [{"name": "X", "type": "tensor(float)"}],
    "outputs": [{"name": "Y", "type": "tensor(float)"}],
    "attributes": {"alpha": {"type": "FLOAT", "default": 0.5}, "axes": {"type": "INTS"}},
    "body": {
        "opset_imports": {"ai.onnx": 17},
        "nodes": [
            {
                "op_type": "LeakyRelu",
                "inputs": ["X"],
                "outputs": ["a"],
                "attributes": {"alpha": {"attribute": "alpha"}},
            },
            {
                "op_type": "ReduceMean",
                "inputs": ["a"],
                "outputs": ["b"],
                "attributes": {"axes": {"attribute": "axes"}, "keepdims": 1},
            },
            {"op_type": "Softmax", "inputs": ["b"], "outputs": ["Y"], "attributes": {"axis": 0}},
        ],
    },
}


def _version() -> OperatorVersion:
    return from_plain_data(OperatorVersion, SQUASH)


def test_runs_a_body_as_a_function_of_a_model() -> None:
    function = onnx.FunctionProto.FromString(
        function_proto(_version(), default_registry().at).SerializeToString()
    )
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    node = helper.make_node("Squash", ["x"], ["y"], domain="com.acme", axes=[1])
    model = helper.make_model(
        helper.make_graph([node], "test", [x], [y]),
        functions=[function],
        ir_version=9,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.acme", 1)],
    )
    values = np.array([[-2, 4, 1], [0, -1, 3]], np.float32)
    (found,) = run(model, {"x": values})
    mean = np.where(values < 0, 0.5 * values, values).mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found, np.exp(mean) / np.exp(mean).sum(axis=0), rtol=1e-5)


def test_a_document_lists_the_functions_in_effect() -> None:
    operator = Operator(domain="com.acme", name="Squash", versions=(_version(),))
    content = write_document(
        OperatorSet("com.acme", 1, (operator,), DocumentHeader(8)),
        DocumentFormat.ONNXOPSET,
        default_registry(),
    )
    message = onnx.OperatorSetProto.FromString(content)
    (function,) = message.functions
    assert (function.name, list(function.attribute)) == ("Squash", ["axes"])
    assert [each.name for each in function.attribute_proto] == ["alpha"]
    assert function.node[0].attribute[0].ref_attr_name == "alpha"


def test_writes_every_type_of_attribute_value() -> None:
    values: dict[str, Any] = {
        "i": 1, "f": 1.5, "s": "a", "is": [1, 2], "fs": [1.0, 2.5], "ss": ["a", "b"], "mixed": [1, 2.5]
    }  # fmt: skip
    node = {"op_type": "Glow", "outputs": ["Y"], "attributes": values}
    body = {"opset_imports": {"ai.onnx": 17}, "nodes": [node]}
    function = function_proto(
        from_plain_data(OperatorVersion, {**SQUASH, "body": body}), default_registry().at
    )
    read = onnx.FunctionProto.FromString(function.SerializeToString())
    found = {each.name: helper.get_attribute_value(each) for each in read.node[0].attribute}
    assert found == {
        "i": 1, "f": 1.5, "s": b"a", "is": [1, 2], "fs": [1.0, 2.5], "ss": [b"a", b"b"], "mixed": [1.0, 2.5]
    }  # fmt: skip


LEAK = {
    "domain": "com.acme",
    "name": "Leak",
    "since_version": 1,
    "inputs": [{"name": "X", "type": "tensor(float)"}],
    "outputs": [{"name": "Y", "type": "tensor(float)"}],
    "body": {
        "opset_imports": {"ai.onnx": 16, "com.acme": 1},
        "nodes": [
            {"op_type": "LeakyRelu", "inputs": ["X"], "outputs": ["a"], "attributes": {"alpha": 2}},
            {"op_type": "Constant", "outputs": ["one"], "attributes": {"value_floats": [1]}},
            {"op_type": "Constant", "outputs": ["none"], "attributes": {"value_floats": []}},
            {"op_type": "Concat", "inputs": ["one", "none"], "outputs": ["b"], "attributes": {"axis": 0}},
            {
                "op_type": "Scale",
                "domain": "com.acme",
                "inputs": ["a"],
                "outputs": ["c"],
                "attributes": {"by": 3},
            },
            {"op_type": "Mul", "inputs": ["c", "b"], "outputs": ["Y"]},
        ],
    },
}
SCALE = {
    **LEAK,
    "name": "Scale",
    "attributes": {"by": {"type": "FLOAT", "required": True}},
    "body": {
        "opset_imports": {"ai.onnx": 16},
        "nodes": [
            {"op_type": "Constant", "outputs": ["b"], "attributes": {"value_float": {"attribute": "by"}}},
            {"op_type": "Mul", "inputs": ["X", "b"], "outputs": ["Y"]},
        ],
    },
}


def test_attributes_of_body_nodes_have_the_types_that_their_operators_declare() -> None:
    versions = [from_plain_data(OperatorVersion, each) for each in (LEAK, SCALE)]
    operators = tuple(Operator(domain="com.acme", name=each.name, versions=(each,)) for each in versions)
    content = to_onnxopset(OperatorSet("com.acme", 1, operators, DocumentHeader(8)), default_registry())
    value_info = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "xy"]
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("Leak", ["x"], ["y"], domain="com.acme")],
            "leak",
            value_info[:1],
            value_info[1:],
        ),
        functions=list(onnx.OperatorSetProto.FromString(content).functions),
        ir_version=9,
        opset_imports=[helper.make_opsetid("", 16), helper.make_opsetid("com.acme", 1)],
    )
    onnx.checker.check_model(model, full_check=True)
    (found,) = run(model, {"x": np.array([-1, 1], np.float32)})
    assert found.tolist() == [-6, 3]


def test_a_built_body_has_the_declared_types() -> None:
    (relu, one, none, *_) = from_plain_data(OperatorVersion, LEAK).function_body().node
    found = [helper.get_attribute_value(each.attribute[0]) for each in (relu, one, none)]
    assert found == [2.0, [1.0], []]
    assert [each.attribute[0].type for each in (relu, one, none)] == [1, 6, 6]
