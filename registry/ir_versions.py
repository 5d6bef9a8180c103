"""IR versions, and the features and element types that each IR version added."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Final

from opshift.model.shared_data import share_results
from opshift.opsets import OPSETS
from opshift.registry.precompiled import load_precompiled
from opshift.registry.record import Record, from_plain_data

IR_VERSIONS: Final = OPSETS / "ir_versions.yaml"


class IrVersion(Record):
    """An IR version: the first ONNX release with this version, and the added features and element types.

    `features` maps the name of each added feature to the noun that messages use for it.
    """

    onnx: str
    date: str = ""
    features: dict[str, str] = field(default_factory=dict)
    element_types: tuple[str, ...] = ()


class IrVersions:
    """The supported IR versions by number, oldest first, and the version that introduced each feature."""

    def __init__(self, versions: dict[int, IrVersion]) -> None:
        self.versions = MappingProxyType(versions)
        self.oldest, self.newest = min(versions), max(versions)
        features = {name: number for number, each in versions.items() for name in each.features}
        elements = {name: number for number, each in versions.items() for name in each.element_types}
        self.features = MappingProxyType(features)
        """The IR version that introduced each feature."""
        self.element_types = MappingProxyType(elements)
        """The IR version that introduced each element type; types of the oldest version are not listed."""

    @classmethod
    def load(cls, path: Path) -> IrVersions:
        """Read an `ir_versions.yaml`; raise `DefinitionError` if it is not YAML, or has the wrong format."""
        versions = load_precompiled(path, (), lambda: read_ir_versions(path))
        return cls({int(number): each for number, each in versions.items()})

    def meaning(self, feature: str) -> str:
        """Return the noun that messages use for a feature."""
        return self.versions[self.features[feature]].features[feature]


@share_results
def ir_versions() -> IrVersions:
    """Return the IR versions of ONNX, from the project's own data."""
    return IrVersions.load(IR_VERSIONS)


def read_ir_versions(path: Path) -> dict[str, IrVersion]:
    """Read and validate each IR version of a file, or raise `DefinitionError`."""
    from opshift.registry.yaml_files import error_at, load_yaml

    versions, data = {}, load_yaml(path)
    if not isinstance(data, dict) or not data:
        raise error_at(path, (), "is not a mapping of IR versions")
    for number, content in data.items():
        try:
            versions[str(int(number))] = from_plain_data(IrVersion, content)
        except ValueError as error:
            raise error_at(path, (number,), f"{number}: {error}") from error
    return versions
