"""Inputs of both models: arrays of the caller, and generated arrays for the remaining inputs."""

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
"""Input values by name, or the path of an .npz file with them."""

UNREADABLE = (OSError, EOFError, ValueError, BadZipFile, AttributeError, TypeError)
"""Errors that numpy raises for a missing or invalid file; AttributeError and TypeError for a file with a
single array."""


class Drawn(NamedTuple):
    """Input sets of one attempt, and the shapes that they have in common."""

    layout: Layout
    samples: tuple[Feeds, ...]


def inputs_of(graph: Any) -> tuple[Input, ...]:
    """Return the graph inputs without a default value."""
    defaults = {each.name for each in graph.initializer}
    defaults |= {each.values.name for each in graph.sparse_initializer}
    return tuple(_input(value) for value in graph.input if value.name not in defaults)


def read_given(given: Given, graph: Any) -> Feeds:
    """Return the caller's values, as arrays of the declared types.

    Raises:
        UsageError: the file cannot be read, a name is not an input, or a type does not match.
    """
    declared = {value.name: _input(value) for value in graph.input}
    values = given if isinstance(given, Mapping) else _load_file(given) if given is not None else {}
    for name in values:
        if name not in declared:
            raise UsageError(
                f"{name!r} is not an input of the model",
                remedy=f"the inputs are {', '.join(declared) or 'none'}",
            )
    return {name: _convert(value, declared[name]) for name, value in values.items()}


def draw(inputs: Sequence[Input], given: Feeds, samples: int, seed: int) -> Iterator[Drawn]:
    """Yield input sets with different shapes and ranges, until the caller finds one that the model accepts.

    Args:
        inputs: the inputs of the model.
        given: values of the caller.
        samples: the number of input sets of each attempt.
        seed: seed of the generated values.

    Raises:
        CannotVerify: values of an input's type cannot be generated.
    """
    missing = [each for each in inputs if each.name not in given]
    for each in missing:
        if each.element_type is None:
            raise CannotVerify(
                f"no value can be generated for input {each.name!r} of type {each.type or 'unknown'}",
                remedy=f"provide a value: inputs={{{each.name!r}: ...}}",
            )
    # integers and numerals may be indices or sizes, which models accept in small ranges only
    ranges = RANGES if any(_has_range(each) for each in missing) else RANGES[:1]
    for integer_range, layout in product(ranges, list(layouts(missing, _known_sizes(inputs, given)))):
        indices = range(samples if missing else 1)
        yield Drawn(
            layout,
            tuple(_generate_sample(missing, given, layout, each, integer_range, seed) for each in indices),
        )


def _generate_sample(
    inputs: Sequence[Input],
    given: Feeds,
    layout: Layout,
    sample: int,
    integer_range: tuple[int, int],
    seed: int,
) -> Feeds:
    # seeded for each sample, so that results do not depend on earlier attempts
    random = np.random.default_rng([seed, sample])
    generated = {
        each.name: make(each.element_type or "", layout[each.name], sample, integer_range, random)
        for each in inputs
    }
    return {**generated, **given}


def _has_range(each: Input) -> bool:
    return each.element_type is not None and ("int" in each.element_type or each.element_type == "string")


def _known_sizes(inputs: Sequence[Input], given: Feeds) -> dict[str, int]:
    """Return the sizes of named dimensions in the caller's arrays."""
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


def _load_file(path: str | os.PathLike[str]) -> Feeds:
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except UNREADABLE as error:
        raise UsageError(
            f"cannot be read as arrays: {error}", place=str(path), remedy="write it with numpy.savez"
        ) from error


def _convert(value: Any, declared: Input) -> Any:
    """Return an array of the declared type; values that are not tensors stay unchanged."""
    if declared.element_type is None:
        return value
    dtype = arrays.dtype_of(declared.element_type)
    try:
        array = np.asarray(value, None if isinstance(value, np.ndarray | np.generic) else dtype)
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"input {declared.name!r} is not an array: {error}", remedy="provide an array"
        ) from error
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        return array.view(dtype)  # numpy files store types of ml_dtypes as raw bytes
    if arrays.element_type_of(array) != declared.element_type:
        found = arrays.element_type_of(array)
        raise UsageError(
            f"input {declared.name!r} has the type {found} instead of {declared.element_type}",
            remedy="convert the array",
        )
    return array.astype(dtype, copy=False)
