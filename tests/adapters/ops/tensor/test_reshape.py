"""Downgrades of Squeeze, Unsqueeze and Reshape: axes as an attribute, and no allowzero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.dynamic import with_symbolic_dims
from support.execution import Array, assert_equal, build, op_types, run

from opshift import convert_version, plan_version

DATA = np.arange(24, dtype=np.float32).reshape(2, 1, 3, 1, 4)


def _model(
    op_type: str,
    data: Array,
    second_input: Sequence[int],
    *,
    constant: bool,
    opset: int = 21,
    **attributes: int,
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    initializers = {"s": np.array(second_input, np.int64)}
    feeds = {"x": data} | ({} if constant else initializers)
    node = helper.make_node(op_type, ["x", "s"], ["y"], name="node" if constant else "", **attributes)
    return build([node], feeds, ["y"], opset, initializers=initializers if constant else None), feeds


AXES = pytest.mark.parametrize(
    ("op_type", "axes"),
    [
        ("Squeeze", [1]),
        ("Squeeze", [-2]),
        ("Squeeze", [-2, 1]),
        ("Unsqueeze", [0]),
        ("Unsqueeze", [-1]),
        ("Unsqueeze", [3, -1, 0]),
    ],
)


@pytest.mark.parametrize("target", [13, 12, 11, 10, 9, 7])
@AXES
def test_moves_constant_axes_to_an_attribute(op_type: str, axes: list[int], target: int) -> None:
    model, feeds = _model(op_type, DATA, axes, constant=True)
    assert op_types(convert_and_check(model, target, feeds)) == [op_type]


@pytest.mark.parametrize("target", [13, 12, 11, 10, 9])
@AXES
def test_rewrites_computed_axes(op_type: str, axes: list[int], target: int) -> None:
    model, feeds = _model(op_type, DATA, axes, constant=False)
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [12, 9])
def test_unsqueezes_a_scalar_by_computed_axes(target: int) -> None:
    model, feeds = _model("Unsqueeze", np.array(3, np.float32), [0, 1], constant=False)
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [12, 9])
@pytest.mark.parametrize("symbolic", [True, False])
@pytest.mark.parametrize("shape", [(3, 1, 2), (0, 1, 2), (2, 1, 0)], ids=str)
@pytest.mark.parametrize(("op_type", "axes"), [("Squeeze", [1]), ("Unsqueeze", [0, 2])])
def test_rewrites_computed_axes_of_data_that_may_be_empty(
    op_type: str, axes: list[int], shape: tuple[int, ...], symbolic: bool, target: int
) -> None:
    data = np.ones(shape, np.float32)
    model, feeds = _model(op_type, data, axes, constant=False, opset=13)
    for axis, each in enumerate(model.graph.input[0].type.tensor_type.shape.dim if symbolic else ()):
        each.dim_param = f"d{axis}"
    function = np.squeeze if op_type == "Squeeze" else np.expand_dims
    convert_and_check(model, target, feeds, [function(data, tuple(axes))])


@pytest.mark.parametrize("target", [13, 9, 7])
def test_keeps_squeeze_without_axes(target: int) -> None:
    node = helper.make_node("Squeeze", ["x"], ["y"], name="node")
    result = convert_and_check(build([node], {"x": DATA}, ["y"], 13), target, {"x": DATA})
    assert op_types(result) == ["Squeeze"]


NONEMPTY, EMPTY = np.arange(24, dtype=np.float32).reshape(4, 6), np.zeros((0, 3, 4), np.float32)


@pytest.mark.parametrize("target", [13, 12, 10, 9])
@pytest.mark.parametrize("constant", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize("shapes", [True, False], ids=["sizes known", "sizes unknown"])
@pytest.mark.parametrize(
    ("data", "shape"),
    [
        pytest.param(NONEMPTY, [2, 12], id="no zero"),
        pytest.param(NONEMPTY, [3, -1, 2], id="inferred dimension"),
        pytest.param(EMPTY, [3, 4, 0], id="moved zero"),
        pytest.param(EMPTY, [0, 5, 0], id="several zeros"),
        pytest.param(EMPTY, [3, -1], id="inferred zero"),
    ],
)
def test_rewrites_allowzero(data: Array, shape: list[int], shapes: bool, constant: bool, target: int) -> None:
    model, feeds = _model("Reshape", data, shape, constant=constant, opset=14, allowzero=1)
    model.graph.node[0].name = ""
    if not shapes:
        for each in model.graph.input[0].type.tensor_type.shape.dim:
            each.ClearField("dim_value")
    convert_and_check(model, target, feeds)


@pytest.mark.parametrize("target", [13, 11, 9, 8, 7])
@pytest.mark.parametrize("leading", [(2, 3), (0, 3), (2, 0), (0, 0), (1, 1)], ids=str)
@pytest.mark.parametrize(
    ("dims", "emitted"),
    [
        pytest.param("n, 4", ["Expand"], id="one dimension that may be 0"),
        pytest.param("n", ["Expand"], id="list"),
        pytest.param("n, m", ["Reshape", "Expand"], id="two dimensions that may be 0"),
        pytest.param("4, n", ["Reshape", "Expand"], id="number before a size that may be 0"),
        pytest.param("4, n, m", ["Tile"], id="same rank"),
        pytest.param("1, n, 1, 4", ["Reshape", "Expand"], id="higher rank"),
    ],
)
def test_takes_signs_of_nonnegative_sizes(
    dims: str, emitted: list[str], leading: tuple[int, int], target: int
) -> None:
    """Sizes of a shape are not negative, and only 0 has the sign 0."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[b, l] t, float[{dims}] x) => (float[b, l, 4] y) <int64[1] four = {{4}}> {{
            s = Shape (t) c = Concat <axis = 0> (s, four) y = Reshape <allowzero = 1> (x, c)
        }}"""
    )
    count = leading[0] * leading[1] * (4 if "4" not in dims else 1)
    sizes = [
        {"n": count, "m": 1}.get(each) or int(each == "4") * 4 or int(each != "n")
        for each in dims.split(", ")
    ]
    data = np.arange(leading[0] * leading[1] * 4, dtype=np.float32).reshape(sizes)
    result = convert_and_check(model, target, {"t": np.zeros(leading, np.float32), "x": data})
    if target >= 9:
        assert sorted(op_types(result)[2:]) == sorted([*emitted, "Sign", "Reshape"])


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.int8, np.uint8, np.bool_, np.str_])
@pytest.mark.parametrize("target", [13, 8])
def test_tiles_every_type(dtype: type[np.generic], target: int) -> None:
    data = np.ones((4, 2, 1)).astype(dtype)
    shape = np.array([2, 1, 4])
    feeds = {"x": data, "shape": shape, "like": np.zeros((2, 1))}
    nodes = [
        helper.make_node("Shape", ["like"], ["s"]),
        helper.make_node("Concat", ["s", "four"], ["c"], axis=0),
        helper.make_node("Reshape", ["x", "c"], ["y"], allowzero=1),
    ]
    del feeds["shape"]
    outputs = {"y": helper.np_dtype_to_tensor_dtype(np.dtype("O") if dtype is np.str_ else np.dtype(dtype))}
    model = build(nodes, feeds, outputs, 18, initializers={"four": np.array([4])})
    with_symbolic_dims(model)
    assert op_types(convert_and_check(model, target, feeds))[-2:] == ["Tile", "Reshape"]


@pytest.mark.parametrize("target", [13, 7])
@pytest.mark.parametrize(
    "nodes",
    [
        pytest.param(
            "a = Gather (bytes, i) b = Gather (bytes, j) t = Add (a, b) s = Cast <to = 7> (t)", id="uint8"
        ),
        pytest.param("a = Gather (large, i) s = Mul (a, a)", id="product"),
        pytest.param("a = Gather (huge, i) b = Gather (huge, j) t = Add (a, b) s = Add (t, three)", id="sum"),
    ],
)
def test_copies_no_size_of_0_after_an_overflow(nodes: str, target: int) -> None:
    """Integers wrap around to 0, although all operands are positive."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N, M] x, int64[2] i, int64[2] j) => (float[A, B] y)
        <uint8[2] bytes = {{200, 56}}, int64[2] large = {{4294967296, 8589934592}},
         int64[2] huge = {{9223372036854775807, 9223372036854775806}}, int64 three = {{3}}>
        {{ {nodes} y = Reshape <allowzero = 1> (x, s) }}"""
    )
    feeds = {"x": np.ones((3, 0), np.float32), "i": np.array([0, 0]), "j": np.array([1, 1])}
    convert_and_check(model, target, feeds, [np.ones((0, 0), np.float32)])


def test_keeps_one_reshape_if_allowzero_has_no_effect() -> None:
    model, feeds = _model("Reshape", NONEMPTY, [2, -1], constant=True, opset=14, allowzero=1)
    assert op_types(convert_and_check(model, 13, feeds)) == ["Reshape"]
    model, feeds = _model("Reshape", NONEMPTY, [2, -1], constant=False, opset=14, allowzero=1)
    assert op_types(convert_and_check(model, 13, feeds)) == ["Reshape"]


FIRST_SIZE = "n = Shape <end = 1> (x)"
SHAPE_OF_X = "s = Shape (x) "
SIZES_0_AND_2 = "s = Shape (x) i = Constant <value_ints = [0, 2]> () g = Gather (s, i) "
COMPUTED_SHAPES = [
    pytest.param("n = Shape <end = 1> (x) m = Constant <value_ints = [-1]> ()", "n, m", id="inferred rest"),
    pytest.param("n = Shape <end = 1> (x) m = Constant <value_ints = [12]> ()", "n, m", id="copied first"),
    pytest.param(f"{SIZES_0_AND_2} m = Constant <value_ints = [3]> ()", "g, m", id="gathered sizes"),
    pytest.param(f"{SIZES_0_AND_2} m = Constant <value_ints = [3]> ()", "m, g", id="moved size"),
    pytest.param(
        "n = Shape <end = 1> (x) k = Shape <start = 1, end = 2> (x) l = Shape <start = 2> (x) p = Mul (k, l)",
        "n, p",
        id="product of numbers",
    ),
    pytest.param(
        "n = Shape <end = 1> (x) k = Shape <start = 1, end = 2> (x) p = Mul (n, k) l = Shape <start = 2> (x)",
        "p, l",
        id="product with an unknown size",
    ),
    pytest.param(
        f"{SHAPE_OF_X} z = Constant <value_int = 0> () h = Gather (s, z) a = Constant <value_ints = [0]> () "
        "n = Unsqueeze (h, a) t = Cast <to = 6> (n) u = Cast <to = 7> (t) m = Shape (w)",
        "u, m",
        id="shape of an initializer",
    ),
    pytest.param(
        "n = Shape <end = 1> (x) k = Shape <end = 1> (v) a = Constant <value_ints = [1]> () b = Constant "
        "<value_ints = [-1]> () d = Constant <value_ints = [2]> () q = Add (k, b) h = Div (q, d) "
        "m = Add (h, a) o = Constant <value_ints = [12]> ()",
        "n, o, m",
        id="size with a positive lower bound",
    ),
    pytest.param(
        f"{SHAPE_OF_X} a = Constant <value_ints = [0]> () b = Constant <value_ints = [2]> () "
        "n = Slice (s, a, b) m = Constant <value_ints = [4, 1]> ()",
        "n, m",
        id="slice",
    ),
    pytest.param(
        f"{SHAPE_OF_X} f = Cast <to = 9> (s) n = Cast <to = 7> (f) m = Constant <value_ints = [12]> () "
        "a = Constant <value_ints = [0]> () b = Constant <value_ints = [1]> () k = Slice (n, a, b)",
        "k, m",
        id="cast to bool",
    ),
]


@pytest.mark.parametrize(("nodes", "parts"), COMPUTED_SHAPES)
@pytest.mark.parametrize("target", [13, 8])
def test_keeps_one_reshape_if_each_size_can_be_copied_or_inferred(
    nodes: str, parts: str, target: int
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g (float[N, 3, 4] x, float[K] v) => (float y)
        <float[3, 4] w = {{{", ".join("0" * 12)}}}>
        {{ {nodes} c = Concat <axis = 0> ({parts}) y = Reshape <allowzero = 1> (x, c) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    result = convert_version(model, target)
    assert op_types(result).count("Reshape") == 1 or target < 13
    assert "Expand" not in op_types(result)
    for size in (1, 0) if parts != "n, m" or "[-1]" not in nodes else (1, 2):
        feeds = {"x": np.ones((size, 3, 4), np.float32), "v": np.ones(size, np.float32)}
        assert_equal(run(result, feeds), run(model, feeds), 0)


def _regrouped(random: np.random.Generator) -> tuple[list[str | int], list[str | int]]:
    """Return dimensions of data and of a Reshape of it, which keeps the order of the named sizes."""
    data: list[str | int] = []
    shape: list[str | int] = []
    for name in random.permutation(["N", "M"]):
        given, wanted = ([1, 2, 3] if random.integers(2) else [6, 1] for _ in range(2))
        data += [*map(int, random.permutation(given)), str(name)]
        shape += [*map(int, random.permutation(wanted)), str(name)]
    return [*data, *[2, 5][: random.integers(3)]], shape


@pytest.mark.parametrize("seed", range(20))
def test_aligns_sizes_known_only_at_run_time(seed: int) -> None:
    data, shape = _regrouped(np.random.default_rng(seed))
    tail = data[max(i for i, each in enumerate(data) if isinstance(each, str)) + 1 :]
    shape = [*shape[: max(i for i, each in enumerate(shape) if isinstance(each, str)) + 1], *tail[::-1]]
    parts = [
        f"p{i} = Shape <start = {data.index(each)}, end = {data.index(each) + 1}> (x)"
        if isinstance(each, str)
        else f"p{i} = Constant <value_ints = [{each}]> ()"
        for i, each in enumerate(shape)
    ]
    names = ", ".join(f"p{i}" for i in range(len(shape)))
    text = f"""<ir_version: 8, opset_import: ["" : 18]> g (float[{", ".join(map(str, data))}] x) => (float y)
        {{ {" ".join(parts)} c = Concat <axis = 0> ({names}) y = Reshape <allowzero = 1> (x, c) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    result = convert_version(model, 13)
    assert op_types(result).count("Reshape") == 1
    for sizes in ({"N": 2, "M": 3}, {"N": 0, "M": 2}, {"N": 1, "M": 0}, {"N": 0, "M": 0}):
        dims = [sizes[each] if isinstance(each, str) else each for each in data]
        feeds = {"x": np.arange(np.prod(dims), dtype=np.float32).reshape(dims)}
        assert_equal(run(result, feeds), run(model, feeds), 0)


@pytest.mark.parametrize("data", [np.ones((2, 6), np.float32), np.ones((1, 12), np.float32)])
def test_drops_allowzero_if_data_is_assumed_nonempty(data: Array) -> None:
    model, feeds = _model("Reshape", data, [2, -1], constant=False, opset=14, allowzero=1)
    for each in model.graph.input[0].type.tensor_type.shape.dim:
        each.dim_param = "N"
    result = convert_version(model, 13, allow="assume-nonempty")
    assert op_types(result) == ["Reshape"]
    assert_equal(run(result, feeds), run(model, feeds), 0)
    reasons = [reason for _, reason in plan_version(model, 13, allow="assume-nonempty").allowances]
    assert reasons == ["'x' is assumed not to be empty, so that 's' contains no 0"]
