"""Rules for tensors with external data: their elements are in a separate file."""

from __future__ import annotations

import posixpath
from collections import Counter
from pathlib import Path

from opshift.checker.checked_nodes import ExternalTensor, InternalTensor
from opshift.checker.findings import ERROR, INFO, WARNING
from opshift.checker.rule_table import Problems, rule
from opshift.model.element_types import BY_NUMBER, byte_size
from opshift.model.external_data import ExternalData, byte_count
from opshift.model.tensors import DATA_FIELDS, element_count

SOURCE = "IR: External Tensor Data; onnx.proto: TensorProto.external_data"


@rule("external.location", ERROR, source=SOURCE, remedy="name the file, relative to the model's folder")
def location(external: ExternalTensor) -> Problems:
    """External data must specify their file."""
    if not external.data.location:
        yield "has external data without a location"


KEYS = frozenset((*ExternalData._fields, "basepath"))

PAGE = 4096
"""Page size in bytes: the alignment that ONNX recommends, so that the file can be memory-mapped."""


@rule(
    "external.inside",
    ERROR,
    source=SOURCE,
    remedy="keep the elements in the model or in the file, not in both",
)
def only_external(external: ExternalTensor) -> Problems:
    """A tensor with external data must not have elements in the model."""
    used = [field for field in DATA_FIELDS if getattr(external.proto, field)]
    if used:
        yield f"has external data, and elements in {' and '.join(used)}"


@rule(
    "external.path",
    ERROR,
    source=SOURCE,
    remedy="move the file into the model's folder, and set the location relative to that folder",
)
def path(external: ExternalTensor) -> Problems:
    """The file must be in the model's folder or below it."""
    file_name = external.data.location
    if posixpath.isabs(file_name) or posixpath.normpath(file_name).split("/")[0] == "..":
        yield f"has external data in {file_name!r}, outside the model's folder"


@rule("external.file", ERROR, source=SOURCE, remedy="copy the file to the model's folder")
def file_exists(external: ExternalTensor) -> Problems:
    """The file must exist, and must not be a link to a file outside the model's folder."""
    data_file, folder = _file(external), external.tensor.model.folder
    if data_file is not None and folder is not None:
        file_name = external.data.location
        if not data_file.is_file():
            yield f"has external data in {file_name!r}, which is not an existing file"
        elif not data_file.resolve().is_relative_to(folder.resolve()):
            yield f"has external data in {file_name!r}, a link to a file outside the model's folder"


@rule("external.number", ERROR, source=SOURCE, remedy="write offset and length as decimal numbers of bytes")
def decimal_numbers(external: ExternalTensor) -> Problems:
    """Offset and length must be decimal numbers of bytes."""
    for key, text in (("offset", external.data.offset), ("length", external.data.length)):
        if text and byte_count(text) is None:
            yield f"has external data with the {key} {text!r}, which is not a decimal number"


@rule("external.type", ERROR, source="onnx.proto: TensorProto.raw_data", remedy="keep strings in the model")
def element_type(external: ExternalTensor) -> Problems:
    """External data must not be strings."""
    kind = BY_NUMBER.get(external.proto.data_type)
    if kind is not None and kind.name == "string":
        yield "has strings as external data"


@rule(
    "external.size",
    ERROR,
    source=SOURCE,
    remedy="correct the shape or the length; the file may be truncated",
)
def size(external: ExternalTensor) -> Problems:
    """External data must have the number of bytes that element type and shape require."""
    required = _required_bytes(external)
    if required is None:
        return
    offset = byte_count(external.data.offset or "0")
    length = byte_count(external.data.length)
    if length is not None and length != required:
        yield f"has external data of {length:,} bytes; its shape requires {required:,}"
    data_file = _file(external)
    if data_file is not None and offset is not None and data_file.is_file():
        file_size = external.tensor.model.file_size(data_file)
        if offset + required > file_size:
            yield f"requires bytes {offset:,} to {offset + required:,} of a file of {file_size:,} bytes"


@rule("external.key", INFO, source=SOURCE, remedy="remove unknown keys, and keep one entry for each key")
def key(external: ExternalTensor) -> Problems:
    """External data should use only the specified keys, each once."""
    for entry_key, count in Counter(entry.key for entry in external.proto.external_data).items():
        if entry_key not in KEYS:
            yield f"has external data with the unknown key {entry_key!r}"
        elif count > 1:
            yield f"has external data with {count} entries for {entry_key!r}"


@rule("external.alignment", INFO, source=SOURCE, remedy="store the tensor at a multiple of 4096 bytes")
def alignment(external: ExternalTensor) -> Problems:
    """External data should start at a page boundary, so that the file can be memory-mapped."""
    if (byte_count(external.data.offset) or 0) % PAGE:
        yield f"has external data at offset {external.data.offset}, not a multiple of 4096"


@rule(
    "external.ignored",
    WARNING,
    source=SOURCE,
    remedy="set data_location to EXTERNAL, or remove external_data",
)
def ignored_external_data(tensor: InternalTensor) -> Problems:
    """A tensor with elements in the model must not have external_data."""
    if tensor.proto.external_data:
        yield "has external_data, but its data_location is DEFAULT"


def _required_bytes(external: ExternalTensor) -> int | None:
    """Return the size of the elements in bytes; `None` if element type or shape do not determine it."""
    kind, count = BY_NUMBER.get(external.proto.data_type), element_count(external.proto)
    return None if kind is None or kind.name == "string" or count is None else byte_size(kind, count)


def _file(external: ExternalTensor) -> Path | None:
    """Return the path of the data file; `None` if the folder is unknown or the path leaves it."""
    folder, file_name = external.tensor.model.folder, external.data.location
    return None if folder is None or not file_name or any(path(external)) else folder / file_name
