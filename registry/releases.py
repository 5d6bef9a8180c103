"""Which ONNX release brought which opsets and IR version, and what runtimes take."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from opshift.registry.errors import DefinitionError, OpshiftError, Place
from opshift.registry.models import Frozen
from opshift.registry.names import DEFAULT_DOMAIN
from opshift.registry.yaml_files import load_yaml


class Release(Frozen):
    """One release of ONNX or of a runtime: the newest opset of each domain, and the newest IR version."""

    ir_version: int
    opsets: dict[str, int]
    released: bool = True
    date: str = ""


class Releases(Frozen):
    """`releases.yaml`: ONNX's releases and runtimes', oldest first."""

    onnx: dict[str, Release] = {}
    onnxruntime: dict[str, Release] = {}

    @classmethod
    def load(cls, path: Path) -> Releases:
        """Read the file.

        Raises:
            DefinitionError: it is not YAML, or breaks the format.
        """
        try:
            return cls.model_validate(load_yaml(path) or {})
        except ValidationError as error:
            first = error.errors()[0]
            raise DefinitionError(f"{first['loc']}: {first['msg']}", place=Place(str(path))) from error

    def newest_opset(self, domain: str) -> int | None:
        """The newest opset of a domain in any ONNX release; `None` for a domain that is not ONNX's."""
        return max((r.opsets[domain] for r in self.onnx.values() if domain in r.opsets), default=None)

    def first_with(self, domain: str, opset: int) -> Release | None:
        """The first ONNX release whose set of `domain` is at least at `opset`."""
        return next((r for r in self.onnx.values() if r.opsets.get(domain, 0) >= opset), None)

    def companion_opset(self, opsets: Mapping[str, int]) -> int:
        """The opset of the default domain that first shipped together with all of `opsets`."""
        for release in self.onnx.values():
            if all(release.opsets.get(domain, opset) >= opset for domain, opset in opsets.items()):
                return release.opsets[DEFAULT_DOMAIN]
        return 1

    def named(self, name: str) -> Release:
        """The release called `onnx-1.12` or `onnxruntime-1.14`; a patch release falls back to its minor.

        Raises:
            OpshiftError: there is no such release.
        """
        product, _, version = name.rpartition("-")
        known = {"onnx": self.onnx, "onnxruntime": self.onnxruntime}.get(product)
        if known is None:
            raise OpshiftError(f"{name!r} is no release", remedy="name one as onnx-1.12 or onnxruntime-1.14")
        found = known.get(version) or known.get(".".join(version.split(".")[:2]))
        if found is None:
            listed = f"{next(iter(known))} to {list(known)[-1]}"
            raise OpshiftError(f"{product} {version} is not known", remedy=f"the registry has {listed}")
        return found
