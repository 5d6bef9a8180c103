"""Number of nodes that replace one node: expansions for old opsets stay small, whatever the rank."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check
from support.execution import Array
from support.forms import in_form

RANDOM = np.random.default_rng(3)
IMAGE = RANDOM.standard_normal((2, 3, 4, 5)).astype(np.float32)
SPECIAL = IMAGE.copy()
SPECIAL[0, 0] = np.inf, -np.inf, np.nan, -0.0, 1e-45
VOLUME = RANDOM.standard_normal((1, 2, 3, 4, 5)).astype(np.float32)


def _count(nodes: Iterable[onnx.NodeProto]) -> int:
    """Return the number of nodes, with those in subgraphs and without the Constant nodes of functions."""
    counted = [node for node in nodes if node.op_type != "Constant"]
    return len(counted) + sum(_count(each.g.node) for node in counted for each in node.attribute)


def _ints(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


CASES: dict[str, tuple[str, int, Mapping[str, Array], Mapping[str, Any], int]] = {
    "Expand": ("Expand", 8, {"x": SPECIAL[:, :1], "s": _ints(2, 2, 1, 4, 5)}, {}, 8),
    "Where": ("Where", 9, {"c": IMAGE > 0, "a": SPECIAL, "b": IMAGE[:1, :, :1]}, {}, 40),
    "ReduceLogSumExp": ("ReduceLogSumExp", 18, {"x": VOLUME, "axes": _ints(-1, 2)}, {}, 35),
    "ReduceMean without keepdims": ("ReduceMean", 18, {"x": IMAGE, "axes": _ints(0)}, {"keepdims": 0}, 70),
    "ReduceSum": ("ReduceSum", 13, {"x": VOLUME, "axes": _ints(1)}, {}, 35),
    "Slice": ("Slice", 13, {"x": VOLUME, "s": _ints(1, 0, -2), "e": _ints(-1, 9, 5)}, {}, 110),
    "Slice with axes": ("Slice", 13, {"x": IMAGE, "s": _ints(1), "e": _ints(3), "a": _ints(-1)}, {}, 110),
    "Slice with steps": (
        "Slice",
        13,
        {"x": IMAGE, "s": _ints(-1, 0), "e": _ints(-9, 3), "a": _ints(2, 3), "t": _ints(-2, 1)},
        {},
        110,
    ),
    "Pad": ("Pad", 13, {"x": VOLUME, "p": _ints(1, 0, 2, 0, -1, 0, 0, 1, -2, 3)}, {}, 180),
    "Pad with a value": (
        "Pad",
        13,
        {"x": IMAGE, "p": _ints(1, 0, 2, 0, 0, 1, 0, -2), "v": np.array(np.nan, np.float32)},
        {},
        200,
    ),
    "Pad with axes": (
        "Pad",
        18,
        {"x": IMAGE, "p": _ints(1, 2, 0, -1), "v": np.array(2, np.float32), "a": _ints(-1, 1)},
        {},
        200,
    ),
    "Pad by reflection": (
        "Pad",
        18,
        {"x": IMAGE, "p": _ints(1, 0, 2, 3, 0, 1, -1, 0)},
        {"mode": "reflect"},
        115,
    ),
    "Pad with edges": ("Pad", 18, {"x": IMAGE, "p": _ints(1, 0, 2, 3, 0, 1, -1, 0)}, {"mode": "edge"}, 95),
    "CenterCropPad": ("CenterCropPad", 18, {"x": IMAGE, "s": _ints(3, 3, 2, 9)}, {}, 200),
    "GridSample": (
        "GridSample",
        20,
        {"x": IMAGE, "g": RANDOM.uniform(-1.5, 1.5, (2, 3, 2, 2)).astype(np.float32)},
        {"mode": "cubic"},
        125,
    ),
    "GridSample of volumes": (
        "GridSample",
        20,
        {"x": VOLUME, "g": RANDOM.uniform(-1.5, 1.5, (1, 3, 2, 2, 3)).astype(np.float32)},
        {"mode": "linear", "padding_mode": "reflection"},
        245,
    ),
}


@pytest.mark.parametrize("target", [11, 8, 7])
@pytest.mark.parametrize("form", ["fed", "unknown sizes", "computed", "function", "branch"])
@pytest.mark.parametrize(("op_type", "opset", "feeds", "attributes", "limit"), CASES.values(), ids=CASES)
def test_expansions_add_few_nodes(
    op_type: str,
    opset: int,
    feeds: Mapping[str, Array],
    attributes: Mapping[str, Any],
    limit: int,
    form: str,
    target: int,
) -> None:
    node = helper.make_node(op_type, list(feeds), ["y"], **attributes)
    model, fed = in_form(form, [node], feeds, {"y": onnx.TensorProto.FLOAT}, opset)
    if form == "unknown sizes":
        for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
            dim.dim_param = f"d{axis}"
    before = _count(model.graph.node)
    result = convert_and_check(model, target, fed)
    assert _count(result.graph.node) - before <= limit * (2 if form == "branch" else 1)
