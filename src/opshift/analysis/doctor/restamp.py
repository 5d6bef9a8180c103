"""Correction of the opset imports, the IR version and the inputs of a model.

Nodes are replaced only if no opset is valid for all of them, or if onnxruntime has optimized the model.
"""

from typing import overload

from opshift.analysis.doctor.diagnose import diagnose
from opshift.analysis.doctor.diagnosis import Diagnosis
from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.converter.convert import convert_with
from opshift.converter.ir_version.initializer_inputs import (
    remove_initializer_inputs,
    update_initializer_inputs,
)
from opshift.converter.options import Options
from opshift.model.errors import InvalidModel
from opshift.model.files import (
    BYTES_TYPES,
    BytesLike,
    FileLike,
    Model,
    ModelLike,
    ModelObject,
    is_onnx_ir,
    model_of,
)
from opshift.model.graphs import remove_messages
from opshift.model.messages import FunctionProto, ModelProto
from opshift.model.onnx_ir import OnnxIrMessage
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, function_label, model_domain
from opshift.registry.registry import Registry, registry_or_default


@overload
def restamp(
    model: Model,
    *,
    inplace: bool = False,
    keep_initializer_inputs: bool = False,
    registry: Registry | None = None,
) -> Model: ...
@overload
def restamp(
    model: BytesLike,
    *,
    inplace: bool = False,
    keep_initializer_inputs: bool = False,
    registry: Registry | None = None,
) -> bytes: ...
@overload
def restamp(
    model: FileLike,
    *,
    inplace: bool = False,
    keep_initializer_inputs: bool = False,
    registry: Registry | None = None,
) -> ModelProto: ...
def restamp(
    model: ModelLike,
    *,
    inplace: bool = False,
    keep_initializer_inputs: bool = False,
    registry: Registry | None = None,
) -> ModelObject | bytes:
    """Return a model with opset imports and an IR version at which its nodes are valid.

    The nodes are not changed: the new opsets define their meaning. Only if no opset is valid for all nodes,
    nodes of deprecated or removed operators are replaced, as by `convert_version`.
    Models that onnxruntime optimized may contain operators that their opset lacks, such as
    LayerNormalization; they are converted to an opset that has them.
    If the IR version is 4 or newer, initializers are removed from the graph inputs.

    Args:
        model: a ModelProto, serialized bytes, a path, or a file object.
        inplace: change the given ModelProto instead of a copy.
        keep_initializer_inputs: keep initializers that are graph inputs, so that callers can override them.
        registry: operator definitions; by default the project's own.

    Returns:
        A model of the same class; bytes for bytes, and the project's ModelProto for a path or file object.

    Raises:
        InvalidModel: the input is not a model, or no opset of some domain is valid for all nodes.
        ConversionRefused: a node cannot be replaced.
    """
    if is_onnx_ir(model):
        with OnnxIrMessage(model) as message:
            restamped = restamp(
                message.proto,
                inplace=True,
                keep_initializer_inputs=keep_initializer_inputs,
                registry=registry,
            )
            return message.converted(restamped, inplace=inplace)
    source, owned = model_of(model)
    diagnosis = diagnose(source, registry=registry)
    require_fixable(diagnosis)
    result = source
    if not owned and not inplace:
        result = type(source)()
        result.CopyFrom(source)
    fix_model(diagnosis, result, registry, keep_initializer_inputs=keep_initializer_inputs)
    return result.SerializeToString() if isinstance(model, BYTES_TYPES) else result


def require_fixable(diagnosis: Diagnosis) -> None:
    """Raise InvalidModel if no opset of a domain is known to be valid for all of its nodes."""
    for stamp in diagnosis.unfixable:
        reason, remedy = diagnosis.unfixable_reason(stamp)
        raise InvalidModel(reason, place=stamp.place, remedy=remedy)


def fix_model(
    diagnosis: Diagnosis,
    model: ModelProto,
    registry: Registry | None = None,
    *,
    keep_initializer_inputs: bool = False,
) -> None:
    """Write the fitting versions into the diagnosed model, or a copy of it, and replace nodes if necessary.

    Initializers in `diagnosis.overridable` stop being graph inputs unless `keep_initializer_inputs` is given.
    An error leaves the model unchanged.
    """
    replacing = [each for each in diagnosis.stamps if each.replaced or each.converted]
    if not replacing:
        _apply_stamps(diagnosis, model, keep_initializer_inputs)
        return
    target = {each.domain: each.fitting for each in replacing if each.fitting is not None}
    # Prefer the opset that fits the model to those of functions, because a conversion has one target.
    target |= {
        each.domain: each.fitting
        for each in diagnosis.stamps
        if each.place == "model" and each.domain in target and each.fitting is not None
    }
    fixed = type(model)()
    fixed.CopyFrom(model)
    _apply_stamps(diagnosis, fixed, keep_initializer_inputs)
    nonstandard = registry_or_default(registry).releases.nonstandard
    options = Options.of(
        target,
        registry=registry,
        inplace=True,
        keep_initializer_inputs=keep_initializer_inputs,
        without=sorted(
            f"{stamp.domain}.{each}"
            for stamp in replacing
            for each in stamp.replaced
            if stamp.domain == DEFAULT_DOMAIN and each in nonstandard
        ),
    )
    fixed, _ = convert_with(fixed, options)
    model.CopyFrom(fixed)


def _apply_stamps(diagnosis: Diagnosis, model: ModelProto, keep_initializer_inputs: bool) -> None:
    """Write the fitting versions into `model`, which is the diagnosed model or a copy of it.

    Unless `keep_initializer_inputs` is set, initializers in `overridable` stop being graph inputs.
    """
    before, model.ir_version = model.ir_version, diagnosis.ir_version.fitting
    if before < FIRST_IR_WITH_STANDALONE_INITIALIZERS <= model.ir_version:
        update_initializer_inputs(model)
    if not keep_initializer_inputs:
        remove_initializer_inputs(model.graph, frozenset(diagnosis.overridable))
    owners: dict[str, ModelProto | FunctionProto] = {"model": model}
    owners |= {f"function {function_label(each)}": each for each in model.functions}
    for stamp in diagnosis.stamps:
        if stamp.fits:
            continue
        assert stamp.fitting is not None, "see require_fixable"
        imports = owners[stamp.place].opset_import
        # Keep the declared opset if `fix_model` converts the nodes, which changes the import.
        version = stamp.opset if stamp.converted and stamp.opset is not None else stamp.fitting
        is_of_domain = [canonical_domain(each.domain) == stamp.domain for each in imports]
        if any(is_of_domain):
            first = is_of_domain.index(True)
            imports[first].version = version
            is_of_domain[first] = False
            remove_messages(imports, is_of_domain)
        else:
            imports.add(domain=model_domain(stamp.domain), version=version)
