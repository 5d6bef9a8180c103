"""Rules for features and element types that a model's IR version does not have."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.ir.change import STANDALONE, since
from opshift.converter.ir.contents import contents_of
from opshift.converter.ir.features import FINDERS, uses_in
from opshift.converter.ir.use import Use
from opshift.converter.legality.containers import Model
from opshift.converter.legality.findings import ERROR, WARNING, Flaw
from opshift.converter.legality.rules import Flaws, rule
from opshift.registry.ir_versions import ir_versions

SOURCE = "onnx.proto: Version"
OPSET_IMPORTS = 3
"""First IR version with opset imports."""


class Newer:
    """Features and element types in a model that are newer than its IR version.

    Attributes:
        uses: the uses of each feature or element type.
    """

    place = "model"

    def __init__(self, model: Model) -> None:
        self.ir_version = model.ir_version
        self.uses: dict[str, list[Use]] = {}
        if model.ir_version < 1:
            return
        newest = ir_versions().newest
        for use in uses_in(contents_of(model.proto, model.registry, newest, oldest=model.ir_version)):
            self.uses.setdefault(use.feature, []).append(use)

    def flaws(self, feature: str, meaning: str) -> Iterator[Flaw]:
        """Yield a problem for each use of a feature that the IR version does not have."""
        if since(feature) > self.ir_version:
            reason = f"IR version {self.ir_version} does not support {meaning}; {since(feature)} does"
            yield from (Flaw(reason, place=use.place) for use in self.uses.get(feature, ()))


@rule("ir.opset-imports", ERROR, source=SOURCE, remedy="raise ir_version to 3")
def opset_imports(model: Model) -> Flaws:
    """A model must not have opset imports before IR version 3: it uses opset 1."""
    if 1 <= model.ir_version < OPSET_IMPORTS and model.proto.opset_import:
        yield f"IR version {model.ir_version} does not support opset imports"


@rule(
    "ir.element-types", WARNING, source=SOURCE, remedy="raise ir_version to the version that added the type"
)
def element_types(newer: Newer) -> Flaws:
    """The IR version must support the element types of all tensors and values."""
    for element_type in ir_versions().element_types:
        yield from newer.flaws(element_type, f"element type {element_type}")


def _register(feature: str) -> None:
    meaning, version = ir_versions().meaning(feature), since(feature)

    def check(newer: Newer) -> Flaws:
        return newer.flaws(feature, meaning)

    check.__doc__ = f"A model must not have {meaning} before IR version {version}."
    name = f"ir.{feature.replace('_', '-')}"
    rule(name, WARNING, source=SOURCE, remedy=f"raise ir_version to {version}")(check)


for _features in FINDERS.values():
    for _feature in _features:
        # Element types share one rule, and initializer.is-input covers standalone initializers.
        if _feature in ir_versions().features and _feature != STANDALONE:
            _register(_feature)
