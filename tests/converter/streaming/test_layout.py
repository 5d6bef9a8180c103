"""The places of tensors are those of ONNX's messages."""

from __future__ import annotations

from onnx import TensorProto

from opshift.converter.streaming.layout import PLAIN_LISTS, RAW_DATA, WIDTHS, layout, merging


def test_messages_with_tensors_are_these() -> None:
    assert set(layout()) == {
        "ModelProto", "GraphProto", "NodeProto", "AttributeProto", "FunctionProto", "TrainingInfoProto",
        "SparseTensorProto", "TensorProto",
    }  # fmt: skip


def test_fields_are_those_that_may_hold_tensors() -> None:
    found = {name: sorted(part.message for part in parts.values()) for name, parts in layout().items()}
    assert found["GraphProto"] == ["NodeProto", "SparseTensorProto", "TensorProto"]
    assert found["ModelProto"] == ["FunctionProto", "GraphProto", "TrainingInfoProto"]
    assert found["SparseTensorProto"] == ["TensorProto", "TensorProto"]
    assert found["TensorProto"] == []


def test_single_messages_are_known() -> None:
    assert merging() == {"ModelProto", "AttributeProto", "TrainingInfoProto", "SparseTensorProto"}


def test_payloads_are_the_fields_of_elements() -> None:
    fields = {each.number: each.name for each in TensorProto.DESCRIPTOR.fields}
    expected = {name for name in fields.values() if name.endswith("_data") and name != "external_data"}
    assert {fields[number] for number in WIDTHS} == expected
    assert fields[RAW_DATA] == "raw_data"
    assert len(PLAIN_LISTS) == 3
