"""Convert a model: read what was given, plan, apply, and hand back the same kind of thing."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.converter.apply import apply_plan
from opshift.converter.changes import Plan
from opshift.converter.collector import collector_paused
from opshift.converter.errors import InvalidModel, UsageError
from opshift.converter.files import read_bytes, read_model
from opshift.converter.plan import Planner
from opshift.converter.report import Report
from opshift.converter.reversible.key import has_record
from opshift.converter.target import IrVersionLike, TargetLike, read_target
from opshift.registry.catalogue import Registry, default_registry

if TYPE_CHECKING:
    from opshift.converter.reversible.history import History

BYTES = (bytes, bytearray, memoryview)


class Conversion(NamedTuple):
    """A converted model, and what was done to it."""

    model: Any
    report: Report


@collector_paused
def convert_version(
    model: Any,
    target: TargetLike | None = None,
    *,
    target_version: int | None = None,
    inplace: bool = False,
    allow: str | Iterable[str] = (),
    ir_version: IrVersionLike = None,
    check: bool = False,
    reversible: bool = False,
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
            `"assume-nonnegative"` (indices are taken to be no less than zero). And what may be dropped if the
            IR version has no place for it: `"drop-metadata"`, `"drop-training"` and `"drop-devices"`.
        ir_version: the IR version to convert to, or `"keep"`; there need be no target then. By default a
            release or runtime gets none that it does not take, and opsets get that of the first ONNX release
            with them: raised where they are raised, lowered where they are, as far as nothing is lost.
        check: look for everything that breaks a rule of ONNX's specification, before and after. Without it
            the structure and the nodes that change are looked at, which costs little.
        reversible: record in the model's metadata, under the key `opshift.reversible`, what is replaced. The
            next conversions of the model put it back where their target is the recorded opset, or lies
            beyond the way there; of that, what somebody changed in between is converted as it is.
        registry: the definitions to go by, if not the project's own.

    Returns:
        A model of the class that was given; for bytes, bytes; for a path, the project's ModelProto.

    Raises:
        ConversionRefused: some nodes cannot be converted, or the model holds what the IR version cannot
            express; the error lists all of it.
        InvalidModel: the input is not a model, or has no meaning as it is.
        IllegalModel: with `check`, the model breaks rules; the error lists all of them.
        UsageError, UnknownOpset, UnknownDomain: the target makes no sense.
    """
    given = [each for each in (target, target_version) if each is not None]
    if len(given) > 1 or (not given and ir_version is None):
        raise UsageError("give one target", remedy="convert_version(model, target=17)")
    wanted = given[0] if given else None
    if isinstance(model, BYTES):
        result, plan = _convert(model, wanted, inplace, allow, registry, ir_version, check, reversible)
        return bytes(model) if plan.is_empty else result.SerializeToString()
    return _convert(model, wanted, inplace, allow, registry, ir_version, check, reversible)[0]


@collector_paused
def convert(
    model: Any,
    target: TargetLike | None = None,
    *,
    inplace: bool = False,
    allow: str | Iterable[str] = (),
    ir_version: IrVersionLike = None,
    check: bool = False,
    reversible: bool = False,
    registry: Registry | None = None,
) -> Conversion:
    """As `convert_version`, with the report; bytes and paths give the project's ModelProto."""
    result, plan = _convert(model, target, inplace, allow, registry, ir_version, check, reversible)
    return Conversion(result, Report.of(plan))


def _convert(
    model: Any,
    target: TargetLike | None,
    inplace: bool,
    allow: str | Iterable[str],
    registry: Registry | None,
    ir_version: IrVersionLike,
    check: bool,
    reversible: bool,
) -> tuple[Any, Plan]:
    source, owned = model_of(model)
    registry = registry or default_registry()
    if check:
        _require_legal(source, registry, "before the conversion")
    plan = _plan(source, target, allow, registry, ir_version, reversible)
    plan.require_possible()
    result = source
    if not owned and (check or not inplace):
        result = type(source)()
        result.CopyFrom(source)
    apply_plan(plan, result)
    plan.ir.apply(result, registry)
    if plan.header is not None:
        from opshift.converter.reversible.remembering import remember

        remember(plan, result)
    if check:
        _require_legal(result, registry, "after the conversion")
        if inplace and not owned:
            source.CopyFrom(result)
            result = source
    return result, plan


def _require_legal(model: Any, registry: Registry, when: str) -> None:
    from opshift.converter.legality.check import require_legal

    require_legal(model, registry, when)


@collector_paused
def plan_version(
    model: Any,
    target: TargetLike | None = None,
    *,
    allow: str | Iterable[str] = (),
    ir_version: IrVersionLike = None,
    registry: Registry | None = None,
) -> Plan:
    """What `convert_version` would do, and everything that stands in its way; nothing is changed.

    Raises:
        InvalidModel, UsageError, UnknownOpset, UnknownDomain: as for `convert_version`.
    """
    return _plan(model_of(model)[0], target, allow, registry or default_registry(), ir_version)


def _plan(
    model: Any,
    target: TargetLike | None,
    allow: str | Iterable[str],
    registry: Registry,
    ir_version: IrVersionLike,
    reversible: bool = False,
) -> Plan:
    try:
        wanted = read_target(target, registry, ir_version)
        history = _history(model, is_continued=reversible)
        return Planner(model, wanted, registry, allow, history=history).plan()
    except UnicodeDecodeError as error:
        raise InvalidModel("a name in the model is not UTF-8 text") from error


def _history(model: Any, *, is_continued: bool) -> History | None:
    """What the model remembers; `None` if that is nothing and stays so."""
    if not is_continued and not has_record(model):
        return None
    from opshift.converter.reversible.history import History

    return History(model, is_continued)


def model_of(model: Any) -> tuple[Any, bool]:
    """The model as a message, and whether it is ours to change."""
    if hasattr(model, "opset_import") and hasattr(model, "graph"):
        return model, False
    if isinstance(model, BYTES):
        return read_bytes(bytes(model)), True
    if isinstance(model, str | os.PathLike):
        return read_model(Path(model)), True
    raise InvalidModel(
        f"{type(model).__name__} is no model", remedy="give a ModelProto, its bytes, or a path"
    )
