"""Build graphs like an exporter: a Constant node for every number, and sizes computed from shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from support.execution import Array

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Dims = Sequence[int | str]


class ExportedGraph:
    """Builder of a graph; `seed` determines the weights in the order of their creation."""

    def __init__(self, opset: int, seed: int = 0, prefix: str = "") -> None:
        self.opset = opset
        self._prefix = prefix
        self._random = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._weights: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []

    def __call__(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.all(op_type, *inputs, count=1, **attributes)[0]

    def all(self, op_type: str, *inputs: str, count: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs."""
        name = f"/{self._prefix}{op_type}_{len(self._nodes)}"
        outputs = [f"{name}_output_{position}" for position in range(count)]
        self._nodes.append(helper.make_node(op_type, inputs, outputs, name, **attributes))
        return outputs

    def input(self, name: str, dims: Dims, element_type: int = FLOAT) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, element_type, dims))
        return name

    def output(self, name: str, dims: Dims | None, element_type: int = FLOAT) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, element_type, dims))

    def weight(self, *dims: int) -> str:
        name = f"{self._prefix}weight_{len(self._weights)}"
        weights = self._random.normal(0, 0.3, dims).astype(np.float32)
        self._weights.append(numpy_helper.from_array(weights, name))
        return name

    def whole(self, *numbers: int) -> str:
        """Add a list of int64."""
        return self.constant(np.array(numbers, np.int64))

    def constant(self, value: Array | np.generic) -> str:
        return self("Constant", value=numpy_helper.from_array(np.asarray(value)))

    def size(self, value: str, axis: int) -> str:
        """Compute a dimension of a value as a scalar."""
        return self("Gather", self("Shape", value), self.constant(np.int64(axis)), axis=0)

    def unsqueeze(self, value: str, *axes: int) -> str:
        if self.opset >= 13:
            return self("Unsqueeze", value, self.whole(*axes))
        return self("Unsqueeze", value, axes=axes)

    def dims(self, *parts: str | int) -> str:
        """Compute a shape from numbers and scalar values."""
        lists = [self.whole(each) if isinstance(each, int) else self.unsqueeze(each, 0) for each in parts]
        return self("Concat", *lists, axis=0)

    def graph(self, name: str) -> onnx.GraphProto:
        return helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._weights)

    def model(self, ir_version: int) -> onnx.ModelProto:
        imports = [helper.make_opsetid("", self.opset)]
        return helper.make_model(
            self.graph("main_graph"), opset_imports=imports, ir_version=ir_version, producer_name="pytorch"
        )
