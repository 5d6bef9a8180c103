"""The table of attribute types agrees with the definition of AttributeProto."""

from __future__ import annotations

import pytest

from opshift.model.attributes import ATTRIBUTE_TYPES, AttributeType, read_attribute, tensors_in, types_in
from opshift.model.errors import CannotConvert
from opshift.model.messages import AttributeProto, SparseTensorProto, TensorProto, TypeProto

TYPES = pytest.mark.parametrize("kind", ATTRIBUTE_TYPES.values(), ids=lambda kind: kind.name)


def test_table_is_complete() -> None:
    assert ["UNDEFINED", *ATTRIBUTE_TYPES] == AttributeProto.AttributeType.keys()


@TYPES
def test_number_is_value_of_enum(kind: AttributeType) -> None:
    assert AttributeProto.AttributeType.Value(kind.name) == kind.number


@TYPES
def test_properties_match_field(kind: AttributeType) -> None:
    field = AttributeProto.DESCRIPTOR.fields_by_name[kind.field]
    assert kind.is_repeated == (field.name in _repeated_fields())
    assert kind.is_plain == (field.message_type is None)


def _repeated_fields() -> set[str]:
    empty = AttributeProto()
    return {
        name for name in AttributeProto.DESCRIPTOR.fields_by_name if hasattr(getattr(empty, name), "extend")
    }


@pytest.mark.parametrize("declares_type", [True, False], ids=["typed", "untyped"])
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("FLOAT", 0.5, 0.5),
        ("INT", 3, 3),
        ("STRING", b"a", b"a"),
        ("INTS", [1, 2], (1, 2)),
        ("STRINGS", [b"a"], (b"a",)),
    ],
)
def test_reads_value(name: str, value: object, expected: object, declares_type: bool) -> None:
    kind = ATTRIBUTE_TYPES[name]
    attribute = AttributeProto(name="a", **{kind.field: value})  # type: ignore[arg-type]
    if declares_type:
        attribute.type = kind.number
    assert read_attribute(attribute) == expected


def test_reads_attribute_without_value_as_zero() -> None:
    assert read_attribute(AttributeProto(name="a")) == 0


def test_refuses_reference() -> None:
    with pytest.raises(CannotConvert, match="set by its calls"):
        read_attribute(AttributeProto(name="a", ref_attr_name="b"))


def test_tensors_include_parts_of_sparse_tensors() -> None:
    attribute = AttributeProto(
        t=TensorProto(name="t"),
        tensors=[TensorProto(name="u")],
        sparse_tensor=SparseTensorProto(values=TensorProto(name="v"), indices=TensorProto(name="w")),
    )
    assert [tensor.name for tensor in tensors_in(attribute)] == ["t", "u", "v", "w"]


def test_yields_single_and_repeated_types() -> None:
    first, second = TypeProto(denotation="a"), TypeProto(denotation="b")
    assert [*types_in(AttributeProto(tp=first, type_protos=[second]))] == [first, second]
    assert [*types_in(AttributeProto())] == []
