"""Rules for tensors with external data: their elements are in a separate file."""

import hashlib
import posixpath
from collections import Counter
from pathlib import Path, PurePath

from opshift.checker.checked_nodes import ExternalTensor, InternalTensor
from opshift.checker.findings import ERROR, INFO, WARNING
from opshift.checker.rule_table import Problems, rule
from opshift.model.element_types import byte_size
from opshift.model.offloaded_tensors import ExternalData, byte_count
from opshift.model.tensors import DATA_FIELDS, element_count

SOURCE = "IR: External Tensor Data; onnx.proto: TensorProto.external_data"


@rule("external.location", ERROR, SOURCE, "name the file, relative to the model's folder")
def location(external: ExternalTensor) -> Problems:
    """External data must specify its file."""
    if not external.data.location:
        yield "has external data without a location"


KEYS = frozenset((*ExternalData._fields, "basepath"))

PAGE = 4096
"""Alignment of external data that ONNX recommends, in bytes: the usual page size, for memory-mapping."""


@rule("external.inside", ERROR, SOURCE, "keep the elements in the model or in the file, not in both")
def only_external(external: ExternalTensor) -> Problems:
    """A tensor with external data must not have elements in the model."""
    used = [field for field in DATA_FIELDS if getattr(external.proto, field)]
    if used:
        yield f"has external data, and elements in {' and '.join(used)}"


@rule("external.path", ERROR, SOURCE, "move the file into the model's folder, and correct the location")
def path(external: ExternalTensor) -> Problems:
    """The file must be in the model's folder or below it."""
    file_name = external.data.location
    if posixpath.isabs(file_name) or posixpath.normpath(file_name).split("/")[0] == "..":
        yield f"has external data in {file_name!r}, outside the model's folder"


@rule("external.file", ERROR, SOURCE, "copy the file to the model's folder")
def file_exists(external: ExternalTensor) -> Problems:
    """The file must exist, and must not be a link to a file outside the model's folder."""
    data_file, folder = _data_file(external), external.model.folder
    if data_file is not None and folder is not None:
        file_name = external.data.location
        if not data_file.is_file():
            yield f"has external data in {file_name!r}, which is not an existing file"
        elif not data_file.resolve().is_relative_to(folder.resolve()):
            yield f"has external data in {file_name!r}, a link to a file outside the model's folder"


@rule("external.links", WARNING, "onnx: external_data_helper", "replace the link by a copy of the file")
def links(external: ExternalTensor) -> Problems:
    """The file should not be a link: current releases of `onnx` refuse symbolic and several hard links."""
    folder, file_name, examined = external.model.folder, external.data.location, external.model.examined_links
    name = posixpath.normpath(file_name)
    if folder is None or name in examined:  # report a file once, at its first tensor
        return
    examined.add(name)
    data_file, below = _data_file(external), PurePath(name)
    if data_file is None or any(file_exists(external)):
        return
    if any((folder / each).is_symlink() for each in (below, *below.parents[:-1])):
        yield f"has external data in {file_name!r}, a path with a symbolic link"
    elif (count := data_file.stat().st_nlink) > 1:
        yield f"has external data in {file_name!r}, a file with {count} hard links"


@rule("external.number", ERROR, SOURCE, "write offset and length as decimal numbers of bytes")
def decimal_numbers(external: ExternalTensor) -> Problems:
    """Offset and length must be decimal numbers of bytes."""
    for key, text in (("offset", external.data.offset), ("length", external.data.length)):
        if text and byte_count(text) is None:
            yield f"has external data with the {key} {text!r}, which is not a decimal number"


@rule("external.type", ERROR, "onnx.proto: TensorProto.raw_data", "keep strings in the model")
def element_type(external: ExternalTensor) -> Problems:
    """External data must not be strings."""
    if external.kind is not None and external.kind.name == "string":
        yield "has strings as external data"


@rule("external.size", ERROR, SOURCE, "correct the shape or the length; the file may be truncated")
def size(external: ExternalTensor) -> Problems:
    """External data must have the number of bytes that element type and shape require."""
    required = _required_bytes(external)
    if required is None:
        return
    offset = byte_count(external.data.offset or "0")
    length = byte_count(external.data.length)
    if length is not None and length != required:
        yield f"has external data of {length:,} bytes; its shape requires {required:,}"
    data_file = _data_file(external)
    if data_file is not None and offset is not None and data_file.is_file():
        file_size = data_file.stat().st_size
        if offset + required > file_size:
            yield f"requires bytes {offset:,} to {offset + required:,} of a file of {file_size:,} bytes"


@rule("external.checksum", ERROR, SOURCE, "restore the file, or correct the checksum")
def checksum(external: ExternalTensor) -> Problems:
    """The checksum of external data must be the SHA1 digest of the file."""
    expected, data_file = external.data.checksum, _data_file(external)
    if not expected or data_file is None or any(file_exists(external)):
        return
    digests = external.model.digests
    if data_file not in digests:
        with data_file.open("rb") as stream:
            digests[data_file] = hashlib.file_digest(stream, "sha1").hexdigest()
    if expected.lower() != digests[data_file]:
        yield f"has the checksum {expected[:40]!r}; the SHA1 digest of the file is {digests[data_file]}"


@rule("external.key", INFO, SOURCE, "remove unknown keys, and keep one entry for each key")
def key(external: ExternalTensor) -> Problems:
    """External data should use only the specified keys, each once."""
    for entry_key, count in Counter(entry.key for entry in external.proto.external_data).items():
        if entry_key not in KEYS:
            yield f"has external data with the unknown key {entry_key!r}"
        elif count > 1:
            yield f"has external data with {count} entries for {entry_key!r}"


@rule("external.alignment", INFO, SOURCE, "store the tensor at a multiple of 4096 bytes")
def alignment(external: ExternalTensor) -> Problems:
    """External data should start at a page boundary, so that the file can be memory-mapped."""
    if (byte_count(external.data.offset) or 0) % PAGE:
        yield f"has external data at offset {external.data.offset}, not a multiple of 4096"


@rule("external.ignored", WARNING, SOURCE, "set data_location to EXTERNAL, or remove external_data")
def ignored_external_data(tensor: InternalTensor) -> Problems:
    """A tensor with elements in the model must not have external_data."""
    if tensor.proto.external_data:
        yield "has external_data, but its data_location is DEFAULT"


def _required_bytes(external: ExternalTensor) -> int | None:
    """Return the size of the elements in bytes; `None` for strings, or an invalid element type or shape."""
    kind, count = external.kind, element_count(external.proto)
    return None if kind is None or kind.name == "string" or count is None else byte_size(kind, count)


def _data_file(external: ExternalTensor) -> Path | None:
    """Return the path of the data file; `None` without a folder or location, or outside the folder."""
    folder, file_name = external.model.folder, external.data.location
    return None if folder is None or not file_name or any(path(external)) else folder / file_name
