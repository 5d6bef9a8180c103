"""Rules for tensors whose elements are in a file of their own."""

from __future__ import annotations

import posixpath
from collections import Counter
from pathlib import Path
from typing import Any

from opshift.converter.legality.findings import ERROR, INFO, WARNING
from opshift.converter.legality.rules import Flaws, rule
from opshift.converter.legality.subjects import DATA_FIELDS, External, Internal, count_of
from opshift.converter.legality.tensors import byte_size
from opshift.registry.element_types import BY_NUMBER

SOURCE = "IR: External Tensor Data; onnx.proto: TensorProto.external_data"
KEYS = frozenset(("location", "offset", "length", "checksum", "basepath"))
PAGE = 4096


@rule("external.inside", ERROR, source=SOURCE, remedy="keep the elements inside or outside, not both")
def inside(external: External) -> Flaws:
    """A tensor with external data has no elements in the model."""
    used = [each for each in DATA_FIELDS if getattr(external.proto, each)]
    if used:
        yield f"has external data, and elements in {' and '.join(used)}"


@rule("external.location", ERROR, source=SOURCE, remedy="name the file, relative to the model's folder")
def location(external: External) -> Flaws:
    """External data name their file."""
    if not _entry(external.proto, "location"):
        yield "has external data without a location"


@rule(
    "external.path", ERROR, source=SOURCE, remedy="put the file in the model's folder, and name it from there"
)
def path(external: External) -> Flaws:
    """The file is in the model's folder, or below it."""
    named = _entry(external.proto, "location")
    if posixpath.isabs(named) or posixpath.normpath(named).split("/")[0] == "..":
        yield f"has its data in {named!r}, outside the model's folder"


@rule("external.file", ERROR, source=SOURCE, remedy="copy the file to where the model is")
def file(external: External) -> Flaws:
    """The file is there, and no link leads out of the model's folder."""
    found, folder = _file(external), external.tensor.model.folder
    if found is not None and folder is not None:
        named = _entry(external.proto, "location")
        if not found.is_file():
            yield f"has its data in {named!r}, which is no file"
        elif not found.resolve().is_relative_to(folder.resolve()):
            yield f"has its data in {named!r}, a link that leaves the model's folder"


@rule("external.number", ERROR, source=SOURCE, remedy="write offset and length as decimal numbers of bytes")
def number(external: External) -> Flaws:
    """Offset and length are numbers of bytes."""
    for key in ("offset", "length"):
        stated = _entry(external.proto, key)
        if stated and _number(stated) is None:
            yield f"has the {key} {stated!r}"


@rule("external.type", ERROR, source="onnx.proto: TensorProto.raw_data", remedy="keep strings in the model")
def element_type(external: External) -> Flaws:
    """External data are no strings."""
    kind = BY_NUMBER.get(external.proto.data_type)
    if kind is not None and kind.name == "string":
        yield "has strings as external data"


@rule(
    "external.size", ERROR, source=SOURCE, remedy="correct the shape or the length; the file may be cut off"
)
def size(external: External) -> Flaws:
    """External data have as many bytes as the shape asks for."""
    wanted = _wanted(external)
    if wanted is None:
        return
    offset = _number(_entry(external.proto, "offset") or "0")
    length = _number(_entry(external.proto, "length"))
    if length is not None and length != wanted:
        yield f"has external data of {length:,} bytes; its shape needs {wanted:,}"
    found = _file(external)
    if found is not None and offset is not None and found.is_file():
        there = external.tensor.model.size_of(found)
        if offset + wanted > there:
            yield f"needs bytes {offset:,} to {offset + wanted:,} of a file that has {there:,}"


@rule("external.key", INFO, source=SOURCE, remedy="keep one entry for each key that readers know")
def key(external: External) -> Flaws:
    """External data are told by known keys, each once."""
    for each, count in Counter(entry.key for entry in external.proto.external_data).items():
        if each not in KEYS:
            yield f"has external data with the key {each!r}"
        elif count > 1:
            yield f"has external data with {count} entries for {each!r}"


@rule("external.alignment", INFO, source=SOURCE, remedy="write the tensor at a multiple of 4096")
def alignment(external: External) -> Flaws:
    """External data start at a page, so that the file can be mapped into memory."""
    if (_number(_entry(external.proto, "offset")) or 0) % PAGE:
        yield f"has external data at offset {_entry(external.proto, 'offset')}"


@rule(
    "external.ignored",
    WARNING,
    source=SOURCE,
    remedy="set data_location to EXTERNAL, or remove external_data",
)
def ignored(tensor: Internal) -> Flaws:
    """Only a tensor whose data are external says where they are."""
    if tensor.proto.external_data:
        yield "has external_data, but its data_location is DEFAULT"


def _entry(proto: Any, key: str) -> str:
    return next((str(each.value) for each in proto.external_data if each.key == key), "")


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _wanted(external: External) -> int | None:
    """The bytes that the tensor takes; `None` if that cannot be told."""
    kind, count = BY_NUMBER.get(external.proto.data_type), count_of(external.proto)
    return None if kind is None or kind.name == "string" or count is None else byte_size(kind, count)


def _file(external: External) -> Path | None:
    """Where the data are, if the model's folder is known and the path stays in it."""
    folder, named = external.tensor.model.folder, _entry(external.proto, "location")
    return None if folder is None or not named or any(path(external)) else folder / named
