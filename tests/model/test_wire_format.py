"""Reader of protobuf fields: equal to the protobuf library; truncated or invalid data is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opshift.model.errors import InvalidModel
from opshift.model.messages import DecodeError, GraphProto, TensorProto
from opshift.model.wire_format import FIRST_READ, MAX_READ_SIZE, ReadBytes, field_head, fields


def reader(data: bytes) -> ReadBytes:
    return lambda start, end: data[start:end]


def numbers_and_values(data: bytes, least: int = 0) -> list[tuple[int, bytes]]:
    """Return the number and the value of each field."""
    listed = fields(reader(data), 0, len(data), least)
    return [(each.number, data[each.value : each.end]) for each in listed]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", [], id="empty"),
        pytest.param(b"\x08\x05", [(1, b"\x05")], id="varint"),
        pytest.param(b"\x08\x80\x01", [(1, b"\x80\x01")], id="two-byte varint"),
        pytest.param(b"\x08" + b"\xff" * 9 + b"\x01", [(1, b"\xff" * 9 + b"\x01")], id="-1"),
        pytest.param(b"\x0a\x02hi", [(1, b"hi")], id="string"),
        pytest.param(b"\x0a\x00", [(1, b"")], id="empty string"),
        pytest.param(b"\x0a\x82\x00hi", [(1, b"hi")], id="overlong length"),
        pytest.param(b"\x0a\x82\x80\x00hi", [(1, b"hi")], id="very overlong length"),
        pytest.param(b"\x0a\x80\x02" + b"x" * 256, [(1, b"x" * 256)], id="two-byte length"),
        pytest.param(b"\x0d1234", [(1, b"1234")], id="32 bits"),
        pytest.param(b"\x0912345678", [(1, b"12345678")], id="64 bits"),
        pytest.param(b"\x82\x01\x02hi", [(16, b"hi")], id="two-byte tag"),
        pytest.param(b"\x0b\x12\x02hi\x0c\x0a\x01x", [(1, b""), (1, b"x")], id="skipped group"),
        pytest.param(b"\x0b\x13\x14\x0c", [(1, b"")], id="nested group"),
    ],
)
def test_reads_fields(data: bytes, expected: list[tuple[int, bytes]]) -> None:
    assert numbers_and_values(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x0a", id="tag without length"),
        pytest.param(b"\x08", id="tag without varint"),
        pytest.param(b"\x0a\x05hi", id="truncated string"),
        pytest.param(b"\x0a\xff\xff\xff\xff\x0fhi", id="length beyond the end"),
        pytest.param(b"\x0d12", id="truncated 32-bit value"),
        pytest.param(b"\x08\x80", id="truncated varint"),
        pytest.param(b"\x08" + b"\xff" * 11, id="unterminated varint"),
        pytest.param(b"\x02\x01x", id="string with field number 0"),
        pytest.param(b"\x00\x01", id="varint with field number 0"),
        pytest.param(b"\x0e", id="unknown wire type"),
        pytest.param(b"\x0b", id="unterminated group"),
        pytest.param(b"\x0c", id="end of group without start"),
        pytest.param(b"\x0b\x14", id="end of a different group"),
    ],
)
def test_refuses_invalid_message(data: bytes) -> None:
    with pytest.raises(InvalidModel, match="is not an ONNX model or is truncated"):
        numbers_and_values(data)
    with pytest.raises(DecodeError):
        GraphProto.FromString(data)


def test_skips_short_values() -> None:
    assert numbers_and_values(b"\x0a\x02hi\x08\x01\x0a\x03you\x0d1234", least=3) == [
        (1, b"you"),
        (1, b"1234"),
    ]


@pytest.mark.parametrize(
    ("mark", "expected"), [(0, [b"a", b"b", b"c"]), (3, [b"b", b"c"]), (8, [b"c"]), (9, [])]
)
def test_skips_fields_before_mark(mark: int, expected: list[bytes]) -> None:
    data = b"\x0a\x01a\x0a\x01b\x0a\x01c"
    remaining = fields(reader(data), 0, len(data), marks=[mark])
    assert [data[each.value : each.end] for each in remaining] == expected


def test_mark_may_move() -> None:
    data = b"".join(b"\x0a\x01" + bytes([each]) for each in range(60))
    marks = [0]
    found = []
    for field in fields(reader(data), 0, len(data), marks=marks):
        found.append(data[field.value])
        marks[0] = field.end + 28
    assert found == [0, 10, 20, 30, 40, 50]


@pytest.mark.parametrize("length", [1, 20, 127, 128, 1000, 16_383, 16_384, 70_000, 3 * MAX_READ_SIZE])
@pytest.mark.parametrize("before", [0, FIRST_READ - 21, FIRST_READ - 19, FIRST_READ])
def test_finds_fields_across_read_boundaries(length: int, before: int) -> None:
    data = field_head(2, before) + b"x" * before
    for number in (1, 300, 7):
        data += field_head(number, length) + b"y" * length
    assert [number for number, _ in numbers_and_values(data)] == [2, 1, 300, 7]


def test_reads_only_headers_of_large_values() -> None:
    data = (field_head(9, 1 << 22) + bytes(1 << 22)) * 3
    read = 0

    def count(start: int, end: int) -> bytes:
        nonlocal read
        read += end - start
        return data[start:end]

    assert len(list(fields(count, 0, len(data)))) == 3
    assert read < 1 << 14


@given(st.binary(max_size=60))
def test_reads_whatever_protobuf_reads(data: bytes) -> None:
    """Any data that protobuf accepts has fields; any other data is refused with one type of error."""
    readable = _succeeds(lambda: GraphProto.FromString(data), DecodeError)
    is_read = _succeeds(lambda: numbers_and_values(data), InvalidModel)
    assert is_read or not readable


def _succeeds(read: Callable[[], object], error: type[Exception]) -> bool:
    try:
        read()
    except error:
        return False
    return True


@pytest.mark.parametrize("length", [0, 1, 127, 128, 300, 2**21, 2**35])
def test_tags_and_lengths_equal_those_of_protobuf(length: int) -> None:
    if length <= 300:
        data = TensorProto(name="x" * length).SerializeToString()
        assert data == field_head(8, length) + b"x" * length
    (field,) = fields(reader(field_head(8, 0)), 0, 2)
    assert (field.number, field.value) == (8, 2)
