"""Entry points of a conversion: read the model, plan, apply, and return a model of the same kind."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Generic, NamedTuple, TypedDict, TypeVar, Unpack, overload

from opshift.converter.apply import apply_conversion
from opshift.converter.arguments import ShapesLike
from opshift.converter.element_types.requested_types import TypesLike
from opshift.converter.options import AllowLike, ConvertArguments, Options, TargetLike
from opshift.converter.plan.changes import Plan
from opshift.converter.plan.planner import plan_model
from opshift.converter.report import Report, conversion_report
from opshift.model.errors import UsageError
from opshift.model.files import (
    BYTES_TYPES,
    BytesLike,
    FileLike,
    Model,
    ModelLike,
    ModelObject,
    gc_paused,
    is_message,
    is_onnx_ir,
    model_of,
    reading_onnx_ir,
    requiring_text,
    serialize_model,
)
from opshift.model.messages import ModelProto
from opshift.model.process_state import signals_deferred
from opshift.registry.errors import DefinitionError
from opshift.registry.registry import Registry, default_registry
from opshift.rewriting.routes import precompiled_routes

if TYPE_CHECKING:
    from opshift.converter.bump import OriginalProperties

Converted = TypeVar("Converted", bound=ModelObject | bytes, covariant=True)


class Conversion(NamedTuple, Generic[Converted]):
    """Converted model with the report of the conversion."""

    model: Converted
    report: Report


@overload
def convert_version(
    model: Model,
    target: TargetLike | None = None,
    *,
    target_version: int | None = None,
    **arguments: Unpack[ConvertArguments],
) -> Model: ...
@overload
def convert_version(
    model: BytesLike,
    target: TargetLike | None = None,
    *,
    target_version: int | None = None,
    **arguments: Unpack[ConvertArguments],
) -> bytes: ...
@overload
def convert_version(
    model: FileLike,
    target: TargetLike | None = None,
    *,
    target_version: int | None = None,
    **arguments: Unpack[ConvertArguments],
) -> ModelProto: ...
@gc_paused
def convert_version(
    model: ModelLike,
    target: TargetLike | None = None,
    *,
    target_version: int | None = None,
    **arguments: Unpack[ConvertArguments],
) -> ModelObject | bytes:
    """Convert a model to other operator-set versions.

    Args:
        model: a ModelProto (the project's or `onnx`'s), an `onnx_ir.Model`, a `torch.onnx.ONNXProgram`, the
            bytes of a ModelProto, a path, or a file object in binary mode. It is not modified unless
            `inplace` is given.
        target: opset version of the default domain, a mapping from domains to versions, a text such as
            `"17"`, `"ai.onnx.ml=3"` or `"onnx-1.12"`, or several such texts. Programs that run models, such
            as `"onnxruntime-1.20"` or `"tensorrt-10.1"`, are upper limits: opsets that they support stay.
            A release of a program that is not listed has the opsets of the nearest older one, and the report
            has a note. The result of `common_opset` is a target, too, for models that need the same opsets.
        target_version: alias of `target`, for compatibility with ONNX's version converter.
        inplace: modify the given ModelProto and avoid the copy, except with `bump`, `check`, `fold`, `shapes`
            or `types`: these convert a copy and copy the result back. Nothing is modified until the whole
            model is known to be convertible.
        allow: inexact conversions to allow: `"approximate"` (results may differ in rounding),
            `"assume-nonnegative"` (indices are assumed to be nonnegative), `"assume-nonempty"` (dimensions
            are assumed not to be 0) and `"clamp"` (numbers outside the range of a new element type become the
            nearest number in the range); `"large"`, more than 2,000 nodes or 16 MiB of constants in place of
            one node; and content to drop if the IR version cannot express it: `"drop-metadata"`,
            `"drop-training"` and `"drop-devices"`. `"interface-types"` affects `fit` only.
        ir_version: IR version to convert to, or `"keep"`; `target` is then optional. By default, the result
            is no newer than the target release or runtime supports. Raised opsets raise it to that of the
            first ONNX release with all of them, if it is older. A lower opset of the default domain lowers it
            to that of the first release with all opsets, unless the model would lose content.
        check: check all rules of the ONNX specification, before and after the conversion. Without it, only
            the structure of the model and the nodes that change are validated, which is cheap.
        reversible: record the replaced nodes in the model's metadata, under the key `opshift.reversible`.
            Later conversions restore them if their target is the recorded opset or beyond it in the same
            direction; nodes that were edited in between are converted normally.
        bump: raise `model_version` if the model changes: MINOR if an opset or the IR version rises, because
            runtimes may have to be newer, otherwise PATCH; more if `compare` requires it for changed inputs
            and outputs. A simple number rises by 1.
        shapes: shapes to declare before the conversion, such as `{"x": (2, 3, "H", None)}` or
            `["x=2,3,H,?"]`: sizes, names, and `None` or `?` for an unchanged dimension. The result
            declares them, too: it may be valid for them only. Names are those of graph inputs, or of values
            that nodes of the main graph compute and whose shapes inference does not find.
        infer_shapes: if nodes are refused, plan again with the shapes that the package `onnx` infers, if it
            is installed. Opshift infers shapes itself in any case, and its own results take precedence. The
            result declares no additional shapes.
        keep_initializer_inputs: keep initializers that are graph inputs if the IR version rises from below 4.
            By default they stop being inputs: runtimes treat them as constants below version 4, but since
            version 4 as inputs that callers can override, and optimize nothing that depends on them.
        without: domains such as `"com.microsoft"`, or operators such as `"ai.onnx.Gelu"`, that the result may
            not contain; `target` is then optional. Functions with such names are inlined.
        fold: replace values that are the same in every run by constants, and remove nodes that have no
            effect, before the conversion; `target` is then optional. See `simplify`.
        types: element types to replace in the whole model before the conversion, such as
            `{"bfloat16": "float16"}`; `target` is then optional. See `convert_types`.
        keep_interface: inputs and outputs keep their element types; with `types` only.
        recognize: after the conversion, replace groups of nodes that compute the same as one operator by a
            node of this operator; `target` is then optional. `True` for all function operators, or some, such
            as `["LayerNormalization", "Gelu"]`. With `allow="approximate"`, also those that round
            differently.
        exact: raise older opsets, too, to the newest that the program in `target` supports.
        registry: operator definitions; by default those of opshift and of installed packages.

    Returns:
        A model of the same class; bytes for bytes; the project's ModelProto for a path or file object.

    Raises:
        ConversionRefused: some nodes cannot be converted, or the IR version cannot express some content of
            the model; the error lists all of them.
        InvalidModel: the input is not a model, or is invalid.
        IllegalModel: with `check`, the model violates the specification; the error lists all violations.
        UsageError, UnknownOpset, UnknownDomain: an argument is invalid, or `model_version` cannot be raised.
    """
    if target is None:
        target = target_version
    elif target_version is not None:
        raise UsageError("two targets are given", remedy="pass only one of target and target_version")
    return convert_and_plan(model, Options.of(target, **arguments))[0]


def convert_and_plan(model: ModelLike, options: Options) -> tuple[ModelObject | bytes, ModelProto, Plan]:
    """Convert a model; return it in the caller's form (such as bytes) and as a ModelProto, with the plan."""
    if not is_message(model) and is_onnx_ir(model):
        from opshift.model.onnx_ir import OnnxIrMessage  # imported here: few models are onnx_ir models

        with OnnxIrMessage(model) as message:
            result, plan = convert_with(message.proto, replace(options, inplace=True))
            return message.converted(result, inplace=options.inplace), result, plan
    result, plan = convert_with(model, options)
    if isinstance(model, BYTES_TYPES):
        return bytes(model) if plan.is_empty else serialize_model(result), result, plan
    return result, result, plan


