"""Parts that somebody edits after a reversible conversion are converted, not restored."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import NodeProto, helper, numpy_helper
from support.execution import assert_equal, build, op_types, run
from support.reversible import FLOAT, X, gelu_clip_gelu_model, node, shared_attribute_model

from opshift.converter.convert import convert_version


def producer_of(model: onnx.ModelProto, output: str) -> NodeProto:
    producer: NodeProto = next(each for each in model.graph.node if output in each.output)
    return producer


def insert_product(model: onnx.ModelProto) -> None:
    """Insert a multiplication into the nodes of the first Gelu."""
    erf = producer_of(model, "erf")
    erf.input[0], position = "scaled", list(model.graph.node).index(erf)
    model.graph.node.insert(position, node("Mul", [first_quotient_or_product(model), "two"], ["scaled"]))
    model.graph.initializer.append(numpy_helper.from_array(np.array(2, np.float32), "two"))


def first_quotient_or_product(model: onnx.ModelProto) -> str:
    return str(next(each.output[0] for each in model.graph.node if each.op_type in ("Div", "Mul")))


def return_inner_value(model: onnx.ModelProto) -> None:
    """Add an inner value of the first Gelu to the graph outputs."""
    model.graph.output.append(helper.make_tensor_value_info("erf", FLOAT, None))


def read_inner_value(model: onnx.ModelProto) -> None:
    model.graph.node.append(node("Neg", ["erf"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", FLOAT, None))


def rename_value(model: onnx.ModelProto) -> None:
    """Rename the value between the first Gelu and Clip."""
    for each in model.graph.node:
        for names in (each.input, each.output):
            names[:] = ["renamed" if name == "a" else name for name in names]


def replace_constant(model: onnx.ModelProto) -> None:
    """Give the second Gelu a different constant than the first."""
    product = next(each for each in model.graph.node if each.op_type == "Mul" and "b" in each.input)
    product.input[1] = "other"
    model.graph.initializer.append(numpy_helper.from_array(np.array(0.75, np.float32), "other"))


def change_shared_constant(model: onnx.ModelProto) -> None:
    """Change a constant that both Gelus share."""
    tensor = next(each for each in model.graph.initializer if each.name.startswith("const"))
    value = numpy_helper.to_array(tensor) * np.float32(0.5)
    tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))


def change_bound(model: onnx.ModelProto) -> None:
    """Change the original bound of Clip, which the downgraded Clip has as an attribute."""
    tensor = next(each for each in model.graph.initializer if each.name == "low")
    tensor.CopyFrom(numpy_helper.from_array(np.array(2, np.float32), "low"))


def remove_bound(model: onnx.ModelProto) -> None:
    """Remove the original bound of Clip, which no node reads after the downgrade."""
    model.graph.initializer.remove(next(each for each in model.graph.initializer if each.name == "low"))


def add_doc_string(model: onnx.ModelProto) -> None:
    producer_of(model, "a").doc_string = "edited"


def append_node(model: onnx.ModelProto) -> None:
    """Append a node that is independent of the groups."""
    model.graph.node.append(node("Neg", ["y"], ["z"]))
    model.graph.output.append(helper.make_tensor_value_info("z", FLOAT, None))


EDITS = [
    ("node inserted into a group", insert_product, ["clip", "second"]),
    ("inner value returned", return_inner_value, ["clip", "second"]),
    ("inner value read by a new node", read_inner_value, ["clip", "second"]),
    ("value between groups renamed", rename_value, ["second"]),
    ("constant of a group replaced", replace_constant, ["first", "clip"]),
    ("constant of two groups changed", change_shared_constant, ["clip"]),
    ("input in the group changed", change_bound, ["first", "second"]),
    ("input in the group removed", remove_bound, ["first", "second"]),
    ("doc string added", add_doc_string, ["clip", "second"]),
    ("node appended", append_node, ["first", "clip", "second"]),
]


class TestEditedModel:
    """Edited groups are converted; the remaining groups are restored."""

    @pytest.mark.parametrize(("edit", "restored"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
    def test_restores_only_unedited_groups(
        self, edit: Callable[[onnx.ModelProto], None], restored: list[str]
    ) -> None:
        model = gelu_clip_gelu_model()
        down = convert_version(model, 10, reversible=True)
        edit(down)
        up = convert_version(down, 20)
        kept = [each.name for each in model.graph.node if each in up.graph.node]
        assert kept == restored
        assert_equal(run(up, {"x": X}), run(down, {"x": X}))
        assert not up.metadata_props

    def test_removes_value_info_of_removed_values(self) -> None:
        model = gelu_clip_gelu_model()
        down = onnx.shape_inference.infer_shapes(convert_version(model, 10, reversible=True))
        assert len(down.graph.value_info) > 2
        up = convert_version(down, 20)
        assert {each.name for each in up.graph.value_info} == {"a", "b"}
        assert up.graph.node == model.graph.node

    def test_restores_reordered_nodes(self) -> None:
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

    def test_preserves_outputs_after_edited_call_attributes(self) -> None:
        down = convert_version(shared_attribute_model(1), 12, reversible=True)
        for call in down.graph.node:
            call.attribute[0].i = 2
        up = convert_version(down, 13)
        assert_equal(run(up, {"x": X}), run(down, {"x": X}))

    def test_preserves_outputs_after_an_edited_rank(self) -> None:
        """LogSoftmax-12 with axis 2 is equal to LogSoftmax-13 for rank 3 but not for rank 4."""
        nodes = [node("LogSoftmax", ["x"], ["y"], axis=2)]
        model = build(nodes, {"x": X[0]}, ["y"], 13)
        down = convert_version(model, 12, reversible=True)
        down.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", FLOAT, X.shape))
        assert_equal(run(convert_version(down, 13), {"x": X}), run(down, {"x": X}))
