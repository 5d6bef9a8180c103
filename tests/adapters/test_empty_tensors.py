"""Steps that keep the results for tensors with dimensions of 0, whose sizes are known only at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper
from support.dynamic import with_symbolic_dims
from support.execution import Feeds, assert_equal, build, run, run_reference
from support.forms import FORMS, RANKED_FORMS, in_form

from opshift import convert_version

MIN_OPSET_REFERENCE = 9
"""Below, emitted Loops without iterations fail in onnx.reference."""


def _check(
    op_type: str, feeds: Feeds, opset: int, targets: tuple[int, ...], form: str, **attributes: Any
) -> None:
    """Convert a node in one form, and run both models."""
    array = feeds["x"]
    node = helper.make_node(op_type, list(feeds), ["y"], name="node", **attributes)
    outputs = {"y": helper.np_dtype_to_tensor_dtype(array.dtype)}
    model, fed = in_form(form, [node], feeds, outputs, opset)
    expected = run(model, fed)
    for target in targets:
        result = convert_version(model, target)
        assert_equal(run(result, fed), expected)
        if target >= MIN_OPSET_REFERENCE:
            assert_equal(run_reference(result, fed), expected)


def _check_optimized(model: onnx.ModelProto, target: int, feeds: Feeds) -> None:
    """Convert a model, and run the result after the optimizations of onnxruntime.

    They replace a size by -1 if it is the only computed one in the shape of a Reshape.
    """
    result = convert_version(model, target).SerializeToString()
    session = ort.InferenceSession(result, providers=["CPUExecutionProvider"])
    assert_equal(session.run(None, feeds), run(model, feeds))


FLATTENED = [
    (shape, axis, form)
    for shape in [(0, 3), (2, 0, 3), (2, 3, 0), (2, 3)]
    for axis in (0, 1)
    for form in FORMS
    if form != "no shapes" or not axis or shape[0]  # ONNX's evaluator cannot flatten the others
]


@pytest.mark.parametrize(("shape", "axis", "form"), FLATTENED)
@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
def test_flattened_normalization(op_type: str, shape: tuple[int, ...], axis: int, form: str) -> None:
    data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    _check(op_type, {"x": data}, 12, (13, 14), form, axis=axis)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3), (0, 0), (0,), ()])
def test_selection_by_position(shape: tuple[int, ...], form: str) -> None:
    data = np.zeros(shape, np.float32)
    _check("Shrink", {"x": data}, 9, (8,), form, bias=1.0)
    _check("ThresholdedRelu", {"x": data}, 10, (9, 8), form)
    _check("Where", {"c": np.array(data > 0), "x": data, "z": data}, 9, (8,), form)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0), (2, 3)])
def test_triangles(shape: tuple[int, ...], dtype: type, form: str) -> None:
    for upper in (0, 1):
        feeds: Feeds = {"x": np.ones(shape, dtype), "k": np.array(1)}
        _check("Trilu", feeds, 14, (13, 8), form, upper=upper)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(0,), (3, 0), (2, 3)])
def test_padding(shape: tuple[int, ...], dtype: type, form: str) -> None:
    rank = len(shape)
    pads = np.array([1] * rank + [2] * rank)
    feeds: Feeds = {"x": np.zeros(shape, dtype), "pads": pads, "value": np.array(1, dtype)}
    _check("Pad", feeds, 13, (10, 8), form)
    outer: Feeds = {"x": feeds["x"], "pads": np.array([int(size > 0) for size in shape] * 2)}
    if dtype is np.float32:
        for mode in ("edge", "reflect"):
            _check("Pad", outer, 13, (10,), form, mode=mode)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("shape", "new_shape"),
    [((0, 3), (3, 0)), ((2, 0), (0, 5, 7)), ((0, 4), (2, -1)), ((2, 3), (3, -1)), ((), (1, 1)), ((1,), ())],
)
def test_shapes_with_zeros(shape: tuple[int, ...], new_shape: tuple[int, ...], form: str) -> None:
    feeds: Feeds = {"x": np.zeros(shape, np.float32), "shape": np.array(new_shape, np.int64)}
    _check("Reshape", feeds, 14, (13, 10, 8), form, allowzero=1)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 4), (3, 0), (0, 5, 0)])
def test_sums_along_a_computed_axis(shape: tuple[int, ...]) -> None:
    feeds: Feeds = {"x": np.ones(shape, np.float32), "axis": np.array(-1)}
    for reverse in (0, 1):
        _check("CumSum", feeds, 14, (10, 9), "fed", reverse=reverse)


def _check_with_unknown_sizes(
    op_type: str, data: np.ndarray[Any, Any], constants: Feeds, opset: int, **attributes: Any
) -> None:
    """Convert a node to all older opsets with Reshape to a computed shape, and run the models."""
    node = helper.make_node(op_type, ["x", *constants], ["y"], **attributes)
    model = build([node], {"x": data}, {"y": onnx.TensorProto.FLOAT}, opset, initializers=constants)
    for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        dim.dim_param = f"N{axis}"
    for target in (opset - 1, 17, 13, 11, 10, 9, 7):
        result = run(convert_version(model, target), {"x": data}) if target < opset else None
        if result is not None:
            assert_equal(result, run(model, {"x": data}))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 4), (2, 3)])
@pytest.mark.parametrize(("op_type", "opset"), [("CumSum", 14), ("CumProd", 26)])
def test_totals_of_unknown_sizes(op_type: str, opset: int, shape: tuple[int, ...], axis: int) -> None:
    data = np.ones(shape, np.float32)
    for reverse in (0, 1):
        _check_with_unknown_sizes(op_type, data, {"axis": np.array(axis)}, opset, reverse=reverse)


@pytest.mark.parametrize("shape", [(0, 8, 4), (2, 8, 4)])
def test_columns_of_an_empty_batch(shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    _check_with_unknown_sizes("Col2Im", data, {"image": np.array([3, 3]), "block": np.array([2, 2])}, 18)


@pytest.mark.parametrize("shape", [(0, 8, 4), (2, 8, 4)])
def test_columns_of_an_empty_batch_after_optimization(shape: tuple[int, ...]) -> None:
    data = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    constants = {"image": np.array([3, 3]), "block": np.array([2, 2])}
    node = helper.make_node("Col2Im", ["x", *constants], ["y"], name="node")
    model = build([node], {"x": data}, {"y": onnx.TensorProto.FLOAT}, 18, initializers=constants)
    _check_optimized(with_symbolic_dims(model), 17, {"x": data})


@pytest.mark.parametrize("form", ["fed", "symbolic"])
@pytest.mark.parametrize("op_type", ["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_bits(shape: tuple[int, ...], op_type: str, form: str) -> None:
    feeds: Feeds = {"x": np.zeros(shape, np.int32), "z": np.zeros(shape, np.int32)}
    _check(op_type, feeds, 18, (17, 13), form)


BLOCKS = [(0, 8, 2, 4), (1, 8, 0, 4), (1, 0, 2, 4), (0, 0, 2, 4), (2, 8, 2, 4)]


@pytest.mark.parametrize("shape", BLOCKS)
@pytest.mark.parametrize(("op_type", "opset", "target"), [("DepthToSpace", 13, 10), ("SpaceToDepth", 28, 13)])
def test_blocks_of_channels_after_optimization(
    op_type: str, opset: int, target: int, shape: tuple[int, ...]
) -> None:
    feeds: Feeds = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    node = helper.make_node(op_type, ["x"], ["y"], name="node", blocksize=2, mode="CRD")
    model, fed = in_form("symbolic", [node], feeds, {"y": onnx.TensorProto.FLOAT}, opset)
    _check_optimized(model, target, fed)


@pytest.mark.parametrize("form", ["fed", "symbolic"])
@pytest.mark.parametrize("shape", BLOCKS)
def test_blocks_of_channels(shape: tuple[int, ...], form: str) -> None:
    feeds: Feeds = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    _check("DepthToSpace", feeds, 13, (10, 9), form, blocksize=2, mode="CRD")
    node = helper.make_node("SpaceToDepth", ["x"], ["y"], name="node", blocksize=2, mode="CRD")
    model, fed = in_form(form, [node], feeds, {"y": onnx.TensorProto.FLOAT}, 28)
    for target in (13, 10):
        assert_equal(run(convert_version(model, target), fed), run_reference(model, fed))


@pytest.mark.some_cases(12)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("grid", [(1, 2, 0, 2), (1, 0, 3, 2), (1, 0, 0, 2)])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
def test_samples_without_points(mode: str, grid: tuple[int, ...], form: str) -> None:
    feeds: Feeds = {"x": np.zeros((1, 2, 4, 6), np.float32), "g": np.zeros(grid, np.float32)}
    _check("GridSample", feeds, 16, (15, 13, 9), form, mode=mode, padding_mode="zeros")


@pytest.mark.parametrize("form", RANKED_FORMS)
def test_elements_at_no_indices(form: str) -> None:
    feeds: Feeds = {"x": np.zeros((3, 0), np.float32), "i": np.zeros((2, 0), np.int64)}
    for axis in (0, 1):
        _check("GatherElements", feeds, 13, (10, 9), form, axis=axis)


@pytest.mark.parametrize("shape", [(2, 3, 0), (2, 0, 3), (2, 0), (2, 3, 4)])
def test_rows_at_indices(shape: tuple[int, ...]) -> None:
    indices = {"i": np.array([[1], [0], [1]])}
    _check_with_unknown_sizes("GatherND", np.ones(shape, np.float32), indices, 12)


@pytest.mark.parametrize("shape", [(2, 0, 3), (0, 2, 3), (2, 2, 3)])
def test_rows_at_indices_of_a_batch(shape: tuple[int, ...]) -> None:
    feeds: Feeds = {"x": np.ones(shape, np.float32), "i": np.ones((*shape[:2], 1), np.int64)}
    node = helper.make_node("GatherND", list(feeds), ["y"], batch_dims=2)
    model, fed = in_form("symbolic", [node], feeds, {"y": onnx.TensorProto.FLOAT}, 12)
    model.graph.input[1].type.tensor_type.shape.dim[-1].dim_value = 1  # the length of index tuples
    for target in (11, 10, 8):
        assert_equal(run(convert_version(model, target), fed), run(model, fed))


@pytest.mark.parametrize(
    ("op_type", "form"),
    [
        *(("NegativeLogLikelihoodLoss", form) for form in FORMS),
        *(("SoftmaxCrossEntropyLoss", form) for form in RANKED_FORMS),
    ],
)
@pytest.mark.parametrize("sizes", [(0,), (2,), (2, 0), (0, 2), (2, 3, 0), (2, 0, 3), (2, 3, 2)])
def test_losses(sizes: tuple[int, ...], op_type: str, form: str) -> None:
    scores = np.ones((sizes[0], 3, *sizes[1:]), np.float32)
    feeds: Feeds = {"x": scores, "labels": np.zeros(sizes, np.int64)}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node", reduction="none")
    model, fed = in_form(form, [node], feeds, {"y": onnx.TensorProto.FLOAT}, 12)
    loss = -1.0 if op_type == "NegativeLogLikelihoodLoss" else np.log(3)
    for target in (11, 9):
        assert_equal(run(convert_version(model, target), fed), [np.full(sizes, loss, np.float32)])


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("sizes", [(0, 2, 2), (2, 0, 2), (2, 2, 2)])
def test_attention_with_shared_heads(sizes: tuple[int, int, int], form: str) -> None:
    batch, queries, keys = sizes
    shapes = {"x": (batch, queries, 32), "key": (batch, keys, 16), "value": (batch, keys, 16)}
    feeds = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    node = helper.make_node("Attention", list(feeds), ["y"], name="node", q_num_heads=4, kv_num_heads=2)
    model, fed = in_form(form, [node], feeds, {"y": onnx.TensorProto.FLOAT}, 23)
    for target in (22, 13):
        assert_equal(run(convert_version(model, target), fed), [feeds["x"]])


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("boxes", [0, 2])
def test_selection_among_no_boxes(boxes: int, form: str) -> None:
    feeds: Feeds = {
        "x": np.tile(np.array([0, 0, 1, 1], np.float32), (1, boxes, 1)),
        "scores": np.ones((1, 2, boxes), np.float32),
        "limit": np.array([3]),
    }
    node = helper.make_node("NonMaxSuppression", list(feeds), ["y"], name="node")
    model, fed = in_form(form, [node], feeds, {"y": onnx.TensorProto.INT64}, 11)
    expected = run(model, fed)
    for target in (9, 8):
        assert_equal(run(convert_version(model, target), fed), expected)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("shape", [(3, 4, 5), (3, 2, 4, 5)])
def test_updates_of_a_cache(shape: tuple[int, ...], count: int, form: str) -> None:
    update = np.ones((*shape[:-2], count, shape[-1]), np.float32)
    feeds: Feeds = {"x": np.zeros(shape, np.float32), "update": update, "starts": np.array([0, 1, 2])}
    node = helper.make_node("TensorScatter", list(feeds), ["y"], name="node")
    model, fed = in_form(form, [node], feeds, {"y": onnx.TensorProto.FLOAT}, 24)
    expected = run_reference(model, fed)
    assert_equal(run(convert_version(model, 23), fed), expected)


def test_parts_of_nothing() -> None:
    node = helper.make_node("Split", ["x"], ["y", "z"], name="node", axis=1)
    feeds: Feeds = {"x": np.zeros((2, 0), np.float32)}
    model = build([node], feeds, ["y", "z"], 13)
    for target in (18, 21):
        assert_equal(run(convert_version(model, target), feeds), run(model, feeds))


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("size", [0, 3])
def test_products_of_empty_vectors(size: int, form: str) -> None:
    feeds: Feeds = {"x": np.ones(size, np.float32), "z": np.ones(size, np.float32)}
    _check("Einsum", feeds, 12, (11, 9), form, equation="i,i")
    _check("Einsum", feeds, 12, (11, 9), form, equation="i,i->")


@pytest.mark.parametrize("form", ["fed", "symbolic"])
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bsd,dhk->bshk", [(2, 0, 3), (3, 2, 2)]),
        ("bsd,dhk->bshk", [(2, 4, 3), (3, 2, 0)]),
        ("abkl,klc->abc", [(2, 0, 3, 2), (3, 2, 4)]),
        ("xabk,xkcd->xabcd", [(2, 2, 0, 3), (2, 3, 2, 2)]),
        ("xabk,xkcd->xabcd", [(0, 2, 2, 3), (0, 3, 2, 2)]),
        ("abk,k->ab", [(2, 0, 3), (3,)]),
    ],
)
def test_products_of_empty_matrices(equation: str, shapes: list[tuple[int, ...]], form: str) -> None:
    feeds: Feeds = {name: np.ones(shape, np.float32) for name, shape in zip("xz", shapes, strict=True)}
    _check("Einsum", feeds, 12, (11, 9), form, equation=equation)


@pytest.mark.parametrize("shape", [(0, 2, 2), (2, 0, 0), (3, 2, 2)])
def test_diagonals_of_empty_matrices(shape: tuple[int, ...]) -> None:
    for equation in ("bii->b", "bii->ib"):
        _check("Einsum", {"x": np.ones(shape, np.float32)}, 12, (11, 9), "fed", equation=equation)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("shape", [(0, 3, 4, 5), (2, 3, 4, 0), (2, 3, 4, 5)])
def test_statistics_of_a_batch(shape: tuple[int, ...], form: str) -> None:
    vectors: Feeds = {name: np.ones(3, np.float32) for name in ("scale", "bias", "mean", "var")}
    feeds: Feeds = {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32), **vectors}
    node = helper.make_node("BatchNormalization", list(feeds), ["y", "m", "v"], name="node", training_mode=1)
    outputs = dict.fromkeys(("y", "m", "v"), onnx.TensorProto.FLOAT)
    model, fed = in_form(form, [node], feeds, outputs, 14)
    found, expected = run(convert_version(model, 9), fed), run(model, fed)
    # The statistics of nothing are undefined.
    count = 3 if np.prod(shape) else 1
    assert_equal(found[:count], expected[:count], 1e-5)
    assert [each.shape for each in found] == [each.shape for each in expected]


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize(("shape", "boxes"), [((1, 0, 4, 4), 2), ((0, 2, 4, 4), 0), ((1, 2, 4, 4), 0)])
def test_regions_of_images(shape: tuple[int, ...], boxes: int, ratio: int) -> None:
    feeds: Feeds = {
        "x": np.zeros(shape, np.float32),
        "rois": np.tile(np.array([0, 0, 2, 2], np.float32), (boxes, 1)),
        "batch": np.zeros(boxes, np.int64),
    }
    node = helper.make_node(
        "RoiAlign", list(feeds), ["y"], output_height=2, output_width=3, sampling_ratio=ratio
    )
    model = build([node], feeds, ["y"], 16)
    for target in (10, 9):
        assert_equal(run(convert_version(model, target), feeds), run(model, feeds))


@pytest.mark.parametrize("form", ["fed", "symbolic"])
@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 0), 0), ((0, 3), 1), ((0, 3), 0), ((2, 0, 3), 2), ((2, 3), 1)]
)
def test_distinct_slices(shape: tuple[int, ...], axis: int, is_sorted: int, form: str) -> None:
    node = helper.make_node("Unique", ["x"], ["y", "i", "v", "c"], name="node", axis=axis, sorted=is_sorted)
    feeds: Feeds = {"x": np.zeros(shape, np.float32)}
    outputs = {"y": onnx.TensorProto.FLOAT, **dict.fromkeys("ivc", onnx.TensorProto.INT64)}
    model, fed = in_form(form, [node], feeds, outputs, 11)
    # onnxruntime ends the process for slices without elements, and onnx.reference fails if they are unsorted
    _, first, inverse, count = np.unique(feeds["x"], True, True, True, axis)
    expected = [np.take(feeds["x"], first, axis), first, inverse.reshape(-1), count]
    assert_equal(run(convert_version(model, 10), fed), expected)


@pytest.mark.parametrize("form", ["fed", "symbolic"])
@pytest.mark.parametrize("rule", ["linear", "gated_delta"])
@pytest.mark.parametrize(
    ("batch", "length", "key", "value"),
    [(1, 2, 0, 4), (1, 2, 4, 0), (0, 2, 4, 4), (1, 0, 4, 4), (1, 2, 4, 4)],
)
def test_states_of_no_size(batch: int, length: int, key: int, value: int, rule: str, form: str) -> None:
    generator = np.random.default_rng(1)
    sizes = {"q": 4 * key, "k": 2 * key, "v": 2 * value}
    if rule == "gated_delta":
        sizes |= {"decay": 2, "beta": 2}
    feeds: Feeds = {name: generator.normal(size=(batch, length, each)) for name, each in sizes.items()}
    feeds = {name: np.asarray(each, np.float32) for name, each in feeds.items()}
    names = ["q", "k", "v", *(["", "decay", "beta"] if "beta" in feeds else [])]
    heads = {"q_num_heads": 4, "kv_num_heads": 2}
    node = helper.make_node("LinearAttention", names, ["y", "s"], name="node", update_rule=rule, **heads)
    model, fed = in_form(form, [node], feeds, dict.fromkeys("ys", onnx.TensorProto.FLOAT), 27)
    for target in (26, 13):
        assert_equal(run(convert_version(model, target), fed), run_reference(model, fed), 1e-4)


@pytest.mark.parametrize("form", RANKED_FORMS)
@pytest.mark.parametrize("reduction", ["add", "min"])
@pytest.mark.parametrize("shape", [(2, 3, 0), (0, 3), (3, 0), (2, 3)])
def test_combined_updates(shape: tuple[int, ...], reduction: str, form: str) -> None:
    data = np.ones(shape, np.float32)
    updates = data[:1]
    feeds: Feeds = {"x": data, "i": np.zeros(updates.shape, np.int64), "u": updates}
    opset = 16 if reduction == "add" else 18
    _check("ScatterElements", feeds, opset, (15, 13, 11), form, axis=len(shape) - 1, reduction=reduction)


@pytest.mark.parametrize("shape", [(2, 3, 0, 2), (2, 3, 0), (2, 3), (0, 3, 2), (3, 0, 2)])
def test_reversed_sequences(shape: tuple[int, ...]) -> None:
    feeds: Feeds = {"x": np.ones(shape, np.float32), "n": np.full(shape[1], min(shape[0], 2))}
    _check("ReverseSequence", feeds, 10, (9,), "fed")
