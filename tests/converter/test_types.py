"""Types and shapes as definitions write them, out of the messages of a model."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, TypeProto, helper

from opshift.model.types import element_type_of, fill_type, shape_of

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def tensor(element: int, shape: Any = None) -> TypeProto:
    made: TypeProto = helper.make_tensor_type_proto(element, shape)
    return made


def mapping(key: int, value: TypeProto) -> TypeProto:
    made: TypeProto = helper.make_map_type_proto(key, value)
    return made


def sequence(inner: TypeProto) -> TypeProto:
    made: TypeProto = helper.make_sequence_type_proto(inner)
    return made


ROWS = [
    ("a tensor", tensor(FLOAT, [1, 2]), "float", (1, 2)),
    ("a scalar", tensor(INT64, []), "int64", ()),
    ("a tensor without a shape", tensor(STRING), "string", None),
    ("dimensions with names, and unknown ones", tensor(FLOAT, ["n", None, 0]), "float", (None, None, 0)),
    ("dimensions that some exporters write as -1", tensor(FLOAT, [-1, 3]), "float", (None, 3)),
    ("a tensor of no type", tensor(0, [1]), None, (1,)),
    ("a tensor of an unknown type", tensor(99, [1]), None, (1,)),
    ("a sparse tensor", helper.make_sparse_tensor_type_proto(FLOAT, [3]), "float", None),
    ("a sequence", sequence(tensor(FLOAT)), "seq(tensor(float))", None),
    ("a sequence of sequences", sequence(sequence(tensor(INT64))), "seq(seq(tensor(int64)))", None),
    ("an optional tensor", helper.make_optional_type_proto(tensor(FLOAT)), "optional(tensor(float))", None),
    ("a map", mapping(STRING, tensor(FLOAT)), "map(string, float)", None),
    ("a sequence of maps", sequence(mapping(INT64, tensor(FLOAT))), "seq(map(int64, float))", None),
    ("a map to sequences", mapping(INT64, sequence(tensor(FLOAT))), "map(int64, seq(tensor(float)))", None),
    ("a sequence of nothing", sequence(TypeProto()), None, None),
    ("a map from nothing", mapping(0, tensor(FLOAT)), None, None),
    ("nothing", TypeProto(), None, None),
]


@pytest.mark.parametrize(
    ("proto", "element_type", "shape"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_the_type_and_shape_of(
    proto: TypeProto, element_type: str | None, shape: tuple[Any, ...] | None
) -> None:
    assert element_type_of(proto) == element_type
    assert shape_of(proto) == shape


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        pytest.param("float", (1, None), tensor(FLOAT, [1, None]), id="a tensor"),
        pytest.param("int64", (), tensor(INT64, []), id="a scalar"),
        pytest.param("string", None, tensor(STRING), id="a tensor without a shape"),
        pytest.param("seq(tensor(float))", None, sequence(tensor(FLOAT)), id="a sequence"),
        pytest.param(
            "optional(tensor(int64))",
            None,
            helper.make_optional_type_proto(tensor(INT64)),
            id="an optional tensor",
        ),
    ],
)
def test_a_type_is_written(text: str, shape: tuple[int | None, ...] | None, expected: TypeProto) -> None:
    made = TypeProto()
    fill_type(made, text, shape)
    assert made == expected
