"""Lists of nodes and votes: what is read from them, and what makes no forest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.forests import ML, Forest, assert_kept, attribute, data, regressor, votes
from support.running import op_types, run

from opshift import ConversionRefused, convert_version

Change = Callable[[onnx.NodeProto], None]


def tensor(*values: float, kind: int = TensorProto.DOUBLE) -> onnx.TensorProto:
    return helper.make_tensor("", kind, [len(values)], values)


def put(name: str, place: int, value: int | bytes) -> Change:
    """Change one entry of a list."""

    def change(node: onnx.NodeProto) -> None:
        found = next(each for each in node.attribute if each.name == name)
        column = found.ints or found.strings
        column[place] = value

    return change


def replaced(**attributes: Any) -> Change:
    """Give some attributes other values; `None` takes them away."""

    def change(node: onnx.NodeProto) -> None:
        kept = [each for each in node.attribute if each.name not in attributes]
        stated = {name: value for name, value in attributes.items() if value is not None}
        del node.attribute[:]
        node.attribute.extend(
            [*kept, *(helper.make_attribute(name, value) for name, value in stated.items())]
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
        pytest.param(replaced(**NO_NODES), "the node has no trees", id="no nodes"),
        pytest.param(replaced(nodes_treeids=[0]), "nodes_treeids has 1 entries", id="too few tree ids"),
        pytest.param(replaced(nodes_values=None), "nodes_treeids has", id="no thresholds"),
        pytest.param(replaced(target_ids=[0]), "target_ids has 1 entries", id="too few votes"),
        pytest.param(put("nodes_nodeids", 2, 1), "the same id", id="an id twice"),
        pytest.param(put("nodes_truenodeids", 0, 99), "refers to node 99", id="a child that is missing"),
        pytest.param(put("nodes_truenodeids", 0, 0), "do not form a tree", id="a node that is its own child"),
        pytest.param(put("nodes_truenodeids", 0, 2), "do not form a tree", id="a child of two nodes"),
        pytest.param(put("nodes_modes", 0, b"BRANCH_IN"), "BRANCH_IN", id="a mode that is unknown"),
        pytest.param(put("target_ids", 0, 1), "does not exist", id="a target that is not there"),
        pytest.param(put("target_nodeids", 0, 99), "does not exist", id="a vote at no node"),
        pytest.param(put("target_nodeids", 0, 0), "has no weight", id="a leaf without a vote"),
        pytest.param(
            replaced(nodes_values_as_tensor=tensor(1.0)),
            "in addition to",
            id="thresholds in a list and in a tensor",
        ),
        pytest.param(
            replaced(base_values_as_tensor=tensor(1, kind=TensorProto.INT64)),
            "neither float nor double",
            id="a tensor of integers",
        ),
        pytest.param(
            replaced(base_values_as_tensor=onnx.TensorProto(data_type=TensorProto.DOUBLE, dims=[1])),
            "does not contain its values",
            id="a tensor that is elsewhere",
        ),
    ],
)
def test_what_makes_no_forest(change: Change, reason: str) -> None:
    """The refusal says which list, tree or node."""
    with pytest.raises(ConversionRefused, match=reason):
        convert_version(_model(change), {ML: 5})


@pytest.mark.parametrize(
    "base",
    [
        pytest.param(tensor(0.1), id="numbers"),
        pytest.param(onnx.numpy_helper.from_array(np.array([0.1])), id="raw data"),
    ],
)
def test_the_widest_type_is_computed_in(base: onnx.TensorProto) -> None:
    """A base value of double precision makes all double, up to the result."""
    narrow = regressor(Forest(votes([0]), attributes={"base_values": [0.1]}), data(), 1)
    moved = convert_version(_model(replaced(base_values_as_tensor=base)), {ML: 5})
    assert op_types(moved) == ["Cast", "TreeEnsemble", "Add", "Cast"]
    assert attribute(moved.graph.node[1], "leaf_weights").data_type == TensorProto.DOUBLE
    assert run(moved, {"x": data()})[0].dtype == run(narrow, {"x": data()})[0].dtype


def test_votes_at_inner_nodes() -> None:
    """They count for nothing."""
    model = _model(replaced())
    for name, value in (
        ("target_treeids", 0),
        ("target_nodeids", 0),
        ("target_ids", 0),
        ("target_weights", 9.0),
    ):
        found = next(each for each in model.graph.node[0].attribute if each.name == name)
        (found.floats or found.ints).append(value)
    assert_kept(model, data())
