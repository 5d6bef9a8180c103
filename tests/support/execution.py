"""Build small models, run them in a runtime, and compare their outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from random_graphs.execution import MAX_ORT_OPSET as MAX_ORT_OPSET

ort.set_default_logger_severity(4)
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
    """Build a model.

    Args:
        nodes: the nodes of its graph.
        feeds: arrays with the types and shapes of the inputs.
        outputs: element types of outputs by name, or the names of float outputs.
        opset: the opset of the default domain, or opsets by domain.
        ir_version: the IR version.
        initializers: initializers by name.
        shapes: whether inputs have shapes.
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


def one_node_model(
    op_type: str, opset: int, output_dtype: type, *arrays: Array, **attributes: int
) -> onnx.ModelProto:
    """Build a model with one node that reads `x0`, `x1` and so on, which are fed, and writes `y`."""
    feeds: dict[str, Array] = {f"x{index}": array for index, array in enumerate(arrays)}
    node = helper.make_node(op_type, list(feeds), ["y"], name="node", **attributes)
    return build([node], feeds, {"y": helper.np_dtype_to_tensor_dtype(np.dtype(output_dtype))}, opset)


def _value(name: str, array: Array, shapes: bool) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, element, array.shape if shapes else None)


def run(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Run a model in onnxruntime without optimizations, or in onnx.reference above the newest opset."""
    opset = next((i.version for i in model.opset_import if i.domain in ("", "ai.onnx")), 1)
    if opset > MAX_ORT_OPSET:
        return run_reference(model, feeds)
    return list(_session(model.SerializeToString()).run(None, dict(feeds)))


@lru_cache(maxsize=4)  # many tests run a model several times in a row
def _session(content: bytes) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1  # no pool of threads to start
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run_reference(model: onnx.ModelProto, feeds: Feeds) -> list[Any]:
    """Run a model in onnx.reference; NumPy warns of operators that result in NaN or infinity."""
    with np.errstate(all="ignore"):
        return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def assert_equal(found: Sequence[Any], expected: Sequence[Any], tolerance: float = 1e-5) -> None:
    """Assert equal numbers, types, shapes and values of outputs; NaN equals NaN."""
    assert len(found) == len(expected)
    for actual, wanted in zip(found, expected, strict=True):
        actual, wanted = np.asarray(actual), np.asarray(wanted)
        assert actual.dtype == wanted.dtype
        assert actual.shape == wanted.shape
        if actual.dtype.kind in "OUS":
            assert actual.tolist() == wanted.tolist()
        else:
            np.testing.assert_allclose(actual, wanted, rtol=tolerance, atol=tolerance)


def opset_of(model: Any, domain: str = "") -> int:
    """Return the opset of a domain in a model."""
    return int(next(each.version for each in model.opset_import if (each.domain or "") == domain))


def op_types(model: Any) -> list[str]:
    """Return the operators of the main graph in order."""
    return [node.op_type for node in model.graph.node]


def loads(model: onnx.ModelProto) -> bool:
    """Return whether onnxruntime loads a model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # the errors of a graph and of a kernel have different classes
        return False
    return True


def loads_and_runs(model: onnx.ModelProto, feeds: Feeds) -> bool:
    """Return whether onnxruntime accepts and runs a model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        session.run(None, feeds)
    except Exception:  # its classes have no common base
        return False
    return True
