"""Import of the default domain in models whose other opset imports are removed."""

from collections.abc import Mapping

from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.releases import Releases


def require_import(
    model: ModelProto, removed: Mapping[str, int], targets: Mapping[str, int], releases: Releases
) -> None:
    """Import the default domain in a model from which all imports were removed: a model needs an import.

    Its opset is that of the target, or else that of the first ONNX release with the `removed` opsets.
    """
    if removed and not model.opset_import:
        opset = (
            targets.get(DEFAULT_DOMAIN) or removed.get(DEFAULT_DOMAIN) or releases.companion_opset(removed)
        )
        model.opset_import.add(version=opset)
