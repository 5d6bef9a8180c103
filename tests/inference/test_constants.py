"""Values that are constant in every run, and their contents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper
from support.execution import build

from opshift.inference.constants import cast
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.node import Tensor
from opshift.model.tensors import read_tensor, write_tensor

ScopeFactory = Callable[..., Scope]
X = np.ones((2, 3), np.float32)
UINT8, INT32, INT64 = TensorProto.UINT8, TensorProto.INT32, TensorProto.INT64
FLOAT, FLOAT16, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
STRING = TensorProto.STRING


def node(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], domain: str = "", **attributes: Any
) -> NodeProto:
    result: NodeProto = helper.make_node(op_type, inputs, outputs, domain=domain, **attributes)
    return result


def build_scope(scope_of: ScopeFactory, *nodes: NodeProto, opset: int = 13, **weights: Any) -> Scope:
    arrays = {name: np.asarray(each) for name, each in weights.items()}
    model = build(nodes, {"x": X}, [], {"": opset, "com.acme": 1}, initializers=arrays)
    return scope_of(model.graph, model.opset_import)


# Tensors


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?"])
@pytest.mark.parametrize("raw", [True, False], ids=["raw bytes", "typed fields"])
def test_reads_and_writes_tensors(dtype: str, raw: bool) -> None:
    array = np.array([[0, 1, 1], [0, 1, 1]]).astype(dtype)
    proto = helper.make_tensor(
        "t", helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.tobytes() if raw else array, raw
    )
    tensor = read_tensor(proto)
    assert tensor is not None
    assert tensor.dims == (2, 3)
    assert tensor.values == tuple(array.ravel().tolist())
    written = TensorProto()
    write_tensor(written, tensor, "t")
    np.testing.assert_array_equal(numpy_helper.to_array(written), array)
    assert numpy_helper.to_array(written).dtype == array.dtype
    assert written.name == "t"


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
def test_keeps_extreme_values(element_type: str, extreme: Any) -> None:
    proto = TensorProto()
    write_tensor(proto, Tensor(element_type, (1,), (extreme,)))
    tensor = read_tensor(proto)
    assert tensor is not None
    assert repr(tensor.values) == repr((extreme,))


def test_float16_overflow_becomes_infinite() -> None:
    proto = TensorProto()
    write_tensor(proto, Tensor("float16", (3,), (1e6, -1e6, 65519.0)))
    assert numpy_helper.to_array(proto).tolist() == [np.inf, -np.inf, 65504.0]


@pytest.mark.parametrize(
    "number", [1.0, 1.00390625, 3.3895314e38, float("inf"), float("nan"), -0.0], ids=repr
)
def test_rounds_bfloat16_to_even(number: float) -> None:
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
def test_reads_bfloat16(bits: int, raw: bool) -> None:
    field = {"raw_data": bits.to_bytes(2, "little")} if raw else {"int32_data": [bits]}
    tensor = read_tensor(TensorProto(data_type=TensorProto.BFLOAT16, **field))
    assert tensor is not None
    assert tensor.values == (float(np.array([bits << 16], np.uint32).view(np.float32)[0]),)


@pytest.mark.parametrize("raw", [True, False], ids=["raw bytes", "typed field"])
@pytest.mark.parametrize(
    ("data_type", "values"),
    [
        (TensorProto.INT4, [-8, 7, 0, -1, 3]),
        (TensorProto.UINT4, [0, 15, 8, 1, 9]),
        (TensorProto.INT2, [-2, 1, 0, -1, 1]),
        (TensorProto.UINT2, [0, 3, 2, 1, 3]),
    ],
    ids=["int4", "uint4", "int2", "uint2"],
)
def test_reads_and_writes_packed_integers(data_type: int, values: list[int], raw: bool) -> None:
    proto = helper.make_tensor("t", data_type, [5], values)
    packed = proto.raw_data or bytes(each & 0xFF for each in proto.int32_data)
    field: dict[str, Any] = {"raw_data": packed} if raw else {"int32_data": list(packed)}
    tensor = read_tensor(TensorProto(data_type=data_type, dims=[5], **field))
    assert tensor is not None
    assert tensor.values == tuple(values)
    written = TensorProto()
    write_tensor(written, tensor)
    assert written.raw_data == packed


def test_refuses_integers_outside_the_element_type() -> None:
    with pytest.raises(CannotConvert, match="a constant has a value that int4 cannot represent"):
        write_tensor(TensorProto(), Tensor("int4", (1,), (8,)))


UNREADABLE = [
    ("too few bytes", TensorProto(data_type=INT64, dims=[2], raw_data=b"\0" * 8)),
    ("too many bytes", TensorProto(data_type=INT64, dims=[1], raw_data=b"\0" * 16)),
    ("partial element", TensorProto(data_type=INT64, dims=[1], raw_data=b"\0" * 7)),
    ("negative dimension", TensorProto(data_type=INT64, dims=[-1], raw_data=b"\0" * 8)),
    ("values in the field of a different type", TensorProto(data_type=INT64, dims=[1], float_data=[1.0])),
    ("unknown element type", TensorProto(data_type=99, dims=[1], raw_data=b"\0")),
    ("no element type", TensorProto(dims=[1], raw_data=b"\0")),
    ("too few bytes of int4", TensorProto(data_type=TensorProto.INT4, dims=[3], raw_data=b"\0")),
    ("partial bfloat16", TensorProto(data_type=TensorProto.BFLOAT16, dims=[2], raw_data=b"\0\0\0")),
    ("complex element type", TensorProto(data_type=TensorProto.COMPLEX64, dims=[1], float_data=[1.0, 2.0])),
    (
        "external data",
        TensorProto(data_type=INT64, dims=[1], int64_data=[1], data_location=TensorProto.EXTERNAL),
    ),
]


@pytest.mark.parametrize("proto", [row[1] for row in UNREADABLE], ids=[row[0] for row in UNREADABLE])
def test_does_not_read_invalid_or_unsupported_tensors(proto: TensorProto) -> None:
    assert read_tensor(proto) is None


# Initializers


def test_initializer_is_constant(scope_of: ScopeFactory) -> None:
    tensor = build_scope(scope_of, w=np.array([1, 2], np.int64)).constant("w")
    assert tensor == Tensor("int64", (2,), (1, 2))


def test_overridable_initializer_is_not_constant(scope_of: ScopeFactory) -> None:
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
    ids=["linear indices", "coordinates", "index out of range", "too few indices", "too large to densify"],
)
def test_densifies_sparse_initializers(
    indices: tuple[list[int], list[int]],
    dims: tuple[int, ...],
    expected: tuple[float, ...] | None,
    scope_of: ScopeFactory,
) -> None:
    model = build([], {"x": X}, [], 13)
    values = helper.make_tensor("s", FLOAT, [2], [1.0, 2.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("", INT64, *indices), dims)
    model.graph.sparse_initializer.append(sparse)
    tensor = scope_of(model.graph, model.opset_import).constant("s")
    assert tensor == (expected and Tensor("float", dims, expected))


def test_overridable_sparse_initializer_is_not_constant(scope_of: ScopeFactory) -> None:
    model = build([], {"s": X}, [], 13)
    values = helper.make_tensor("s", FLOAT, [1], [1.0])
    indices = helper.make_tensor("", INT64, [1], [0])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, X.shape))
    assert scope_of(model.graph, model.opset_import).constant("s") is None


@pytest.mark.parametrize("name", ["x", "nothing", ""], ids=["graph input", "unknown name", "empty name"])
def test_other_names_are_not_constant(name: str, scope_of: ScopeFactory) -> None:
    assert build_scope(scope_of).constant(name) is None


# Constant


FORMS: list[tuple[str, dict[str, Any], Tensor | None]] = [
    (
        "tensor",
        {"value": numpy_helper.from_array(np.array([1.5, 2.5]))},
        Tensor("double", (2,), (1.5, 2.5)),
    ),
    ("scalar tensor", {"value": numpy_helper.from_array(np.array(3))}, Tensor("int64", (), (3,))),
    ("integer", {"value_int": 3}, Tensor("int64", (), (3,))),
    ("integers", {"value_ints": [3, -4]}, Tensor("int64", (2,), (3, -4))),
    ("float", {"value_float": 0.5}, Tensor("float", (), (0.5,))),
    ("floats", {"value_floats": [0.5, 1.0]}, Tensor("float", (2,), (0.5, 1.0))),
    ("string", {"value_string": "a"}, Tensor("string", (), (b"a",))),
    ("strings", {"value_strings": ["a", "b"]}, Tensor("string", (2,), (b"a", b"b"))),
    ("no value", {}, None),
    ("floats as integers", {"value_ints": [1.5]}, None),
    ("string as integer", {"value_int": "a"}, None),
    ("integer as tensor", {"value": 3}, None),
]


@pytest.mark.parametrize(
    ("attributes", "expected"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS]
)
def test_reads_constant_nodes(
    attributes: dict[str, Any], expected: Tensor | None, scope_of: ScopeFactory
) -> None:
    scope = build_scope(scope_of, node("Constant", [], ["c"], **attributes))
    assert scope.constant("c") == expected
    if expected:
        assert scope.element_type("c") == expected.element_type
        assert scope.shape("c") == expected.dims


@pytest.mark.parametrize(
    ("size", "expected"),
    [(3, Tensor("float", (3,), (1.0, 0.0, 0.0))), (10**9, None)],
    ids=["small", "large"],
)
def test_reads_small_sparse_constant_nodes(
    size: int, expected: Tensor | None, scope_of: ScopeFactory
) -> None:
    values = helper.make_tensor("", FLOAT, [1], [1.0])
    sparse = helper.make_sparse_tensor(values, helper.make_tensor("", INT64, [1], [0]), [size])
    scope = build_scope(scope_of, node("Constant", [], ["c"], sparse_value=sparse))
    assert scope.constant("c") == expected
    assert scope.element_type("c") == "float"
    assert scope.shape("c") == (size,)


def test_ignores_constant_of_another_domain(scope_of: ScopeFactory) -> None:
    assert build_scope(scope_of, node("Constant", [], ["c"], "com.acme", value_int=3)).constant("c") is None


@pytest.mark.parametrize(
    "attributes",
    [
        {"value_float": 1.0, "value_int": 0},
        {"value_ints": [1], "value_floats": [1.0]},
        {"value": numpy_helper.from_array(np.float32(1)), "value_string": "a"},
    ],
    ids=" ".join,
)
def test_ignores_constants_with_several_values(attributes: dict[str, Any], scope_of: ScopeFactory) -> None:
    """Such nodes are invalid: the specification does not define which value counts."""
    scope = build_scope(scope_of, node("Constant", [], ["c"], **attributes))
    assert (scope.constant("c"), scope.element_type("c"), scope.shape("c")) == (None, None, None)


def test_infers_the_type_of_a_constant_without_reading_it(
    scope_of: ScopeFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise AssertionError("the value was read")

    monkeypatch.setattr("opshift.inference.constants.read_tensor", fail)
    scope = build_scope(scope_of, node("Constant", [], ["c"], value=numpy_helper.from_array(X)))
    assert (scope.element_type("c"), scope.shape("c")) == ("float", (2, 3))


# Nodes that read constants


def chain(op_types: Sequence[str], **attributes: Any) -> list[NodeProto]:
    """Return a chain of nodes from `w` to `end`."""
    names = ["w", *(f"v{i}" for i in range(len(op_types) - 1)), "end"]
    return [
        node(op_type, [source], [target], **(attributes if op_type == "Cast" else {}))
        for op_type, source, target in zip(op_types, names[:-1], names[1:], strict=True)
    ]


def test_follows_identity_nodes(scope_of: ScopeFactory) -> None:
    scope = build_scope(scope_of, *chain(["Identity"] * 5_000), w=np.array([1, 2]))
    assert scope.constant("end") == Tensor("int64", (2,), (1, 2))


def test_does_not_follow_other_nodes(scope_of: ScopeFactory) -> None:
    assert build_scope(scope_of, *chain(["Identity", "Sign"]), w=np.array([1, 2])).constant("end") is None


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
    ("double to double", np.array([0.1]), DOUBLE, Tensor("double", (1,), (0.1,))),
    ("double to float, which may round", np.array([0.5]), FLOAT, None),
    ("float to float16, which may round", np.array([0.5], np.float32), FLOAT16, None),
    ("float to int64, which truncates", np.array([0.5], np.float32), INT64, None),
    (
        "float to int64 of integers",
        np.array([-3, 2**24], np.float32),
        INT64,
        Tensor("int64", (2,), (-3, 2**24)),
    ),
    ("float to uint8 out of range", np.array([256], np.float32), UINT8, None),
    ("NaN to int64", np.array([np.nan]), INT64, None),
    ("double to float of integers", np.array([-0.0, 1e3]), FLOAT, Tensor("float", (2,), (-0.0, 1e3))),
    ("int64 to float in range", np.array([2**24]), FLOAT, Tensor("float", (1,), (2.0**24,))),
    ("int64 to float out of range", np.array([2**24 + 1]), FLOAT, None),
    ("int64 to float16 in range", np.array([-(2**11)]), FLOAT16, Tensor("float16", (1,), (-(2.0**11),))),
    ("bool to int64", np.array([True]), INT64, Tensor("int64", (1,), (1,))),
    ("bool to float", np.array([False]), FLOAT, Tensor("float", (1,), (0.0,))),
    ("int64 to uint8 in range", np.array([255]), UINT8, Tensor("uint8", (1,), (255,))),
    ("int64 to uint8 out of range", np.array([-1]), UINT8, None),
    ("int64 to bool", np.array([2, 0]), TensorProto.BOOL, Tensor("bool", (2,), (True, False))),
    ("float to bool", np.array([0.5], np.float32), TensorProto.BOOL, None),
    ("int64 to string", np.array([3]), STRING, None),
    ("to an unknown type", np.array([3]), 99, None),
]


@pytest.mark.parametrize(
    ("array", "to", "expected"), [row[1:] for row in CASTS], ids=[row[0] for row in CASTS]
)
def test_follows_lossless_casts(array: Any, to: int, expected: Tensor | None, scope_of: ScopeFactory) -> None:
    assert build_scope(scope_of, *chain(["Cast"], to=to), w=array).constant("end") == expected


def test_follows_chains_of_casts(scope_of: ScopeFactory) -> None:
    nodes = [*chain(["Cast"], to=INT32), node("Cast", ["end"], ["last"], to=INT64)]
    assert build_scope(scope_of, *nodes, w=np.array([7])).constant("last") == Tensor("int64", (1,), (7,))


def test_does_not_follow_casts_to_a_named_type(scope_of: ScopeFactory) -> None:
    """Before opset 6, attribute `to` of Cast is a string."""
    assert (
        build_scope(scope_of, *chain(["Cast"], to="INT64"), opset=5, w=np.array([7])).constant("end") is None
    )


@pytest.mark.parametrize("op_type", ["Identity", "Cast", "Shape"])
def test_node_without_inputs_is_not_constant(op_type: str, scope_of: ScopeFactory) -> None:
    attributes = {"to": INT64} if op_type == "Cast" else {}
    assert build_scope(scope_of, node(op_type, [], ["c"], **attributes)).constant("c") is None


# Operators that move elements

MOVES = [
    ("Reshape", {}, ["shape"], (3, 2), tuple(range(6))),
    ("Transpose", {"perm": [1, 0]}, [], (3, 2), (0, 3, 1, 4, 2, 5)),
    ("Transpose", {}, [], (3, 2), (0, 3, 1, 4, 2, 5)),
    ("Unsqueeze", {}, ["axis"], (2, 3, 1), tuple(range(6))),
    ("Flatten", {"axis": 0}, [], (1, 6), tuple(range(6))),
]


@pytest.mark.parametrize(("op_type", "attributes", "inputs", "dims", "values"), MOVES)
def test_follows_operators_that_move_elements(
    op_type: str,
    attributes: dict[str, Any],
    inputs: list[str],
    dims: tuple[int, ...],
    values: tuple[int, ...],
    scope_of: ScopeFactory,
) -> None:
    nodes = [
        node("Identity", ["given"], ["shape"]),
        node("Constant", [], ["axis"], value_ints=[-1]),
        node(op_type, ["w", *inputs], ["moved"], **attributes),
        node("Cast", ["moved"], ["c"], to=FLOAT),
    ]
    scope = build_scope(scope_of, *nodes, w=np.arange(6).reshape(2, 3), given=np.array([3, -1]))
    assert scope.constant("moved") == Tensor("int64", dims, values)
    assert scope.constant("c") == Tensor("float", dims, tuple(map(float, values)))


SPLIT_1: dict[str, tuple[Sequence[str], dict[str, Any], Any]] = {
    "input": (["w", "s"], {}, [1, 2, 3]),
    "fractions in the input": (["w", "half"], {}, None),
    "computed input": (["w", "x"], {}, None),
    "attribute": (["w", ""], {"split": [1, 3]}, [1]),
    "equal parts": (["w"], {}, [1, 2]),
}


@pytest.mark.parametrize(("inputs", "attributes", "expected"), SPLIT_1.values(), ids=SPLIT_1)
def test_reads_the_sizes_of_split_1(
    inputs: Sequence[str], attributes: dict[str, Any], expected: Any, scope_of: ScopeFactory
) -> None:
    split = node("Split", inputs, ["p", "q"], axis=0, **attributes)
    sizes = {"s": np.array([3, 1], np.float32), "half": np.array([2.5, 1.5], np.float32)}
    scope = build_scope(scope_of, split, opset=1, w=np.arange(1, 5), **sizes)
    assert scope.constant("p") == (expected and Tensor("int64", (len(expected),), tuple(expected)))


def test_does_not_follow_reshape_to_a_computed_shape(scope_of: ScopeFactory) -> None:
    reshape = node("Reshape", ["w", "s"], ["c"])
    model = build([reshape], {"s": np.array([3, 2])}, [], 13, initializers={"w": np.arange(6)})
    # The model claims the shape, which is computed.
    model.graph.value_info.append(helper.make_tensor_value_info("c", INT64, [2, 3]))
    assert scope_of(model.graph, model.opset_import).constant("c") is None


def test_does_not_follow_large_constants_through_transpose(scope_of: ScopeFactory) -> None:
    scope = build_scope(scope_of, node("Transpose", ["w"], ["c"]), w=np.zeros((300, 300), np.int8))
    assert scope.constant("c") is None


@pytest.mark.full
def test_follows_long_chains_of_reshapes(scope_of: ScopeFactory) -> None:
    """Python's own stack does not limit the number of nodes."""
    nodes = [node("Reshape", ["w" if not i else f"c{i - 1}", "s"], [f"c{i}"]) for i in range(2_000)]
    assert build_scope(scope_of, *nodes, w=np.array([1, 2]), s=np.array([2])).constant("c1999") is not None
    nodes = [node("Reshape", ["w", "s" if not i else f"c{i - 1}"], [f"c{i}"]) for i in range(2_000)]
    assert build_scope(scope_of, *nodes, w=np.array([1]), s=np.array([1])).constant("c1999") is not None


