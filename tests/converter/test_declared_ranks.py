"""Shapes that a conversion declares, because runtimes infer less than opshift."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from opshift import convert_version
from opshift.model.types import MAX_RANK

TEXT = """<ir_version: 6, opset_import: ["" : 11]>
main (float[N, 4, 5] x, int64[3] sizes) => (float[K, L, M] y) {{
    a = Reshape (x, sizes)
    {nodes}
}}"""
MEAN = "m = ReduceMean <axes = [{axis}]> ({value}) y = Neg (m)"


def _declared(model: onnx.ModelProto) -> dict[str, int]:
    return {each.name: len(each.type.tensor_type.shape.dim) for each in model.graph.value_info}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(MEAN.format(axis=-1, value="a"), {"a": 3}, id="computed value"),
        pytest.param(MEAN.format(axis=2, value="a"), {}, id="axis that stays"),
        pytest.param(MEAN.format(axis=-1, value="x"), {}, id="graph input"),
        pytest.param(
            "m = ReduceMean <axes = [-1]> (a) b = Exp (a) n = ReduceMean <axes = [-1]> (b) y = Sub (m, n)",
            {"a": 3, "b": 3},
            id="cached rewrite",
        ),
    ],
)
def test_declares_ranks_of_reduced_values(nodes: str, expected: dict[str, int]) -> None:
    model = onnx.parser.parse_model(TEXT.format(nodes=nodes))
    converted = convert_version(model, 9)
    onnx.checker.check_model(converted, full_check=True)
    assert _declared(converted) == expected
    dims = [dim for each in converted.graph.value_info for dim in each.type.tensor_type.shape.dim]
    assert not any(dim.HasField("dim_value") for dim in dims)


def test_keeps_declarations() -> None:
    model = onnx.parser.parse_model(TEXT.format(nodes=MEAN.format(axis=-1, value="a")))
    model.graph.value_info.add().CopyFrom(onnx.helper.make_tensor_value_info("a", 1, [None, 2, "K"]))
    assert convert_version(model, 9).graph.value_info == model.graph.value_info


RESHAPED = """<ir_version: 8, opset_import: ["" : {opset}]>
main (float[N, 4, 6] x, int64[M, 3] i) => (int64 y)
<int64[1] width = {{12}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[2] stored = {{-1, 24}},
 int64[1] two = {{2}}, int64[1] rest = {{-1}}, float[2, 4, 1] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{
    s = Shape (x)
    n = Slice (s, zero, one)
    e = Size (x)
    sizes = Concat <axis = 0> (n, width)
    {nodes}
    y = Size (r)
}}"""


@pytest.mark.parametrize(
    ("nodes", "opset", "target", "expected"),
    [
        pytest.param("r = Reshape (x, sizes)", 17, 13, {"r": [None, 12]}, id="computed sizes"),
        pytest.param(
            "u = Unsqueeze (e, zero) t = Concat <axis = 0> (u, width) r = Reshape (x, t)",
            17,
            13,
            {"r": [None, 12]},
            id="list of sizes",
        ),
        pytest.param(
            "c = Conv (x, w) d = Shape (c) p = Slice (d, zero, two, zero) t = Concat <axis = 0> (p, rest) "
            "r = Reshape (c, t)",
            17,
            13,
            {"r": [None, 2, None]},
            id="channels of a Conv",
        ),
        pytest.param(
            "d = Shape (x) p = Slice (d, one, rest) t = Concat <axis = 0> (rest, p) r = Reshape (x, t)",
            17,
            13,
            {"r": [None, 4]},
            id="sizes between axes",
        ),
        pytest.param(
            "d = Shape (x) p = Slice (d, zero, two, zero, two) t = Concat <axis = 0> (p, rest) "
            "r = Reshape (x, t)",
            17,
            13,
            {},
            id="step of a Slice",
        ),
        pytest.param(
            "a = Abs (x) d = Shape (a) p = Slice (d, zero, two) t = Concat <axis = 0> (p, rest) "
            "r = Reshape (x, t)",
            17,
            13,
            {"r": [None, 4, None]},
            id="operator that keeps the shape",
        ),
        pytest.param("r = Reshape (x, sizes)", 17, 14, {}, id="propagated by onnx"),
        pytest.param("r = Reshape (x, sizes)", 13, 12, {}, id="node that stays"),
        pytest.param("r = Reshape <allowzero = 1> (x, sizes)", 17, 13, {"r": [None, 12]}, id="allowzero"),
        pytest.param("r = Reshape (x, stored)", 17, 13, {}, id="initializer"),
        pytest.param(
            "k = Constant <value = int64[2] {-1, 24}> () r = Reshape (x, k)", 17, 13, {}, id="Constant"
        ),
        pytest.param(
            "none = Constant <value = int64[0] {}> () u = Unsqueeze (sizes, none) "
            "list = Concat <axis = 0> (u, stored) r = Reshape (x, list)",
            17,
            13,
            {},
            id="several sizes in an Unsqueeze",
        ),
        pytest.param(
            "c = CumSum (i, zero) r = Cast <to = 1> (c)", 13, 10, {"c": [None, None]}, id="emitted Loop"
        ),
    ],
)
def test_declares_computed_shapes(
    nodes: str, opset: int, target: int, expected: dict[str, list[int | None]]
) -> None:
    model = onnx.parser.parse_model(RESHAPED.format(opset=opset, nodes=nodes))
    converted = convert_version(model, target)
    onnx.checker.check_model(converted, full_check=True)
    dims = {each.name: each.type.tensor_type.shape.dim for each in converted.graph.value_info}
    found = {name: [dim.dim_value or None for dim in shape] for name, shape in dims.items()}
    assert found == expected


def test_a_product_without_second_input_has_no_known_shape() -> None:
    nodes = "q = MatMul (x) d = Shape (q) t = Concat <axis = 0> (d, width) r = Reshape (x, t)"
    model = onnx.parser.parse_model(RESHAPED.format(opset=17, nodes=nodes))
    assert not convert_version(model, 13).graph.value_info


def test_does_not_know_sizes_from_other_domains() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
        main (float[N, M] x) => (float[K, L, P] y) <int64[1] two = {2}, int64[1] rest = {-1}> {
            sizes = acme.Concat (two, rest)
            r = Reshape (x, sizes)
            y = Erf (r)
        }
    """)
    assert not convert_version(model, 13).graph.value_info


