"""Locations of tensors in ONNX messages."""

from __future__ import annotations

from onnx import TensorProto

from opshift.model.tensor_pieces import (
    PAYLOAD_WIDTHS,
    RAW_DATA,
    SCALAR_LIST_FIELDS,
    mergeable_messages,
    tensor_fields,
)


def test_lists_messages_with_tensors() -> None:
    assert set(tensor_fields()) == {
        "ModelProto", "GraphProto", "NodeProto", "AttributeProto", "FunctionProto", "TrainingInfoProto",
        "SparseTensorProto", "TensorProto",
    }  # fmt: skip


def test_lists_fields_that_may_hold_tensors() -> None:
    fields_of = {
        name: sorted(part.message for part in parts.values()) for name, parts in tensor_fields().items()
    }
    assert fields_of["GraphProto"] == ["NodeProto", "SparseTensorProto", "TensorProto"]
    assert fields_of["ModelProto"] == ["FunctionProto", "GraphProto", "TrainingInfoProto"]
    assert fields_of["SparseTensorProto"] == ["TensorProto", "TensorProto"]
    assert fields_of["TensorProto"] == []


def test_lists_messages_with_merged_fields() -> None:
    assert mergeable_messages() == {"ModelProto", "AttributeProto", "TrainingInfoProto", "SparseTensorProto"}


def test_payload_fields_are_the_data_fields() -> None:
    fields = {each.number: each.name for each in TensorProto.DESCRIPTOR.fields}
    expected = {name for name in fields.values() if name.endswith("_data") and name != "external_data"}
    assert {fields[number] for number in PAYLOAD_WIDTHS} == expected
    assert fields[RAW_DATA] == "raw_data"
    assert len(SCALAR_LIST_FIELDS) == 3
