"""Conversion of a model file: large weights are copied from file to file and not parsed."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from typing import Unpack

from opshift.converter.convert import convert_with
from opshift.converter.options import ConvertArguments, Options, TargetLike
from opshift.converter.report import Report, conversion_report
from opshift.converter.streaming.copy_ranges import write_pieces
from opshift.converter.streaming.external_data import (
    ExternalHandling,
    data_exists,
    external_files,
    files_to_transfer,
    is_name_of_weights,
    require_files,
    require_handling,
    require_not_overwritten,
    transfer_files,
    unknown_folder,
)
from opshift.converter.streaming.external_weights import ExternalWeights
from opshift.converter.streaming.weights import OutputFile, Weights, output_pieces
from opshift.model.atomic_files import AtomicFiles, raising_cannot_write, write_all, write_destination
from opshift.model.binary_files import WritableFile, path_to_write
from opshift.model.errors import UsageError
from opshift.model.files import FileLike, read_bytes
from opshift.model.locations import is_url
from opshift.model.messages import ModelProto
from opshift.model.progress import Progress
from opshift.model.tensor_pieces import size_of_ranges, total_size
from opshift.stores.source_file import open_source


def convert_file(
    source: FileLike,
    out: str | os.PathLike[str] | WritableFile,
    target: TargetLike | None = None,
    *,
    external: ExternalHandling = "copy",
    force: bool = False,
    **arguments: Unpack[ConvertArguments],
) -> Report:
    """Convert a model file of any size without loading its weights.

    Args:
        source: the path or URL of the file to read, or a file object in binary mode, which is read to its
            end. If it is not a regular file, it is copied to a temporary file.
        out: the path or URL of the file to write, which may be the source. It is replaced as a whole, or not
            at all. `out` may also be a file object in binary mode: the model is written to a temporary file,
            then copied.
        target: as for `convert_version`, like all arguments that are not listed here. `inplace` has no
            effect.
        external: handling of external data if `out` is in another folder: `"copy"` copies the files, `"link"`
            creates hard links to them, and `"keep"` ignores them. A file object `out` implies `"keep"`.
            Current releases of the package `onnx` load no data file that has several hard links, which
            includes the files of the source.
        force: replace existing files in the folder of `out` that have the names of external data files.

    Raises:
        ConversionRefused, IllegalModel, UnknownOpset, UnknownDomain: as for `convert_version`.
        InvalidModel: the input is not a model, is truncated or changes during the conversion, or external
            data files are missing, too short or outside the model's folder.
        UsageError: the target or `external` is invalid, or a file would be overwritten.
        CannotWrite: the output cannot be written.
    """
    require_handling(external)
    options = Options.of(target, **(arguments | {"inplace": True}))

    def convert_in_place(model: ModelProto) -> Report:
        result, plan = convert_with(model, options)
        return conversion_report(plan, result, options)

    with path_to_write(out) as path:
        handling = external if path is out else "keep"
        rewrites_data = bool(options.types)
        with converting(
            source, path, convert_in_place, handling, force, rewrites_data=rewrites_data
        ) as written:
            return written.report


@contextmanager
def converting(
    source: FileLike,
    out: str | os.PathLike[str],
    convert_in_place: Callable[[ModelProto], Report],
    external: ExternalHandling = "copy",
    force: bool = False,
    progress: Progress | None = None,
    metadata: Mapping[str, str] | None = None,
    needs_file: bool = False,
    rewrites_data: bool = False,
) -> Iterator[OutputFile]:
    """Convert a file like `convert_file`, and move the result to `out` when the block ends without an error.

    `convert_in_place` converts a model in place. Large tensors of this model contain placeholders, see
    `opshift.model.offloaded_tensors`. `progress` counts the bytes of weights that are copied. `metadata` is
    stored with an object of S3. With `needs_file`, the converted model is in a local file even if `out` is a
    URL. With `rewrites_data`, external data are written to one file, `<out>.data`: elements may be converted.
    A data file that other models may use is only replaced with `force`, see `_data_path`.
    """
    progress = progress or Progress()
    if is_url(source) or is_url(out):
        # imported here: few models have a URL
        from opshift.converter.streaming.convert_object import converting_object

        with converting_object(
            source,
            str(out),
            convert_in_place,
            external,
            force,
            progress,
            metadata or {},
            needs_file=needs_file,
            rewrites_data=rewrites_data,
        ) as written:
            yield written
        return
    destination = write_destination(out)
    with AtomicFiles() as files:
        with ExitStack() as stack:
            file = stack.push(open_source(source))
            weights = stack.enter_context(Weights(file))
            message = weights.message()
            model = read_bytes(message, file.place)
            located = external_files(message, file.place)
            if located and file.path is None and (rewrites_data or external != "keep"):
                raise unknown_folder(file.place, needs_weights=rewrites_data)
            folders = file.path.parent if file.path else Path(), Path(out).parent
            is_same = file.path is not None and destination.exists() and file.path.samefile(destination)
            old_files = [folders[0] / each for each in located]
            new_data = data_path = data_file = None
            if located and rewrites_data:
                if external == "keep":
                    reason = (
                        "has weights in separate files, which need a new file in the folder of the output"
                    )
                    raise UsageError(
                        reason, place=file.place, remedy="name the output file, and omit --external keep"
                    )
                require_files(located, folders[0])
                require_not_overwritten(located, folders[0], destination)
                # `out` and not its target, because external data are relative to the folder of a link
                data_path = _data_path(Path(out), old_files, is_same=is_same, force=force)
                new_data = stack.enter_context(ExternalWeights(folders[0]))
                new_data.take(model)
                external, transferred = "keep", list[str]()
            else:
                transferred = files_to_transfer(located, *folders, destination, external, force)
            report = convert_in_place(model)
            data_pieces = new_data.externalize(model, data_path.name) if new_data and data_path else []
            new_file_names = (data_path.name,) if data_path and data_pieces else ()
            pieces = output_pieces(report, message, model, weights, file)
            del message, model  # free the memory, which is not needed while weights are copied
            new_file = files.new(destination, source=file.path, is_safe=is_same)
            with raising_cannot_write(out), new_file as (written, temporary):
                progress.total = size_of_ranges(pieces) + total_size(data_pieces)
                if external == "copy":
                    progress.total += sum(located[each] for each in transferred)
                write_pieces(pieces, file, written, progress)
                size = os.fstat(written).st_size
            file.require_unchanged()
            transfer_files(transferred, *folders, external, force, files, progress)
            if new_data and data_path and data_pieces:  # empty tensors are stored in the model
                new_file = files.new(data_path, source=old_files[0], is_safe=is_same, is_new=not force)
                with raising_cannot_write(data_path), new_file as (written, data_file):
                    for block in chain.from_iterable(map(new_data.blocks, data_pieces)):
                        write_all(written, block)
                        progress.done += len(block)
                new_data.require_unchanged()
        data = new_file_names if new_data else tuple(located)
        yield OutputFile(temporary, replace(report, sizes=(file.size, size)), tuple(located), data, data_file)


def _data_path(out: Path, old_files: list[Path], *, is_same: bool, force: bool) -> Path:
    """Return the path of the new data file of `out`: `<out>.data`, or an unused name such as `<out>.1.data`.

    Other models may read an existing `<out>.data`. Therefore, without `force`, an unused name is returned if
    the source reads this file (it is in `old_files`), or if the output replaces the source (`is_same`).

    Raises:
        UsageError: `<out>.data` is another file, and `force` is not set; or, with `force`, it is in
            `old_files` and the source is not replaced.
    """
    path = out.with_name(f"{out.name}.data")
    if not os.path.lexists(path):
        return path
    is_old = path.exists() and any(_is_same_entry(path, each) for each in old_files)
    if force:
        if is_old and not is_same:
            raise is_name_of_weights(str(path))
        return path
    if not is_old and not is_same:
        raise data_exists(str(path), "replace it with --force, or name another output file")
    numbered = (out.with_name(f"{out.name}.{number}.data") for number in count(1))
    return next(each for each in numbered if not os.path.lexists(each))


def _is_same_entry(path: Path, other: Path) -> bool:
    """Return whether two paths name one entry of a folder after symbolic links are resolved.

    Two hard links of a file are two entries: a new file may replace one of them, and the other one stays.
    """
    one, two = path.resolve(), other.resolve()
    # compared without case, because some file systems ignore it
    is_same_name = one.name.casefold() == two.name.casefold() and one.parent.samefile(two.parent)
    return is_same_name and one.samefile(two)
