"""Which files a command may read and write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opshift.converter.errors import UsageError

EXTERNAL = 1
"""`TensorProto.data_location` of a tensor whose data are in another file."""


def require_file(source: Path) -> None:
    """Check that there is a file to read.

    Raises:
        UsageError: there is none.
    """
    if source.is_dir():
        raise UsageError("is a folder", place=str(source), remedy="name the model file in it")
    if not source.exists():
        raise UsageError("there is no such file", place=str(source), remedy="check the path")


def destination(source: Path, out: Path | None, *, in_place: bool, force: bool) -> Path:
    """The file to write, with links followed, so that a link stays one.

    Raises:
        UsageError: it is not said, not allowed, or not there.
    """
    if in_place:
        if out is not None:
            raise UsageError(
                "both OUT and --in-place are given", place=str(out), remedy="leave one of them out"
            )
        return source.resolve()
    if out is None:
        raise UsageError("OUT is not given", remedy="name the file to write, or replace IN with --in-place")
    _require_free(source, out, force)
    path = _without_links(out)
    if not path.parent.is_dir():
        raise UsageError("its folder does not exist", place=str(out), remedy=f"create {path.parent} first")
    return path


def _require_free(source: Path, out: Path, force: bool) -> None:
    if out.is_dir():
        raise UsageError(
            "is a folder", place=str(out), remedy=f"name a file in it, such as {out / source.name}"
        )
    if not out.exists():
        return
    if out.samefile(source):
        raise UsageError(
            "is the input itself", place=str(out), remedy="to replace it say --in-place, without OUT"
        )
    if not out.is_file():
        raise UsageError("is there and no regular file", place=str(out), remedy="name another file")
    if not force:
        raise UsageError(
            "is there already", place=str(out), remedy="replace it with --force, or name another"
        )


def _without_links(out: Path) -> Path:
    try:
        return out.resolve()
    except (RuntimeError, OSError) as error:  # Python 3.13 made it an OSError
        raise UsageError("is a link that leads nowhere", place=str(out), remedy="remove it") from error


def external_files(model: Any) -> tuple[str, ...]:
    """The files, relative to the model's own, that hold weights of the main graph."""
    found: dict[str, None] = {}
    for tensor in _tensors(model.graph):
        if tensor.data_location == EXTERNAL:
            found |= {each.value: None for each in tensor.external_data if each.key == "location"}
    return tuple(found)


def require_no_weights(source: Path, weights: tuple[str, ...], path: Path) -> None:
    """Check that `path` is none of the files that hold the model's weights.

    Raises:
        UsageError: it would.
    """
    for name in weights:
        file = source.parent / name
        if path.exists() and file.exists() and path.samefile(file):
            raise UsageError("holds weights of the input", place=str(path), remedy="name another file")


def _tensors(graph: Any) -> Iterator[Any]:
    """The tensors of a graph and of the graphs within it."""
    waiting = [graph]
    while waiting:
        current = waiting.pop()
        yield from current.initializer
        for node in current.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield attribute.t
                waiting += [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]