SIZES = """<ir_version: 8, opset_import: ["" : 18, "acme" : 1]>
main (float[N, 4, 6] x, float[M, 4, 1] symbolic, float[2, 4, 1] declared, float[M, 4, 1] overridable,
      int64[1] default, bool b) => (float[] y)
<int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[2] both = {{0, 1}},
 int64[1] rest = {{-1}}, int64[1] width = {{24}}, int64[1] default = {{2}},
 float[2, 4, 1] overridable = {{1, 2, 3, 4, 5, 6, 7, 8}},
 float[6, 2] weights = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, float[2] bias = {{1, 2}}> {{
    {nodes}
}}
<domain: "acme", opset_import: ["" : 18]> listed (k) => (l) {{ l = Concat <axis = 0> (k, k) }}
<domain: "acme", opset_import: ["" : 18]> reshaped (k, l, d) => (s) {{
    z = Constant <value_ints = [0]> ()
    v = Constant <value_ints = [-1]> ()
    s = If (d) <
        then_branch = f () => (p) {{
            h = Shape (k)
            g = Gather (h, z)
            t = Concat <axis = 0> (g, v)
            c = Cast <to = 1> (l)
            r = Reshape (c, t)
            p = Neg (r)
        }},
        else_branch = g () => (q) {{ q = Neg (l) }}
    >
}}
"""
"""Model with values of known shapes; `y` has the shape of the value `r` that the rows declare."""

