"""Symbols for sizes known only at run time; a symbol denotes the same size everywhere in a model."""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from opshift.model.messages import TensorShapeProto
from opshift.model.types import SMALLEST_SYMBOL, Shape, Symbol, dims_of, shapes_conflict
from opshift.registry.shapes.sizes import LARGEST_SYMBOL
from opshift.registry.shapes.sizes import symbol_named as symbol_named

SymbolicShape: TypeAlias = Shape
"""Shape whose sizes may be symbols."""


def is_symbol(element: object) -> bool:
    """Return whether an element or a dimension is a symbol, a size known only at run time."""
    return type(element) is Symbol


def symbol_of(value: str, axis: int) -> Symbol:
    """Return the symbol of a dimension without a name, identified by the name of the value and the axis."""
    # No exporter uses this separator in names of dimensions, so the symbol differs from all named dimensions.
    return symbol_named(f"{value}\0{axis}")


def symbolic_dims(proto: TensorShapeProto, value: str | None, prefix: str | None = "") -> SymbolicShape:
    """Return the dimensions of a TensorShapeProto, with symbols for named dimensions.

    Args:
        proto: the declared shape.
        value: name of the value, for the symbols of dimensions without size and name; if `None`, these
            dimensions are unknown.
        prefix: prefix of the names of dimensions; if `None`, the names are ignored.
    """
    sizes = dims_of(proto)
    if None not in sizes:
        return sizes
    return tuple(
        symbol_named(prefix + dim.dim_param)
        if size is None and dim.dim_param and prefix is not None
        else symbol_of(value, axis)
        if size is None and value is not None
        else size
        for axis, (size, dim) in enumerate(zip(sizes, proto.dim, strict=True))
    )


def has_symbols(shape: Shape | None) -> bool:
    """Return whether a shape has a symbolic size."""
    return shape is not None and any(type(size) is Symbol for size in shape)


def without_symbols(shape: Shape | None) -> Shape | None:
    """Return a shape with `None` in place of symbols."""
    if shape is None or not has_symbols(shape):
        return shape
    return tuple(None if type(size) is Symbol else size for size in shape)


def numbered_symbols(shapes: Sequence[Shape | None]) -> tuple[Shape | None, ...]:
    """Return shapes with -1, -2 and so on in place of symbols, numbered by first occurrence."""
    numbers: dict[int, int] = {}
    return tuple(
        shape
        if shape is None or not has_symbols(shape)
        else tuple(
            numbers.setdefault(size, -1 - len(numbers)) if type(size) is Symbol else size for size in shape
        )
        for shape in shapes
    )


class InferredShape(NamedTuple):
    """Known shape with symbols, or `None`; `is_shared`: the shape does not depend on the names of values."""

    shape: SymbolicShape | None
    is_shared: bool


def with_symbols(
    known: Shape | None, computed: Shape | None, value: str, *, is_exact: bool = False
) -> InferredShape:
    """Return a shape with symbols for the dimensions that depend on symbols.

    Args:
        known: the shape that the shape rule infers if all symbols are replaced by `None`.
        computed: the shape that the shape rule infers with the integers of symbols.
        value: name of the value, for new symbols.
        is_exact: whether a small computed number is a size, such as the quotient of products of symbols.
    """
    if known is None or computed is None or len(computed) != len(known):
        return InferredShape(known, is_shared=True)
    is_shared = True
    sizes = list(known)
    for axis, number in enumerate(computed):
        if sizes[axis] is None and number is not None:
            # A number below SMALLEST_SYMBOL may come from `min(N, 5)`, so the size gets a new symbol.
            is_regular = SMALLEST_SYMBOL <= number < LARGEST_SYMBOL
            if is_exact and 0 < number < SMALLEST_SYMBOL:
                sizes[axis] = number
                continue
            sizes[axis] = Symbol(number) if is_regular else symbol_of(value, axis)
            is_shared &= is_regular
    return InferredShape(tuple(sizes), is_shared)


def merge_claim(inferred: Shape | None, claimed: Shape | None) -> Shape | None:
    """Return an inferred shape, with sizes from the declared shape `claimed` for unknown dimensions.

    If the inferred rank is unknown, return `claimed`. If `claimed` contradicts an inferred size, it is
    outdated or wrong, and all of its sizes are ignored.
    """
    if inferred is None or claimed is None or None not in inferred:
        return claimed if inferred is None else inferred
    if shapes_conflict(without_symbols(inferred), without_symbols(claimed)):
        return inferred
    return tuple(claim if size is None else size for size, claim in zip(inferred, claimed, strict=True))
