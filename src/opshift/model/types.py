"""Conversion between TypeProto and type strings or shapes, and symbols in shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from opshift.model.element_types import BY_NAME, INTEGER_BITS, NAME_BY_NUMBER

if TYPE_CHECKING:
    from opshift.model.messages import TensorShapeProto, TypeProto

MAP_KEY_TYPES = frozenset((*INTEGER_BITS, "string"))
"""Element types that the keys of a map can have."""

Shape = tuple[int | None, ...]

Dim = int | str | None
"""Dimension of a shape: a size, a name (`dim_param`), or `None` for an unknown dimension."""


class SerializableMessage(Protocol):
    """Protobuf message of opshift's own classes or of the onnx package."""

    def SerializeToString(self) -> bytes:  # noqa: N802  # protobuf's name
        """Return the serialized message."""
        ...


InputFacts = str | tuple[str, Sequence[Dim] | None] | SerializableMessage
"""Description of a node input: its element type or type string, a pair of type and dimensions, a TypeProto,
or the value of a constant as a TensorProto."""

MAX_RANK = 64
"""Maximum rank of an inferred shape, as in NumPy; it bounds memory, because a model can request any rank."""

SMALLEST_SYMBOL = 1 << 62
"""Smallest value of a `Symbol`. Sizes of real tensors are below this number."""


class Symbol(int):
    """Size known only at run time, represented by a large pseudo-random number.

    Shape rules compute sums, products and exact quotients with the number, and everything else with functions
    of `registry/shapes/sizes.py`. If two results are equal, they are the same function of the same symbols:
    the numbers have so many random bits that a chance match is practically impossible.
    """


def element_type_of(proto: TypeProto) -> str | None:
    """Return the element type of a (sparse) tensor, or another type as a string; `None` if incomplete."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        return NAME_BY_NUMBER.get(getattr(proto, kind).elem_type)
    return type_to_string(proto)


def short_type(text: str) -> str:
    """Return the element type in a type string such as `tensor(float)`; other types stay unchanged."""
    return text.removeprefix("tensor(").removesuffix(")") if text.startswith("tensor(") else text


def type_to_string(proto: TypeProto) -> str | None:
    """Return a type string such as `tensor(float)` or `seq(map(string, float))`; `None` if incomplete."""
    kind = proto.WhichOneof("value")
    inner = None
    if kind in ("tensor_type", "sparse_tensor_type"):
        inner = NAME_BY_NUMBER.get(getattr(proto, kind).elem_type)
    elif kind in ("sequence_type", "optional_type"):
        inner = type_to_string(getattr(proto, kind).elem_type)
    elif kind == "map_type":
        key, value = NAME_BY_NUMBER.get(proto.map_type.key_type), type_to_string(proto.map_type.value_type)
        inner = f"{key}, {short_type(value)}" if key and value else None
    if kind is None or inner is None:
        return None
    return f"seq({inner})" if kind == "sequence_type" else f"{kind.removesuffix('_type')}({inner})"


def shape_of(proto: TypeProto) -> Shape | None:
    """Return the shape of a dense tensor type, with `None` for unknown sizes; `None` without a shape."""
    return dims_of(proto.tensor_type.shape) if has_shape(proto) else None


def shapes_conflict(first: Shape | None, second: Shape | None) -> bool:
    """Return whether two shapes contradict each other: their ranks differ, or two known sizes of an axis."""
    if first is None or second is None or first == second:
        return False
    return len(first) != len(second) or any(
        a != b and a is not None and b is not None for a, b in zip(first, second, strict=True)
    )


def shape_to_string(shape: Sequence[int | None]) -> str:
    """Return a shape for messages, such as `[2, ?]`."""
    return f"[{', '.join('?' if size is None else str(size) for size in shape)}]"


def has_shape(proto: TypeProto) -> bool:
    """Return whether a type is a dense tensor type of known rank."""
    return proto.WhichOneof("value") == "tensor_type" and proto.tensor_type.HasField("shape")


_INNER_TYPES = {"sequence_type": "elem_type", "optional_type": "elem_type", "map_type": "value_type"}


def nested_types(proto: TypeProto) -> list[TypeProto]:
    """Return a type and the types inside sequences, optionals and maps, from the outermost to the innermost.

    Only the innermost type, such as the tensor in `seq(tensor(float))`, can have a shape.
    """
    found = [proto]
    while (kind := found[-1].WhichOneof("value")) in _INNER_TYPES:
        found.append(getattr(getattr(found[-1], kind), _INNER_TYPES[kind]))
    return found


def declared_dims(proto: TypeProto) -> tuple[Dim, ...] | None:
    """Return the dimensions of a dense or sparse tensor type; `None` if the type has no shape."""
    kind = proto.WhichOneof("value")
    if kind not in ("tensor_type", "sparse_tensor_type") or not getattr(proto, kind).HasField("shape"):
        return None
    dims = getattr(proto, kind).shape.dim
    return tuple(dim.dim_value if _has_size(dim) else dim.dim_param or None for dim in dims)


def dims_text(dims: tuple[Dim, ...]) -> str:
    """Format dimensions as `[N, 3, ?]`."""
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"


def fill_type(proto: TypeProto, text: str, shape: Shape | None) -> None:
    """Fill an empty TypeProto from an element type such as `float16`, or a type string.

    Type strings are `tensor(...)`, `sparse_tensor(...)`, `seq(...)`, `optional(...)` and `map(key, value)`.
    `shape` is the shape of the innermost tensor, or `None` if it is unknown.

    Raises:
        KeyError: the text is not a type.
    """
    constructor, _, inner = text.removesuffix(")").partition("(")
    if bool(inner) is not text.endswith(")"):
        raise KeyError(text)
    if constructor in ("seq", "optional"):
        outer = proto.sequence_type if constructor == "seq" else proto.optional_type
        fill_type(outer.elem_type, inner, shape)
        return
    if constructor == "map":
        key, _, value = inner.partition(",")
        if key not in MAP_KEY_TYPES:
            raise KeyError(text)
        proto.map_type.key_type = BY_NAME[key].number
        fill_type(proto.map_type.value_type, value.strip(), shape)
        return
    if inner and constructor not in ("tensor", "sparse_tensor"):
        raise KeyError(text)
    tensor = proto.sparse_tensor_type if constructor == "sparse_tensor" else proto.tensor_type
    tensor.elem_type = BY_NAME[inner or constructor].number
    if shape is not None:
        tensor.shape.SetInParent()
    for size in shape or ():
        dim = tensor.shape.dim.add()
        if size is not None:
            dim.dim_value = size


def dims_of(shape: TensorShapeProto) -> tuple[int | None, ...]:
    """Return the dimensions of a TensorShapeProto, `None` for each unknown or symbolic dimension."""
    return tuple([dim.dim_value if _has_size(dim) else None for dim in shape.dim])


def _has_size(dim: TensorShapeProto.Dimension) -> bool:
    # Some exporters write -1 for an unknown dimension. Numbers from SMALLEST_SYMBOL denote symbols.
    return dim.HasField("dim_value") and 0 <= dim.dim_value < SMALLEST_SYMBOL