SCALAR = "o = Constant <value_int = 0> () h = Shape (x) e = Gather (h, o)"
RESHAPE = "r = Reshape ({}, t) y = Neg (r)"
BRANCHES = """y = If (b) <then_branch = f () => (p) {{ {nodes} p = Neg (r) }},
                          else_branch = g () => (q) {{ q = Neg (x) }}>"""
PRODUCT = "m = MatMul (x, weights) a = Add (bias, m) d = Shape (a) "
CHANNELS = "c = Conv (x, {}) d = Shape (c) p = Slice (d, zero, two) t = Concat <axis = 0> (p, rest) "

SIZE_ROWS = [
    pytest.param(
        f"{SCALAR} a = Constant <value_ints = [0]> () u = Unsqueeze (e, a) t = Concat <axis = 0> (u, width) "
        f"{RESHAPE.format('x')}",
        [None, 24],
        id="axes in value_ints",
    ),
    pytest.param(
        BRANCHES.format(
            nodes=f"{SCALAR} u = Unsqueeze (e, zero) t = Concat <axis = 0> (u, width) r = Reshape (x, t)"
        ),
        [None, 24],
        id="axes of the enclosing graph",
    ),
    pytest.param(
        "k = Abs (x) " + BRANCHES.format(nodes="t = Shape (k) r = Reshape (x, t)"),
        None,
        id="value of the enclosing graph",
    ),
    pytest.param(
        BRANCHES.format(nodes="t = Shape (x) r = Reshape (x, t)"),
        [None, 4, 6],
        id="input of the enclosing graph",
    ),
    pytest.param(
        CHANNELS.format("declared") + RESHAPE.format("c"), [None, 2, None], id="Conv weights as an input"
    ),
    pytest.param(
        CHANNELS.format("symbolic") + RESHAPE.format("c"), [None, None, None], id="symbolic Conv weights"
    ),
    pytest.param(
        CHANNELS.format("overridable") + RESHAPE.format("c"),
        [None, None, None],
        id="overridable Conv weights",
    ),
    pytest.param(
        "t = Concat <axis = 0> (default, rest) " + RESHAPE.format("x"), None, id="overridable sizes"
    ),
    pytest.param(
        "l = acme.listed (two) t = Concat <axis = 0> (l, rest) " + RESHAPE.format("x"),
        None,
        id="sizes of a call",
    ),
    pytest.param("y = acme.reshaped (x, x, b)", [None, None], id="subgraph of a function"),
    pytest.param(
        PRODUCT + "p = Slice (d, zero, two, , one) t = Concat <axis = 0> (p, two) " + RESHAPE.format("a"),
        [None, 4, 2],
        id="Slice of the shape of a product",
    ),
    pytest.param(PRODUCT + "t = Shape (a) " + RESHAPE.format("a"), [None, 4, 2], id="Shape"),
    pytest.param(
        PRODUCT + "p = Gather (d, zero) t = Concat <axis = 0> (p, rest, two) " + RESHAPE.format("a"),
        [None, None, 2],
        id="Gather of one size",
    ),
    pytest.param(
        "m = Expand (x, one) d = Shape (m) t = Gather (d, both) h = Concat <axis = 0> (t, rest) "
        "r = Reshape (m, h) y = Neg (r)",
        [None, None, None],
        id="Gather from a shape to infer",
    ),
    pytest.param(
        PRODUCT + "p = Shape <start = 0, end = 2> (a) t = Concat <axis = 0> (p, two) " + RESHAPE.format("a"),
        [None, 4, 2],
        id="Shape of several sizes",
    ),
    pytest.param(
        PRODUCT
        + "p = Shape <end = 1> (a) q = Shape <start = -2> (a) t = Concat <axis = 0> (p, q) "
        + RESHAPE.format("a"),
        [None, 4, 2],
        id="Shapes of some sizes",
    ),
    pytest.param(
        "d = Shape <end = 2> (x) h = Concat <axis = 0> (d, rest) k = Reshape (x, h) e = Exp (k) "
        "t = Shape (e) " + RESHAPE.format("x"),
        [None, 4, None],
        id="size of an earlier Reshape",
    ),
    pytest.param(
        "s = ReduceSum <keepdims = 0> (x) t = Shape (s) r = Reshape (s, t) y = Neg (r)",
        None,
        id="no operator of known rank",
    ),
]