# Shape


def test_shape_of_a_known_shape_is_constant(scope_of: ScopeFactory) -> None:
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0]), node("Shape", ["t"], ["s"])]
    assert build_scope(scope_of, *nodes).constant("s") == Tensor("int64", (2,), (3, 2))


def test_shape_of_an_initializer_is_constant(scope_of: ScopeFactory) -> None:
    assert build_scope(scope_of, node("Shape", ["w"], ["s"]), w=np.array(1)).constant("s") == Tensor(
        "int64", (0,), ()
    )


def test_part_of_a_known_shape_is_constant(scope_of: ScopeFactory) -> None:
    scope = build_scope(scope_of, node("Shape", ["x"], ["s"], start=1), opset=15)
    assert scope.constant("s") == Tensor("int64", (1,), (3,))


@pytest.mark.parametrize(
    "shape", [["n", 3], [None, 3], None], ids=["symbolic dimension", "unknown dimension", "no shape"]
)
def test_partly_unknown_shape_is_not_constant(shape: Any, scope_of: ScopeFactory) -> None:
    model = build([node("Shape", ["x"], ["s"])], {}, [], 13)
    model.graph.input.append(helper.make_tensor_value_info("x", FLOAT, shape))
    assert scope_of(model.graph, model.opset_import).constant("s") is None


