"""Values of TensorProtos, also of malformed ones."""

from __future__ import annotations

import math

import pytest

from opshift.model.messages import TensorProto
from opshift.model.node import Tensor
from opshift.model.tensors import pack_tensor, read_tensor

RAW = {
    "bfloat16": (16, b"\x80\x3f\x00\x40", (1.0, 2.0)),
    "int4": (22, b"\x21", (1, 2)),
    "uint2": (25, b"\x09", (1, 2)),
    "int64": (7, (1).to_bytes(8, "little") + (2).to_bytes(8, "little"), (1, 2)),
    "bool": (9, b"\x01\x00", (True, False)),
}


def tensor(data_type: int, payload: bytes) -> TensorProto:
    return TensorProto(data_type=data_type, dims=[2], raw_data=payload)


@pytest.mark.parametrize(("data_type", "payload", "values"), RAW.values(), ids=RAW)
def test_reads_raw_data(data_type: int, payload: bytes, values: tuple[object, ...]) -> None:
    found = read_tensor(tensor(data_type, payload))
    assert found is not None
    assert found.values == values


@pytest.mark.parametrize(("data_type", "payload", "values"), RAW.values(), ids=RAW)
def test_raw_data_of_another_size_has_no_value(
    data_type: int, payload: bytes, values: tuple[object, ...]
) -> None:
    for other in (payload + b"\0", payload[:-1], b""):
        assert read_tensor(tensor(data_type, other)) is None


@pytest.mark.parametrize(
    ("value", "bits"), [(1.0, 0x3F80), (math.nan, 0x7FC0), (-math.nan, 0xFFC0), (-math.inf, 0xFF80)]
)
def test_writes_bfloat16(value: float, bits: int) -> None:
    assert pack_tensor(Tensor("bfloat16", (), (value,))) == bits.to_bytes(2, "little")


def test_does_not_read_a_tensor_with_more_elements_than_any_payload() -> None:
    proto = TensorProto(data_type=TensorProto.FLOAT, dims=[2**62] * 300, raw_data=b"\0" * 8)
    assert read_tensor(proto) is None
