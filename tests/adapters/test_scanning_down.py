"""Scan and Loop on their way down: a batch of one, axes from the front, and a value to carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.running import Array, build, op_types

from opshift import convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
FEEDS: Mapping[str, Array] = {
    "s": np.zeros(2, np.float32),
    "x": np.arange(6, dtype=np.float32).reshape(3, 2),
}


def _value(name: str, shape: Sequence[int] = (2,), kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _scan(opset: int, feeds: Mapping[str, Array] = FEEDS, **attributes: Any) -> onnx.ModelProto:
    """Running sums of the rows, and of the columns where the axes say so."""
    body = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["c"]), helper.make_node("Identity", ["c"], ["d"])],
        "body",
        [_value("a"), _value("b")],
        [_value("c"), _value("d")],
    )
    node = helper.make_node(
        "Scan", ["s", "x"], ["t", "y"], name="node", num_scan_inputs=1, body=body, **attributes
    )
    return build([node], feeds, ["t", "y"], opset)


COLUMNS = {"s": FEEDS["s"], "x": FEEDS["x"].T.copy()}


@pytest.mark.parametrize(
    ("feeds", "attributes"),
    [
        pytest.param(FEEDS, {}, id="rows"),
        pytest.param(FEEDS, {"scan_input_directions": [1]}, id="rows from the last"),
        pytest.param(COLUMNS, {"scan_input_axes": [1]}, id="columns"),
        pytest.param(COLUMNS, {"scan_input_axes": [-1]}, id="columns, counted from the back"),
        pytest.param(FEEDS, {"scan_output_axes": [1]}, id="built as columns"),
        pytest.param(
            FEEDS, {"scan_output_axes": [-1], "scan_output_directions": [0]}, id="built at the back"
        ),
    ],
)
@pytest.mark.parametrize("target", [10, 9, 8])
def test_scans(
    feeds: Mapping[str, Array], attributes: Mapping[str, Any], target: int, converted: Converted
) -> None:
    model = _scan(11, feeds, **attributes)
    result = converted(model, target, feeds)
    assert ("Unsqueeze" in op_types(result)) == (target == 8)


def test_building_from_the_end_is_refused(refusal: Refusing) -> None:
    model = _scan(9, scan_output_directions=[1])
    assert refusal(model, 8).reason == "an output is built from its end, which Scan-8 does not do"


def _loop(carried: bool) -> onnx.ModelProto:
    """Counts to three; if it carries a value, doubles it each time."""
    inputs = [_value("i", (), TensorProto.INT64), _value("go", (), TensorProto.BOOL)]
    nodes = [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["x"], ["row"])]
    outputs = [_value("on", (), TensorProto.BOOL)]
    if carried:
        inputs.append(_value("a"))
        nodes.append(helper.make_node("Add", ["a", "a"], ["b"]))
        outputs.append(_value("b"))
    body = helper.make_graph(nodes, "body", inputs, [*outputs, _value("row", (3, 2))])
    names = ["t", "y"] if carried else ["y"]
    node = helper.make_node("Loop", ["m", "", *(["s"] if carried else [])], names, name="node", body=body)
    return build([node], FEEDS, names, 11, initializers={"m": np.array(3, np.int64)})


def test_a_loop_that_carries_a_value_stays(converted: Converted) -> None:
    assert op_types(converted(_loop(True), 10, FEEDS)) == ["Loop"]


def test_a_loop_that_carries_none_is_refused(refusal: Refusing) -> None:
    assert refusal(_loop(False), 10).reason == "the loop carries no value, and Loop-1 wants one"
    assert convert_version(_loop(False), 11)
