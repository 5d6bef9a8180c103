"""Validate the arguments of `convert_many`, and convert them to text for workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from opshift.batch.settings import Settings, nonempty_arguments
from opshift.converter.options import (
    EVERY_OPERATOR,
    Options,
    SharedArguments,
    StoredFlags,
    TargetLike,
    require_known,
    split_target,
)
from opshift.converter.shape_arguments import Dims, read_shapes
from opshift.model.arguments import members_of
from opshift.model.errors import UsageError
from opshift.stores.find_models import LIST

Item = TypeVar("Item")

PathLike = str | os.PathLike[str]

PathsLike = PathLike | Iterable[PathLike]


def settings_of(target: TargetLike | None, arguments: SharedArguments, settings: Settings) -> Settings:
    """Add arguments of `convert_version` to settings, as texts; raise its errors for invalid arguments.

    Raises:
        UsageError: also for a dimension name that a text of a shape cannot contain.
    """
    require_known(arguments, SharedArguments.__annotations__)
    # iterators would be exhausted by the validation
    kept: dict[str, Any] = {name: _kept(value) for name, value in arguments.items()}
    plain, ir_version = split_target(target, kept.pop("ir_version", None))
    plain = _kept(plain)
    options = Options.of(plain, ir_version=ir_version, registry=settings.load_definitions(), **kept)
    _require_texts_of_shapes(options.shapes)
    # equal arguments become equal texts, because a later run compares their digest
    flags = {"exact", *StoredFlags.__annotations__}
    texts: dict[str, object] = {
        name: True if name in flags else _names(value) for name, value in kept.items() if value
    }
    texts |= {"shapes": _texts(dict(options.shapes)), "types": _texts(dict(options.types))}
    if kept.get("recognize") is True:
        texts["recognize"] = (EVERY_OPERATOR,)
    return settings._replace(
        target=() if plain is None else _texts(plain),
        ir_version=None if ir_version is None else str(ir_version),
        arguments=nonempty_arguments(texts),
    )


def source_names(sources: PathsLike) -> list[str]:
    """Return the names of the sources of a batch.

    Raises:
        UsageError: a name is `-`, which means standard input.
    """
    names = [os.fspath(each) for each in _paths(sources)]
    if LIST in names:
        remedy = "pass the paths of the models, or ./- for a file with this name"
        raise UsageError("is standard input, which has no models for a batch", place=LIST, remedy=remedy)
    return names


def number_of_jobs(jobs: int | None) -> int | None:
    """Return the number of processes; raise UsageError unless it is a positive integer or `None`."""
    if jobs is None:
        return None
    if not isinstance(jobs, Integral) or isinstance(jobs, bool) or jobs < 1:
        raise UsageError(f"{jobs!r} is not a number of processes", remedy="pass jobs=1 or more")
    return int(jobs)


def _kept(argument: Item) -> Item:
    """Return an argument; an iterator becomes a tuple, which can be read several times."""
    return tuple(argument) if hasattr(argument, "__next__") else argument  # type: ignore[return-value, arg-type]


def paths_of(paths: PathsLike | None) -> tuple[Path, ...]:
    """Return the paths in an argument that may be one path."""
    return tuple(map(Path, _paths(paths)))


def _paths(paths: PathsLike | None) -> Iterable[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else paths or ()


def _texts(argument: object) -> tuple[str, ...]:
    """Return the members of an argument as texts; those of a mapping such as `ai.onnx=17` or `x=1,?`."""
    if isinstance(argument, Mapping):
        return tuple(f"{name}={_joined(value)}" for name, value in argument.items())
    return _names(argument)


def _names(argument: object) -> tuple[str, ...]:
    return tuple(map(str, members_of(argument)))


def _joined(dims: object) -> str:
    return ",".join("?" if each is None else str(each) for each in members_of(dims))


def _require_texts_of_shapes(shapes: Iterable[tuple[str, Dims]]) -> None:
    """Raise UsageError for a dimension name with `,` or `=`, which the text of a shape cannot contain."""
    for name, dims in shapes:
        if read_shapes(_texts({name: dims})) != {name: dims}:
            reason = f"the shape of {name!r} has a dimension with a comma or an equals sign"
            raise UsageError(reason, remedy="rename the dimension, or convert the models with convert_file")
