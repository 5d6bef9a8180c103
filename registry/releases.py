"""Releases of ONNX and of runtimes, and the opsets and IR versions that they support."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated

from opshift.model.errors import OpshiftError
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.definition_files import CONSUMERS, RELEASES
from opshift.registry.record import Checked, Record, from_file_content


class Release(Record):
    """A release of ONNX or of a runtime: the newest opset of each domain, and the newest IR version."""

    ir_version: int
    opsets: dict[str, int]
    released: bool = True
    date: str = ""


class Consumer(Record):
    """A version of another program that reads models, with the source of the information."""

    opsets: Annotated[dict[str, Annotated[int, Checked(ge=1)]], Checked(min_length=1)]
    ir_version: int | None = None
    """The newest supported IR version; `None` if unknown."""
    source: str
    note: str = ""


class Releases(Record):
    """`releases.yaml`, with ONNX and onnxruntime, and `consumers.yaml`, with other programs; oldest first."""

    onnx: dict[str, Release] = field(default_factory=dict)
    onnxruntime: dict[str, Release] = field(default_factory=dict)
    consumers: dict[str, dict[str, Consumer]] = field(default_factory=dict)

    @classmethod
    def from_folder(cls, folder: Path) -> Releases:
        """Read both files of a folder of definitions, or raise `DefinitionError`; either may be missing."""
        path, consumers = folder / RELEASES, folder / CONSUMERS
        found = cls.load(path) if path.exists() else cls()
        return found.with_consumers(consumers) if consumers.exists() else found

    @classmethod
    def load(cls, path: Path) -> Releases:
        """Read `releases.yaml`; raise `DefinitionError` if it is not YAML, or has the wrong format."""
        from opshift.registry.yaml_files import load_yaml

        return from_file_content(cls, load_yaml(path) or {}, path)

    def with_consumers(self, path: Path) -> Releases:
        """Return these releases with those in a `consumers.yaml` added; the file overrides existing versions.

        Raises:
            DefinitionError: the file is not YAML, has the wrong format, or redefines ONNX or onnxruntime.
        """
        from opshift.registry.yaml_files import error_at, load_yaml

        added = from_file_content(dict[str, dict[str, Consumer]], load_yaml(path) or {}, path)
        for product in added.keys() & {"onnx", "onnxruntime"}:
            raise error_at(path, (product,), f"{product} is already defined in {RELEASES}")
        merged = {each: {**self.consumers.get(each, {}), **added[each]} for each in added}
        return replace(self, consumers={**self.consumers, **merged})

    @property
    def products(self) -> Mapping[str, Mapping[str, Release | Consumer]]:
        """All releases, by product and version."""
        return {"onnx": self.onnx, "onnxruntime": self.onnxruntime, **self.consumers}

    def newest_opset(self, domain: str) -> int | None:
        """Return the newest opset of a domain in any ONNX release; `None` for a domain outside ONNX."""
        return max((r.opsets[domain] for r in self.onnx.values() if domain in r.opsets), default=None)

    def released_opset(self, domain: str) -> int | None:
        """Return the newest published opset of a domain; `None` for a domain outside ONNX."""
        listed = [each for each in self.onnx.values() if domain in each.opsets]
        newest = max((each.opsets[domain] for each in listed if each.released), default=0)
        return newest if listed else None

    def unreleased(self, opsets: Mapping[str, int]) -> Iterator[str]:
        """Yield a sentence for each opset that is newer than all published releases of ONNX."""
        for domain, opset in opsets.items():
            newest = self.released_opset(domain)
            if newest is not None and opset > newest:
                yield f"opset {opset} of {domain} is not released: its operators may still change"

    def first_release_with(self, domain: str, opset: int) -> Release | None:
        """Return the first ONNX release with `opset` or a newer one of `domain`, or `None`."""
        return next((r for r in self.onnx.values() if r.opsets.get(domain, 0) >= opset), None)

    def ir_version_for(self, opsets: Mapping[str, int]) -> int:
        """Return the IR version of the first ONNX release with all of these opsets.

        Source: ONNX Versioning, "Released Versions".
        """
        found = (self.first_release_with(domain, opset) for domain, opset in opsets.items())
        return max((release.ir_version for release in found if release), default=0)

    def companion_opset(self, opsets: Mapping[str, int]) -> int:
        """Return the opset of the default domain that first shipped together with all of `opsets`."""
        for release in self.onnx.values():
            if all(release.opsets.get(domain, opset) >= opset for domain, opset in opsets.items()):
                return release.opsets[DEFAULT_DOMAIN]
        return 1

    def named(self, name: str) -> Release | Consumer:
        """Return a release by name: `onnx-1.12`, `onnxruntime-1.14`, `tensorrt-8.6`.

        The version of a patch, such as 1.12.1, falls back to its release.

        Raises:
            OpshiftError: the product or its version is unknown.
        """
        product, _, version = name.rpartition("-")
        known = self.products.get(product)
        if known is None:
            remedy = f"write it as onnx-1.12; known products: {', '.join(self.products)}"
            raise OpshiftError(f"unknown release {name!r}", remedy=remedy)
        shorter = version
        while shorter and shorter not in known:
            shorter = shorter.rpartition(".")[0]
        if not shorter:
            remedy = f"known versions: {', '.join(known)}"
            raise OpshiftError(f"unknown version {version!r} of {product}", remedy=remedy)
        return known[shorter]
