"""Shapes that a conversion declares, because runtimes infer less than opshift."""

from __future__ import annotations

import onnx.parser
import pytest

from opshift import convert_version

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
main (float[N, 4, 6] x, int64[M, 3] i) => (float[K, L] y)
<int64[1] half = {{12}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[2] stored = {{-1, 24}},
 int64[1] two = {{2}}, int64[1] rest = {{-1}}, float[2, 4, 1] w = {{1, 2, 3, 4, 5, 6, 7, 8}}> {{
    s = Shape (x)
    n = Slice (s, zero, one)
    e = Size (x)
    sizes = Concat <axis = 0> (n, half)
    {nodes}
    y = Neg (r)
}}"""


@pytest.mark.parametrize(
    ("nodes", "opset", "target", "expected"),
    [
        pytest.param("r = Reshape (x, sizes)", 17, 13, {"r": [None, 12]}, id="computed sizes"),
        pytest.param(
            "u = Unsqueeze (e, zero) t = Concat <axis = 0> (u, half) r = Reshape (x, t)",
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
            {},
            id="shape to infer",
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
