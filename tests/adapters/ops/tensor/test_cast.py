"""Upgrade of Cast to opset 6: the type name becomes a type number."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.conversion import convert_and_check, refusal_of
from support.execution import Array, build

DATA = np.array([0, 1, 2.75, 100], np.float32)
DTYPES = {
    "FLOAT": np.float32,
    "FLOAT16": np.float16,
    "DOUBLE": np.float64,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "BOOL": np.bool_,
}


def _model(data: Array, **attributes: str) -> onnx.ModelProto:
    node = helper.make_node("Cast", ["x"], ["y"], name="node", **attributes)
    element_type = TensorProto.DataType.Value(attributes.get("to", "FLOAT").upper()) if attributes else 1
    return build([node], {"x": data}, {"y": element_type}, 1)


@pytest.mark.parametrize("source", [np.float32, np.int64, np.bool_], ids=["float", "int64", "bool"])
@pytest.mark.parametrize("name", DTYPES)
def test_converts_every_type_name(name: str, source: type[np.generic]) -> None:
    feeds = {"x": DATA.astype(source)}
    for target in (6, 13, 24):
        result = convert_and_check(
            _model(feeds["x"], to=name), target, feeds, [feeds["x"].astype(DTYPES[name])]
        )
        (attribute,) = result.graph.node[0].attribute
        assert (attribute.name, attribute.i) == ("to", TensorProto.DataType.Value(name))
        assert attribute.type == onnx.AttributeProto.INT


@pytest.mark.parametrize("name", ["float", "Float", "int64"])
def test_ignores_case_of_type_names(name: str) -> None:
    convert_and_check(_model(DATA, to=name), 6, {"x": DATA}, [DATA.astype(DTYPES[name.upper()])])


@pytest.mark.parametrize(
    ("name", "quoted_name"),
    [
        pytest.param("REAL", "'REAL'", id="unknown name"),
        pytest.param("", "''", id="empty name"),
    ],
)
def test_refuses_unknown_type_names(name: str, quoted_name: str) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], name="node", to=name)
    refused = refusal_of(build([node], {"x": DATA}, ["y"], 1), 6)
    assert refused.reason == f"attribute 'to' is {quoted_name}, which is not an element type"
    assert refused.remedy == "use the name of a TensorProto.DataType, such as FLOAT"


def test_refuses_missing_type() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], name="node")
    assert "'to'" in refusal_of(build([node], {"x": DATA}, ["y"], 1), 6).reason
