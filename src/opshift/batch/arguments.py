"""Validate the arguments of `convert_many`, and convert them to text for workers."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from opshift.batch.settings import Settings
from opshift.converter.options import (
    EVERY_OPERATOR,
    AllowLike,
    Flags,
    IrVersionLike,
    Options,
    PlainTarget,
    RecognizeLike,
    TargetLike,
    WithoutLike,
    names_on,
    split_target,
)
from opshift.converter.shape_arguments import Dims, ShapesLike, read_shapes
from opshift.converter.streaming.external_data import ExternalHandling, require_handling
from opshift.model.errors import UsageError
from opshift.stores.find_models import LIST

if TYPE_CHECKING:
    from opshift.converter.element_types.requested_types import TypesLike

Item = TypeVar("Item")

PathLike = str | os.PathLike[str]

PathsLike = PathLike | Iterable[PathLike]


def settings_of(
    target: TargetLike | None,
    *,
    allow: AllowLike | None,
    ir_version: IrVersionLike,
    shapes: ShapesLike | None,
    without: WithoutLike,
    types: TypesLike | None,
    recognize: RecognizeLike | None,
    external: ExternalHandling,
    force: bool,
    opsets: PathsLike | None,
    adapters: PathsLike | None,
    verify: bool,
    flags: Flags,
) -> Settings:
    """Return the arguments of `convert_many` as settings; raise the same errors as `convert_version`."""
    names = names_on(flags)
    require_handling(external)
    plain, ir_version = split_target(target, ir_version)
    # iterators would be exhausted by the validation
    plain, shapes = _kept(plain), _kept(shapes)
    allowed: AllowLike = allow if isinstance(allow, str) else tuple(allow or ())
    without, types, recognize = _kept(without), _kept(types), _kept(recognize)
    settings = Settings(
        flags=names,
        external=external,
        force=force,
        opsets=tuple(map(Path, _paths(opsets))),
        adapters=tuple(map(Path, _paths(adapters))),
        verify=verify,
    )
    options = Options.of(
        plain,
        allow=allowed,
        ir_version=ir_version,
        shapes=shapes or (),
        without=without,
        types=types or (),
        recognize=recognize or False,
        registry=settings.load_definitions(),
        **flags,
    )
    return settings._replace(
        target=tuple(_target_texts(plain)),
        ir_version=None if ir_version is None else str(ir_version),
        allow=tuple(_texts(allowed)),
        shapes=_shape_texts(options.shapes) if isinstance(shapes, Mapping) else tuple(_texts(shapes)),
        without=tuple(_texts(without)),
        types=tuple(f"{old}={new}" for old, new in options.types),
        recognize=(EVERY_OPERATOR,) if recognize is True else tuple(_texts(recognize or ())),
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


def _paths(paths: PathsLike | None) -> Iterable[PathLike]:
    return [paths] if isinstance(paths, str | os.PathLike) else paths or ()


def _texts(texts: object) -> Iterable[str]:
    if isinstance(texts, str):
        return [texts]
    return map(str, texts) if isinstance(texts, Iterable) else ()


def _target_texts(target: PlainTarget | None) -> Iterable[str]:
    if isinstance(target, Integral):
        return [str(target)]
    if isinstance(target, Mapping):
        return [f"{domain}={version}" for domain, version in target.items()]
    return _texts(target)


def _shape_texts(shapes: Iterable[tuple[str, Dims]]) -> tuple[str, ...]:
    """Return shapes as texts such as `x=1,N`; raise UsageError for a dimension name with `,` or `=`."""
    texts = []
    for name, dims in shapes:
        text = f"{name}={','.join('?' if each is None else str(each) for each in dims)}"
        if read_shapes([text]) != {name: dims}:
            reason = f"the shape of {name!r} has a dimension with a comma or an equals sign"
            raise UsageError(reason, remedy="rename the dimension, or convert the models with convert_file")
        texts.append(text)
    return tuple(texts)
