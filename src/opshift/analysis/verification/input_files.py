"""Files with input values: .npy and .npz files of numpy, and .pb files with a TensorProto."""

import os
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from opshift.analysis.verification.numpy_types import NUMPY_TYPES, Array, dtype_of
from opshift.model.errors import UsageError
from opshift.model.messages import DecodeError, TensorProto
from opshift.model.tensors import read_tensor

READ_ERRORS = (OSError, EOFError, ValueError, BadZipFile, DecodeError, MemoryError)
"""Errors of missing and invalid files; MemoryError for an array that is larger than its file."""

READABLE_TYPES = {*NUMPY_TYPES, "bfloat16"}
"""Element types of .pb files; numpy's files store all of them."""


def read_arrays(path: str | os.PathLike[str]) -> Mapping[str, Array]:
    """Return the arrays of an .npz file by name; raise UsageError if it cannot be read."""
    arrays = _read(Path(path))
    if not isinstance(arrays, Mapping):
        reason = "cannot be read as arrays: it contains a single array without a name"
        raise UsageError(reason, place=str(path), remedy="write it with numpy.savez")
    return arrays


def read_array(path: os.PathLike[str], name: str) -> Array:
    """Return the value of an input from a file; raise UsageError if it cannot be read.

    An .npz file contains one array, or one with the name of the input.
    """
    found = _read(Path(path))
    if not isinstance(found, Mapping):
        return found
    if name in found:
        return found[name]
    if len(found) == 1:
        return next(iter(found.values()))
    names = ", ".join(found) or "no arrays"
    raise UsageError(f"contains {names}, and not {name!r}", place=str(path), remedy="rename the array")


def _read(path: Path) -> Array | Mapping[str, Array]:
    try:
        if path.suffix == ".pb":
            return _read_tensor(path)
        # numpy leaves a file that it opens itself open if the archive is broken
        with path.open("rb") as stream:
            found: Array | NpzFile = np.load(stream, allow_pickle=False)
            return {**found} if isinstance(found, NpzFile) else found
    except READ_ERRORS as error:
        reason = f"cannot be read as arrays: {error}"
        remedy = "write it with numpy.save or numpy.savez, or as a TensorProto with the suffix .pb"
        raise UsageError(reason, place=str(path), remedy=remedy) from error


def _read_tensor(path: Path) -> Array:
    tensor = read_tensor(TensorProto.FromString(path.read_bytes()))
    if tensor is None or tensor.element_type not in READABLE_TYPES:
        raise ValueError("no TensorProto with all of its data in the file and a type that numpy has")
    values = tensor.values
    if tensor.element_type == "string":
        values = tuple(each.decode() for each in values)
    return np.array(values, dtype_of(tensor.element_type)).reshape(tensor.dims)
