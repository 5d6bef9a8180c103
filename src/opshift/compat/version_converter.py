"""Drop-in replacement for `onnx.version_converter`.

    from opshift.compat import version_converter  # instead of: from onnx import version_converter
    version_converter.convert_version(model, 17)

The signature and the types of errors are ONNX's, and the result has inferred shapes. Differences:

* Models with functions, subgraphs or other domains are converted, too, to and from every opset.
* Nodes, names and weights that need no conversion are kept; such nodes are not validated.
* The IR version follows the opset. If it rises from below 4, initializers stop being graph inputs.
"""

import sys
from typing import TypeVar

from opshift.converter import convert
from opshift.model.errors import OpshiftError
from opshift.model.files import ModelMessage, model_of

__all__ = ["ConvertError", "convert_version"]

Model = TypeVar("Model", bound=ModelMessage)


class ConvertError(RuntimeError):
    """The model is invalid or cannot be converted; `__cause__` is an `OpshiftError` with the details."""


def convert_version(model: Model, target_version: int) -> Model:
    """Convert the default domain of a model to another opset.

    Args:
        model: a ModelProto; it is not modified.
        target_version: opset of the default domain.

    Returns:
        The converted model, of the same class; an `onnx.ModelProto` gets the shapes that ONNX infers.

    Raises:
        ConvertError: the model is invalid or cannot be converted, or the opset does not exist.
        TypeError: the model is not a ModelProto, or the opset is not an integer.
    """
    if not (hasattr(model, "opset_import") and hasattr(model, "graph")):
        raise TypeError(f"expected a ModelProto as model, got {type(model).__name__}")
    if not isinstance(target_version, int):
        raise TypeError(f"expected an integer as target_version, got {type(target_version).__name__}")
    try:
        converted = convert.convert_version(model, target_version)
    except OpshiftError as error:
        raise ConvertError(str(error)) from error
    return _with_shapes(converted, model)


def _with_shapes(model: Model, source: Model) -> Model:
    """Return a converted model with the shapes that ONNX infers.

    Return `model` itself if it is not an onnx.ModelProto, or if ONNX fails.
    """
    onnx = sys.modules.get("onnx")  # without the package onnx, no model is an onnx.ModelProto
    if onnx is None or not isinstance(model, onnx.ModelProto):
        return model
    outputs = model_of(model)[0].graph.output
    try:
        # ONNX cannot infer all shapes through replacement nodes: if an output has no shape, take the types
        # that ONNX infers for the outputs of the source. Only then, because this serializes all weights.
        if not all(each.type.tensor_type.HasField("shape") for each in outputs):
            known = onnx.shape_inference.infer_shapes(source).graph.output
            for output, same in zip(outputs, known, strict=True):
                output.type.CopyFrom(same.type)
        inferred: Model = onnx.shape_inference.infer_shapes(model)
    except Exception:  # The shapes are optional, and ONNX does not document which errors it raises.
        return model
    return inferred
