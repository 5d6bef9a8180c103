"""External data files of a model: list and check the files, and copy or link them for the output.

Source: ONNX's IR specification, "External Tensor Data": locations are relative to the model's folder.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath, PurePosixPath
from typing import Literal, get_args

from opshift.converter.streaming.copy_ranges import copy_range
from opshift.converter.streaming.weights import Weights
from opshift.model.atomic_files import AtomicFiles, have_equal_content, raising_cannot_write
from opshift.model.element_types import BY_NUMBER, byte_size
from opshift.model.errors import InvalidModel, UsageError, not_utf8_error
from opshift.model.file_formats import HEAD_SIZE, format_of
from opshift.model.files import FileLike, read_bytes
from opshift.model.message_text import hint_at_similar
from opshift.model.messages import ModelProto, TensorProto
from opshift.model.offloaded_tensors import EXTERNAL, ExternalData, byte_count, read_external_data
from opshift.model.progress import Progress
from opshift.model.tensor_pieces import MODEL, Range, rewrite_tensors
from opshift.model.tensors import element_count
from opshift.stores.source_file import Source, SourceFile, open_source

ExternalHandling = Literal["copy", "link", "keep"]
"""Handling of external data files if the output is in another folder: copy, hard-link or ignore them."""

HANDLINGS: tuple[ExternalHandling, ...] = get_args(ExternalHandling)

DEVICES = Path("/dev")
"""Folder of devices and pipes, such as `/dev/stdin`, which do not show the folder of a model."""

LOCATION_KEY = re.compile(rb"location")
"""Key in the `external_data` of every external tensor; tensors without this key are not parsed."""

MAX_SEARCHED = 64 << 20
"""Maximum size in bytes of a file that is searched for the key; larger files are mostly weights."""


def require_handling(external: object) -> None:
    """Raise UsageError for an unknown `external` argument."""
    if external not in HANDLINGS:
        reason = f"unknown external value {external!r}{hint_at_similar(str(external), HANDLINGS)}"
        raise UsageError(reason, remedy=f"the allowed values are {', '.join(HANDLINGS)}")


def external_files(message: bytes, place: str) -> Mapping[str, int]:
    """Return the external data files of a serialized model, with the minimum size of each in bytes.

    Each file has one normalized name, such as `w.bin` for the locations `w.bin` and `./w.bin`.

    InvalidModel is raised if a location is outside the model's folder, or a number is malformed.
    """
    found: dict[str, int] = {}
    for tensor in _external_tensors(message):
        try:
            data = read_external_data(tensor)
        except UnicodeDecodeError as error:
            raise not_utf8_error(place) from error
        _require_below_folder(data.location, place)
        name = PurePath(data.location).as_posix()
        found[name] = max(found.get(name, 0), _end_of_elements(tensor, data, place))
    return found


def external_locations(location: str | Path) -> list[str]:
    """Return the external data files of a model file, relative to its folder.

    Raises:
        InvalidModel: the file cannot be read, or a location is invalid.
    """
    with open_source(location) as source:
        # Most models have no external data, and a search for the key is much faster than reading the tensors.
        is_searched = isinstance(source, SourceFile) and source.size <= MAX_SEARCHED
        if is_searched and not LOCATION_KEY.search(source.read(0, source.size)):
            return []
        with Weights(source) as weights:
            return list(external_files(weights.message(), str(location)))


@contextmanager
def open_with_data_files(path: FileLike) -> Iterator[ModelProto]:
    """Yield the model as `open_without_weights` does, if its external data files are complete.

    The files of a model that is not a local file, or that is read from a device or pipe, are not checked.

    Raises:
        InvalidModel: an external data file is missing, truncated or outside the model's folder.
    """
    with open_source(path) as source, Weights(source) as weights:
        message = weights.message()
        model = read_bytes(message, source.place)
        if source.path is not None and source.path.is_file() and DEVICES not in source.path.parents:
            require_files(external_files(message, source.place), source.path.parent)
        yield model


def _external_tensors(message: bytes) -> Iterator[TensorProto]:
    found: list[TensorProto] = []

    def collect(_: int, start: int, end: int) -> None:
        found.append(TensorProto.FromString(message[start:end]))

    rewrite_tensors(message, MODEL, (each.start() for each in LOCATION_KEY.finditer(message)), collect)
    return (each for each in found if each.data_location == EXTERNAL)


def _require_below_folder(location: str, place: str) -> None:
    path = PurePosixPath(location.replace("\\", "/"))
    if not path.parts or "\0" in location or path.is_absolute() or ".." in path.parts or Path(location).drive:
        reason = f"has weights in {location!r}, which may be outside the model's folder"
        remedy = "move the file into the folder, and set its location relative to the model"
        raise InvalidModel(reason, place=place, remedy=remedy)


def _end_of_elements(tensor: TensorProto, data: ExternalData, place: str) -> int:
    """Return the byte at which the tensor ends; a missing `length` follows from the shape, or is 0."""
    offset = _parse_number(data.offset, "offset", place)
    length = _parse_number(data.length, "length", place)
    if length is None:
        kind, count = BY_NUMBER.get(tensor.data_type), element_count(tensor)
        length = byte_size(kind, count) if kind is not None and count else 0
    return (offset or 0) + length


def _parse_number(text: str, key: str, place: str) -> int | None:
    if not text:
        return None
    number = byte_count(text)
    if number is None:
        reason = f"has external data with the {key} {text!r}, which is not a valid number"
        remedy = f"correct the {key} of the tensor's external data"
        raise InvalidModel(reason, place=place, remedy=remedy)
    return number


def require_not_overwritten(files: Iterable[str], source: Path, place: Path) -> None:
    """Raise UsageError if the output file is one of the external data files."""
    for location in files:
        path = source / location
        if os.path.exists(place) and os.path.exists(path) and place.samefile(path):
            raise contains_weights(str(place))


def files_to_transfer(
    files: Mapping[str, int],
    source: Path,
    target: Path,
    destination: Path,
    how: ExternalHandling,
    force: bool,
) -> list[str]:
    """Return the external data files to copy or link from one folder to another, after checking all of them.

    Existing files may be replaced with `force`, but not the output file `destination`.

    Raises:
        InvalidModel: a file is not a regular file in the folder `source`, or too short.
        UsageError: the output, or a different file, has the name of an external data file.
        CannotWrite: the folder of the output cannot be read.
    """
    require_not_overwritten(files, source, destination)
    for name in files:
        if (target / name).resolve() == destination:
            raise is_name_of_weights(str(target / name))
    if how == "keep":
        return []
    require_files(files, source)
    if source.resolve() == target.resolve():
        return []
    with raising_cannot_write(target):
        return [name for name in files if _is_missing(source / name, target / name, target, how, force)]


def require_files(files: Mapping[str, int], folder: Path) -> None:
    """Raise InvalidModel unless all external data files are complete regular files in a folder."""
    resolved = folder.resolve()
    for location, least in files.items():
        path = folder / location
        try:
            _require_file(path, resolved, least)
        except OSError as error:
            reason = f"contains weights of the model and cannot be read: {error.strerror}"
            raise InvalidModel(reason, place=str(path), remedy="check its permissions") from error


def _require_file(path: Path, resolved: Path, least: int) -> None:
    place = str(path)
    if not path.is_file():
        reason = "contains weights of the model, but is not an existing file"
        raise InvalidModel(reason, place=place, remedy="copy the file to this path")
    if not path.resolve().is_relative_to(resolved):
        reason = "contains weights of the model and is a link to a file outside the model's folder"
        raise InvalidModel(reason, place=place, remedy="replace the link with the file")
    if path.stat().st_size < least:
        with SourceFile(path) as file:
            require_size(file, least)


def require_size(file: Source, least: int) -> None:
    """Raise InvalidModel if an external data file is too short."""
    if file.size >= least:
        return
    reason = f"has {file.size:,} bytes, but the weights of the model end at byte {least:,}"
    other = format_of(file.read, min(file.size, HEAD_SIZE))
    if other is not None:  # another format, such as a Git LFS pointer
        raise InvalidModel(f"{reason}: it is {other.name}", place=file.place, remedy=other.remedy)
    raise InvalidModel(reason, place=file.place, remedy="check that it was copied completely")


def unknown_folder(place: str, *, needs_weights: bool = False) -> InvalidModel:
    """Return the error for a model that has external data, but was not read from a named file.

    `needs_weights` is set if the weights are read: then they cannot stay in place.
    """
    reason = "has weights in separate files, but the folder of the model is unknown"
    remedy = "pass the path of the model"
    if not needs_weights:
        remedy += ", or leave the weights in place: --external keep, external='keep'"
    return InvalidModel(reason, place=place, remedy=remedy)


def types_need_local_files(place: str) -> UsageError:
    """Return the error for a conversion of the element types of a model with external data in a store."""
    reason = "has weights in separate files, whose element types are converted only for local files"
    return UsageError(reason, place=place, remedy="copy the model to a local folder first")


def _is_missing(old: Path, new: Path, target: Path, how: ExternalHandling, force: bool) -> bool:
    resolved = new.resolve()
    if not resolved.is_relative_to(target.resolve()) or (os.path.lexists(new) and not new.is_file()):
        reason, remedy = (
            "must be a regular file of the folder, because weights of the model are written to it",
            "use another folder",
        )
        raise UsageError(reason, place=str(new), remedy=remedy)
    if not new.exists() or (how == "copy" and is_same_file(old, new)):  # a link is not accepted as a copy
        return True
    if have_equal_content(old, new):
        return False
    if force:
        return True
    raise data_exists(str(new))


COPY_REMEDY = "replace it with --force, write to another folder, or keep the weights there: --external keep"


def data_exists(place: str, remedy: str = COPY_REMEDY) -> UsageError:
    """Return the error about an existing, different file with the name of an external data file."""
    reason = "already exists, and weights of the model would replace it"
    return UsageError(reason, place=place, remedy=remedy)


def is_name_of_weights(place: str) -> UsageError:
    """Return the error for an output with the name of an external data file of the result."""
    reason = "is also the path of a file with weights of the model"
    return UsageError(reason, place=place, remedy="choose another output file")


def contains_weights(place: str) -> UsageError:
    """Return the error for an output that would overwrite an external data file of the input."""
    return UsageError("contains weights of the input model", place=place, remedy="choose another output file")


def transfer_files(
    locations: Iterable[str],
    source: Path,
    target: Path,
    how: ExternalHandling,
    force: bool,
    files: AtomicFiles,
    progress: Progress,
) -> None:
    """Copy or link external data files to another folder; `files` replaces their destinations together.

    Without `force`, a file that another process writes in the meantime is not replaced. A copy replaces a
    link to the original.

    Raises:
        CannotWrite: a file cannot be written.
        InvalidModel: a file cannot be read, or changes while it is copied.
    """
    for location in locations:
        new = target / location
        with raising_cannot_write(new):
            if how == "link":
                files.link(source / location, new, is_new=not force)
            else:
                path = source / location
                is_new = not force and not is_same_file(path, new)
                with SourceFile(path) as old, files.new(new, source=path, is_new=is_new) as (file, _):
                    copy_range(old, Range(0, old.size), file, progress)
                    old.require_unchanged()


def is_same_file(one: Path, other: Path) -> bool:
    """Return whether two paths refer to one file; false if a path does not exist."""
    return one.exists() and other.exists() and one.samefile(other)
