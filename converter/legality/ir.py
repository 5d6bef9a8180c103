"""Rules for what IR versions added: a model of an older version holds nothing of it."""

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


class Newer:
    """What a model uses that came after its IR version.

    Attributes:
        uses: by feature or element type, where it is used.
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
        """Where a feature is used that the IR version does not have."""
        if since(feature) > self.ir_version:
            reason = f"IR version {self.ir_version} has no {meaning}; {since(feature)} has"
            yield from (Flaw(reason, place=use.place) for use in self.uses.get(feature, ()))


@rule("ir.opset-imports", ERROR, source=SOURCE, remedy="raise ir_version to 3")
def opset_imports(model: Model) -> Flaws:
    """Below IR version 3 a model imports no opsets: it is written for the first one."""
    if 1 <= model.ir_version < OPSET_IMPORTS and model.proto.opset_import:
        yield f"IR version {model.ir_version} has no opset imports"


@rule("ir.element-types", WARNING, source=SOURCE, remedy="raise ir_version to the one that has the type")
def element_types(newer: Newer) -> Flaws:
    """The IR version has the element types of all tensors and values."""
    for each in ir_versions().element_types:
        yield from newer.flaws(each, f"element type {each}")


def _register(feature: str) -> None:
    meaning, version = ir_versions().meaning(feature), since(feature)

    def judge(newer: Newer) -> Flaws:
        return newer.flaws(feature, meaning)

    judge.__doc__ = f"Below IR version {version} a model has no {meaning}."
    name = f"ir.{feature.replace('_', '-')}"
    rule(name, WARNING, source=SOURCE, remedy=f"raise ir_version to {version}")(judge)


for _features in FINDERS.values():
    for _feature in _features:
        if _feature in ir_versions().features and _feature != STANDALONE:  # which has a rule of its own
            _register(_feature)
