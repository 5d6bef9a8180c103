"""Parse arguments of public functions: one value or several, and shapes by value name."""

from collections.abc import Iterable, Iterator, Mapping
from operator import index
from typing import SupportsIndex

from opshift.model.errors import UsageError, is_collection
from opshift.model.types import MAX_RANK, SMALLEST_SYMBOL, Dim

Dims = tuple[Dim, ...]

ShapesLike = Mapping[str, str | Iterable[SupportsIndex | str | None]] | Iterable[str]

EXAMPLE = "write NAME=2,3,H,W: a number, a name, or ? for each dimension"

MAX_DIGITS = 19
"""Maximum number of digits of a size; keeps `int` from parsing huge texts."""


def read_shapes(shapes: ShapesLike) -> dict[str, Dims]:
    """Return the dimensions of each named value, or raise UsageError for an invalid shape."""
    found: dict[str, Dims] = {}
    for name, dims in shapes.items() if isinstance(shapes, Mapping) else _read_texts(shapes):
        if found.setdefault(name, read := _read_dims(name, dims)) != read:
            raise UsageError(f"{name!r} has two shapes", remedy="pass only one")
    return found


def _read_texts(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in members_of(texts):
        name, equals, dims = str(text).rpartition("=")
        if not equals or not name:
            raise UsageError(f"{text!r} is not a shape", remedy=EXAMPLE)
        yield name, dims


def _read_dims(name: str, dims: str | Iterable[SupportsIndex | str | None]) -> Dims:
    if isinstance(dims, str):
        dims = dims.split(",") if dims.strip() else ()
    elif not isinstance(dims, Iterable):
        raise UsageError(f"{dims!r} is not a shape of {name!r}", remedy=EXAMPLE)
    read = tuple(_read_dim(name, each) for each in dims)
    if len(read) > MAX_RANK:
        reason = f"the shape of {name!r} has {len(read):,} dimensions, more than {MAX_RANK}"
        raise UsageError(reason, remedy="correct the shape")
    return read


def _read_dim(name: str, dim: SupportsIndex | str | None) -> Dim:
    text = dim.strip() if isinstance(dim, str) else ""
    if dim is None or text == "?":
        return None
    size = int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else text
    if isinstance(dim, SupportsIndex) and not isinstance(dim, bool):
        size = index(dim)
    if isinstance(size, int) and 0 <= size < SMALLEST_SYMBOL:
        return size
    if isinstance(size, str) and size and not size.lstrip("+-").isdecimal():
        return size
    raise UsageError(f"{dim!r} is not a dimension of {name!r}", remedy=EXAMPLE)


def members_of(argument: object) -> Iterable[object]:
    """Return the members of an iterable argument; a string, bytes or a single value counts as one member."""
    return argument if is_collection(argument) else (argument,)
