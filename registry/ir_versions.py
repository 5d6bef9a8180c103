"""What each IR version added to what a model may hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from opshift.registry.compiled import compiled
from opshift.registry.definition_files import OPSETS
from opshift.registry.errors import DefinitionError, Place
from opshift.registry.record import Record, checked

IR_VERSIONS: Final = OPSETS / "ir_versions.yaml"


@dataclass(frozen=True, kw_only=True)
class IrVersion(Record):
    """One IR version: the first ONNX release that has it, and what it added.

    `features` are the additions by name, with how messages call them.
    """

    onnx: str
    date: str = ""
    features: dict[str, str] = field(default_factory=dict)
    element_types: tuple[str, ...] = ()


class IrVersions:
    """`ir_versions.yaml`: the IR versions that the project knows, oldest first."""

    def __init__(self, versions: dict[int, IrVersion]) -> None:
        self.versions = MappingProxyType(versions)
        features = {name: number for number, each in versions.items() for name in each.features}
        elements = {name: number for number, each in versions.items() for name in each.element_types}
        self.features = MappingProxyType(features)
        """The first IR version with each feature."""
        self.element_types = MappingProxyType(elements)
        """The first IR version with each element type that the oldest version lacks."""

    @classmethod
    def load(cls, path: Path) -> IrVersions:
        """Read the file.

        Raises:
            DefinitionError: it is not YAML, or breaks the format.
        """
        found = compiled(path, (), lambda: read_ir_versions(path))
        return cls({int(number): each for number, each in found.items()})

    @property
    def oldest(self) -> int:
        """The oldest IR version that a model can be converted to."""
        return min(self.versions)

    @property
    def newest(self) -> int:
        """The newest IR version."""
        return max(self.versions)

    def meaning(self, feature: str) -> str:
        """How messages call a feature."""
        return self.versions[self.features[feature]].features[feature]


@cache
def ir_versions() -> IrVersions:
    """ONNX's IR versions, as the project's own data has them."""
    return IrVersions.load(IR_VERSIONS)


def read_ir_versions(path: Path) -> dict[str, IrVersion]:
    """What a file says of each IR version.

    Raises:
        DefinitionError: it is not YAML, or breaks the format.
    """
    from pydantic import ValidationError

    from opshift.registry.yaml_files import line_of, load_yaml

    found = {}
    for number, content in load_yaml(path).items():
        try:
            found[str(int(number))] = checked(IrVersion, content)
        except (ValidationError, ValueError) as error:
            place = Place(str(path), line_of(path, (number,)))
            raise DefinitionError(f"{number}: {error}", place=place) from error
    return found
