"""Attributes of tree ensembles: malformed trees, the computation type, and votes at inner nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.execution import op_types, run
from support.tree_ensembles import ML, assert_keeps_outputs, attribute, data, regressor

from opshift import ConversionRefused, convert_version
from random_graphs.forests import Forest, votes

Change = Callable[[onnx.NodeProto], None]


def tensor(*values: float, element_type: int = TensorProto.DOUBLE) -> onnx.TensorProto:
    return helper.make_tensor("", element_type, [len(values)], values)


def set_entry(name: str, index: int, value: int | bytes) -> Change:
    """Return a change of one entry of a list attribute."""

    def change(node: onnx.NodeProto) -> None:
        proto = next(each for each in node.attribute if each.name == name)
        values = proto.ints or proto.strings
        values[index] = value

    return change


def set_attributes(**attributes: Any) -> Change:
    """Return a change of attributes; `None` removes an attribute."""

    def change(node: onnx.NodeProto) -> None:
        kept = [each for each in node.attribute if each.name not in attributes]
        new_values = {name: value for name, value in attributes.items() if value is not None}
        del node.attribute[:]
        node.attribute.extend(
            [*kept, *(helper.make_attribute(name, value) for name, value in new_values.items())]
        )

    return change


def _model(change: Change) -> onnx.ModelProto:
    model = regressor(Forest(votes([0]), trees=2, depth=2), data(), 1)
    change(model.graph.node[0])
    return model


NO_NODES = dict.fromkeys(each for each in Forest(votes([0])).columns("target") if each.startswith("nodes_"))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        pytest.param(set_attributes(**NO_NODES), "the node has no trees", id="no nodes"),
        pytest.param(set_attributes(nodes_treeids=[0]), "nodes_treeids has 1 entries", id="too few tree ids"),
        pytest.param(set_attributes(nodes_values=None), "nodes_treeids has", id="no thresholds"),
        pytest.param(set_attributes(target_ids=[0]), "target_ids has 1 entries", id="too few votes"),
        pytest.param(set_entry("nodes_nodeids", 2, 1), "the same id", id="duplicate node id"),
        pytest.param(set_entry("nodes_truenodeids", 0, 99), "refers to node 99", id="missing child"),
        pytest.param(
            set_entry("nodes_truenodeids", 0, 0),
            "is not the root of all its nodes",
            id="a node that is its own child",
        ),
        pytest.param(
            set_entry("nodes_truenodeids", 0, 2),
            "is not the root of all its nodes",
            id="a child of two nodes",
        ),
        pytest.param(set_entry("nodes_modes", 0, b"BRANCH_IN"), "BRANCH_IN", id="unknown mode"),
        pytest.param(set_entry("target_ids", 0, 1), "does not exist", id="unknown target"),
        pytest.param(set_entry("target_nodeids", 0, 99), "does not exist", id="vote at a missing node"),
        pytest.param(set_entry("target_nodeids", 0, 0), "has no weight", id="a leaf without a vote"),
        pytest.param(
            set_attributes(nodes_values_as_tensor=tensor(1.0)),
            "in addition to",
            id="thresholds in a list and in a tensor",
        ),
        pytest.param(
            set_attributes(base_values_as_tensor=tensor(1, element_type=TensorProto.INT64)),
            "neither float nor double",
            id="a tensor of integers",
        ),
        pytest.param(
            set_attributes(base_values_as_tensor=onnx.TensorProto(data_type=TensorProto.DOUBLE, dims=[1])),
            "does not contain its values",
            id="tensor without its values",
        ),
    ],
)
def test_refuses_malformed_trees(change: Change, reason: str) -> None:
    """The reason names the attribute, tree or node."""
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(_model(change), {ML: 5})


@pytest.mark.parametrize(
    "base",
    [
        pytest.param(tensor(0.1), id="typed data"),
        pytest.param(onnx.numpy_helper.from_array(np.array([0.1])), id="raw data"),
    ],
)
def test_computes_in_the_widest_type(base: onnx.TensorProto) -> None:
    """A double base value makes every computation double; the result keeps its type."""
    float_model = regressor(Forest(votes([0]), attributes={"base_values": [0.1]}), data(), 1)
    result = convert_version(_model(set_attributes(base_values_as_tensor=base)), {ML: 5})
    assert op_types(result) == ["Cast", "TreeEnsemble", "Add", "Cast"]
    assert attribute(result.graph.node[1], "leaf_weights").data_type == TensorProto.DOUBLE
    assert run(result, {"x": data()})[0].dtype == run(float_model, {"x": data()})[0].dtype


def test_ignores_votes_at_inner_nodes() -> None:
    model = _model(set_attributes())
    for name, value in (
        ("target_treeids", 0),
        ("target_nodeids", 0),
        ("target_ids", 0),
        ("target_weights", 9.0),
    ):
        proto = next(each for each in model.graph.node[0].attribute if each.name == name)
        (proto.floats or proto.ints).append(value)
    assert_keeps_outputs(model, data())
