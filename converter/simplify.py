"""Simplification of a model at its opsets: folding without a conversion."""

from __future__ import annotations

from typing import TypedDict, Unpack, overload

from opshift.converter.convert import convert_version
from opshift.converter.shape_arguments import ShapesLike
from opshift.model.files import BytesLike, FileLike, Model, ModelLike, ModelObject, gc_paused
from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry


class SimplifyArguments(TypedDict, total=False):
    """Keyword arguments of `simplify`."""

    shapes: ShapesLike
    keep_initializer_inputs: bool
    inplace: bool
    check: bool
    registry: Registry | None


@overload
def simplify(model: Model, **arguments: Unpack[SimplifyArguments]) -> Model: ...
@overload
def simplify(model: BytesLike, **arguments: Unpack[SimplifyArguments]) -> bytes: ...
@overload
def simplify(model: FileLike, **arguments: Unpack[SimplifyArguments]) -> ModelProto: ...
@gc_paused
def simplify(model: ModelLike, **arguments: Unpack[SimplifyArguments]) -> ModelObject | bytes:
    """Replace values that are the same in every run by constants, and remove nodes that have no effect.

    A node has no effect if it returns its input unchanged, computes the same as an earlier node, or produces
    only unread values. Unread initializers are removed, too. Every output stays equal, bit for bit. A value
    that depends on an initializer that callers can override, or that training updates, is not constant.
    `convert_version(model, target, fold=True)` does the same before a conversion.

    Args:
        model: a model as for `convert_version`. It is not modified unless `inplace` is given.
        arguments: `shapes`, `keep_initializer_inputs`, `inplace`, `check` and `registry` as for
            `convert_version`. With sizes in `shapes`, more values are constant. Below IR version 4, all
            initializers are constant unless `keep_initializer_inputs` is given.

    Returns:
        A model of the class of `model`; bytes for bytes; the project's ModelProto for a path or file object.

    Raises:
        InvalidModel, IllegalModel, UsageError: as for `convert_version`.
    """
    return convert_version(model, fold=True, **arguments)
