"""Rules for features and element types that a model's IR version does not have."""

from opshift.checker.checked_model import CheckedModel
from opshift.checker.checked_values import NewerFeatures
from opshift.checker.findings import ERROR, WARNING
from opshift.checker.ir_features.finders import FINDERS
from opshift.checker.ir_features.use import STANDALONE, since
from opshift.checker.rule_table import Problems, rule
from opshift.registry.ir_versions import ir_versions

SOURCE = "onnx.proto: Version"

OPSET_IMPORTS_SINCE = 3
"""First IR version with opset imports."""


@rule("ir.opset-imports", ERROR, SOURCE, "raise ir_version to 3")
def opset_imports(model: CheckedModel) -> Problems:
    """A model must not have opset imports before IR version 3: it uses opset 1."""
    if 1 <= model.ir_version < OPSET_IMPORTS_SINCE and model.proto.opset_import:
        yield f"IR version {model.ir_version} does not support opset imports"


@rule("ir.element-types", WARNING, SOURCE, "raise ir_version to the version that added the type")
def element_types(newer: NewerFeatures) -> Problems:
    """The IR version must support the element types of all tensors and values."""
    for element_type in ir_versions().element_types:
        yield from newer.problems(element_type, f"element type {element_type}")


def _register(feature: str) -> None:
    meaning, version = ir_versions().meaning(feature), since(feature)

    def check(newer: NewerFeatures) -> Problems:
        return newer.problems(feature, meaning)

    check.__doc__ = f"A model must not have {meaning} before IR version {version}."
    name = f"ir.{feature.replace('_', '-')}"
    rule(name, WARNING, source=SOURCE, remedy=f"raise ir_version to {version}")(check)


for _features in FINDERS.values():
    for _feature in _features:
        # Element types share one rule, and initializer.is-input covers standalone initializers.
        if _feature in ir_versions().features and _feature != STANDALONE:
            _register(_feature)
