"""Models that consist mostly of weights: 16 MiB per MatMul, with Clip nodes in between that are rewritten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

WIDTH = 2048
PAYLOAD = WIDTH * WIDTH * 4
LAYERS = 64
"""Layers per GiB of weights."""
OPSET = 9


def heavy(gibibytes: int) -> onnx.ModelProto:
    """Return a model in memory."""
    model = _bare(gibibytes)
    payload = _payload()
    for tensor in model.graph.initializer:
        tensor.raw_data = payload
    return model


def write_heavy(gibibytes: int, path: Path) -> None:
    """Write a model to one file, tensor by tensor: protobuf cannot serialize more than 2 GiB at once."""
    model = _bare(gibibytes)
    names = [tensor.name for tensor in model.graph.initializer]
    del model.graph.initializer[:]
    graph = model.graph.SerializeToString()
    model.ClearField("graph")
    payload = _payload()
    with path.open("wb") as file:
        file.write(model.SerializeToString())
        tensors = (_tensor(name, payload).SerializeToString() for name in names)
        size = len(graph) + sum(len(_field(5, len(each))) + len(each) for each in tensors)
        file.write(_field(7, size) + graph)
        for name in names:
            tensor = _tensor(name, payload).SerializeToString()
            file.write(_field(5, len(tensor)) + tensor)


def write_external(gibibytes: int, path: Path) -> None:
    """Write a model with external weights in a sparse file of zeros, which uses no disk space."""
    model = _bare(gibibytes)
    data = path.with_suffix(".bin")
    for position, tensor in enumerate(model.graph.initializer):
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": data.name, "offset": str(position * PAYLOAD), "length": str(PAYLOAD)}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
    path.write_bytes(model.SerializeToString())
    with data.open("wb") as file:
        file.truncate(len(model.graph.initializer) * PAYLOAD)


def _bare(gibibytes: int) -> onnx.ModelProto:
    """Return the model with empty weights."""
    count = LAYERS * gibibytes
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        list(_nodes(count)),
        "heavy",
        [value("v0", TensorProto.FLOAT, [1, WIDTH])],
        [value(f"v{count}", TensorProto.FLOAT, [1, WIDTH])],
        [_tensor(f"w{layer}") for layer in range(count)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def _nodes(count: int) -> Iterator[onnx.NodeProto]:
    for layer in range(count):
        yield helper.make_node("MatMul", [f"v{layer}", f"w{layer}"], [f"m{layer}"], f"MatMul_{layer}")
        yield helper.make_node("Clip", [f"m{layer}"], [f"c{layer}"], f"Clip_{layer}", min=0.0, max=6.0)
        yield helper.make_node("Relu", [f"c{layer}"], [f"v{layer + 1}"], f"Relu_{layer}")


def _tensor(name: str, payload: bytes = b"") -> TensorProto:
    return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH], raw_data=payload)


def _payload() -> bytes:
    return np.random.default_rng(0).standard_normal((WIDTH, WIDTH), np.float32).tobytes()


def _field(number: int, size: int) -> bytes:
    """Return the tag and length of a field with `size` bytes in the wire format of protobuf."""
    head = [number << 3 | 2]
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*head, size])
