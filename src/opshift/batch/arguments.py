"""Validate the arguments of `convert_many`, and convert them to text for workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Set
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from opshift.batch.settings import Settings, nonempty_arguments
from opshift.converter.options import (
    Options,
    PlainTarget,
    SharedArguments,
    StoredFlags,
    Target,
    TargetLike,
    require_known,
    split_target,
)
from opshift.converter.shape_arguments import Dims, read_shapes
from opshift.model.arguments import members_of
from opshift.model.errors import UsageError
from opshift.model.operator_ids import DEFAULT_DOMAIN
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
    # the validation would exhaust iterators
    kept: dict[str, Any] = {name: _without_iterator(value) for name, value in arguments.items()}
    plain, ir_version = split_target(target, kept.pop("ir_version", None))
    plain = _without_iterator(plain)
    options = Options.of(plain, ir_version=ir_version, registry=settings.load_definitions(), **kept)
    _require_texts_of_shapes(options.shapes)
    # Equal arguments must become equal texts, because a later run compares their digest.
    flags = {"exact", *StoredFlags.__annotations__}
    texts: dict[str, object] = {name: True for name, value in kept.items() if name in flags and value}
    texts |= {
        "allow": tuple(sorted(options.allow)),
        "recognize": tuple(sorted(options.recognize)),
        "shapes": _mapping_texts(dict(options.shapes)),
        "types": _mapping_texts(dict(options.types)),
        "without": tuple(sorted(map(str, options.without))),
    }
    requested = options.target.requested_ir_version
    return settings._replace(
        target=() if plain is None else _target_texts(plain, options.target),
        ir_version=None if requested is None else str(requested),
        arguments=nonempty_arguments(texts),
    )


def _target_texts(target: PlainTarget, read: Target) -> tuple[str, ...]:
    """Return the texts of a target; `read` is its parsed form."""
    # a target without releases
    if read == Target(read.opsets, requested_ir_version=read.requested_ir_version):
        opsets = sorted(read.opsets.items())
        return tuple(str(opset) if name == DEFAULT_DOMAIN else f"{name}={opset}" for name, opset in opsets)
    texts = dict.fromkeys(str(each).strip() for each in members_of(target))
    # a list keeps its order, in which reports name the releases
    return tuple(sorted(texts) if isinstance(target, Set) else texts)


def source_names(sources: PathsLike) -> list[str]:
    """Return the names of the sources of a batch.

    Raises:
        UsageError: a name is `-`, which means standard input.
    """
    names = [os.fspath(each) for each in _as_paths(sources)]
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


def _without_iterator(argument: Item) -> Item:
    """Return an argument; an iterator becomes a tuple, which can be read several times."""
    return tuple(argument) if hasattr(argument, "__next__") else argument  # type: ignore[return-value, arg-type]


def paths_of(paths: PathsLike | None) -> tuple[Path, ...]:
    """Return the paths in an argument that may be one path."""
    return tuple(map(Path, _as_paths(paths)))


def _as_paths(paths: PathsLike | None) -> Iterable[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else paths or ()


def _mapping_texts(argument: Mapping[str, object]) -> tuple[str, ...]:
    """Return the entries of a mapping as texts, such as `x=1,?`."""
    return tuple(f"{name}={_shape_text(value)}" for name, value in argument.items())


def _shape_text(dims: object) -> str:
    return ",".join("?" if each is None else str(each) for each in members_of(dims))


def _require_texts_of_shapes(shapes: Iterable[tuple[str, Dims]]) -> None:
    """Raise UsageError for a dimension name with `,` or `=`, which the text of a shape cannot contain."""
    for name, dims in shapes:
        if read_shapes(_mapping_texts({name: dims})) != {name: dims}:
            reason = f"the shape of {name!r} has a dimension with a comma or an equals sign"
            raise UsageError(reason, remedy="rename the dimension, or convert the models with convert_file")
