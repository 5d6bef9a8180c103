"""Comparison of types, shapes, defaults and meanings of the inputs and outputs that both models have."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.adapters.wider_types import FLOATS, INTEGERS
from opshift.converter.comparison.result import Change
from opshift.converter.comparison.signature import Dim, Value

WIDER = {**INTEGERS, **FLOATS, "float": ("double",), "complex64": ("complex128",)}
"""For each element type, the types that hold all its values."""


def value_changes(old: Value, new: Value) -> Iterator[Change]:
    """Yield the changes of an input or output."""
    yield from _type_changes(old, new)
    yield from _default_changes(old, new)
    yield from _shape_changes(old, new)
    # different ranks are reported as a change of the shape
    for before, after in zip(old.denotations, new.denotations, strict=False):
        if before and after and before != after:
            yield Change("MEANING_CHANGED", old.place, before, after)


def _type_changes(old: Value, new: Value) -> Iterator[Change]:
    if old.type != new.type:
        kind = "WIDENED" if new.type in _wider_types(old.type) else "CHANGED"
        yield Change(f"{old.role}_TYPE_{kind}", old.place, old.type, new.type)


def _wider_types(text: str) -> tuple[str, ...]:
    element = text.removeprefix("tensor(").removesuffix(")")
    return tuple(f"tensor({each})" for each in WIDER.get(element, ()))


def _default_changes(old: Value, new: Value) -> Iterator[Change]:
    if old.default == new.default:
        return
    if new.default is None:
        yield Change("INPUT_DEFAULT_REMOVED", old.place)
    else:
        yield Change(f"INPUT_DEFAULT_{'ADDED' if old.default is None else 'CHANGED'}", old.place)


def _shape_changes(old: Value, new: Value) -> Iterator[Change]:
    kinds = dict.fromkeys(_shape_kinds(old.dims, new.dims))
    for kind in kinds:
        yield Change(f"{old.role}_SHAPE_{kind}", old.place, shape_text(old.dims), shape_text(new.dims))


def _shape_kinds(old: tuple[Dim, ...] | None, new: tuple[Dim, ...] | None) -> Iterator[str]:
    if old is None or new is None:
        if old != new:
            yield "NARROWED" if old is None else "WIDENED"
    elif len(old) != len(new):
        yield "CHANGED"
    else:
        for before, after in zip(old, new, strict=True):
            if isinstance(before, int) and isinstance(after, int) and before != after:
                yield "CHANGED"
            elif isinstance(before, int) != isinstance(after, int):
                yield "WIDENED" if isinstance(before, int) else "NARROWED"


def shape_text(dims: tuple[Dim, ...] | None) -> str:
    """Format a shape as `[N, 3, ?]` or `any rank`."""
    if dims is None:
        return "any rank"
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
