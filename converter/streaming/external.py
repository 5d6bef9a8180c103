"""Weights in files of their own: found, checked before anything is written, and brought along.

They are not read, but copied. Source: ONNX's IR specification, "External Tensor Data": a location is relative
to the model's folder.
"""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Literal

from opshift.adapters.tensors import EXTERNAL
from opshift.converter.errors import InvalidModel, UsageError
from opshift.converter.streaming.copying import copy_range
from opshift.converter.streaming.layout import MODEL
from opshift.converter.streaming.pieces import Range, rewritten
from opshift.converter.streaming.replacing import Replacing, writing
from opshift.converter.streaming.source import Source
from opshift.registry.element_types import BY_NUMBER
from opshift.registry.messages import TensorProto

External = Literal["copy", "link", "keep"]
"""What becomes of such files where the result goes to another folder: copies are made, or hard links, or
nothing."""
LOCATION = re.compile(rb"location")
MOST_DIGITS = 18


def external_files(message: bytes, place: str) -> Mapping[str, int]:
    """The files that hold weights of a serialized model, as it names them, and the least size of each.

    Raises:
        InvalidModel: one is named that is not below the model's folder, or a position is no number.
    """
    found: dict[str, int] = {}
    for tensor in _external_tensors(message):
        stated = _stated(tensor, place)
        location = stated.get("location", "")
        _require_inside(location, place)
        found[location] = max(found.get(location, 0), _end(tensor, stated, place))
    return found


def _external_tensors(message: bytes) -> Iterator[TensorProto]:
    """The tensors that name a file; only those are parsed that have the word for it in them."""
    places: list[Range] = []

    def look(_: int, start: int, end: int) -> None:
        places.append(Range(start, end))

    rewritten(message, MODEL, (each.start() for each in LOCATION.finditer(message)), look)
    for start, end in places:
        tensor = TensorProto.FromString(message[start:end])
        if tensor.data_location == EXTERNAL:
            yield tensor


def _stated(tensor: TensorProto, place: str) -> Mapping[str, str]:
    try:
        found = {each.key: each.value for each in tensor.external_data}
        "".join((*found, *found.values()))  # some releases of protobuf hand over bytes instead
    except (UnicodeDecodeError, TypeError) as error:
        raise InvalidModel("a name in the model is not UTF-8 text", place=place) from error
    return found


def _require_inside(location: str, place: str) -> None:
    path = PurePosixPath(location.replace("\\", "/"))
    if not path.parts or "\0" in location or path.is_absolute() or ".." in path.parts or Path(location).drive:
        raise InvalidModel(
            f"has weights in {location!r}, which is not below the model's folder",
            place=place,
            remedy="move the file there, and name it relative to the model",
        )


def _end(tensor: TensorProto, stated: Mapping[str, str], place: str) -> int:
    """Where the elements end in their file; without a length the shape tells how many they are."""
    offset, length = (_number(stated, key, place) for key in ("offset", "length"))
    return (offset or 0) + (_size(tensor) if length is None else length)


def _size(tensor: TensorProto) -> int:
    from opshift.converter.legality.subjects import count_of
    from opshift.converter.legality.tensors import byte_size

    kind, count = BY_NUMBER.get(tensor.data_type), count_of(tensor)
    return byte_size(kind, count) if kind is not None and count else 0


def _number(stated: Mapping[str, str], key: str, place: str) -> int | None:
    text = stated.get(key)
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or len(text) > MOST_DIGITS:
        raise InvalidModel(f"has weights whose {key} is {text!r}", place=place, remedy="correct it")
    return int(text)


def require_present(files: Mapping[str, int], folder: Path) -> None:
    """Check that the files are there, are long enough, and are in the folder.

    Raises:
        InvalidModel: one is not.
    """
    home = folder.resolve()
    for location, least in files.items():
        path = folder / location
        try:
            _require_file(path, home, least)
        except OSError as error:
            reason = f"holds weights of the model and cannot be read: {error.strerror}"
            raise InvalidModel(reason, place=str(path), remedy="put it beside the model") from error


def _require_file(path: Path, home: Path, least: int) -> None:
    place = str(path)
    if not path.is_file():
        reason = "holds weights of the model and is not there"
        raise InvalidModel(reason, place=place, remedy="put it beside the model")
    if not path.resolve().is_relative_to(home):
        reason = "holds weights of the model and is a link out of its folder"
        raise InvalidModel(reason, place=place, remedy="put the file itself there")
    found = path.stat().st_size
    if found < least:
        reason = f"has {found:,} bytes; the weights of the model end at {least:,}"
        raise InvalidModel(reason, place=place, remedy="check that it was copied completely")


def require_spared(files: Iterable[str], source: Path, place: Path) -> None:
    """Check that what is written is none of the files.

    Raises:
        UsageError: it is.
    """
    for location in files:
        path = source / location
        if os.path.exists(place) and os.path.exists(path) and place.samefile(path):
            raise UsageError("holds weights of the input", place=str(place), remedy="name another file")


def to_bring(files: Iterable[str], source: Path, target: Path, place: Path, force: bool) -> list[str]:
    """Those of the files that have to be brought from one folder to another.

    Args:
        files: relative to the folders.
        source: the folder of the model that is read.
        target: that of the model that is written.
        place: the file that is written.
        force: whether files that are there may be replaced.

    Raises:
        UsageError: another file is in the place of one.
        CannotWrite: the folder cannot be looked into.
    """
    if source.resolve() == target.resolve():
        return []
    with writing(target):
        return [each for each in files if _is_to_bring(source / each, target / each, target, place, force)]


def _is_to_bring(old: Path, new: Path, target: Path, place: Path, force: bool) -> bool:
    home = new.resolve()
    if home == place:
        reason, remedy = "is the name of a file with weights of the model", "name another file to write"
        raise UsageError(reason, place=str(new), remedy=remedy)
    if not home.is_relative_to(target.resolve()) or (os.path.lexists(new) and not new.is_file()):
        reason, remedy = "is where weights of the model have to be, and no plain file", "name another folder"
        raise UsageError(reason, place=str(new), remedy=remedy)
    if not new.exists():
        return True
    if new.samefile(old) or (not force and filecmp.cmp(old, new, shallow=False)):
        return False
    if force:
        return True
    raise UsageError(
        "is there already, and weights of the model would replace it",
        place=str(new),
        remedy="replace it with --force, write to another folder, or bring no weights: --external keep",
    )


def bring(locations: Iterable[str], source: Path, target: Path, how: External, files: Replacing) -> None:
    """Copy files from one folder to another, or give them a second name there.

    Raises:
        CannotWrite: one cannot be written.
        InvalidModel: one cannot be read, or changes meanwhile.
    """
    for location in locations:
        new = target / location
        with writing(new):
            if how == "link":
                files.link(source / location, new)
            else:
                _copy(source / location, new, files)


def _copy(old: Path, new: Path, files: Replacing) -> None:
    with Source(old) as source, files.new(new) as (file, _):
        copy_range(source, Range(0, source.size), file)
        source.require_unchanged()
