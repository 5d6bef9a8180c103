"""Small models that a conversion from opset 9 changes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def save(path: Path, op_type: str = "Relu", fill: float = 1.0, data: str = "") -> Path:
    """Save a model of opset 9 with one node of a type and one weight, in a data file if it is named."""
    nodes = [helper.make_node(op_type, ["x"], ["a"]), helper.make_node("Add", ["a", "w"], ["b"])]
    nodes.append(helper.make_node("Clip", ["b"], ["y"], min=0.0))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [6]) for name in "xy")
    weight = numpy_helper.from_array(np.full(6, fill, np.float32), "w")
    path.parent.mkdir(parents=True, exist_ok=True)
    if data:
        (path.parent / data).write_bytes(weight.raw_data)
        weight = TensorProto(name="w", data_type=1, dims=[6], data_location=1)
        weight.external_data.add(key="location", value=data)
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    path.write_bytes(model.SerializeToString())
    return path


def opset(path: Path) -> int:
    """Return the opset of a model file."""
    return int(onnx.load(path, load_external_data=False).opset_import[0].version)
