"""Convert a model: read what was given, plan, apply, and hand back the same kind of thing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from opshift.converter.apply import apply_plan
from opshift.converter.errors import InvalidModel, UsageError
from opshift.converter.files import read_bytes, read_model
from opshift.converter.plan import Plan, Planner
from opshift.converter.report import Report
from opshift.converter.target import TargetLike, read_target
from opshift.registry.catalogue import Registry, default_registry


class Conversion(NamedTuple):
    """A converted model, and what was done to it."""

    model: Any
    report: Report


def convert_version(
    model: Any,
    target: TargetLike | None = None,
    *,
    target_version: int | None = None,
    inplace: bool = False,
    allow: str | Iterable[str] = (),
    registry: Registry | None = None,
) -> Any:
    """Convert a model to other operator-set versions.

    Args:
        model: a ModelProto (the project's or `onnx`'s), the bytes of one, or a path. It is left as it is.
        target: an opset version of the default domain, a mapping of domains to versions, a text such as
            `"17"`, `"ai.onnx.ml=3"` or `"onnx-1.12"`, or several such texts.
        target_version: `target`, as ONNX's converter spells it.
        inplace: change the given ModelProto itself and copy nothing; it is touched only once it is sure
            that all of it can be converted.
        allow: what need not be exact: `"approximate"` (results may differ in rounding) and
            `"assume-nonnegative"` (indices are taken to be no less than zero).
        registry: the definitions to go by, if not the project's own.

    Returns:
        A model of the class that was given; for bytes, bytes; for a path, the project's ModelProto.

    Raises:
        ConversionRefused: some nodes cannot be converted; the error lists all of them.
        InvalidModel: the input is not a model, or has no meaning as it is.
        UsageError, UnknownOpset, UnknownDomain: the target makes no sense.
    """
    if (target is None) == (target_version is None):
        raise UsageError("give one target", remedy="convert_version(model, target=17)")
    wanted = target if target is not None else target_version
    assert wanted is not None
    if isinstance(model, bytes | bytearray | memoryview):
        return _convert(model, wanted, inplace, allow, registry)[0].SerializeToString()
    return _convert(model, wanted, inplace, allow, registry)[0]


def convert(
    model: Any,
    target: TargetLike,
    *,
    inplace: bool = False,
    allow: str | Iterable[str] = (),
    registry: Registry | None = None,
) -> Conversion:
    """As `convert_version`, with the report; bytes and paths give the project's ModelProto."""
    result, plan = _convert(model, target, inplace, allow, registry)
    return Conversion(result, Report.of(plan))


def _convert(
    model: Any, target: TargetLike, inplace: bool, allow: str | Iterable[str], registry: Registry | None
) -> tuple[Any, Plan]:
    source, owned = model_of(model)
    plan = _plan(source, target, allow, registry)
    plan.require_possible()
    result = source
    if not owned and not inplace:
        result = type(source)()
        result.CopyFrom(source)
    apply_plan(plan, result)
    return result, plan


def plan_version(
    model: Any, target: TargetLike, *, allow: str | Iterable[str] = (), registry: Registry | None = None
) -> Plan:
    """What `convert_version` would do, and everything that stands in its way; nothing is changed.

    Raises:
        InvalidModel, UsageError, UnknownOpset, UnknownDomain: as for `convert_version`.
    """
    return _plan(model_of(model)[0], target, allow, registry)


def _plan(model: Any, target: TargetLike, allow: str | Iterable[str], registry: Registry | None) -> Plan:
    registry = registry or default_registry()
    try:
        return Planner(model, read_target(target, registry), registry, allow).plan()
    except UnicodeDecodeError as error:
        raise InvalidModel("a name in the model is not UTF-8 text") from error


def model_of(model: Any) -> tuple[Any, bool]:
    """The model as a message, and whether it is ours to change."""
    if isinstance(model, bytes | bytearray | memoryview):
        return read_bytes(bytes(model)), True
    if isinstance(model, str | os.PathLike):
        return read_model(Path(model)), True
    if not hasattr(model, "opset_import") or not hasattr(model, "graph"):
        raise InvalidModel(
            f"{type(model).__name__} is no model", remedy="give a ModelProto, its bytes, or a path"
        )
    return model, False
