"""Models with large weights, and requests that clients made for them."""

from typing import Any

import fsspec
import numpy as np
from onnx import TensorProto, helper, numpy_helper

from zoos.s3_server import Server


def model_bytes(tensors: int = 8, elements: int = 700_000) -> bytes:
    """Return a model with large tensors, small tensors, and a node that opset 13 changes."""
    values = np.arange(elements, dtype=np.float32)
    weights = [numpy_helper.from_array(values + n, f"w{n}") for n in range(tensors)]
    weights += [numpy_helper.from_array(values[:300] + n, f"b{n}") for n in range(tensors)]
    nodes = [helper.make_node("Squeeze", ["x"], ["v0"], axes=[0])]
    nodes += [helper.make_node("Add", [f"v{n}", f"w{n}"], [f"v{n + 1}"]) for n in range(tensors)]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, elements])]
    outputs = [helper.make_tensor_value_info(f"v{tensors}", TensorProto.FLOAT, [elements])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=7)
    return bytes(model.SerializeToString())


def received(server: Server) -> int:
    """Return the bytes that clients received."""
    return sum(each.sent for each in server.requests())


def s3() -> Any:
    """Return the client that opshift uses."""
    return fsspec.filesystem("s3", use_listings_cache=False)


def open_uploads(bucket: str) -> list[str]:
    """Return the keys of multipart uploads that were neither completed nor aborted."""
    answer = s3().call_s3("list_multipart_uploads", Bucket=bucket.removeprefix("s3://"))
    return [each["Key"] for each in answer.get("Uploads", [])]