@overload
def convert(
    model: Model, target: TargetLike | None = None, **arguments: Unpack[ConvertArguments]
) -> Conversion[Model]: ...
@overload
def convert(
    model: BytesLike, target: TargetLike | None = None, **arguments: Unpack[ConvertArguments]
) -> Conversion[bytes]: ...
@overload
def convert(
    model: FileLike, target: TargetLike | None = None, **arguments: Unpack[ConvertArguments]
) -> Conversion[ModelProto]: ...
@gc_paused
def convert(
    model: ModelLike, target: TargetLike | None = None, **arguments: Unpack[ConvertArguments]
) -> Conversion[ModelObject | bytes]:
    """Convert a model like `convert_version`, and return it with the report of the conversion.

    Arguments, classes of the returned model and errors are the same as for `convert_version`.
    """
    options = Options.of(target, **arguments)
    converted, message, plan = convert_and_plan(model, options)
    return Conversion(converted, conversion_report(plan, message, options))


class SimplifyArguments(TypedDict, total=False):
    """Keyword arguments of `simplify`."""

    shapes: ShapesLike
    keep_initializer_inputs: bool
    inplace: bool
    check: bool
    registry: Registry | None


@overload
def simplify(model: Model, **arguments: Unpack[SimplifyArguments]) -> Model: ...
@overload
def simplify(model: BytesLike, **arguments: Unpack[SimplifyArguments]) -> bytes: ...
@overload
def simplify(model: FileLike, **arguments: Unpack[SimplifyArguments]) -> ModelProto: ...
@gc_paused
def simplify(model: ModelLike, **arguments: Unpack[SimplifyArguments]) -> ModelObject | bytes:
    """Replace values that are the same in every run by constants, and remove nodes that have no effect.

    A node has no effect if it returns its input unchanged, computes the same as an earlier node, or produces
    only unread values. Unread initializers are removed, too. Every output stays equal, bit for bit. A value
    that depends on an initializer that callers can override, or that training updates, is not constant.
    `convert_version(model, target, fold=True)` does the same before a conversion.

    Args:
        model: a model as for `convert_version`. It is not modified unless `inplace` is given.
        arguments: `shapes`, `keep_initializer_inputs`, `inplace`, `check` and `registry` as for
            `convert_version`. With sizes in `shapes`, more values are constant. Below IR version 4, all
            initializers are constant unless `keep_initializer_inputs` is given.

    Returns:
        A model of the class of `model`; bytes for bytes; the project's ModelProto for a path or file object.

    Raises:
        InvalidModel, IllegalModel, UsageError: as for `convert_version`.
    """
    return convert_version(model, fold=True, **arguments)


