"""Cast: the name of a type becomes its number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build

from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
NUMBERS = np.array([0, 1, 2.75, 100], np.float32)
KINDS = {
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
    element = TensorProto.DataType.Value(attributes.get("to", "FLOAT").upper()) if attributes else 1
    return build([node], {"x": data}, {"y": element}, 1)


@pytest.mark.parametrize("source", [np.float32, np.int64, np.bool_], ids=["float", "int64", "bool"])
@pytest.mark.parametrize("name", KINDS)
def test_every_type_is_cast_to(name: str, source: type[np.generic], converted: Converted) -> None:
    feeds = {"x": NUMBERS.astype(source)}
    for target in (6, 13, 24):
        result = converted(_model(feeds["x"], to=name), target, feeds, [feeds["x"].astype(KINDS[name])])
        (attribute,) = result.graph.node[0].attribute
        assert (attribute.name, attribute.i) == ("to", TensorProto.DataType.Value(name))
        assert attribute.type == onnx.AttributeProto.INT


@pytest.mark.parametrize("name", ["float", "Float", "int64"])
def test_small_letters_are_read_too(name: str, converted: Converted) -> None:
    converted(_model(NUMBERS, to=name), 6, {"x": NUMBERS}, [NUMBERS.astype(KINDS[name.upper()])])


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("REAL", "'REAL'", id="a word that is no type"),
        pytest.param("", "''", id="nothing"),
    ],
)
def test_other_names_are_refused(name: str, shown: str, refusal: Refusing) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], name="node", to=name)
    found = refusal(build([node], {"x": NUMBERS}, ["y"], 1), 6)
    assert found.reason == f"attribute 'to' is {shown}, which is not an element type"
    assert found.remedy == "use the name of a TensorProto.DataType, such as FLOAT"


def test_a_type_has_to_be_named(refusal: Refusing) -> None:
    node = helper.make_node("Cast", ["x"], ["y"], name="node")
    assert "'to'" in refusal(build([node], {"x": NUMBERS}, ["y"], 1), 6).reason
