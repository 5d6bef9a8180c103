"""Downgrades of Pad: wrap mode, axes, pads and value as attributes, and `paddings` at version 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conversion import convert_and_check, refusal_of
from support.dynamic import with_symbolic_dims
from support.execution import Array, build, op_types
from support.old_operators import assert_round_trip

from opshift import ConversionRefused, convert_version

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
    element_type = helper.np_dtype_to_tensor_dtype(data.dtype)
    computed = {"pads": np.array(pads, np.int64)} if feeds is not None and "pads" in feeds else {}
    initializers = {} if computed else {"pads": np.array(pads, np.int64)}
    return build(
        [node],
        {"x": data, **(feeds or {})},
        {"y": element_type},
        opset,
        initializers={**initializers, **(constants or {})},
        shapes=shapes,
    )


WRAP_PADS = [
    pytest.param([1, 0, 2, 0, 0, 1], id="both ends"),
    pytest.param([0, 0, 9, 0, 0, 6], id="more than one period"),
    pytest.param([0, -1, 3, 0, 0, -1], id="negative pads"),
]


def _expected_wrap(pads: Sequence[int]) -> Array:
    """Apply negative pads first, then repeat the remaining elements cyclically, as ONNX defines wrap mode."""
    result = DATA
    for axis in range(3):
        before, after = pads[axis], pads[axis + 3]
        remaining = list(range(max(-before, 0), DATA.shape[axis] - max(-after, 0)))
        indices = [
            remaining[i % len(remaining)] for i in range(-max(before, 0), len(remaining) + max(after, 0))
        ]
        result = result.take(indices, axis)
    return result


@pytest.mark.parametrize("pads", WRAP_PADS)
@pytest.mark.parametrize("target", [18, 13])
def test_rewrites_wrap_with_constant_pads_to_gather(pads: Sequence[int], target: int) -> None:
    model = _model(19, pads, mode="wrap")
    result = convert_and_check(model, target, {"x": DATA}, [_expected_wrap(pads)])
    assert set(op_types(result)) == {"Gather"}


@pytest.mark.parametrize("pads", WRAP_PADS)
def test_expands_wrap_with_computed_pads(pads: Sequence[int]) -> None:
    feeds = {"pads": np.array(pads, np.int64)}
    model = _model(19, pads, feeds=feeds, mode="wrap")
    convert_and_check(model, 18, {"x": DATA, **feeds}, [_expected_wrap(pads)])


def test_expands_wrap_with_pads_of_unknown_length() -> None:
    """The rank of the data determines the length of the pads."""
    feeds = {"pads": np.array([1, 0, 2, 0, 0, 1], np.int64)}
    model = _model(19, [], feeds=feeds, mode="wrap")
    model.graph.input[1].type.tensor_type.ClearField("shape")
    convert_and_check(model, 18, {"x": DATA, **feeds}, [_expected_wrap([1, 0, 2, 0, 0, 1])])


def test_expands_wrap_of_unknown_shape() -> None:
    pads = [1, 0, 2, 0, 0, 1]
    convert_and_check(_model(19, pads, shapes=False, mode="wrap"), 18, {"x": DATA}, [_expected_wrap(pads)])


def test_expands_wrap_with_axes() -> None:
    constants = {"axes": np.array([-1, 0], np.int64)}
    model = _model(19, [2, 1, 1, 0], constants, inputs=["x", "pads", "", "axes"], mode="wrap")
    convert_and_check(model, 18, {"x": DATA}, [_expected_wrap([1, 0, 2, 0, 0, 1])])


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("computed", [(), ("axes",), ("axes", "pads")], ids=["constants", "axes", "both"])
@pytest.mark.parametrize("shapes", [True, False], ids=["rank known", "rank unknown"])
def test_extends_pads_of_some_axes_to_all_dimensions(
    mode: str, computed: Sequence[str], shapes: bool
) -> None:
    axes, pads = np.array([-1, 0], np.int64), np.array([2, 1, 1, 0], np.int64)
    feeds = {name: value for name, value in (("axes", axes), ("pads", pads)) if name in computed}
    constants = {} if "axes" in computed else {"axes": axes}
    inputs = ["x", "pads", "", "axes"]
    model = _model(18, [2, 1, 1, 0], constants, inputs=inputs, feeds=feeds, shapes=shapes, mode=mode)
    convert_and_check(model, 13, {"x": DATA, **feeds})


def test_keeps_pads_without_axes() -> None:
    result = convert_and_check(_model(18, [0, 1, 0, 0, 0, 2]), 13, {"x": DATA})
    assert op_types(result) == ["Pad"]


PAD_VALUES = [
    pytest.param(np.float32, 1.5, id="float"),
    pytest.param(np.float64, -0.25, id="double"),
    pytest.param(np.int32, 7, id="int32 via double"),
    pytest.param(np.int8, -3, id="int8 via float"),
]


@pytest.mark.parametrize(("dtype", "value"), PAD_VALUES)
def test_moves_pads_and_value_to_attributes(dtype: Any, value: float) -> None:
    data = DATA.astype(dtype)
    constants = {"value": np.array(value, dtype)}
    model = _model(13, [0, 1, 0, 0, 0, 2], constants, data=data, inputs=["x", "pads", "value"])
    assert "Pad" in op_types(convert_and_check(model, 10, {"x": data}))


def test_drops_the_unused_value_in_edge_mode() -> None:
    feeds = {"value": np.array(1, np.float32)}
    model = _model(13, [0, 1, 0, 0, 0, 2], inputs=["x", "pads", "value"], feeds=feeds, mode="edge")
    assert list(convert_and_check(model, 10, {"x": DATA, **feeds}).graph.node[0].input) == ["x"]


def test_renames_pads_to_paddings_at_version_1() -> None:
    result = assert_round_trip(_model(11, [0, 1, 0, 0, 0, 2]), 1, {"x": DATA})
    assert {each.name for each in result.graph.node[0].attribute} == {"paddings"}


COMPUTED_PADS = [0, -1, 2, 0, 1, 0]


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.int64], ids=["float", "int64"])
def test_expands_computed_pads(mode: str, target: int, dtype: Any) -> None:
    data = DATA.astype(dtype)
    feeds = {"pads": np.array(COMPUTED_PADS, np.int64)}
    model = _model(11, COMPUTED_PADS, data=data, feeds=feeds, mode=mode)
    assert "Pad" not in op_types(convert_and_check(model, target, {"x": data, **feeds}))


def test_reflect_leaves_an_unpadded_dimension_of_size_one() -> None:
    """A dimension of size 1 has no elements to reflect, so only zero pads are valid for it."""
    data = DATA.reshape(1, 4, 6)
    feeds = {"pads": np.array([0, 2, 0, 0, 1, 5], np.int64)}
    model = _model(11, [], data=data, feeds=feeds, mode="reflect")
    convert_and_check(model, 10, {"x": data, **feeds})


FILL_VALUES = [
    pytest.param(np.float32, 1.5, True, id="computed value"),
    pytest.param(np.float64, 0.1, False, id="double that float rounds"),
    pytest.param(np.float64, 1e300, False, id="double out of range of float"),
    pytest.param(np.int32, 2**24 + 1, False, id="integer that float rounds"),
    pytest.param(np.int64, 2**60 + 1, False, id="64-bit integer"),
]


@pytest.mark.parametrize(("dtype", "value", "computed"), FILL_VALUES)
def test_expands_computed_pads_with_a_fill_value(dtype: Any, value: float, computed: bool) -> None:
    data, constants = DATA.astype(dtype), {"v": np.array(value, dtype)}
    feeds = constants if computed else {}
    inputs = ["x", "pads", "v"]
    model = _model(11, COMPUTED_PADS, {} if computed else constants, data=data, inputs=inputs, feeds=feeds)
    assert "Pad" not in op_types(convert_and_check(model, 10, {"x": data, **feeds}))


def test_moves_an_infinite_value_to_an_attribute() -> None:
    model = _model(11, [1] * 6, {"v": np.array(np.inf, np.float32)}, inputs=["x", "pads", "v"])
    assert op_types(convert_and_check(model, 10, {"x": DATA})) == ["Pad"]


@pytest.mark.parametrize("target", [7, 8])
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect"])
def test_expands_computed_pads_before_opset_9(mode: str, target: int) -> None:
    feeds = {"pads": np.array([1, 0, 2, 0, 1, -1])}
    convert_and_check(_model(11, [0] * 6, feeds=feeds, mode=mode), target, {"x": DATA, **feeds})


def test_refuses_negative_pads_at_version_1() -> None:
    refused = refusal_of(_model(11, [0, -1, 0, 0, 0, 0]), 1)
    assert refused.reason == "pads is [0, -1, 0, 0, 0, 0]; Pad-1 does not support negative pads"


def test_refuses_wrap_of_an_empty_dimension() -> None:
    data = np.zeros((0, 2), np.float32)
    with pytest.raises(ConversionRefused, match="dimension 0 is empty"):
        convert_version(_model(19, [1, 0, 0, 0], data=data, mode="wrap"), 18)


@pytest.mark.parametrize("target", [18, 9, 7])
def test_wraps_all_strings_of_rows(target: int) -> None:
    """For each index, onnxruntime's Gather copies only the first of the strings that follow the axis."""
    data = DATA.astype(np.int64).astype(str).astype(object)
    pads = ((1, 0), (0, 2), (0, 0))
    model = _model(19, [1, 0, 0, 0, 2, 0], data=data, mode="wrap")
    convert_and_check(model, target, {"x": data}, [np.pad(data, pads, mode="wrap")])


def test_wraps_all_strings_of_rows_of_unknown_number() -> None:
    data = DATA.astype(np.int64).astype(str).astype(object)
    model = _model(19, [1, 0, 0, 0, 2, 0], data=data, mode="wrap")
    with_symbolic_dims(model)
    expected = np.pad(data, ((1, 0), (0, 2), (0, 0)), mode="wrap")
    convert_and_check(model, 9, {"x": data}, [expected])