class ConvertTypesArguments(TypedDict, total=False):
    """Keyword arguments of `convert_types`."""

    keep_interface: bool
    allow: AllowLike
    inplace: bool
    check: bool
    registry: Registry | None


@overload
def convert_types(model: Model, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]) -> Model: ...
@overload
def convert_types(
    model: BytesLike, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]
) -> bytes: ...
@overload
def convert_types(
    model: FileLike, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]
) -> ModelProto: ...
@gc_paused
def convert_types(
    model: ModelLike, types: TypesLike, **arguments: Unpack[ConvertTypesArguments]
) -> ModelObject | bytes:
    """Replace element types of a whole model: weights, constants, computed values, inputs and outputs.

    A wider type, such as float for float16, represents weights and inputs exactly; results are not rounded to
    the old type. Changes to other floating-point types require `allow="approximate"`. A node keeps the old
    type, between Casts, if its operator lacks the new type at the model's opset, if its results may leave the
    range of a narrower type (ReduceSum), or if it computes sizes. For bfloat16 to float16, such nodes compute
    in float. Local functions are inlined. `convert_version(model, target, types=...)` changes types before
    it converts the opsets; `convert_file(..., types=...)` converts models of any size.

    Args:
        model: a model as for `convert_version`. It is not modified unless `inplace` is given.
        types: the new type of each old type, such as `{"bfloat16": "float16"}`, or texts such as
            `"bfloat16=float"`. New types are float16, float and double, and int32 for int64 values that fit.
        arguments: `keep_interface=True` keeps the types of graph inputs and outputs, and adds Casts. `allow`
            is as for `convert_version`; with `"clamp"`, the nearest number replaces a constant out of the
            range of the new type. `inplace`, `check` and `registry` are as for `convert_version`.

    Returns:
        A model of the same class; bytes for bytes; the project's ModelProto for a path or file object.

    Raises:
        ConversionRefused: a constant is out of range, the type of a value is unknown, or the change is
            inexact and not allowed; the error lists all reasons.
        InvalidModel, IllegalModel, UsageError: as for `convert_version`.
    """
    return convert_version(model, types=types, **arguments)


