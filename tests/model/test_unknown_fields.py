"""A field unknown to the message class is appended, kept and found."""

from __future__ import annotations

import onnx
import pytest
from google.protobuf.unknown_fields import UnknownFieldSet

from opshift.model.wire_format import bytes_field, find_bytes

MESSAGE = onnx.OperatorSetProto(
    magic="ONNXOPSET", ir_version=2**40, opset_version=300, operator=[onnx.OperatorProto(op_type="Blur")]
)


@pytest.mark.parametrize("size", [0, 1, 127, 128, 16_384, 3_000_000])
def test_finds_an_appended_field(size: int) -> None:
    content = bytes(index % 251 for index in range(size))
    data = MESSAGE.SerializeToString() + bytes_field(20817, content)
    assert find_bytes(data, 20817) == content
    read = onnx.OperatorSetProto.FromString(data)
    unknown = UnknownFieldSet(read)
    assert [(each.field_number, each.data) for each in map(unknown.__getitem__, range(len(unknown)))] == [
        (20817, content)
    ]


def test_returns_the_last_field_of_a_number() -> None:
    assert (
        find_bytes(bytes_field(20817, b"a") + bytes_field(1, b"c") + bytes_field(20817, b"b"), 20817) == b"b"
    )


def test_returns_none_for_a_missing_field() -> None:
    assert find_bytes(MESSAGE.SerializeToString(), 20817) is None


def test_skips_fields_of_every_size() -> None:
    numbers = onnx.TensorProto(float_data=[1.0], double_data=[1.0], dims=[3])
    attribute = onnx.AttributeProto(name="a", f=1.0, i=-1)
    for message in (numbers, attribute):
        assert find_bytes(message.SerializeToString() + bytes_field(20817, b"x"), 20817) == b"x"
