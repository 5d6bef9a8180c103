"""Raise the `model_version` of a converted model."""

from __future__ import annotations

from typing import NamedTuple

from opshift.converter.plan.changes import Plan
from opshift.converter.signature import Signature
from opshift.model.errors import UsageError
from opshift.model.messages import ModelProto
from opshift.model.model_version import VersionBump, next_version, pack_version, unpack_version
from opshift.model.operator_ids import declared_opsets


class OriginalProperties(NamedTuple):
    """Properties of a model before its conversion that determine the new `model_version`."""

    signature: Signature
    model_version: int
    opsets: tuple[dict[str, int], ...]
    """Opset imports of the model and of its functions."""

    @classmethod
    def of(cls, model: ModelProto) -> OriginalProperties:
        """Return the properties of a model; they do not change if the model is changed later."""
        return cls(Signature.of(model), model.model_version, _all_opsets(model))


def raise_version(original: OriginalProperties, result: ModelProto, plan: Plan) -> str | None:
    """Raise `model_version` of a converted model; return it, such as `1.3.0`, or `None` if it is unchanged.

    Raises:
        UsageError: the version of the model cannot be raised any further.
    """
    rise = _required_bump(original, result, plan)
    if rise is VersionBump.NONE:
        return None
    text = next_version(original.model_version, rise)
    try:
        result.model_version = pack_version(text)
    except UsageError as error:
        version = unpack_version(original.model_version)
        reason = f"model_version {version} has no higher {rise.name} version"
        raise UsageError(reason, remedy="convert without bump, and set model_version") from error
    return text


def _required_bump(original: OriginalProperties, result: ModelProto, plan: Plan) -> VersionBump:
    """Return how much to raise `model_version`.

    Changed inputs and outputs require what `compare` requires. At least MINOR if an opset or the IR version
    rises or an import is added, because the model may need a newer runtime; PATCH for other changes.
    """
    signature = max((each.rise for each in original.signature.changes(result)), default=VersionBump.NONE)
    versions = [each for opsets in original.opsets for each in opsets.items()]
    steps = [(version, plan.targets.get(domain, version)) for domain, version in versions]
    steps.append((original.signature.ir_version, result.ir_version))
    known = {domain for domain, _ in versions}
    adds_imports = any(domain not in known for opsets in _all_opsets(result) for domain in opsets)
    new_imports = adds_imports or any(each.new_imports for each in plan.containers())
    if new_imports or any(before < after for before, after in steps):
        return max(signature, VersionBump.MINOR)
    stays = all(before == after for before, after in steps) and not plan.repairs and not plan.ir.lowerings
    recognizes = plan.recognition is not None and bool(plan.recognition.nodes)
    if stays and not recognizes and all(each.is_empty for each in plan.containers()):
        return signature
    return max(signature, VersionBump.PATCH)


def _all_opsets(model: ModelProto) -> tuple[dict[str, int], ...]:
    functions = (declared_opsets(each.opset_import) for each in model.functions)
    return (declared_opsets(model.opset_import, model.ir_version), *functions)