@reading_onnx_ir
def plan_version(
    model: ModelLike, target: TargetLike | None = None, **arguments: Unpack[ConvertArguments]
) -> Plan:
    """Plan a conversion without modifying the model.

    Return the changes that `convert_version` would apply, and all refusals that it would raise. Arguments and
    all other errors are the same as for `convert_version`.
    """
    options = Options.of(target, **arguments)
    return plan_with(model_of(model)[0], options)


@gc_paused
@requiring_text
def convert_with(model: ModelLike, options: Options) -> tuple[ModelProto, Plan]:
    """Convert a model with validated options, and return the ModelProto and the plan that was applied."""
    source, owned = model_of(model)
    original = _inspect(source, options)
    ordered, plan = plan_model(source, options, owned=owned)
    plan.require_possible()
    result = ordered
    # Even with `inplace`, convert a copy if an error may be raised after changes: by `check` or `bump`, or by
    # inlining for a text that is not UTF-8.
    may_fail = options.check or options.bump or plan.ir.inlines_functions
    if ordered is source and not owned and (may_fail or not options.inplace):
        result = type(source)()
        result.CopyFrom(source)
    if result is source and not owned:
        # After Ctrl+C, the caller's model must not be half converted.
        with signals_deferred():
            plan = _apply(plan, result, options, original)
    else:
        plan = _apply(plan, result, options, original)
    if options.inplace and not owned and result is not source:
        with signals_deferred():
            source.CopyFrom(result)
        result = source
    return result, plan


def _require_legal(model: ModelProto, registry: Registry, when: str) -> None:
    from opshift.checker.check import require_legal

    require_legal(model, registry, when)


@gc_paused
@requiring_text
def plan_with(model: ModelProto, options: Options) -> Plan:
    """Plan a conversion as `plan_version` does, with validated options."""
    original = _inspect(model, options)
    result, plan = plan_model(model, options)
    if plan.refusals or not (options.recognize or options.check or options.bump):
        return plan
    if result is model:
        result = type(model)()
        result.CopyFrom(model)
    return _apply(plan, result, options, original)


def _inspect(model: ModelProto, options: Options) -> OriginalProperties | None:
    """With `check`, require a legal model; with `bump`, return the properties that `raise_version` needs."""
    if options.check:
        _require_legal(model, options.registry, "before the conversion")
    if not options.bump:
        return None
    # imported here: few conversions change `model_version`
    from opshift.converter.bump import OriginalProperties

    return OriginalProperties.of(model)


def _apply(plan: Plan, model: ModelProto, options: Options, original: OriginalProperties | None) -> Plan:
    """Apply a plan to a model; return the plan with the recognized operators and the new `model_version`.

    `original` is the result of `_inspect` for the model before the conversion.
    """
    apply_conversion(plan, model, options)
    if options.recognize:
        # imported here: few conversions recognize operators
        from opshift.converter.recognition.recognize import recognize

        plan = replace(plan, recognition=recognize(model, options))
    if original is not None:
        # imported here: few conversions change `model_version`
        from opshift.converter.bump import raise_version

        plan = replace(plan, model_version=raise_version(original, model, plan))
    if options.check:
        _require_legal(model, options.registry, "after the conversion")
    return plan


@gc_paused
@requiring_text
def try_convert(model: ModelProto, options: Options, *, owned: bool = True) -> tuple[ModelProto | None, Plan]:
    """Convert a model, and return it with the plan; return `None` and the plan after a refusal.

    An `owned` model is converted in place; otherwise, a copy is converted.

    Raises:
        IllegalModel: with the option `check`, the model violates the specification before or after the
            conversion; after it, an `owned` model is already changed.
    """
    original = _inspect(model, options)
    result, plan = plan_model(model, options)
    if plan.refusals:
        return None, plan
    if result is model and not owned:
        result = type(model)()
        result.CopyFrom(model)
    return result, _apply(plan, result, options, original)


def _preload() -> None:
    """Load modules and data that most conversions need, so that the first conversion is fast."""
    import_module("opshift.registry.shapes.all_rules")
    precompiled_routes()
    with suppress(DefinitionError):  # the first conversion raises the error again
        default_registry().newest_opset()


_preload()
