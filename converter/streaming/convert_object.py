"""Conversion of a model from or to an object store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from opshift.converter.report import Report
from opshift.converter.streaming.copy_ranges import write_pieces
from opshift.converter.streaming.external_data import (
    ExternalHandling,
    contains_weights,
    data_exists,
    external_files,
    is_name_of_weights,
    require_files,
    require_size,
    types_need_local_files,
    unknown_folder,
)
from opshift.converter.streaming.weights import OutputFile, Weights, output_pieces
from opshift.model.atomic_files import AtomicFiles, raising_cannot_write, write_destination
from opshift.model.errors import InvalidModel, UsageError
from opshift.model.files import FileLike, read_bytes
from opshift.model.locations import is_url
from opshift.model.messages import ModelProto
from opshift.model.progress import Progress
from opshift.model.remote import StoreObject
from opshift.model.tensor_pieces import OutputPiece, Range, size_of_ranges, unconverted
from opshift.stores.locations import exists, folder_location, join, metadata_of, object_identity, object_state
from opshift.stores.source_file import Source, open_source
from opshift.stores.uploads import new_object, writable_object

SOURCE_STATE = "opshift-source-state"
"""Metadata key of a copied data file: its value is the state of the original, see `object_state`."""


@contextmanager
def converting_object(
    source: FileLike,
    out: str,
    convert_in_place: Callable[[ModelProto], Report],
    external: ExternalHandling,
    force: bool,
    progress: Progress,
    metadata: Mapping[str, str],
    *,
    needs_file: bool,
    rewrites_data: bool,
) -> Iterator[OutputFile]:
    """Convert like `converting`, with the same arguments; `source` or `out` is a URL.

    External data files appear before the model. A copied data file stores the state of its original, see
    `SOURCE_STATE`, unless the store of the original sends no identity.
    """
    if is_url(out):
        writable_object(out)
    place = out if is_url(out) else str(write_destination(out))
    with ExitStack() as stack:
        new_files = _NewFiles(stack, progress)
        file = stack.push(open_source(source, needs_identity=True))
        with Weights(file) as weights:
            message = weights.message()
            model = read_bytes(message, file.place)
            located = external_files(message, file.place)
            if located and rewrites_data:
                raise types_need_local_files(file.place)
            copies = _data_to_copy(located, source, file, out, external, force)
            report = convert_in_place(model)
            pieces = output_pieces(report, message, model, weights, file)
            del message, model  # free the memory, which is not needed while weights are copied
        size = new_files.write(place, pieces, file, metadata, needs_file=needs_file)
        file.require_unchanged()
        for old, new in copies.items():
            # Store the state before the copy: if the object changes during the copy, a later run notices it.
            identity = object_identity(old) if is_url(old) and is_url(new) else None
            state = {SOURCE_STATE: identity} if identity else {}
            data = stack.push(open_source(old, needs_identity=True))
            new_files.write(new, [Range(0, data.size)], data, state)
            data.require_unchanged()
        yield OutputFile(
            new_files.path, replace(report, sizes=(file.size, size)), tuple(located), tuple(located)
        )


class _NewFiles:
    """Files and objects that appear at their locations when `stack` closes, the last written first."""

    path: Path | None = None
    """Local file with the model; `None` if the model was only uploaded."""

    def __init__(self, stack: ExitStack, progress: Progress) -> None:
        self._stack, self._progress = stack, progress
        self._files = stack.enter_context(AtomicFiles())

    def write(
        self,
        location: str,
        pieces: list[OutputPiece],
        source: Source,
        metadata: Mapping[str, str],
        *,
        needs_file: bool = False,
    ) -> int:
        """Write a file or object, and return its size in bytes.

        With `needs_file`, an object is written to the local file `path` first.
        """
        # An upload splits ranges into parts, which is impossible for ranges whose elements are converted.
        copied = unconverted(pieces)
        if is_url(location) and (needs_file or copied is None):
            folder = self._stack.enter_context(TemporaryDirectory(prefix="opshift-"))
            self.path = Path(folder, "model.onnx")
            with self.path.open("wb") as file:
                write_pieces(pieces, source, file.fileno())
            source = self._stack.push(open_source(self.path))
            copied = [Range(0, source.size)]
        self._progress.total += size_of_ranges(pieces if copied is None else copied)
        if is_url(location) and copied is not None:
            upload = new_object(location, copied, source, self._progress, metadata)
            return self._stack.enter_context(upload)
        with raising_cannot_write(location), self._files.new(Path(location)) as (written, temporary):
            write_pieces(pieces, source, written, self._progress)
            self.path = self.path or temporary
            return os.fstat(written).st_size


def _data_to_copy(
    located: Mapping[str, int],
    source: FileLike,
    file: Source,
    out: str,
    external: ExternalHandling,
    force: bool,
) -> dict[str, str]:
    """Check all external data files; return the old and new locations of the files to copy.

    With `force`, different files at the new locations are replaced.
    """
    if not isinstance(source, str | os.PathLike):
        if located and external != "keep":
            raise unknown_folder(file.place)
        return {}
    folder, target = folder_location(str(source)), folder_location(out)
    files = {join(folder, name): join(target, name) for name in located}
    if out in files:
        raise contains_weights(out)
    if out in files.values():
        raise is_name_of_weights(out)
    if external == "keep" or not files:
        return {}
    if external == "link":
        reason = "an object store cannot hold links"
        raise UsageError(reason, place=out, remedy="copy the data files: --external copy")
    if is_url(folder):
        for old, least in zip(files, located.values(), strict=True):
            _require_object(old, least)
    else:
        require_files(located, Path(folder))
    return {old: new for old, new in files.items() if _is_missing(old, new, force)}


def _is_missing(old: str, new: str, force: bool) -> bool:
    if old == new or (exists(new) and is_copy(new, old)):
        return False
    if exists(new) and not force:
        raise data_exists(new)
    return True


def _require_object(location: str, least: int) -> None:
    info = StoreObject.at(location).info()
    if info and cast("int", info["size"] or 0) >= least:
        return
    try:
        with open_source(location) as data:
            require_size(data, least)
    except InvalidModel as error:
        error.reason = f"cannot be the external data of the model: {error.reason}"
        raise


def is_copy(new: str, old: str) -> bool:
    """Return whether `new` copies `old`: its metadata has the state of `old`, or the contents are equal."""
    state = (metadata_of(new) or {}).get(SOURCE_STATE) if is_url(new) and is_url(old) else None
    if state and state == object_state(old):
        return True
    with open_source(new) as one, open_source(old) as other:
        step = max(one.copy_size, other.copy_size)
        ends = ((start, min(start + step, one.size)) for start in range(0, one.size, step))
        return one.size == other.size and all(one.read(*each) == other.read(*each) for each in ends)
