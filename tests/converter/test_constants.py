"""Which values are the same in every run, and what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper
from support.running import build

from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.node import Tensor
from opshift.model.tensors import read_tensor, write_tensor

Scoping = Callable[..., Scope]
X = np.ones((2, 3), np.float32)
UINT8, INT32, INT64 = TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64
FLOAT, FLOAT16, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
STRING = TensorProto.STRING


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **stated: Any
) -> NodeProto:
    made: NodeProto = helper.make_node(op_type, inputs, outputs, domain=domain, **stated)
    return made


def scope(scoping: Scoping, *nodes: NodeProto, opset: int = 13, **weights: Any) -> Scope:
    arrays = {name: np.asarray(each) for name, each in weights.items()}
    model = build(nodes, {"x": X}, [], {"": opset, "com.acme": 1}, initializers=arrays)
    return scoping(model.graph, model.opset_import)


# Tensors


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"])
@pytest.mark.parametrize("raw", [True, False], ids=["raw bytes", "typed fields"])
def test_a_tensor_is_read_and_written(dtype: str, raw: bool) -> None:
    array = np.array([[0, 1, 1], [0, 1, 1]]).astype(dtype)
    proto = helper.make_tensor(
        "t", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.tobytes() if raw else array, raw
    )
    found = read_tensor(proto)
    assert found is not None
    assert found.dims == (2, 3)
    assert found.values == tuple(array.ravel().tolist())
    again = TensorProto()
    write_tensor(again, found, "t")
    np.testing.assert_array_equal(numpy_helper.to_array(again), array)
    assert numpy_helper.to_array(again).dtype == array.dtype
    assert again.name == "t"


EXTREMES = [
    ("int64", -(2**63)),
    ("int64", 2**63 - 1),
    ("uint64", 2**64 - 1),
    ("int8", -128),
    ("float", -0.0),
    ("float", float("inf")),
    ("double", 5e-324),
    ("float16", 65504.0),
    ("bool", True),
    ("string", b"\xff\0text"),
]


@pytest.mark.parametrize(("element_type", "extreme"), EXTREMES, ids=[f"{t} {v!r}" for t, v in EXTREMES])
def test_an_extreme_value_survives(element_type: str, extreme: Any) -> None:
    proto = TensorProto()
    write_tensor(proto, Tensor(element_type, (1,), (extreme,)))
    found = read_tensor(proto)
    assert found is not None
    assert repr(found.values) == repr((extreme,))


def test_a_number_beyond_16_bits_is_infinite_as_a_cast_makes_it() -> None:
    proto = TensorProto()
    write_tensor(proto, Tensor("float16", (3,), (1e6, -1e6, 65519.0)))
    assert numpy_helper.to_array(proto).tolist() == [np.inf, -np.inf, 65504.0]


@pytest.mark.parametrize(
    "number", [1.0, 1.00390625, 3.3895314e38, float("inf"), float("nan"), -0.0], ids=repr
)
def test_bfloat16_is_written_rounded_to_even(number: float) -> None:
    proto = TensorProto()
    write_tensor(proto, Tensor("bfloat16", (), (number,)))
    (bits,) = np.frombuffer(proto.raw_data, np.uint16)
    (exact,) = np.array([number], np.float32).view(np.uint32)
    if number != number:
        assert bits == 0x7FC0
    else:
        assert abs(int(bits) * 65536 - int(exact)) <= 32768


@pytest.mark.parametrize("bits", [0x3F80, 0xC049, 0x7F80, 0x0001])
@pytest.mark.parametrize("raw", [True, False], ids=["raw bytes", "typed field"])
def test_bfloat16_is_read(bits: int, raw: bool) -> None:
    field = {"raw_data": bits.to_bytes(2, "little")} if raw else {"int32_data": [bits]}
    found = read_tensor(TensorProto(data_type=TensorProto.BFLOAT16, **field))
    assert found is not None
    assert found.values == (float(np.array([bits << 16], np.uint32).view(np.float32)[0]),)


@pytest.mark.parametrize("raw", [True, False], ids=["raw bytes", "typed field"])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TensorProto.INT4, [-8, 7, 0, -1, 3]),
        (TensorProto.UINT4, [0, 15, 8, 1, 9]),
        (TensorProto.INT2, [-2, 1, 0, -1, 1]),
        (TensorProto.UINT2, [0, 3, 2, 1, 3]),
    ],
    ids=["int4", "uint4", "int2", "uint2"],
)
def test_integers_of_a_few_bits_are_read_and_written(kind: int, values: list[int], raw: bool) -> None:
    proto = helper.make_tensor("t", kind, [5], values)
    packed = proto.raw_data or bytes(each & 0xFF for each in proto.int32_data)
    field: dict[str, Any] = {"raw_data": packed} if raw else {"int32_data": list(packed)}
    found = read_tensor(TensorProto(data_type=kind, dims=[5], **field))
    assert found is not None
    assert found.values == tuple(values)
    again = TensorProto()
    write_tensor(again, found)
    assert again.raw_data == packed


def test_an_integer_that_takes_more_bits_is_not_written() -> None:
    with pytest.raises(CannotConvert, match="a value of a constant does not fit the element type int4"):
        write_tensor(TensorProto(), Tensor("int4", (1,), (8,)))


UNREAD = [
    ("too few bytes", TensorProto(data_type=INT64, dims=[2], raw_data=b"\0" * 8)),
    ("too many bytes", TensorProto(data_type=INT64, dims=[1], raw_data=b"\0" * 16)),
    ("half an element", TensorProto(data_type=INT64, dims=[1], raw_data=b"\0" * 7)),
    ("a negative size", TensorProto(data_type=INT64, dims=[-1], raw_data=b"\0" * 8)),
    ("values in the field of another type", TensorProto(data_type=INT64, dims=[1], float_data=[1.0])),
    ("an unknown type", TensorProto(data_type=99, dims=[1], raw_data=b"\0")),
    ("no type", TensorProto(dims=[1], raw_data=b"\0")),
    ("too few bytes for a type of 4 bits", TensorProto(data_type=TensorProto.INT4, dims=[3], raw_data=b"\0")),
    ("half a bfloat16", TensorProto(data_type=TensorProto.BFLOAT16, dims=[2], raw_data=b"\0\0\0")),
    ("a complex type", TensorProto(data_type=TensorProto.COMPLEX64, dims=[1], float_data=[1.0, 2.0])),
    (
        "data elsewhere",
        TensorProto(data_type=INT64, dims=[1], int64_data=[1], data_location=TensorProto.EXTERNAL),
    ),
]


@pytest.mark.parametrize("proto", [row[1] for row in UNREAD], ids=[row[0] for row in UNREAD])
def test_a_tensor_is_not_read_with(proto: TensorProto) -> None:
    assert read_tensor(proto) is None


# Initializers


def test_an_initializer_is_constant(scope_of: Scoping) -> None:
    found = scope(scope_of, w=np.array([1, 2], np.int64)).constant("w")
    assert found == Tensor("int64", (2,), (1, 2))


def test_an_initializer_that_a_caller_may_override_is_not(scope_of: Scoping) -> None:
    model = build([], {"w": X}, [], 13, initializers={"w": X})
    assert scope_of(model.graph, model.opset_import).constant("w") is None


@pytest.mark.parametrize(
    ("indices", "dims", "expected"),
    [
        (([2], [0, 3]), (4,), (1.0, 0.0, 0.0, 2.0)),
        (([2, 2], [0, 1, 1, 0]), (2, 2), (0.0, 1.0, 2.0, 0.0)),
        (([2], [0, 4]), (4,), None),
        (([1], [0]), (4,), None),
        (([2], [0, 3]), (4096, 2), None),
    ],
    ids=["by positions", "by coordinates", "out of range", "with too few indices", "too large to write out"],
)
def test_a_sparse_initializer_is_the_dense_tensor(
    indices: tuple[list[int], list[int]],
    dims: tuple[int, ...],
    expected: tuple[float, ...] | None,
    scope_of: Scoping,
) -> None:
    model = build([], {"x": X}, [], 13)
    values = helper.make_tensor("s", FLOAT, [2], [1.0, 2.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("", INT64, *indices), dims)
    model.graph.sparse_initializer.append(sparse)
    found = scope_of(model.graph, model.opset_import).constant("s")
    assert found == (expected and Tensor("float", dims, expected))


def test_a_sparse_initializer_that_a_caller_may_override_is_not(scope_of: Scoping) -> None:
    model = build([], {"s": X}, [], 13)
    values = helper.make_tensor("s", FLOAT, [1], [1.0])
    indices = helper.make_tensor("", INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, X.shape))
    assert scope_of(model.graph, model.opset_import).constant("s") is None


@pytest.mark.parametrize("name", ["x", "nothing", ""], ids=["a graph input", "an unknown name", "no name"])
def test_not_constant_is(name: str, scope_of: Scoping) -> None:
    assert scope(scope_of).constant(name) is None


# Constant


FORMS: list[tuple[str, dict[str, Any], Tensor | None]] = [
    (
        "a tensor",
        {"value": numpy_helper.from_array(np.array([1.5, 2.5]))},
        Tensor("double", (2,), (1.5, 2.5)),
    ),
    ("a scalar tensor", {"value": numpy_helper.from_array(np.array(3))}, Tensor("int64", (), (3,))),
    ("an integer", {"value_int": 3}, Tensor("int64", (), (3,))),
    ("integers", {"value_ints": [3, -4]}, Tensor("int64", (2,), (3, -4))),
    ("a fraction", {"value_float": 0.5}, Tensor("float", (), (0.5,))),
    ("fractions", {"value_floats": [0.5, 1.0]}, Tensor("float", (2,), (0.5, 1.0))),
    ("a text", {"value_string": "a"}, Tensor("string", (), (b"a",))),
    ("texts", {"value_strings": ["a", "b"]}, Tensor("string", (2,), (b"a", b"b"))),
    ("nothing", {}, None),
    ("fractions where integers belong", {"value_ints": [1.5]}, None),
    ("a text where an integer belongs", {"value_int": "a"}, None),
    ("an integer where a tensor belongs", {"value": 3}, None),
]


@pytest.mark.parametrize(("stated", "expected"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS])
def test_a_constant_node_holds(stated: dict[str, Any], expected: Tensor | None, scope_of: Scoping) -> None:
    found = scope(scope_of, node("Constant", [], ["c"], **stated))
    assert found.constant("c") == expected
    if expected:
        assert found.element_type("c") == expected.element_type
        assert found.shape("c") == expected.dims


def test_a_constant_node_of_a_sparse_value_is_not_read(scope_of: Scoping) -> None:
    values = helper.make_tensor("", FLOAT, [1], [1.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("", INT64, [1], [0]), [3])
    assert scope(scope_of, node("Constant", [], ["c"], sparse_value=sparse)).constant("c") is None


def test_a_constant_of_another_domain_is_not_one(scope_of: Scoping) -> None:
    assert scope(scope_of, node("Constant", [], ["c"], "com.acme", value_int=3)).constant("c") is None


def test_the_type_of_a_constant_is_told_without_its_value(
    scope_of: Scoping, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(_: object) -> None:
        raise AssertionError("the value was read")

    monkeypatch.setattr("opshift.inference.constants.read_tensor", read)
    found = scope(scope_of, node("Constant", [], ["c"], value=numpy_helper.from_array(X)))
    assert (found.element_type("c"), found.shape("c")) == ("float", (2, 3))


# What leads from a constant


def chain(op_types: Sequence[str], **stated: Any) -> list[NodeProto]:
    """Nodes from `w` on; the last makes `end`."""
    names = ["w", *(f"v{i}" for i in range(len(op_types) - 1)), "end"]
    return [
        node(op_type, [source], [target], **(stated if op_type == "Cast" else {}))
        for op_type, source, target in zip(op_types, names[:-1], names[1:], strict=True)
    ]


def test_identities_are_followed(scope_of: Scoping) -> None:
    found = scope(scope_of, *chain(["Identity"] * 5_000), w=np.array([1, 2]))
    assert found.constant("end") == Tensor("int64", (2,), (1, 2))


def test_other_nodes_are_not(scope_of: Scoping) -> None:
    assert scope(scope_of, *chain(["Identity", "Neg"]), w=np.array([1, 2])).constant("end") is None


CASTS: list[tuple[str, Any, int, Tensor | None]] = [
    ("int32 to int64", np.array([1, -2], np.int32), INT64, Tensor("int64", (2,), (1, -2))),
    ("int64 to int32 in range", np.array([2**31 - 1]), INT32, Tensor("int32", (1,), (2**31 - 1,))),
    ("int64 to int32 out of range", np.array([2**31]), INT32, None),
    (
        "uint64 to int64 in range",
        np.array([2**63 - 1], np.uint64),
        INT64,
        Tensor("int64", (1,), (2**63 - 1,)),
    ),
    ("uint64 to int64 out of range", np.array([2**63], np.uint64), INT64, None),
    ("uint8 to int64", np.array([255], np.uint8), INT64, Tensor("int64", (1,), (255,))),
    (
        "float16 to float",
        np.array([0.1], np.float16),
        FLOAT,
        Tensor("float", (1,), (float(np.float16(0.1)),)),
    ),
    ("float to double", np.array([0.5], np.float32), DOUBLE, Tensor("double", (1,), (0.5,))),
    ("to what it is already", np.array([0.1]), DOUBLE, Tensor("double", (1,), (0.1,))),
    ("double to float, which may round", np.array([0.5]), FLOAT, None),
    ("float to float16, which may round", np.array([0.5], np.float32), FLOAT16, None),
    ("float to int64, which may cut", np.array([0.5], np.float32), INT64, None),
    ("int64 to float in range", np.array([2**24]), FLOAT, Tensor("float", (1,), (2.0**24,))),
    ("int64 to float out of range", np.array([2**24 + 1]), FLOAT, None),
    ("int64 to float16 in range", np.array([-(2**11)]), FLOAT16, Tensor("float16", (1,), (-(2.0**11),))),
    ("bool to int64", np.array([True]), INT64, Tensor("int64", (1,), (1,))),
    ("bool to float", np.array([False]), FLOAT, Tensor("float", (1,), (0.0,))),
    ("int64 to uint8 in range", np.array([255]), UINT8, Tensor("uint8", (1,), (255,))),
    ("int64 to uint8 out of range", np.array([-1]), UINT8, None),
    ("int64 to bool", np.array([1]), TensorProto.BOOL, None),
    ("int64 to text", np.array([3]), STRING, None),
    ("to a type nobody knows", np.array([3]), 99, None),
]


@pytest.mark.parametrize(
    ("array", "to", "expected"), [row[1:] for row in CASTS], ids=[row[0] for row in CASTS]
)
def test_a_cast_is_followed_where_no_value_can_change(
    array: Any, to: int, expected: Tensor | None, scope_of: Scoping
) -> None:
    assert scope(scope_of, *chain(["Cast"], to=to), w=array).constant("end") == expected


def test_casts_are_followed_in_turn(scope_of: Scoping) -> None:
    nodes = [*chain(["Cast"], to=INT32), node("Cast", ["end"], ["last"], to=INT64)]
    assert scope(scope_of, *nodes, w=np.array([7])).constant("last") == Tensor("int64", (1,), (7,))


def test_a_cast_by_name_is_not_followed(scope_of: Scoping) -> None:
    """Before 6 Cast named its type."""
    assert scope(scope_of, *chain(["Cast"], to="INT64"), opset=5, w=np.array([7])).constant("end") is None


@pytest.mark.parametrize("op_type", ["Identity", "Cast", "Shape"])
def test_a_node_without_its_input_is_not_constant(op_type: str, scope_of: Scoping) -> None:
    stated = {"to": INT64} if op_type == "Cast" else {}
    assert scope(scope_of, node(op_type, [], ["c"], **stated)).constant("c") is None


# Shape


def test_the_shape_of_a_known_shape_is_constant(scope_of: Scoping) -> None:
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Shape", ["t"], ["s"])]
    assert scope(scope_of, *nodes).constant("s") == Tensor("int64", (2,), (3, 2))


def test_the_shape_of_an_initializer_is_constant(scope_of: Scoping) -> None:
    assert scope(scope_of, node("Shape", ["w"], ["s"]), w=np.array(1)).constant("s") == Tensor(
        "int64", (0,), ()
    )


def test_a_part_of_a_shape_is_not(scope_of: Scoping) -> None:
    assert scope(scope_of, node("Shape", ["x"], ["s"], start=1), opset=15).constant("s") is None


@pytest.mark.parametrize("shape", [["n", 3], [None, 3], None], ids=["a name", "unknown", "no shape"])
def test_a_shape_that_is_not_all_known_is_not(shape: Any, scope_of: Scoping) -> None:
    model = build([node("Shape", ["x"], ["s"])], {}, [], 13)
    model.graph.input.append(helper.make_tensor_value_info("x", FLOAT, shape))
    assert scope_of(model.graph, model.opset_import).constant("s") is None


# Graphs within, and functions


def test_a_graph_sees_the_constants_around_it(scope_of: Scoping) -> None:
    outer = scope(scope_of, node("Identity", ["w"], ["v"]), w=np.array([1]))
    inner = onnx.GraphProto(node=[node("Identity", ["v"], ["u"])])
    found = scope_of(inner, [helper.make_opsetid("", 13)], outer)
    assert found.constant("u") == found.constant("v") == Tensor("int64", (1,), (1,))


def test_a_value_of_its_own_hides_the_constant_around_it(scope_of: Scoping) -> None:
    outer = scope(scope_of, w=np.array([1]))
    inner = onnx.GraphProto(node=[node("Neg", ["x"], ["v"]), node("Identity", ["v"], ["w"])])
    assert scope_of(inner, [helper.make_opsetid("", 13)], outer).constant("w") is None
    inner = onnx.GraphProto(input=[helper.make_tensor_value_info("w", INT64, None)])
    assert scope_of(inner, [helper.make_opsetid("", 13)], outer).constant("w") is None


def test_in_a_function_constant_nodes_are_constant_and_inputs_are_not(scope_of: Scoping) -> None:
    imports = [helper.make_opsetid("", 13)]
    nodes = [node("Constant", [], ["c"], value_int=1), node("Identity", ["a"], ["b"])]
    found = scope_of(helper.make_function("local", "F", ["a"], ["b"], nodes, imports), imports)
    assert found.constant("c") == Tensor("int64", (), (1,))
    assert found.constant("a") is found.constant("b") is None


@pytest.mark.parametrize(
    ("op_type", "attribute", "kind"),
    [("Constant", "value_int", AttributeProto.INT), ("Cast", "to", AttributeProto.INT)],
    ids=["a Constant", "a Cast"],
)
def test_what_the_call_of_a_function_decides_is_not_constant(
    op_type: str, attribute: str, kind: int, scope_of: Scoping
) -> None:
    imports = [helper.make_opsetid("", 13)]
    given = node(op_type, ["c"] if op_type == "Cast" else [], ["b"])
    given.attribute.add(name=attribute, ref_attr_name="given", type=kind)
    nodes = [node("Constant", [], ["c"], value_int=1), given]
    found = scope_of(helper.make_function("local", "F", [], ["b"], nodes, imports), imports)
    assert found.constant("b") is None


# Constants that adapters add


def test_equal_constants_share_a_name_and_others_do_not(scope_of: Scoping) -> None:
    found = scope(scope_of)
    one = found.add_constant(Tensor("float", (1,), (0.0,)))
    assert found.add_constant(Tensor("float", (1,), (0.0,))) == one
    others = [
        Tensor("float", (1,), (-0.0,)),
        Tensor("float", (), (0.0,)),
        Tensor("double", (1,), (0.0,)),
        Tensor("float", (1,), (float("nan"),)),
    ]
    assert len({one, *map(found.add_constant, others)}) == 5
    assert found.add_constant(others[3]) == found.add_constant(Tensor("float", (1,), (float("nan"),)))


def test_added_constants_are_known_as_others_are(scope_of: Scoping) -> None:
    found = scope(scope_of)
    tensor = Tensor("int64", (2,), (1, 2))
    name = found.add_constant(tensor)
    assert (found.constant(name), found.element_type(name), found.shape(name)) == (tensor, "int64", (2,))
