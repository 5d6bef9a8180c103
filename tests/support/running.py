"""Build small models, run them in a runtime, and compare what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

ort.set_default_logger_severity(4)
NEWEST_IN_ORT = 26
Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Array]


def build(
    nodes: Sequence[onnx.NodeProto],
    feeds: Feeds,
    outputs: Mapping[str, int] | Sequence[str],
    opset: int | Mapping[str, int],
    *,
    ir_version: int = 8,
    initializers: Feeds | None = None,
    shapes: bool = True,
) -> onnx.ModelProto:
    """A model whose inputs have the types and shapes of `feeds`.

    `outputs` maps names to element types, or lists names of float outputs; `shapes=False` states no shape.
    """
    opsets = {"": opset} if isinstance(opset, int) else opset
    elements = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, onnx.TensorProto.FLOAT)
    graph = helper.make_graph(
        list(nodes),
        "test",
        [_value(name, array, shapes) for name, array in feeds.items()],
        [helper.make_tensor_value_info(name, element, None) for name, element in elements.items()],
        [numpy_helper.from_array(array, name) for name, array in (initializers or {}).items()],
    )
    imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
    model = helper.make_model(graph, opset_imports=imports, producer_name="test")
    model.ir_version = ir_version
    return model


def _value(name: str, array: Array, shapes: bool) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, element, array.shape if shapes else None)


def run(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """The outputs in onnxruntime, unoptimised; beyond its newest opset in onnx.reference."""
    opset = next((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), 1)
    if opset > NEWEST_IN_ORT:
        return run_reference(model, feeds)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def run_reference(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """The outputs in onnx.reference."""
    return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def assert_equal(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-5) -> None:
    """Same number of outputs, types, shapes and values (NaN equals NaN)."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype.kind in "OUS":
            assert one.tolist() == other.tolist()
        else:
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def opset_of(model: Any, domain: str = "") -> int:
    """The opset of a domain in a converted model."""
    return int(next(each.version for each in model.opset_import if (each.domain or "") == domain))


def op_types(model: Any) -> list[str]:
    """The operators of the main graph, in order."""
    return [node.op_type for node in model.graph.node]
