"""Expand below opset 8: multiplication broadcasts the data."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array, build

RANDOM = np.random.default_rng(0)
DTYPES = (np.float32, np.float64, np.float16, np.int8, np.int32, np.int64, np.uint8, np.bool_)


def _element_type(array: Array) -> int:
    return int(helper.np_dtype_to_tensor_dtype(array.dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, np.float64])
@pytest.mark.parametrize(
    ("shape", "target_shape"),
    [
        pytest.param((3, 1), (3, 4), id="one dimension"),
        pytest.param((3, 1), (2, 1, 6), id="more dimensions"),
        pytest.param((2, 3, 1), (4,), id="shape of lower rank"),
        pytest.param((), (2, 2), id="scalar"),
        pytest.param((2, 3), (1, 1), id="unchanged shape"),
        pytest.param((2, 1), (2, 0), id="empty result"),
    ],
)
@pytest.mark.parametrize(
    ("known", "shapes"),
    [
        pytest.param(True, True, id="known"),
        pytest.param(False, True, id="computed"),
        pytest.param(False, False, id="unknown shapes"),
    ],
)
def test_rewrites_expand(
    shape: tuple[int, ...], target_shape: tuple[int, ...], dtype: type, known: bool, shapes: bool
) -> None:
    data: Array = np.asarray(RANDOM.integers(0, 2, shape)).astype(dtype)
    shape_input: dict[str, Array] = {"s": np.array(target_shape, np.int64)}
    feeds: dict[str, Array] = {"x": data} if known else {"x": data, **shape_input}
    node = helper.make_node("Expand", ["x", "s"], ["y"], name="node")
    outputs = {"y": _element_type(data)}
    model = build([node], feeds, outputs, 8, initializers=shape_input if known else None, shapes=shapes)
    convert_and_check(model, 7, feeds, [data * np.ones(target_shape, dtype)])


@pytest.mark.parametrize("sizes", [(3, 5), (1, 1), (1, 5), (3, 0)])
def test_dimensions_that_keep_their_size_are_not_compared(sizes: tuple[int, int]) -> None:
    """The exported repetition of the heads of keys: the model computes two sizes, which do not change."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 13]>
        g (float[N, 2, 1, M] x) => (float[N, 2, 4, M] y) <int64[1] heads = {2}, int64[1] repeated = {4}> {
            first = Shape (x)
            n = Gather <axis = 0> (first, zero)
            m = Gather <axis = 0> (first, three)
            zero = Constant <value = int64[1] {0}> ()
            three = Constant <value = int64[1] {3}> ()
            s = Concat <axis = 0> (n, heads, repeated, m)
            y = Expand (x, s)
        }
    """)
    nodes = sorted(model.graph.node, key=lambda each: each.op_type != "Constant")
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    first, last = sizes
    feeds: dict[str, Array] = {"x": RANDOM.normal(size=(first, 2, 1, last)).astype(np.float32)}
    converted = convert_and_check(model, 7, feeds, [np.repeat(feeds["x"], 4, axis=2)])
    assert [each.op_type for each in converted.graph.node][-1] == "Tile"
    assert not {"Mul", "Equal", "Where"} & {each.op_type for each in converted.graph.node}