def _values(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.value_info
    for attribute in (each for node in graph.node for each in node.attribute if each.HasField("g")):
        yield from _values(attribute.g)


@pytest.mark.parametrize(("nodes", "expected"), SIZE_ROWS)
def test_declares_executed_shapes(nodes: str, expected: list[int | None] | None) -> None:
    model = onnx.parser.parse_model(SIZES.format(nodes=nodes))
    converted = convert_version(model, 13)
    # Opset 13 implies an IR version without functions, and inlining adds a number to the name.
    values = {value.name.removesuffix("_1"): value for value in _values(converted.graph)}
    declared = values["r"].type.tensor_type.shape.dim if "r" in values else None
    found = None if declared is None else [dim.dim_value or None for dim in declared]
    assert found == expected
    weights = np.ones((3, 4, 1), np.float32)
    feeds = {
        "x": np.ones((2, 4, 6), np.float32),
        "symbolic": weights,
        "declared": weights[:2],
        "overridable": weights,
        "default": np.array([3]),
        "b": np.array(True),
    }
    (result,) = ReferenceEvaluator(converted).run(None, feeds)
    np.testing.assert_array_equal(result, ReferenceEvaluator(model).run(None, feeds)[0])
    if found is not None:
        assert [known and size for known, size in zip(found, result.shape, strict=True)] == found


def test_does_not_trust_declarations_of_captured_values() -> None:
    sizes = "d = Shape (k) q = Slice (d, one, two) t = Concat <axis = 0> (q, rest)"
    branches = BRANCHES.format(nodes=f"{sizes} r = Reshape (x, t)")
    nodes = "k = Abs (x) " + branches.replace("() => (p)", "() => (p) <float[N, 7, 6] k>")
    converted = convert_version(onnx.parser.parse_model(SIZES.format(nodes=nodes)), 13)
    assert [value.name for value in _values(converted.graph)] == ["k"]


def test_does_not_know_axes_from_a_function_named_constant() -> None:
    # The function returns an empty list of axes, so the Unsqueeze keeps all three sizes.
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        main (float[N, 4, 6] x) => (float[] y) <int64[1] one = {1}> {
            a = Constant <value = int64[1] {0}> ()
            s = Shape (x)
            u = Unsqueeze (s, a)
            t = Concat <axis = 0> (u, one)
            r = Reshape (x, t)
            y = Neg (r)
        }
    """)
    body = onnx.parser.parse_graph("""f () => (a) {
        r = RandomNormal <shape = [0]> ()
        s = Shape (r)
        a = ConstantOfShape <value = int64[1] {0}> (s)
    }""")
    imports = [onnx.helper.make_opsetid("", 18)]
    function = onnx.helper.make_function("", "Constant", [], ["a"], body.node, imports, ["value"])
    model.functions.append(function)
    converted = convert_version(model, 13)
    assert not converted.graph.value_info
    (result,) = ReferenceEvaluator(converted).run(None, {"x": np.ones((2, 4, 6), np.float32)})
    assert result.shape == (2, 4, 6, 1)


def test_limits_the_number_of_sizes() -> None:
    model = onnx.parser.parse_model(
        SIZES.format(nodes="t = Concat <axis = 0> (many, rest) " + RESHAPE.format("x"))
    )
    for count, expected in ((MAX_RANK - 1, MAX_RANK), (MAX_RANK, None)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(count, np.int64), "many"))
        declared = convert_version(model, 13).graph.value_info
        assert [len(each.type.tensor_type.shape.dim) for each in declared] == ([expected] if expected else [])
        del model.graph.initializer[-1]
