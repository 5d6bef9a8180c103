"""Models whose inputs and outputs have types that every runtime reads from numpy and returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from opshift.model.graphs import root_graphs
from opshift.model.messages import ModelProto
from opshift.rewriting.workspace import FreshNames

NATIVE_TYPES: dict[int, int] = {
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4), TensorProto.INT32),
    **dict.fromkeys(
        (
            TensorProto.BFLOAT16,
            TensorProto.FLOAT8E4M3FN,
            TensorProto.FLOAT8E4M3FNUZ,
            TensorProto.FLOAT8E5M2,
            TensorProto.FLOAT8E5M2FNUZ,
        ),
        TensorProto.FLOAT,
    ),
}
"""Type that represents all values of a type that numpy lacks, by the number of this type."""


def with_native_types(
    model: onnx.ModelProto, feeds: Mapping[str, Any]
) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return a model that casts inputs and outputs of types that numpy lacks, and its input values."""
    result = onnx.ModelProto.FromString(model.SerializeToString())
    graph, fed = result.graph, dict(feeds)
    casts = []
    names = FreshNames()
    names.avoid(*root_graphs(ModelProto.FromString(model.SerializeToString())))
    for each in graph.input:
        number = each.type.tensor_type.elem_type
        if number in NATIVE_TYPES:
            name, native = each.name, names.fresh(f"{each.name}_native")
            casts.append(helper.make_node("Cast", [native], [name], to=number))
            each.name, each.type.tensor_type.elem_type = native, NATIVE_TYPES[number]
            if name in fed:
                dtype = helper.tensor_dtype_to_np_dtype(NATIVE_TYPES[number])
                fed[native] = np.asarray(fed.pop(name)).astype(dtype)
    nodes = [*casts, *graph.node]
    for each in graph.output:
        number = each.type.tensor_type.elem_type
        if number in NATIVE_TYPES:
            native = names.fresh(f"{each.name}_native")
            nodes.append(helper.make_node("Cast", [each.name], [native], to=NATIVE_TYPES[number]))
            each.name, each.type.tensor_type.elem_type = native, NATIVE_TYPES[number]
    del graph.node[:]
    graph.node.extend(nodes)
    return result, fed
