"""Convert a file: the message around the weights is read and written, the weights are copied."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opshift.converter.convert import convert
from opshift.converter.files import message_of, read_bytes
from opshift.converter.report import Report
from opshift.converter.streaming.copying import write_pieces
from opshift.converter.streaming.external import (
    External,
    bring,
    external_files,
    require_present,
    require_spared,
    to_bring,
)
from opshift.converter.streaming.pieces import Piece, Range
from opshift.converter.streaming.replacing import Replacing, place_of, writing
from opshift.converter.streaming.source import Source
from opshift.converter.streaming.weights import Weights
from opshift.converter.target import IrVersionLike, TargetLike
from opshift.registry.catalogue import Registry
from opshift.registry.messages import ModelProto


def convert_file(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    target: TargetLike | None = None,
    *,
    allow: str | Iterable[str] = (),
    ir_version: IrVersionLike = None,
    check: bool = False,
    reversible: bool = False,
    registry: Registry | None = None,
    external: External = "copy",
    force: bool = False,
) -> Report:
    """Convert a model from file to file, of any size, without holding its weights.

    Args:
        source: the file to read.
        out: the file to write, which may be the same. It is replaced as a whole, or stays as it was.
        target: as for `convert_version`; so are `allow`, `ir_version`, `check`, `reversible` and `registry`.
        allow: what need not be exact.
        ir_version: the IR version of the result, or `"keep"`.
        check: look for everything that breaks a rule, before and after.
        reversible: let the result remember what a conversion back needs.
        registry: the definitions to go by.
        external: what becomes of weights in files of their own, if `out` is in another folder. They are
            copied (`"copy"`), get a second name by a hard link (`"link"`), or stay where they are and
            are not looked at (`"keep"`).
        force: replace other files that have the names of such files in the folder of `out`.

    Raises:
        ConversionRefused, IllegalModel, UnknownOpset, UnknownDomain: as for `convert_version`.
        InvalidModel: it is no model, is cut off, changes while it is read, or files with weights are missing,
            too short, or not in its folder.
        UsageError: the target makes no sense, or a file is in the way.
        CannotWrite: the output cannot be written.
    """

    def change(model: ModelProto) -> Report:
        return convert(
            model,
            target,
            inplace=True,
            allow=allow,
            ir_version=ir_version,
            check=check,
            reversible=reversible,
            registry=registry,
        ).report

    with converting(source, out, change, external, force) as written:
        return written.report


@dataclass(frozen=True)
class Written:
    """A converted model in a file that has not got to its place yet.

    Attributes:
        path: where it is meanwhile.
        report: what was done.
        sizes: of the model's file, before and after, in bytes.
        external: the files with weights of the model, relative to its folder.
    """

    path: Path
    report: Report
    sizes: tuple[int, int]
    external: tuple[str, ...]


@contextmanager
def converting(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    change: Callable[[ModelProto], Report],
    external: External = "copy",
    force: bool = False,
) -> Iterator[Written]:
    """As `convert_file`, but what is written gets to its place when the block ends without an error.

    `change` converts a model; its large tensors have notes, see `opshift.adapters.elsewhere`.
    """
    path, place = Path(source), place_of(out)
    with Replacing() as files:
        with Source(path) as file, Weights(file) as weights:
            message = weights.message()
            model = read_bytes(message, str(path))
            located = external_files(message, str(path))
            brought = _brought(located, path.parent, Path(out), place, external, force)
            report = change(model)
            pieces = _pieces(report, message, model, weights, file)
            del message, model
            with writing(out), files.new(place, is_safe=_is_same(path, place)) as (written, temporary):
                write_pieces(pieces, file, written)
                size = os.fstat(written).st_size
            file.require_unchanged()
            bring(brought, path.parent, Path(out).parent, external, files)
        yield Written(temporary, report, (file.size, size), tuple(located))


def _brought(
    located: Mapping[str, int], folder: Path, out: Path, place: Path, external: External, force: bool
) -> list[str]:
    """The files to bring along; all are in order."""
    require_spared(located, folder, place)
    if external == "keep":
        return []
    require_present(located, folder)
    return to_bring(located, folder, out.parent, place, force)


def _pieces(report: Report, message: bytes, model: ModelProto, weights: Weights, file: Source) -> list[Piece]:
    """What is to be written: the file itself, byte by byte, if nothing changes."""
    converted = message_of(model, str(file.path))
    if not report.opsets and not report.changed and converted == message_of(read_bytes(message)):
        return [Range(0, file.size)]
    return weights.put_back(converted)


def _is_same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)
