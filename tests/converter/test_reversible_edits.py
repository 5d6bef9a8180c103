"""What somebody changed between a reversible conversion and the way back is converted as it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper, numpy_helper
from support.reversible import FLOAT, X, gelu_clip_gelu_model, node, shared_attribute_model
from support.running import assert_equal, build, op_types, run

from opshift.converter.convert import convert_version


def made_by(model: onnx.ModelProto, output: str) -> NodeProto:
    found: NodeProto = next(each for each in model.graph.node if output in each.output)
    return found


def scale(model: onnx.ModelProto) -> None:
    """Another number in the middle of the first Gelu."""
    erf = made_by(model, "erf")
    erf.input[0], position = "scaled", list(model.graph.node).index(erf)
    model.graph.node.insert(position, node("Mul", [made_by_input(model), "two"], ["scaled"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array(2, np.float32), "two"))


def made_by_input(model: onnx.ModelProto) -> str:
    return str(next(each.output[0] for each in model.graph.node if each.op_type in ("Div", "Mul")))


def peek(model: onnx.ModelProto) -> None:
    """An inner value of the first Gelu is returned as well."""
    model.graph.output.append(helper.make_tensor_value_info("erf", FLOAT, None))


def read_within(model: onnx.ModelProto) -> None:
    model.graph.node.append(node("Neg", ["erf"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", FLOAT, None))


def rename(model: onnx.ModelProto) -> None:
    """The value between the first Gelu and the Clip is called something else."""
    for each in model.graph.node:
        for names in (each.input, each.output):
            names[:] = ["renamed" if name == "a" else name for name in names]


def tune(model: onnx.ModelProto) -> None:
    """A constant that was added for the second Gelu is another number, for that alone."""
    half = next(each for each in model.graph.node if each.op_type == "Mul" and "b" in each.input)
    half.input[1] = "other"
    model.graph.initializer.append(numpy_helper.from_array(np.array(0.75, np.float32), "other"))


def retune(model: onnx.ModelProto) -> None:
    """A constant that was added for both is another number."""
    tensor = next(each for each in model.graph.initializer if each.name.startswith("const"))
    value = numpy_helper.to_array(tensor) * np.float32(0.5)
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def move_bound(model: onnx.ModelProto) -> None:
    """The bound that Clip once read, and that is an attribute of it, is another number."""
    tensor = next(each for each in model.graph.initializer if each.name == "low")
    tensor.CopyFrom(numpy_helper.from_array(np.array(2, np.float32), "low"))


def remove_bound(model: onnx.ModelProto) -> None:
    """What nothing reads is taken out."""
    model.graph.initializer.remove(next(each for each in model.graph.initializer if each.name == "low"))


def label(model: onnx.ModelProto) -> None:
    made_by(model, "a").doc_string = "edited"


def append(model: onnx.ModelProto) -> None:
    """A node behind the others, which has nothing to do with them."""
    model.graph.node.append(node("Neg", ["y"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", FLOAT, None))


EDITS = [
    ("a node is put into a group", scale, ["clip", "second"]),
    ("an inner value is returned", peek, ["clip", "second"]),
    ("an inner value is read by a new node", read_within, ["clip", "second"]),
    ("a value between groups is renamed", rename, ["second"]),
    ("a constant of a group is replaced", tune, ["first", "clip"]),
    ("a constant of groups is changed", retune, ["clip"]),
    ("an input that is part of the group is changed", move_bound, ["first", "second"]),
    ("an input that is part of the group is removed", remove_bound, ["first", "second"]),
    ("a node gets a doc string", label, ["clip", "second"]),
    ("a node is added", append, ["first", "clip", "second"]),
]


class TestEditedInBetween:
    """Groups that somebody changed are converted as they are; the others come back."""

    @pytest.mark.parametrize(("edit", "back"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
    def test_only_what_is_untouched_comes_back_where(
        self, edit: Callable[[onnx.ModelProto], None], back: list[str]
    ) -> None:
        model = gelu_clip_gelu_model()
        down = convert_version(model, 10, reversible=True)
        edit(down)
        up = convert_version(down, 20)
        whole = [each.name for each in model.graph.node if each in up.graph.node]
        assert whole == back
        assert_equal(run(up, {"x": X}), run(down, {"x": X}))
        assert not up.metadata_props

    def test_value_information_of_values_that_are_gone_goes(self) -> None:
        model = gelu_clip_gelu_model()
        down = onnx.shape_inference.infer_shapes(convert_version(model, 10, reversible=True))
        assert len(down.graph.value_info) > 2
        up = convert_version(down, 20)
        assert {each.name for each in up.graph.value_info} == {"a", "b"}
        assert up.graph.node == model.graph.node

    def test_nodes_in_another_order_come_back_if_their_inputs_are_made_before(self) -> None:
        nodes = [node("Gelu", ["x"], ["a"]), node("HardSwish", ["x"], ["b"]), node("Add", ["a", "b"], ["y"])]
        model = build(nodes, {"x": X}, ["y"], 20, ir_version=9)
        down = convert_version(model, 13, reversible=True)
        first = [each for each in down.graph.node if each.output[0] in ("gate", "b")]
        rest = [each for each in down.graph.node if each not in first]
        del down.graph.node[:]
        down.graph.node.extend([*first, *rest])
        up = convert_version(down, 20)
        assert op_types(up) == ["HardSwish", "Gelu", "Add"]
        assert_equal(run(up, {"x": X}), run(model, {"x": X}))

    def test_calls_of_a_function_that_give_another_attribute_keep_the_group(self) -> None:
        down = convert_version(shared_attribute_model(1), 12, reversible=True)
        for call in down.graph.node:
            call.attribute[0].i = 2
        up = convert_version(down, 13)
        assert_equal(run(up, {"x": X}), run(down, {"x": X}))

    def test_a_rank_that_the_group_was_made_for_is_another_one(self) -> None:
        """Softmax-12 on the last of three dimensions is not what Softmax-13 would be on four."""
        nodes = [node("LogSoftmax", ["x"], ["y"], axis=2)]
        model = build(nodes, {"x": X[0]}, ["y"], 13)
        down = convert_version(model, 12, reversible=True)
        down.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", FLOAT, X.shape))
        assert_equal(run(convert_version(down, 13), {"x": X}), run(down, {"x": X}))
