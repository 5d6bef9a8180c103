"""Change the types of a model with one node."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import TensorProto as OnnxTensor
from onnx import numpy_helper

from opshift.analysis.verification.numpy_types import Array, dtype_of
from opshift.analysis.verification.result import CannotVerify
from opshift.model.element_types import BY_NAME
from opshift.model.messages import ModelProto, TensorProto
from opshift.model.types import short_type
from opshift.registry.models import OperatorVersion, Parameter


def with_types(model: ModelProto, version: OperatorVersion, types: Mapping[str, str]) -> ModelProto | None:
    """Return a copy of a model with other types; `None` if a constant cannot have its type."""
    changed = ModelProto.FromString(model.SerializeToString())
    graph = changed.graph
    node = graph.node[0]
    elements = {
        name: short_type(types[formal.type])
        for formals, names in ((version.inputs, node.input), (version.outputs, node.output))
        for position, name in enumerate(names)
        if (formal := _formal_at(formals, position)).type in types and name
    }
    for declared in (*graph.input, *graph.output):
        if declared.name in elements:
            declared.type.tensor_type.elem_type = BY_NAME[elements[declared.name]].number
    for constant in graph.initializer:
        if constant.name in elements and not _retype_tensor(constant, elements[constant.name]):
            return None
    for attribute in node.attribute:
        for formal in version.outputs:
            if formal.type_attribute == attribute.name and formal.type in types:
                element = short_type(types[formal.type])
                if attribute.HasField("t") and not _retype_tensor(attribute.t, element):
                    return None
                attribute.i = BY_NAME[element].number if attribute.HasField("i") else 0
    return changed


def _formal_at(formals: tuple[Parameter, ...], position: int) -> Parameter:
    return formals[min(position, len(formals) - 1)]


def _retype_tensor(tensor: TensorProto, element: str) -> bool:
    """Cast a tensor to another element type; return whether the type represents its values."""
    array = numpy_helper.to_array(OnnxTensor.FromString(tensor.SerializeToString()))
    try:
        cast = _cast_array(array, element)
    except (CannotVerify, ValueError, TypeError):
        return False
    name = tensor.name
    tensor.CopyFrom(TensorProto.FromString(numpy_helper.from_array(cast, name).SerializeToString()))
    return True


def _cast_array(array: Array, element: str) -> Array:
    if element == "string":
        return np.array([str(each) for each in array.ravel().tolist()], object).reshape(array.shape)
    with np.errstate(all="ignore"):
        return array.astype(dtype_of(element))
