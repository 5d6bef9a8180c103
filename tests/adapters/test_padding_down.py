"""Pad on its way down: wrapping, axes, attributes, and the name it had at first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.old import there_and_back
from support.running import Array, build, op_types

from opshift import ConversionRefused, convert_version
from opshift.converter.errors import Refusal

Converted = Callable[..., onnx.ModelProto]
Refusing = Callable[..., Refusal]
DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def _model(
    opset: int,
    pads: Sequence[int],
    constants: Mapping[str, Array] | None = None,
    *,
    data: Array = DATA,
    inputs: Sequence[str] = ("x", "pads"),
    feeds: Mapping[str, Array] | None = None,
    shapes: bool = True,
    **attributes: Any,
) -> onnx.ModelProto:
    node = helper.make_node("Pad", list(inputs), ["y"], name="node", **attributes)
    element = helper.np_dtype_to_tensor_dtype(data.dtype)
    computed = {"pads": np.array(pads, np.int64)} if feeds is not None and "pads" in feeds else {}
    initializers = {} if computed else {"pads": np.array(pads, np.int64)}
    return build(
        [node],
        {"x": data, **(feeds or {})},
        {"y": element},
        opset,
        initializers={**initializers, **(constants or {})},
        shapes=shapes,
    )


WRAPPED = [
    pytest.param([1, 0, 2, 0, 0, 1], id="both ends"),
    pytest.param([0, 0, 9, 0, 0, 6], id="more than once round"),
    pytest.param([0, -1, 3, 0, 0, -1], id="after what is cut off is gone"),
]


def _wrapped(pads: Sequence[int]) -> Array:
    """What the definition says: cut off, then count round and round."""
    result = DATA
    for axis in range(3):
        before, after = pads[axis], pads[axis + 3]
        left = list(range(max(-before, 0), DATA.shape[axis] - max(-after, 0)))
        places = [left[i % len(left)] for i in range(-max(before, 0), len(left) + max(after, 0))]
        result = result.take(places, axis)
    return result


@pytest.mark.parametrize("pads", WRAPPED)
@pytest.mark.parametrize("target", [18, 13])
def test_wrapping_is_gathered(pads: Sequence[int], target: int, converted: Converted) -> None:
    model = _model(19, pads, mode="wrap")
    result = converted(model, target, {"x": DATA}, [_wrapped(pads)])
    assert set(op_types(result)) == {"Gather", "Identity"}


@pytest.mark.parametrize("pads", WRAPPED)
def test_wrapping_by_computed_amounts(pads: Sequence[int], converted: Converted) -> None:
    feeds = {"pads": np.array(pads, np.int64)}
    model = _model(19, pads, feeds=feeds, mode="wrap")
    converted(model, 18, {"x": DATA, **feeds}, [_wrapped(pads)])


def test_wrapping_by_an_unknown_number_of_amounts(converted: Converted) -> None:
    """The rank of the data tells it."""
    feeds = {"pads": np.array([1, 0, 2, 0, 0, 1], np.int64)}
    model = _model(19, [], feeds=feeds, mode="wrap")
    model.graph.input[1].type.tensor_type.ClearField("shape")
    converted(model, 18, {"x": DATA, **feeds}, [_wrapped([1, 0, 2, 0, 0, 1])])


def test_wrapping_without_known_sizes(converted: Converted) -> None:
    pads = [1, 0, 2, 0, 0, 1]
    converted(_model(19, pads, shapes=False, mode="wrap"), 18, {"x": DATA}, [_wrapped(pads)])


def test_wrapping_some_dimensions(converted: Converted) -> None:
    constants = {"axes": np.array([-1, 0], np.int64)}
    model = _model(19, [2, 1, 1, 0], constants, inputs=["x", "pads", "", "axes"], mode="wrap")
    converted(model, 18, {"x": DATA}, [_wrapped([1, 0, 2, 0, 0, 1])])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("computed", [(), ("axes",), ("axes", "pads")], ids=["constants", "axes", "both"])
@pytest.mark.parametrize("shapes", [True, False], ids=["rank known", "rank not known"])
def test_axes_are_all_dimensions(
    mode: str, computed: Sequence[str], shapes: bool, converted: Converted
) -> None:
    axes, pads = np.array([-1, 0], np.int64), np.array([2, 1, 1, 0], np.int64)
    feeds = {name: value for name, value in (("axes", axes), ("pads", pads)) if name in computed}
    constants = {} if "axes" in computed else {"axes": axes}
    inputs = ["x", "pads", "", "axes"]
    model = _model(18, [2, 1, 1, 0], constants, inputs=inputs, feeds=feeds, shapes=shapes, mode=mode)
    converted(model, 13, {"x": DATA, **feeds})


def test_pads_of_all_dimensions_stay(converted: Converted) -> None:
    result = converted(_model(18, [0, 1, 0, 0, 0, 2]), 13, {"x": DATA})
    assert op_types(result) == ["Pad"]


VALUES = [
    pytest.param(np.float32, 1.5, id="float"),
    pytest.param(np.float64, -0.25, id="double"),
    pytest.param(np.int32, 7, id="int32 in double"),
    pytest.param(np.int8, -3, id="int8 in float"),
]


@pytest.mark.parametrize(("kind", "value"), VALUES)
def test_pads_and_value_become_attributes(kind: Any, value: float, converted: Converted) -> None:
    data = DATA.astype(kind)
    constants = {"value": np.array(value, kind)}
    model = _model(13, [0, 1, 0, 0, 0, 2], constants, data=data, inputs=["x", "pads", "value"])
    assert "Pad" in op_types(converted(model, 10, {"x": data}))


def test_a_value_that_is_not_used_is_left_out(converted: Converted) -> None:
    feeds = {"value": np.array(1, np.float32)}
    model = _model(13, [0, 1, 0, 0, 0, 2], inputs=["x", "pads", "value"], feeds=feeds, mode="edge")
    assert list(converted(model, 10, {"x": DATA, **feeds}).graph.node[0].input) == ["x"]


def test_the_first_version_called_them_paddings() -> None:
    result = there_and_back(_model(11, [0, 1, 0, 0, 0, 2]), 1, {"x": DATA})
    assert {each.name for each in result.graph.node[0].attribute} == {"paddings"}


GATHERED = [0, -1, 2, 0, 1, 0]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("kind", [np.float32, np.int64], ids=["float", "int64"])
def test_computed_pads_are_gathered(mode: str, target: int, kind: Any, converted: Converted) -> None:
    data = DATA.astype(kind)
    feeds = {"pads": np.array(GATHERED, np.int64)}
    model = _model(11, GATHERED, data=data, feeds=feeds, mode=mode)
    assert "Pad" not in op_types(converted(model, target, {"x": data, **feeds}))


def test_a_size_of_one_is_not_reflected(converted: Converted) -> None:
    """Where nothing is added, there is nothing to count."""
    data = DATA.reshape(1, 4, 6)
    feeds = {"pads": np.array([0, 2, 0, 0, 1, 5], np.int64)}
    model = _model(11, [], data=data, feeds=feeds, mode="reflect")
    converted(model, 10, {"x": data, **feeds})


FILLED = [
    pytest.param(np.float32, 1.5, True, id="a computed value"),
    pytest.param(np.float64, 0.1, False, id="a value that a float rounds"),
    pytest.param(np.float64, 1e300, False, id="a value that no float holds"),
    pytest.param(np.int32, 2**24 + 1, False, id="a whole value that a float rounds"),
    pytest.param(np.int64, 2**60 + 1, False, id="64 bits"),
]


@pytest.mark.parametrize(("kind", "value", "computed"), FILLED)
def test_filling_gathered_data(kind: Any, value: float, computed: bool, converted: Converted) -> None:
    data, constant = DATA.astype(kind), {"v": np.array(value, kind)}
    feeds = constant if computed else {}
    inputs = ["x", "pads", "v"]
    model = _model(11, GATHERED, {} if computed else constant, data=data, inputs=inputs, feeds=feeds)
    assert "Pad" not in op_types(converted(model, 10, {"x": data, **feeds}))


def test_infinity_stays_an_attribute(converted: Converted) -> None:
    model = _model(11, [1] * 6, {"v": np.array(np.inf, np.float32)}, inputs=["x", "pads", "v"])
    assert op_types(converted(model, 10, {"x": DATA})) == ["Pad"]


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_amounts_computed_before_9(mode: str, target: int, converted: Converted) -> None:
    feeds = {"pads": np.array([1, 0, 2, 0, 1, -1])}
    converted(_model(11, [0] * 6, feeds=feeds, mode=mode), target, {"x": DATA, **feeds})


def test_negative_amounts_are_refused_at_first(refusal: Refusing) -> None:
    found = refusal(_model(11, [0, -1, 0, 0, 0, 0]), 1)
    assert found.reason == "pads is [0, -1, 0, 0, 0, 0]; Pad-1 does not support negative pads"


def test_an_empty_dimension_has_nothing_to_continue() -> None:
    data = np.zeros((0, 2), np.float32)
    with pytest.raises(ConversionRefused, match="dimension 0 is empty"):
        convert_version(_model(19, [1, 0, 0, 0], data=data, mode="wrap"), 18)
