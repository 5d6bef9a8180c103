"""What both models are given: the caller's arrays, and made-up ones for the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from opshift.converter.errors import UsageError
from opshift.converter.types import element_type_of, type_text
from opshift.converter.verification import arrays
from opshift.converter.verification.result import CannotVerify
from opshift.converter.verification.shapes import Dim, Input, Layout, layouts
from opshift.converter.verification.values import RANGES, make

Feeds = Mapping[str, Any]
Given = Mapping[str, Any] | str | os.PathLike[str] | None
"""Values by name, or the path of an .npz file of them."""

UNREADABLE = (OSError, EOFError, ValueError, BadZipFile, AttributeError, TypeError)
"""What numpy raises of a file that is not there, or of something else; the last two of a single array."""


class Drawn(NamedTuple):
    """What the samples of one try have."""

    layout: Layout
    samples: tuple[Feeds, ...]


def inputs_of(graph: Any) -> tuple[Input, ...]:
    """The graph inputs that have no default."""
    defaults = {each.name for each in graph.initializer}
    defaults |= {each.values.name for each in graph.sparse_initializer}
    return tuple(_input(value) for value in graph.input if value.name not in defaults)


def read_given(given: Given, graph: Any) -> Feeds:
    """The caller's values, as arrays of the types that the graph declares.

    Raises:
        UsageError: the file cannot be read, a name is no input, or a type is another.
    """
    declared = {value.name: _input(value) for value in graph.input}
    named = given if isinstance(given, Mapping) else _load(given) if given is not None else {}
    for name in named:
        if name not in declared:
            raise UsageError(
                f"{name!r} is no input", remedy=f"the inputs are {', '.join(declared) or 'none'}"
            )
    return {name: _converted(value, declared[name]) for name, value in named.items()}


def draw(inputs: Sequence[Input], given: Feeds, samples: int, seed: int) -> Iterator[Drawn]:
    """Samples of all inputs, one try after another, until the caller has one that the model runs with.

    Raises:
        CannotVerify: an input is of a kind that is not made up.
    """
    open_ones = [each for each in inputs if each.name not in given]
    for each in open_ones:
        if each.element_type is None:
            raise CannotVerify(
                f"input {each.name!r} is {each.type or 'of no stated type'}, for which no value is made up",
                remedy=f"give it: inputs={{{each.name!r}: ...}}",
            )
    ranges = RANGES if any(_is_counted(each) for each in open_ones) else RANGES[:1]
    for whole, layout in product(ranges, list(layouts(open_ones, _bound(inputs, given)))):
        drawn = range(samples if open_ones else 1)
        yield Drawn(layout, tuple(_sample(open_ones, given, layout, each, whole, seed) for each in drawn))


def _sample(
    inputs: Sequence[Input], given: Feeds, layout: Layout, sample: int, whole: tuple[int, int], seed: int
) -> Feeds:
    random = np.random.default_rng([seed, sample])
    made = {
        each.name: make(each.element_type or "", layout[each.name], sample, whole, random) for each in inputs
    }
    return {**made, **given}


def _is_counted(each: Input) -> bool:
    return each.element_type is not None and ("int" in each.element_type or each.element_type == "string")


def _bound(inputs: Sequence[Input], given: Feeds) -> dict[str, int]:
    """The sizes of named dimensions, from the arrays that the caller gave."""
    return {
        dim: size
        for each in inputs
        if each.name in given and isinstance(given[each.name], np.ndarray)
        for dim, size in zip(each.dims or (), given[each.name].shape, strict=False)
        if isinstance(dim, str)
    }


def _input(value: Any) -> Input:
    kind = value.type
    text = type_text(kind) or ""
    if kind.WhichOneof("value") != "tensor_type":
        return Input(value.name, text, None, None)
    shape = kind.tensor_type.shape if kind.tensor_type.HasField("shape") else None
    dims = None if shape is None else tuple(_dim(each) for each in shape.dim)
    return Input(value.name, text, element_type_of(kind), dims)


def _dim(dim: Any) -> Dim:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return int(dim.dim_value)
    return dim.dim_param or None


def _load(path: str | os.PathLike[str]) -> Feeds:
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except UNREADABLE as error:
        raise UsageError(
            f"cannot be read as arrays: {error}", place=str(path), remedy="write it with numpy.savez"
        ) from error


def _converted(value: Any, declared: Input) -> Any:
    """An array of the declared type; what is no tensor stays as it is."""
    if declared.element_type is None:
        return value
    wanted = arrays.dtype_of(declared.element_type)
    try:
        array = np.asarray(value, None if isinstance(value, np.ndarray | np.generic) else wanted)
    except (TypeError, ValueError) as error:
        raise UsageError(f"input {declared.name!r} is no tensor: {error}", remedy="give an array") from error
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)  # a file has no name for the types of ml_dtypes
    if arrays.element_type_of(array) != declared.element_type:
        found = arrays.element_type_of(array)
        raise UsageError(
            f"input {declared.name!r} is {declared.element_type}, not {found}", remedy="convert the array"
        )
    return array.astype(wanted, copy=False)
