"""Conversion of the element types of a model that keeps its opsets."""

from __future__ import annotations

from typing import TypedDict, Unpack, overload

from opshift.converter.convert import convert_version
from opshift.converter.element_types.requested_types import TypesLike
from opshift.converter.options import AllowLike
from opshift.model.files import BytesLike, FileLike, Model, ModelLike, ModelObject, gc_paused
from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry


class ConvertTypesArguments(TypedDict, total=False):
    """Keyword arguments of `convert_types`."""

    keep_interface: bool
    allow: AllowLike
    inplace: bool
    check: bool
    registry: Registry | None


@overload
def convert_types(model: Model, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]) -> Model: ...
@overload
def convert_types(
    model: BytesLike, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]
) -> bytes: ...
@overload
def convert_types(
    model: FileLike, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]
) -> ModelProto: ...
@gc_paused
def convert_types(
    model: ModelLike, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]
) -> ModelObject | bytes:
    """Replace element types of a whole model: weights, constants, computed values, inputs and outputs.

    A wider type, such as float for float16, represents weights and inputs exactly; results are not rounded to
    the old type. Changes to other floating-point types require `allow="approximate"`. A node keeps the old
    type, between Casts, if its operator lacks the new type at the model's opset, if its results may leave the
    range of a narrower type (ReduceSum), or if it computes sizes. For bfloat16 to float16, such nodes compute
    in float. Local functions are inlined. `convert_version(model, target, types=...)` changes types before
    it converts the opsets; `convert_file(..., types=...)` converts models of any size.

    Args:
        model: a model as for `convert_version`. It is not modified.
        types: the new type of each old type, such as `{"bfloat16": "float16"}`, or texts such as
            `"bfloat16=float"`. New types are float16, float and double, and int32 for int64 values that fit.
        arguments: `keep_interface=True` keeps the types of graph inputs and outputs, and adds Casts. `allow`
            is as for `convert_version`; with `"clamp"`, the nearest number replaces a constant out of the
            range of the new type. `inplace`, `check` and `registry` are as for `convert_version`.

    Returns:
        A model of the same class; bytes for bytes; the project's ModelProto for a path or file object.

    Raises:
        ConversionRefused: a constant is out of range, the type of a value is unknown, or the change is
            inexact and not allowed; the error lists all reasons.
        InvalidModel, IllegalModel, UsageError: as for `convert_version`.
    """
    return convert_version(model, types=types, **arguments)
