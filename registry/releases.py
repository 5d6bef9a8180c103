"""Which ONNX release brought which opsets and IR version, and what runtimes and other consumers take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from opshift.registry.definition_files import CONSUMERS, RELEASES
from opshift.registry.errors import DefinitionError, OpshiftError, Place
from opshift.registry.names import DEFAULT_DOMAIN
from opshift.registry.record import Checked, Record, checked


@dataclass(frozen=True, kw_only=True)
class Release(Record):
    """One release of ONNX or of a runtime: the newest opset of each domain, and the newest IR version."""

    ir_version: int
    opsets: dict[str, int]
    released: bool = True
    date: str = ""


@dataclass(frozen=True, kw_only=True)
class Consumer(Record):
    """One version of another program that reads models, and where it is written what it takes."""

    opsets: Annotated[dict[str, Annotated[int, Checked(ge=1)]], Checked(min_length=1)]
    ir_version: int | None = None
    """The newest that it takes; `None` if that is not known."""
    source: str
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Releases(Record):
    """`releases.yaml`, of ONNX and onnxruntime, and `consumers.yaml`, of other programs, oldest first."""

    onnx: dict[str, Release] = field(default_factory=dict)
    onnxruntime: dict[str, Release] = field(default_factory=dict)
    consumers: dict[str, dict[str, Consumer]] = field(default_factory=dict)

    @classmethod
    def of_tree(cls, folder: Path) -> Releases:
        """What a folder of definitions says, in either file.

        Raises:
            DefinitionError: one is not YAML, or breaks the format.
        """
        path, consumers = folder / RELEASES, folder / CONSUMERS
        found = cls.load(path) if path.exists() else cls()
        return found.with_consumers(consumers) if consumers.exists() else found

    @classmethod
    def load(cls, path: Path) -> Releases:
        """Read `releases.yaml`.

        Raises:
            DefinitionError: it is not YAML, or breaks the format.
        """
        from opshift.registry.yaml_files import load_yaml

        return _validated(load_yaml(path) or {}, path)

    def with_consumers(self, path: Path) -> Releases:
        """These and those of a `consumers.yaml`; of two with the same name the file's count.

        Raises:
            DefinitionError: it is not YAML, breaks the format, or takes ONNX's name or onnxruntime's.
        """
        from opshift.registry.yaml_files import line_of, load_yaml

        added = _validated({"consumers": load_yaml(path) or {}}, path).consumers
        for product in added.keys() & {"onnx", "onnxruntime"}:
            raise DefinitionError(
                "is listed in releases.yaml", place=Place(str(path), line_of(path, (product,)))
            )
        known = {each: {**self.consumers.get(each, {}), **added[each]} for each in added}
        return replace(self, consumers={**self.consumers, **known})

    @property
    def products(self) -> Mapping[str, Mapping[str, Release | Consumer]]:
        """Everything that can be named, by product and version."""
        return {"onnx": self.onnx, "onnxruntime": self.onnxruntime, **self.consumers}

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

    def named(self, name: str) -> Release | Consumer:
        """What is called `onnx-1.12`, `onnxruntime-1.14`, `tensorrt-8.6`; a patch falls back to its release.

        Raises:
            OpshiftError: there is no such release.
        """
        product, _, version = name.rpartition("-")
        known = self.products.get(product)
        if known is None:
            raise OpshiftError(
                f"{name!r} is no release",
                remedy=f"name one as onnx-1.12 or onnxruntime-1.14; there are {', '.join(self.products)}",
            )
        parts = version.split(".")
        names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
        found = next((known[each] for each in names if each in known), None)
        if found is None:
            raise OpshiftError(
                f"{product} {version} is not known", remedy=f"the registry has {', '.join(known)}"
            )
        return found


def _validated(content: object, path: Path) -> Releases:
    from pydantic import ValidationError

    try:
        return checked(Releases, content)
    except ValidationError as error:
        first = error.errors()[0]
        raise DefinitionError(f"{first['loc']}: {first['msg']}", place=Place(str(path))) from error
