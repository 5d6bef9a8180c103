"""Convert a model so that a runtime implements all of its nodes."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from typing import TypedDict, Unpack, overload

from opshift.analysis.fit.assume_constants import assume_constants
from opshift.analysis.fit.cheapest import cheapest
from opshift.analysis.fit.interface_types import interface_changes, interface_remedy, without_lacking_types
from opshift.analysis.fit.result import DoesNotFit, FitReport, Fitted
from opshift.analysis.fit.shared_casts import share_casts
from opshift.analysis.fit.strict_forms import write_strict_forms
from opshift.analysis.runtime_support.model_nodes import ModelNodes
from opshift.analysis.runtime_support.ordered_nodes import ordered
from opshift.converter.options import AllowLike, Options, Target, read_allow
from opshift.model.files import (
    BYTES_TYPES,
    BytesLike,
    FileLike,
    Model,
    ModelLike,
    ModelObject,
    gc_paused,
    is_message,
    model_of,
    serialize_model,
)
from opshift.model.messages import ModelProto
from opshift.model.onnx_ir.models import is_onnx_ir
from opshift.registry.registry import Registry, default_registry
from opshift.registry.runtimes.files import get_runtime, without_fallback
from opshift.registry.runtimes.runtime import Runtime


class FitArguments(TypedDict, total=False):
    """Keyword arguments of `fit`."""

    allow: AllowLike
    provider_only: bool
    registry: Registry | None


@overload
def fit(model: Model, runtime: Runtime | str, **arguments: Unpack[FitArguments]) -> Fitted[Model]: ...
@overload
def fit(model: BytesLike, runtime: Runtime | str, **arguments: Unpack[FitArguments]) -> Fitted[bytes]: ...
@overload
def fit(model: FileLike, runtime: Runtime | str, **arguments: Unpack[FitArguments]) -> Fitted[ModelProto]: ...
def fit(
    model: ModelLike,
    runtime: Runtime | str,
    *,
    allow: AllowLike = (),
    provider_only: bool = False,
    registry: Registry | None = None,
) -> Fitted[ModelObject | bytes]:
    """Convert a model at the lowest cost so that a runtime implements all of its nodes.

    Args:
        model: a model in any form that `convert_version` accepts. It is not modified.
        runtime: a runtime, its name such as `"onnxruntime-1.20.1"`, or the path of a YAML file.
        allow: inexact conversions to allow, see `convert_version`; with `"approximate"`, nodes may also
            compute in float instead of double, and with `"interface-types"`, inputs and outputs of types that
            the runtime lacks get wider types with the same values.
        provider_only: for an execution provider such as `"onnxruntime-coreml"`: the provider itself has to
            implement all nodes, and none may fall back to the CPU.
        registry: operator definitions; by default the project's own.

    Returns:
        A model of the same class, with a report; bytes for bytes.

    Raises:
        DoesNotFit: nodes prevent it; the error lists all of them for the opset with the fewest.
        InvalidModel: the model cannot be read, or is invalid.
        OpshiftError: there is no data about the runtime.
    """
    found = get_runtime(runtime) if isinstance(runtime, str) else runtime
    if provider_only:
        found = without_fallback(found)
    options = Options(Target({}), registry or default_registry(), read_allow(allow), inplace=True)
    if not is_message(model) and is_onnx_ir(model):
        from opshift.model.onnx_ir.message import OnnxIrMessage  # few models need it

        with OnnxIrMessage(model) as message:
            result, report = fit_message(message.proto, found, options)
            return Fitted(message.converted(result, inplace=False), report)
    result, report = fit_message(model_of(model)[0], found, options)
    return Fitted(serialize_model(result) if isinstance(model, BYTES_TYPES) else result, report)


@gc_paused
def fit_message(model: ModelProto, runtime: Runtime, options: Options) -> tuple[ModelProto, FitReport]:
    """Fit a message like `fit`, with the allowances and the registry of some options."""
    result, report = _fit_with_types(model, runtime, options)
    shared = share_casts(result, model)
    return result, replace(report, cost=report.cost - shared, shared_casts=shared)


def _fit_with_types(model: ModelProto, runtime: Runtime, options: Options) -> tuple[ModelProto, FitReport]:
    """Fit a message with its types; if the runtime lacks some of them, with wider types."""
    try:
        return _fit(model, runtime, options)
    except DoesNotFit as error:
        widened = without_lacking_types(model, runtime, options.registry)
        if widened is None:
            raise
        try:
            result, report = _fit(widened.model, runtime, options)
        except DoesNotFit:  # the first error is about the types of the model itself
            raise error from None
        changes = tuple(interface_changes(model, result))
        if changes and "interface-types" not in options.allow:
            missing = [replace(each, remedy=interface_remedy(changes)) for each in error.missing]
            raise DoesNotFit(error.runtime, error.opset, missing) from None
        return result, replace(
            report,
            bridges=(*widened.replacements, *report.bridges),
            cost=report.cost + max(widened.added_nodes, 0),
            interface=changes,
            rounding_nodes=widened.added_nodes,
        )


def _fit(model: ModelProto, runtime: Runtime, options: Options) -> tuple[ModelProto, FitReport]:
    """Fit a message with its types, or raise DoesNotFit."""
    model, nodes = ordered(model, options.registry)
    try:
        return cheapest(model, nodes, runtime, options)
    except DoesNotFit:
        changed = deepcopy(model)
        write_strict_forms(changed, options.registry)
        assumptions = assume_constants(changed, options.registry)
        if changed == model:
            raise
        with suppress(DoesNotFit):  # the first error is about the nodes of the model itself
            nodes = ModelNodes(changed, options.registry)
            result, report = cheapest(changed, nodes, runtime, options)
            return result, replace(report, assumptions=assumptions)
        raise
