"""Networks as exporters write them, with dynamic dimensions, converted and run at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from support.execution import Feeds, assert_equal, run
from support.exported import BOOL, INT64, ExportedGraph

import opshift

RANDOM = np.random.default_rng(0)
Case = tuple[onnx.ModelProto, list[Feeds]]


def random_floats(*dims: int) -> Any:
    return RANDOM.normal(size=dims).astype(np.float32)


def encoder(opset: int) -> Case:
    """Split heads with computed shapes, and apply a padding mask with Where."""
    net, width, heads = ExportedGraph(opset), 12, 3
    ids, mask = net.input("ids", ["batch", "length"], INT64), net.input("mask", ["batch", "length"], INT64)
    length = net.unsqueeze(net.size(ids, 1), 0)
    positions = net("Slice", net.constant(np.arange(16)[None]), net.whole(0), length, net.whole(1))
    tables = net.weight(20, width), net.weight(16, width)
    value = net("Add", net("Gather", tables[0], ids), net("Gather", tables[1], positions))

    def split(order: list[int]) -> str:
        projected = net("Add", net("MatMul", value, net.weight(width, width)), net.weight(width))
        shape = net.dims(net.size(projected, 0), net.size(projected, 1), heads, width // heads)
        return net("Transpose", net("Reshape", projected, shape), perm=order)

    query, key, content = split([0, 2, 1, 3]), split([0, 2, 3, 1]), split([0, 2, 1, 3])
    scores = net("Div", net("MatMul", query, key), net.constant(np.float32(2)))
    masked = net("Equal", net.unsqueeze(mask, 1, 2), net.constant(np.int64(0)))
    masked = net("Expand", masked, net("Shape", scores))
    scores = net("Where", masked, net.constant(np.float32(-3.4028235e38)), scores)
    mixed = net("Transpose", net("MatMul", net("Softmax", scores, axis=3), content), perm=[0, 2, 1, 3])
    joined = net("Reshape", mixed, net.dims(net.size(mixed, 0), net.size(mixed, 1), width))
    first = net("Gather", net("Add", value, joined), net.constant(np.int64(0)), axis=1)
    net.output(net("Gemm", first, net.weight(5, width), net.weight(5), transB=1), ["batch", 5])
    masks = [np.ones((1, 1), np.int64), np.array([[1, 1, 1, 1, 0], [1, 0, 0, 0, 0]])]
    return net.model(7), [{"ids": RANDOM.integers(0, 20, each.shape), "mask": each} for each in masks]


def pyramid(opset: int) -> Case:
    """Resize features by a factor, and then to the size of other features."""
    net = ExportedGraph(opset)
    image = net.input("image", ["batch", 3, "height", "width"])
    fine = net("Relu", net("Conv", image, net.weight(4, 3, 3, 3), pads=[1, 1, 1, 1]))
    coarse = net("MaxPool", fine, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=0)
    smooth = net(
        "Resize",
        coarse,
        "",
        net.constant(np.array([1, 1, 2, 2], np.float32)),
        mode="linear",
        coordinate_transformation_mode="align_corners",
    )
    shape = net("Slice", net("Shape", smooth), net.whole(0), net.whole(2), net.whole(0))
    sizes = net("Concat", shape, net.dims(net.size(fine, 2), net.size(fine, 3)), axis=0)
    near = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    back = net("Resize", smooth, "", "", sizes, **near)
    twice = net("Resize", back, "", net.constant(np.array([1, 1, 2, 2], np.float32)), **near)
    net.output(twice, ["batch", 4, "twice_height", "twice_width"])
    net.output(net("Concat", fine, back, axis=1), ["batch", 8, "height", "width"])
    return net.model(7), [
        {"image": random_floats(*dims)} for dims in ((1, 3, 6, 8), (2, 3, 7, 5), (1, 3, 1, 1))
    ]


def detector(opset: int) -> Case:
    """Select a limited number of the best boxes, possibly zero."""
    net = ExportedGraph(opset)
    boxes, logits = net.input("boxes", ["batch", "count", 4]), net.input("logits", ["batch", "count", 2])
    scores = net("Transpose", net("Sigmoid", logits), perm=[0, 2, 1])
    limits = [net.whole(9), *(net.constant(np.array([each], np.float32)) for each in (0.5, 0.4))]
    selected = net("NonMaxSuppression", boxes, scores, *limits)
    kept = net("GatherND", scores, selected)
    boxes_kept = net("GatherND", boxes, net("Gather", selected, net.whole(0, 2), axis=1))
    max_count = net("ReduceMin", net("Concat", net("Shape", kept), net.whole(3), axis=0), keepdims=1)
    values, order = net.all("TopK", kept, max_count, count=2, axis=0)
    net.output(values, ["kept"])
    net.output(net("Gather", boxes_kept, order, axis=0), ["kept", 4])
    feeds: list[Feeds] = []
    for batch, count, shift in ((1, 6, 0.0), (2, 9, 0.0), (1, 1, -9.0)):
        corner = RANDOM.random((batch, count, 2), np.float32) * 4
        box = np.concatenate([corner, corner + 1 + RANDOM.random((batch, count, 2), np.float32)], -1)
        feeds.append({"boxes": box, "logits": random_floats(batch, count, 2) + np.float32(shift)})
    return net.model(8), feeds


def decoder(opset: int) -> Case:
    """Append to a key-value cache, with the operators introduced for this purpose."""
    net, width = ExportedGraph(opset), 8
    value = net.input("hidden", ["batch", "length", width])
    positions = net.input("places", ["batch", "length"], INT64)
    past = [net.input(name, ["batch", 2, "past", 4]) for name in ("past_key", "past_value")]
    normal = net("RMSNormalization", value, net.weight(width), axis=-1)
    split = net.whole(0, 0, 2, 4)

    def heads() -> str:
        projected = net("MatMul", normal, net.weight(width, width))
        return net("Transpose", net("Reshape", projected, split), perm=[0, 2, 1, 3])

    tables = net.weight(16, 2), net.weight(16, 2)
    query, key = (net("RotaryEmbedding", heads(), *tables, positions) for _ in range(2))
    mixed, *present = net.all("Attention", query, key, heads(), "", *past, count=3, is_causal=1)
    joined = net("Reshape", net("Transpose", mixed, perm=[0, 2, 1, 3]), net.whole(0, 0, width))
    net.output(net("Gelu", net("Add", value, joined), approximate="tanh"), ["batch", "length", width])
    for each in present:
        net.output(each, ["batch", 2, "total", 4])
    feeds: list[Feeds] = []
    for batch, length, before in ((1, 3, 0), (2, 1, 4), (1, 2, 3)):
        at = np.tile(np.arange(before, before + length), (batch, 1))
        cache = {name: random_floats(batch, 2, before, 4) for name in ("past_key", "past_value")}
        feeds.append({"hidden": random_floats(batch, length, width), "places": at, **cache})
    return net.model(11), feeds


def generator(opset: int) -> Case:
    """Run a Loop whose body reads outer weights, and an If that selects the final activation."""
    net, body = ExportedGraph(opset), ExportedGraph(opset, 1, "body/")
    state, turns = net.input("state", ["batch", 4]), net.input("turns", [], INT64)
    body.input("turn", [], INT64)
    body.input("going", [], BOOL)
    after = body("Tanh", body("MatMul", body.input("before", ["batch", 4]), net.weight(4, 4)))
    peak = body("ReduceMax", after, keepdims=0)
    part = body("Slice", after, body.whole(0), body.whole(2), body.whole(1))
    body.output(body("Less", peak, body.constant(np.float32(5))), [], BOOL)
    body.output(after, ["batch", 4])
    body.output(body("ArgMax", after, axis=1, keepdims=0), ["batch"], INT64)
    body.output(body("Softmax", part, axis=-1), ["batch", 2])
    going = net.constant(np.array(True))
    last, best, probabilities = net.all("Loop", turns, going, state, count=3, body=body.graph("body"))
    branches = [ExportedGraph(opset, 0, f"{each}/") for each in ("then", "else")]
    branches[0].output(branches[0]("Relu", last), ["batch", 4])
    bounds = [branches[1].constant(np.float32(each)) for each in (-0.2, 0.2)]
    branches[1].output(branches[1]("Clip", last, *bounds), ["batch", 4])
    total = net("ReduceMax", last, keepdims=0)
    graphs = dict(
        zip(("then_branch", "else_branch"), (each.graph("branch") for each in branches), strict=True)
    )
    net.output(net("If", net("Less", total, net.constant(np.float32(0))), **graphs), ["batch", 4])
    net.output(best, ["turns", "batch"], INT64)
    net.output(probabilities, ["turns", "batch", 2])
    return net.model(7), [
        {"state": random_floats(batch, 4), "turns": np.array(n)} for batch, n in ((1, 3), (3, 1))
    ]


EXPORTED: dict[str, tuple[Callable[[int], Case], int, Sequence[int]]] = {
    "encoder with dynamic batch and length": (encoder, 13, (9, 10, 11, 12, 17, 26)),
    "feature pyramid of dynamic size": (pyramid, 13, (8, 9, 10, 11, 18, 26)),
    "detector with possibly no boxes": (detector, 12, (10, 11, 13, 18, 26)),
    "decoder with a cache": (decoder, 23, (9, 11, 13, 17, 20, 26)),
    "generator with a loop and a branch": (generator, 13, (7, 9, 11, 12, 18, 26)),
}


@pytest.mark.parametrize(("network", "opset", "targets"), EXPORTED.values(), ids=EXPORTED)
def test_conversion_and_return_keep_outputs_at_all_sizes(
    network: Callable[[int], Case], opset: int, targets: Sequence[int]
) -> None:
    model, feeds = network(opset)
    onnx.checker.check_model(model)
    expected = [run(model, each) for each in feeds]
    for target in targets:
        converted = opshift.convert_version(model, target)
        onnx.checker.check_model(converted)
        for result in (converted, opshift.convert_version(converted, opset)):
            for each, outputs in zip(feeds, expected, strict=True):
                assert_equal(run(result, each), outputs)