# Subgraphs and functions


def test_subgraph_reads_outer_constants(scope_of: ScopeFactory) -> None:
    outer = build_scope(scope_of, node("Identity", ["w"], ["v"]), w=np.array([1]))
    inner = onnx.GraphProto(node=[node("Identity", ["v"], ["u"])])
    scope = scope_of(inner, [helper.make_opsetid("", 13)], outer)
    assert scope.constant("u") == scope.constant("v") == Tensor("int64", (1,), (1,))


def test_inner_value_shadows_an_outer_constant(scope_of: ScopeFactory) -> None:
    outer = build_scope(scope_of, w=np.array([1]))
    inner = onnx.GraphProto(node=[node("Neg", ["x"], ["v"]), node("Identity", ["v"], ["w"])])
    assert scope_of(inner, [helper.make_opsetid("", 13)], outer).constant("w") is None
    inner = onnx.GraphProto(input=[helper.make_tensor_value_info("w", INT64, None)])
    assert scope_of(inner, [helper.make_opsetid("", 13)], outer).constant("w") is None


def test_constant_nodes_but_not_inputs_of_a_function_are_constant(scope_of: ScopeFactory) -> None:
    imports = [helper.make_opsetid("", 13)]
    nodes = [node("Constant", [], ["c"], value_int=1), node("Identity", ["a"], ["b"])]
    scope = scope_of(helper.make_function("local", "F", ["a"], ["b"], nodes, imports), imports)
    assert scope.constant("c") == Tensor("int64", (), (1,))
    assert scope.constant("a") is scope.constant("b") is None


@pytest.mark.parametrize(
    ("op_type", "attribute", "attribute_type"),
    [("Constant", "value_int", AttributeProto.INT), ("Cast", "to", AttributeProto.INT)],
    ids=["Constant", "Cast"],
)
def test_attribute_references_are_not_constant(
    op_type: str, attribute: str, attribute_type: int, scope_of: ScopeFactory
) -> None:
    imports = [helper.make_opsetid("", 13)]
    referring = node(op_type, ["c"] if op_type == "Cast" else [], ["b"])
    referring.attribute.add(name=attribute, ref_attr_name="given", type=attribute_type)
    nodes = [node("Constant", [], ["c"], value_int=1), referring]
    scope = scope_of(helper.make_function("local", "F", [], ["b"], nodes, imports), imports)
    assert scope.constant("b") is None


def test_casts_partly_known_floats_to_integers() -> None:
    assert cast(Tensor("float", (2,), (2.0, None)), "int64") == Tensor("int64", (2,), (2, None))
    assert cast(Tensor("float", (2,), (2.5, None)), "int64") is None
    assert cast(Tensor("float", (1,), (float("nan"),)), "int64") is None
