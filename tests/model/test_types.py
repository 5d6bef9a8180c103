"""Conversion between type messages and the type strings of operator definitions."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, TypeProto, helper

from opshift.model.types import declared_dims, dims_of, element_type_of, fill_type, shape_of, short_type

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def tensor(element: int, shape: Any = None) -> TypeProto:
    result: TypeProto = helper.make_tensor_type_proto(element, shape)
    return result


def mapping(key: int, value: TypeProto) -> TypeProto:
    result: TypeProto = helper.make_map_type_proto(key, value)
    return result


def sequence(inner: TypeProto) -> TypeProto:
    result: TypeProto = helper.make_sequence_type_proto(inner)
    return result


ROWS = [
    ("tensor", tensor(FLOAT, [1, 2]), "float", (1, 2)),
    ("scalar", tensor(INT64, []), "int64", ()),
    ("tensor without a shape", tensor(STRING), "string", None),
    ("symbolic and unknown dimensions", tensor(FLOAT, ["n", None, 0]), "float", (None, None, 0)),
    ("dimension -1, as some exporters write it", tensor(FLOAT, [-1, 3]), "float", (None, 3)),
    ("tensor without an element type", tensor(0, [1]), None, (1,)),
    ("tensor of an unknown element type", tensor(99, [1]), None, (1,)),
    ("sparse tensor", helper.make_sparse_tensor_type_proto(FLOAT, [3]), "float", None),
    ("sequence", sequence(tensor(FLOAT)), "seq(tensor(float))", None),
    ("sequence of sequences", sequence(sequence(tensor(INT64))), "seq(seq(tensor(int64)))", None),
    ("optional tensor", helper.make_optional_type_proto(tensor(FLOAT)), "optional(tensor(float))", None),
    ("map", mapping(STRING, tensor(FLOAT)), "map(string, float)", None),
    ("sequence of maps", sequence(mapping(INT64, tensor(FLOAT))), "seq(map(int64, float))", None),
    ("map to sequences", mapping(INT64, sequence(tensor(FLOAT))), "map(int64, seq(tensor(float)))", None),
    ("sequence without an element type", sequence(TypeProto()), None, None),
    ("map without a key type", mapping(0, tensor(FLOAT)), None, None),
    ("empty type", TypeProto(), None, None),
]


@pytest.mark.parametrize(
    ("proto", "element_type", "shape"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_reads_types_and_shapes(
    proto: TypeProto, element_type: str | None, shape: tuple[Any, ...] | None
) -> None:
    assert element_type_of(proto) == element_type
    assert shape_of(proto) == shape


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        pytest.param("float", (1, None), tensor(FLOAT, [1, None]), id="tensor"),
        pytest.param("int64", (), tensor(INT64, []), id="scalar"),
        pytest.param("string", None, tensor(STRING), id="tensor without a shape"),
        pytest.param("seq(tensor(float))", None, sequence(tensor(FLOAT)), id="sequence"),
        pytest.param(
            "optional(tensor(int64))",
            None,
            helper.make_optional_type_proto(tensor(INT64)),
            id="optional tensor",
        ),
        pytest.param(
            "sparse_tensor(float)", (3,), helper.make_sparse_tensor_type_proto(FLOAT, [3]), id="sparse tensor"
        ),
        pytest.param(
            "seq(map(int64, float))", None, sequence(mapping(INT64, tensor(FLOAT))), id="sequence of maps"
        ),
        pytest.param(
            "map(int64, seq(tensor(float)))",
            None,
            mapping(INT64, sequence(tensor(FLOAT))),
            id="map to sequences",
        ),
    ],
)
def test_writes_types(text: str, shape: tuple[int | None, ...] | None, expected: TypeProto) -> None:
    result = TypeProto()
    fill_type(result, text, shape)
    assert result == expected


@pytest.mark.parametrize(
    "text",
    [
        "foo(float)",
        "seq(foo(float))",
        "map(float)",
        "map(float, float)",
        "tensor(float",
        "float)",
        "tensor()",
        "seq",
        "",
    ],
)
def test_refuses_texts_that_are_not_types(text: str) -> None:
    with pytest.raises(KeyError):
        fill_type(TypeProto(), text, None)


@pytest.mark.parametrize(
    ("declared", "dims"),
    [
        pytest.param([], (), id="scalar"),
        pytest.param([2, 0], (2, 0), id="fixed dimensions"),
        pytest.param(["n", None], (None, None), id="symbolic and missing dimensions"),
        pytest.param([-1, 3], (None, 3), id="unknown dimension written as -1"),
    ],
)
def test_returns_known_dimensions(declared: list[Any], dims: tuple[int | None, ...]) -> None:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, declared)
    assert dims_of(value.type.tensor_type.shape) == dims


def test_reads_dimensions_without_a_size() -> None:
    """An empty name is an unknown dimension, and `*` is a name like any other."""
    declared = tensor(FLOAT, ["", "*", "n", 2])
    declared.tensor_type.shape.dim[0].dim_param = ""
    assert declared_dims(declared) == (None, "*", "n", 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tensor(float16)", "float16"),
        ("int64", "int64"),
        ("seq(tensor(float16))", "seq(tensor(float16))"),
        ("optional(seq(tensor(int8)))", "optional(seq(tensor(int8)))"),
        ("sparse_tensor(float)", "sparse_tensor(float)"),
        ("map(string, float)", "map(string, float)"),
    ],
)
def test_shortens_tensor_types_only(text: str, expected: str) -> None:
    assert short_type(text) == expected
