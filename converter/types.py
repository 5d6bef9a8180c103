"""Types and shapes out of TypeProto."""

from __future__ import annotations

from typing import Any

from opshift.adapters.dimensions import sizes_of
from opshift.registry.element_types import BY_NAME, BY_NUMBER

Shape = tuple[int | None, ...]


def element_type_of(proto: Any) -> str | None:
    """`float16` for a tensor, `seq(tensor(float))` and the like for the rest; `None` if not said."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        found = BY_NUMBER.get(getattr(proto, kind).elem_type)
        return found.name if found else None
    return type_text(proto)


def type_text(proto: Any) -> str | None:
    """A type as definitions write it: `tensor(float)`, `seq(map(string, float))`."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type" or kind == "sparse_tensor_type":
        found = BY_NUMBER.get(getattr(proto, kind).elem_type)
        return f"{kind.removesuffix('_type')}({found.name})" if found else None
    if kind == "sequence_type":
        return _wrapped("seq", proto.sequence_type.elem_type)
    if kind == "optional_type":
        return _wrapped("optional", proto.optional_type.elem_type)
    if kind == "map_type":
        key = BY_NUMBER.get(proto.map_type.key_type)
        value = type_text(proto.map_type.value_type)
        inner = (
            value.removeprefix("tensor(").removesuffix(")")
            if value and value.startswith("tensor(")
            else value
        )
        return f"map({key.name}, {inner})" if key and inner else None
    return None


def _wrapped(word: str, inner: Any) -> str | None:
    text = type_text(inner)
    return f"{word}({text})" if text else None


def shape_of(proto: Any) -> Shape | None:
    """The dimensions of a tensor type, `None` for each that has no number; `None` without a shape."""
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
        return None
    return sizes_of(proto.tensor_type.shape)


def fill_type(proto: Any, text: str, shape: Shape | None) -> None:
    """Make an empty TypeProto the type of a tensor, such as `float16`, or a `seq(...)` or `optional(...)`."""
    word, _, inner = text.removesuffix(")").partition("(")
    if word in ("seq", "optional"):
        outer = proto.sequence_type if word == "seq" else proto.optional_type
        fill_type(outer.elem_type, inner, shape)
        return
    proto.tensor_type.elem_type = BY_NAME[inner or word].number
    if shape is not None:
        proto.tensor_type.shape.SetInParent()
    for size in shape or ():
        dim = proto.tensor_type.shape.dim.add()
        if size is not None:
            dim.dim_value = size
