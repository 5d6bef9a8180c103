"""The text of a model shows every field, and does not depend on how tensors are stored."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.rich_model import full_model

from opshift.analysis.model_text import MAX_TEXT, model_lines
from opshift.converter.streaming.weights import open_without_weights
from opshift.model.messages import ModelProto

TEXT = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1], producer_name: "tests">
example (float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 0.1}, int64[1] axes = {1}> {
    positive = local.twice <factor = 0.5> (x)
    sum = Add (positive, w)
    y = If (condition) <then_branch = yes () => (float[N, 2] a) { a = Relu (sum) },
                        else_branch = no () => (float[N, 2] b) { b = Neg (sum) }>
}
<domain: "local", opset_import: ["" : 17]>
twice <factor: float = 2.0> (v) => (out) {
    c = Constant <value_float: float = @factor> ()
    out = Mul (v, c)
}
"""

EXPECTED = """\
ir_version 8
producer_name "tests"
opset_import ai.onnx 17
opset_import local 1
graph
  name "example"
  initializer w float[2] {1.0, 0.1}
  initializer axes int64[1] {1}
  input x float[N, 2]
  output y float[N, 2]
  positive = local.twice <factor=0.5>(x)
  sum = Add(positive, w)
  y = If <else_branch=..., then_branch=...>(condition)
    attribute else_branch=...
      g
        name "no"
        output b float[N, 2]
        b = Neg(sum)
    attribute then_branch=...
      g
        name "yes"
        output a float[N, 2]
        a = Relu(sum)
functions
  name "twice"
  input "v"
  output "out"
  opset_import ai.onnx 17
  domain "local"
  attribute_proto factor=2.0
  c = Constant <value_float:FLOAT=@factor>()
  out = Mul(v, c)
"""


def model(text: str = TEXT) -> ModelProto:
    return ModelProto.FromString(onnx.parser.parse_model(text).SerializeToString())


def text_of(proto: ModelProto) -> str:
    return "\n".join(model_lines(proto)) + "\n"


def test_prints_model() -> None:
    assert text_of(model()) == EXPECTED


def leaves(message: Any) -> Iterator[tuple[Any, Any, int | None]]:
    """Yield each scalar in a message: its message, its field, and its position in a repeated field."""
    for field, value in message.ListFields():
        is_repeated = hasattr(value, "extend")
        if field.message_type is None:
            yield from ((message, field, at) for at in (range(len(value)) if is_repeated else (None,)))
        else:
            for each in value if is_repeated else (value,):
                yield from leaves(each)


def changed(value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value + 1
    return value + (b"+" if isinstance(value, bytes) else "+")


def assign(message: Any, name: str, at: int | None, value: Any) -> None:
    if at is None:
        setattr(message, name, value)
    else:
        getattr(message, name)[at] = value


@pytest.mark.full
def test_every_change_of_a_field_changes_the_text() -> None:
    """Change each scalar of a model with all fields in turn."""
    proto = ModelProto.FromString(full_model().SerializeToString())
    before, count = text_of(proto), 0
    for message, field, at in leaves(proto):
        old = getattr(message, field.name) if at is None else getattr(message, field.name)[at]
        others = field.enum_type.values_by_number if field.enum_type else [changed(old)]
        new = next(each for each in others if each != old)
        assign(message, field.name, at, new)
        assert text_of(proto) != before, f"{message.DESCRIPTOR.name}.{field.name}"
        assign(message, field.name, at, old)
        count += 1
    assert text_of(proto) == before
    assert count > 300


def with_initializer(tensor: TensorProto) -> ModelProto:
    proto = model()
    proto.graph.initializer.add().MergeFromString(tensor.SerializeToString())
    return proto


@pytest.mark.parametrize(
    ("element_type", "values"),
    [
        (TensorProto.FLOAT, [0.5] * 20),
        (TensorProto.INT64, range(20)),
        (TensorProto.BFLOAT16, [1.5] * 20),
        (TensorProto.FLOAT16, [1.5] * 3),
        (TensorProto.BOOL, [True, False] * 9),
        (TensorProto.INT4, [1, -2] * 9),
    ],
    ids=["float", "int64", "bfloat16", "short float16", "bool", "int4"],
)
def test_digest_does_not_depend_on_the_field_of_the_elements(element_type: int, values: list[Any]) -> None:
    typed = helper.make_tensor("big", element_type, [len(values)], values)
    raw = numpy_helper.from_array(numpy_helper.to_array(typed), "big")
    assert raw.HasField("raw_data")
    assert not typed.HasField("raw_data")
    assert text_of(with_initializer(typed)) == text_of(with_initializer(raw))


def test_digest_changes_with_one_element() -> None:
    values = np.zeros((64, 64), np.float32)
    before = text_of(with_initializer(numpy_helper.from_array(values, "big")))
    values[63, 63] = 1e-30
    assert text_of(with_initializer(numpy_helper.from_array(values, "big"))) != before
    assert "initializer big float[64, 64] sha256 " in before


def test_long_values_are_cut() -> None:
    proto = model()
    proto.doc_string = "a" * 10_000
    node = proto.graph.node[0]
    node.attribute.add(name="ints", ints=range(10_000), type=7)
    tensors = [numpy_helper.from_array(np.ones(2), str(each)).SerializeToString() for each in range(10)]
    attribute = node.attribute.add(name="tensors", type=9)
    for each in tensors:
        attribute.tensors.add().MergeFromString(each)
    before = text_of(proto)
    assert max(map(len, before.splitlines())) < 5 * MAX_TEXT
    assert "ints=[0, 1, 2, 3, 4, 5, 6, 7, ...] (10000 elements, sha256" in before
    node.attribute[1].ints[9_999] = 0
    proto.doc_string = "a" * 9_999 + "b"
    attribute.tensors[9].name = "other"
    after = text_of(proto).splitlines()
    assert sum(old != new for old, new in zip(before.splitlines(), after, strict=True)) == 2


def test_external_data_is_not_read() -> None:
    tensor = helper.make_tensor("big", TensorProto.FLOAT, [0], [])
    tensor.dims[0] = 1000
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "absent.data", "offset": "4096", "length": "4000"}.items():
        tensor.external_data.add(key=key, value=value)
    line = 'initializer big float[1000] in "absent.data" offset 4096 length 4000'
    assert line in text_of(with_initializer(tensor))


@pytest.mark.parametrize("values", [{"float_data": [1.0]}, {"raw_data": b"123"}, {}])
def test_prints_tensors_with_inconsistent_data(values: dict[str, Any]) -> None:
    tensor = TensorProto(name="bad", dims=[3, -1], data_type=1, **values)
    assert "initializer bad float[3, -1] sha256" in text_of(with_initializer(tensor))
    tensor.data_type = 99
    assert "initializer bad 99[3, -1] sha256" in text_of(with_initializer(tensor))


def test_names_are_unambiguous() -> None:
    one, other = model(), model()
    one.graph.node[1].input[:] = ["a, b", "c\nd"]
    other.graph.node[1].input[:] = ["a", "b, c\nd"]
    assert 'Add("a, b", "c\\nd")' in text_of(one)
    assert text_of(one) != text_of(other)


def test_weights_of_large_files_have_the_same_digest(tmp_path: Path) -> None:
    values = np.random.default_rng(0).random((400, 1000), np.float32)
    proto = with_initializer(numpy_helper.from_array(values, "big"))
    constant = onnx.helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(values + 1))
    proto.graph.node.add().MergeFromString(constant.SerializeToString())
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    with open_without_weights(path) as streamed:
        assert text_of(streamed) == text_of(proto)
