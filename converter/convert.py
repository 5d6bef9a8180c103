"""Entry points of a conversion: read the model, plan, apply, and return a model of the same kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from opshift.converter.apply import apply_plan
from opshift.converter.plan.changes import Plan
from opshift.converter.plan.planner import Planner
from opshift.converter.report import Report
from opshift.converter.reversible.metadata_key import has_record
from opshift.converter.target import IrVersionLike, TargetLike, read_target
from opshift.model.errors import InvalidModel, UsageError
from opshift.model.files import BYTES_TYPES, gc_paused, model_of
from opshift.registry.registry import Registry, default_registry

if TYPE_CHECKING:
    from opshift.converter.reversible.history import History


class Conversion(NamedTuple):
    """Converted model with the report of the conversion."""

    model: Any
    report: Report


@gc_paused
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
        model: a ModelProto (the project's or `onnx`'s), the bytes of one, or a path. It is not modified.
        target: opset version of the default domain, a mapping from domains to versions, a text such as
            `"17"`, `"ai.onnx.ml=3"` or `"onnx-1.12"`, or several such texts.
        target_version: alias of `target`, for compatibility with ONNX's version converter.
        inplace: modify the given ModelProto and avoid the copy; nothing is modified until the whole model is
            known to be convertible.
        allow: inexact conversions to allow: `"approximate"` (results may differ in rounding) and
            `"assume-nonnegative"` (indices are assumed to be nonnegative); and content to drop if the IR
            version cannot express it: `"drop-metadata"`, `"drop-training"` and `"drop-devices"`.
        ir_version: IR version to convert to, or `"keep"`; `target` is then optional. By default, the result
            is no newer than the target release or runtime supports. For opsets, the default is the IR
            version of the first ONNX release with all of them: it is raised together with the
            opsets, and lowered together with them unless that would lose content.
        check: check all rules of the ONNX specification, before and after the conversion. Without it, only
            the structure of the model and the nodes that change are validated, which is cheap.
        reversible: record the replaced nodes in the model's metadata, under the key `opshift.reversible`.
            Later conversions restore them if their target is the recorded opset or beyond it in the same
            direction; nodes that were edited in between are converted normally.
        registry: operator definitions; by default the project's own.

    Returns:
        A model of the same class; bytes for bytes; the project's ModelProto for a path.

    Raises:
        ConversionRefused: some nodes cannot be converted, or the IR version cannot express some content of
            the model; the error lists all of them.
        InvalidModel: the input is not a model, or is invalid.
        IllegalModel: with `check`, the model violates the specification; the error lists all violations.
        UsageError, UnknownOpset, UnknownDomain: the target is invalid.
    """
    given = [each for each in (target, target_version) if each is not None]
    if len(given) > 1 or (not given and ir_version is None):
        raise UsageError(
            f"expected exactly one target, got {len(given)}",
            remedy="pass target or ir_version, such as convert_version(model, target=17)",
        )
    wanted = given[0] if given else None
    if isinstance(model, BYTES_TYPES):
        result, plan = _convert(model, wanted, inplace, allow, registry, ir_version, check, reversible)
        return bytes(model) if plan.is_empty else result.SerializeToString()
    return _convert(model, wanted, inplace, allow, registry, ir_version, check, reversible)[0]


@gc_paused
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
    """Convert a model like `convert_version`, and return it with the report of the conversion.

    Bytes and paths are returned as the project's ModelProto. Arguments and errors are those of
    `convert_version`.
    """
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
    # With `check`, work on a copy even in place: the result may still turn out to be illegal.
    if not owned and (check or not inplace):
        result = type(source)()
        result.CopyFrom(source)
    apply_plan(plan, result)
    # After the opsets: the IR rewrites expect converted nodes.
    plan.ir.apply(result, registry)
    if plan.header is not None:
        from opshift.converter.reversible.write_record import update_record

        update_record(plan, result)
    if check:
        _require_legal(result, registry, "after the conversion")
        if inplace and not owned:
            source.CopyFrom(result)
            result = source
    return result, plan


def _require_legal(model: Any, registry: Registry, when: str) -> None:
    from opshift.checker.check import require_legal

    require_legal(model, registry, when)


@gc_paused
def plan_version(
    model: Any,
    target: TargetLike | None = None,
    *,
    allow: str | Iterable[str] = (),
    ir_version: IrVersionLike = None,
    registry: Registry | None = None,
) -> Plan:
    """Plan a conversion without modifying the model.

    Args:
        model: a ModelProto, the bytes of one, or a path.
        target: opsets to convert to, see `convert_version`.
        allow: inexact conversions to allow, see `convert_version`.
        ir_version: IR version to convert to, or `"keep"`, see `convert_version`.
        registry: operator definitions; by default the project's own.

    Returns:
        The changes that `convert_version` would apply, or all reasons why it would refuse.

    Raises:
        InvalidModel, UsageError, UnknownOpset, UnknownDomain: see `convert_version`.
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
    """Return the record of earlier conversions; `None` if it is empty and remains so."""
    if not is_continued and not has_record(model):
        return None
    from opshift.converter.reversible.history import History

    return History(model, is_continued)
