"""Conversion between TypeProto and type strings or shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opshift.model.element_types import BY_NAME, BY_NUMBER

if TYPE_CHECKING:
    from opshift.model.messages import TensorShapeProto, TypeProto

Shape = tuple[int | None, ...]

Dim = int | str | None
"""Size or name of a dimension; `None` if it has neither."""


def element_type_of(proto: TypeProto) -> str | None:
    """Return the element type of a tensor, such as `float16`, or the type string of any other type.

    Returns:
        `None` if the type is incomplete.
    """
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        element = BY_NUMBER.get(getattr(proto, kind).elem_type)
        return element.name if element else None
    return type_to_string(proto)


def type_to_string(proto: TypeProto) -> str | None:
    """Return the type string of a TypeProto, such as `tensor(float)` or `seq(map(string, float))`.

    Returns:
        `None` if the type is incomplete.
    """
    kind = proto.WhichOneof("value")
    if kind == "tensor_type" or kind == "sparse_tensor_type":
        element = BY_NUMBER.get(getattr(proto, kind).elem_type)
        return f"{kind.removesuffix('_type')}({element.name})" if element else None
    if kind == "sequence_type":
        return _container_text("seq", proto.sequence_type.elem_type)
    if kind == "optional_type":
        return _container_text("optional", proto.optional_type.elem_type)
    if kind == "map_type":
        key = BY_NUMBER.get(proto.map_type.key_type)
        value = type_to_string(proto.map_type.value_type)
        inner = (
            value.removeprefix("tensor(").removesuffix(")")
            if value and value.startswith("tensor(")
            else value
        )
        return f"map({key.name}, {inner})" if key and inner else None
    return None


def _container_text(constructor: str, inner: TypeProto) -> str | None:
    text = type_to_string(inner)
    return f"{constructor}({text})" if text else None


def shape_of(proto: TypeProto) -> Shape | None:
    """Return the dimensions of a tensor type, `None` for symbolic ones; `None` if the shape is missing."""
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
        return None
    return dims_of(proto.tensor_type.shape)


def declared_dims(proto: TypeProto) -> tuple[Dim, ...] | None:
    """Return the dimensions of a dense or sparse tensor type; `None` if the shape is missing."""
    kind = proto.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type") or not getattr(proto, kind).HasField("shape"):
        return None
    dims = getattr(proto, kind).shape.dim
    return tuple(dim.dim_value if _has_size(dim) else dim.dim_param or None for dim in dims)


def dims_text(dims: tuple[Dim, ...]) -> str:
    """Format dimensions as `[N, 3, ?]`."""
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def fill_type(proto: TypeProto, text: str, shape: Shape | None) -> None:
    """Fill an empty TypeProto.

    Args:
        proto: the TypeProto.
        text: element type of a tensor, such as `float16`, or a type string `tensor(...)`, `seq(...)` or
            `optional(...)`.
        shape: dimensions of the tensor, or of the tensors in a sequence or optional; `None` if unknown.
    """
    constructor, _, inner = text.removesuffix(")").partition("(")
    if constructor in ("seq", "optional"):
        outer = proto.sequence_type if constructor == "seq" else proto.optional_type
        fill_type(outer.elem_type, inner, shape)
        return
    proto.tensor_type.elem_type = BY_NAME[inner or constructor].number
    if shape is not None:
        proto.tensor_type.shape.SetInParent()
    for size in shape or ():
        dim = proto.tensor_type.shape.dim.add()
        if size is not None:
            dim.dim_value = size


def dims_of(shape: TensorShapeProto) -> tuple[int | None, ...]:
    """Return the dimensions of a TensorShapeProto, `None` for each unknown or symbolic dimension."""
    return tuple([dim.dim_value if _has_size(dim) else None for dim in shape.dim])


def _has_size(dim: TensorShapeProto.Dimension) -> bool:
    # Some exporters write -1 for an unknown dimension.
    return dim.HasField("dim_value") and dim.dim_value >= 0
