"""Releases of ONNX and of runtimes, and the opsets and IR versions that they support."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Annotated, Final

from opshift.model.errors import UsageError
from opshift.model.message_text import MAX_NAME, did_you_mean, similar_names, suggest
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.registry.definition_files import CONSUMERS, RELEASES, has_kernel_data
from opshift.registry.precompiled import load_precompiled
from opshift.registry.record import Checked, Record, from_file_content

RUNTIMES_REMEDY: Final = " that `opshift runtimes` lists"

MAX_VERSION: Final = 40
"""Maximum number of characters of a version that are compared."""

OTHER_PRODUCTS: Final = "Other programs"
"""Title of the group of all products that no other group contains."""

_RELEASE_NAME: Final = re.compile(r"(.*?)(?:(?:[-_ ]+v?)?([\d.]+\w*))?", re.DOTALL)
"""Product and version: `tensorrt-10.7`, and also `TensorRT 10.7` and `tensorrt_10.7`."""

_OPSET_NAME: Final = re.compile(r"(?:opset|v|ai\.onnx)?[-_ :]*(\d+)(?:\.0)?", re.IGNORECASE)
"""An opset in place of a release: `opset13`, `v17`, `13.0`."""

_NO_RELEASES: Final = ((), ())
"""Entry of `_first_releases` for a domain outside ONNX."""


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


class InternalDomain(Record):
    """Domain of operators that a runtime uses for one kind of device."""

    meaning: str
    """Description of the operators, as a clause in which `it` is the domain."""
    remedy: str
    """How to get a model without these operators."""


class Releases(Record):
    """Content of `releases.yaml` (ONNX, onnxruntime) and `consumers.yaml` (other programs); oldest first."""

    onnx: dict[str, Release] = field(default_factory=dict)
    onnxruntime: dict[str, Release] = field(default_factory=dict)
    consumers: dict[str, dict[str, Consumer]] = field(default_factory=dict)
    variants: dict[str, str] = field(default_factory=dict)
    """Packages such as `onnxruntime-gpu`, mapped to the product with the same versions and opsets."""
    undocumented: dict[str, str] = field(default_factory=dict)
    """Programs that document no newest opset, mapped to a known fact about the program with its source."""
    other_names: dict[str, str] = field(default_factory=dict)
    """Alternative names, mapped to the product, program, package or release that error messages suggest."""
    runtime_names: dict[str, str] = field(default_factory=dict)
    """Names of execution providers and of their packages, mapped to the runtime with these kernels."""
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Groups of similar products, by the title of the group."""
    open_domains: dict[str, int] = field(default_factory=dict)
    """The newest opset of each domain outside ONNX whose operators may lack a definition."""
    internal_domains: dict[str, InternalDomain] = field(default_factory=dict)
    """Domains of operators that a runtime uses for one kind of device, and writes into saved models."""
    nonstandard: dict[str, str] = field(default_factory=dict)
    """Operators that runtimes write to the default domain, mapped to the domain that defines them."""

    @classmethod
    def of_folders(cls, folders: tuple[Path, ...]) -> Releases:
        """Read `releases.yaml` of the first folder and `consumers.yaml` of all; raise `DefinitionError`."""
        if not folders:
            return cls()
        base, *others = folders
        found = load_precompiled(base / RELEASES, [base / CONSUMERS], lambda: cls.from_folder(base))
        for path in filter(Path.exists, (folder / CONSUMERS for folder in others)):
            found = found.with_consumers(path)
        return found

    @classmethod
    def from_folder(cls, folder: Path) -> Releases:
        """Read one folder, see `of_folders`."""
        path, consumers = folder / RELEASES, folder / CONSUMERS
        found = cls.load(path) if path.exists() else cls()
        return found.with_consumers(consumers) if consumers.exists() else found

    @classmethod
    def load(cls, path: Path) -> Releases:
        """Read `releases.yaml`; raise `DefinitionError` if it is not YAML, or has the wrong format."""
        from opshift.registry.yaml_files import load_yaml

        return from_file_content(cls, load_yaml(path) or {}, path)

    def with_consumers(self, path: Path) -> Releases:
        """Return a copy with the releases in a `consumers.yaml` added; the file overrides existing versions.

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

    def versions_of(self, product: str) -> Mapping[str, Release | Consumer]:
        """Return the releases of a product, or of a package in `variants`, by version; empty if unknown."""
        products = self.products
        return products.get(product) or products.get(self.variants.get(product, ""), {})

    def product_of(self, release: str) -> str:
        """Return the product of a release by its name: `qairt` for `qnn-2.39`, as `qnn` is in `variants`."""
        product = release.rpartition("-")[0]
        return self.variants.get(product, product)

    def product_named(self, name: str) -> str:
        """Return a product by its name or that of a package in `variants`; raise UsageError if unknown."""
        if not self.versions_of(name):
            if self._program(name) in self.undocumented:
                raise self.unknown_release(name)
            known = (*self.products, *self.variants)
            remedy = did_you_mean(
                self.other_name(name) or name, known, f"the products are {', '.join(self.products)}"
            )
            raise UsageError(f"unknown product {name!r}", remedy=remedy)
        return name if name in self.products else self.variants[name]

    def grouped_products(self) -> Mapping[str, list[str]]:
        """Return the products by group; products without a group are in the group `OTHER_PRODUCTS`."""
        products = self.products
        groups = {title: [each for each in group if each in products] for title, group in self.groups.items()}
        grouped = set(chain.from_iterable(groups.values()))
        groups[OTHER_PRODUCTS] = [each for each in products if each not in grouped]
        return {title: group for title, group in groups.items() if group}

    # Cached: a conversion reads the property several times, and computing it takes a tenth of the
    # time of a small conversion.
    @cached_property
    def _first_releases(self) -> dict[str, tuple[list[int], list[Release]]]:
        """Return for each domain its opsets in ascending order, and the first release with each opset."""
        found: dict[str, tuple[list[int], list[Release]]] = {}
        for release in self.onnx.values():
            for domain, opset in release.opsets.items():
                opsets, releases = found.setdefault(domain, ([], []))
                if not opsets or opset > opsets[-1]:
                    opsets.append(opset)
                    releases.append(release)
        return found

    @cached_property
    def _published_opsets(self) -> dict[str, int]:
        """Return the newest published opset of each domain; 0 if no published release has the domain."""
        found: dict[str, int] = {}
        for release in self.onnx.values():
            for domain, opset in release.opsets.items():
                found[domain] = max(found.get(domain, 0), opset if release.released else 0)
        return found

    def newest_opset(self, domain: str) -> int | None:
        """Return the newest opset of a domain in any ONNX release; `None` for a domain outside ONNX."""
        opsets, _ = self._first_releases.get(domain, _NO_RELEASES)
        return opsets[-1] if opsets else None

    def released_opset(self, domain: str) -> int | None:
        """Return the newest published opset of a domain, or 0 if none; `None` for a domain outside ONNX."""
        return self._published_opsets.get(domain)

    def unreleased(self, opsets: Mapping[str, int]) -> Iterator[str]:
        """Yield a sentence for each opset that is newer than all published releases of ONNX."""
        for domain, opset in opsets.items():
            newest = self.released_opset(domain)
            if newest is not None and opset > newest:
                yield f"opset {opset} of {domain} is not released: its operators may still change"

    def first_release_with(self, domain: str, opset: int) -> Release | None:
        """Return the first ONNX release with `opset`, or a newer opset, of `domain`; otherwise `None`."""
        opsets, releases = self._first_releases.get(domain, _NO_RELEASES)
        position = bisect_left(opsets, opset)
        return releases[position] if position < len(opsets) else None

    def ir_version_for(self, opsets: Mapping[str, int]) -> int:
        """Return the IR version of the first ONNX release with all of these opsets.

        Opsets that no release has, and domains outside ONNX, are ignored; the result is 0 if all are ignored.
        Source: ONNX Versioning, "Released Versions".
        """
        found = [self.first_release_with(*each) for each in opsets.items()]
        return max([release.ir_version for release in found if release], default=0)

    def companion_opset(self, opsets: Mapping[str, int]) -> int:
        """Return the default domain's opset in the first ONNX release that supports all of `opsets`, or 1.

        Domains outside ONNX are ignored.
        """
        known = {domain: opset for domain, opset in opsets.items() if domain in self._first_releases}
        for release in self.onnx.values():
            if all(release.opsets.get(domain, 0) >= opset for domain, opset in known.items()):
                return release.opsets.get(DEFAULT_DOMAIN, 1)
        return 1

    def companion_of(self, domain: str, default_opset: int) -> int | None:
        """Return the newest opset of a domain in the ONNX releases with at most `default_opset`.

        `default_opset` is an opset of the default domain. The result is `None` for a domain outside ONNX, and
        0 if none of these releases has the domain.
        """
        if domain not in self._first_releases:
            return None
        releases = (
            each for each in self.onnx.values() if each.opsets.get(DEFAULT_DOMAIN, 0) <= default_opset
        )
        return max((each.opsets.get(domain, 0) for each in releases), default=0)

    def find(self, name: str) -> Release | Consumer | None:
        """Return a release by name, or `None`; for the unlisted patch `onnx-1.12.1`, return `onnx-1.12`."""
        product, _, version = name.rpartition("-")
        known = self.versions_of(product)
        while version and version not in known:
            version = version.rpartition(".")[0]
        return known.get(version)

    def named(self, name: str) -> Release | Consumer:
        """Return a release by name: `onnx-1.12`, `onnxruntime-1.14`, `tensorrt-8.6`.

        For an unlisted patch, such as 1.12.1, return the release 1.12.

        Raises:
            UsageError: the product or its version is unknown.
        """
        found = self.find(name)
        if found is None:
            raise self.unknown_release(name)
        return found

    def unknown_release(self, name: str) -> UsageError:
        """Return the error for an unknown release; the remedy lists the known products or versions."""
        product, _, version = name.rpartition("-")
        if versions := self.versions_of(name):
            return UsageError(
                f"{name!r} has no version", remedy=_versions_remedy("add a version", name, versions)
            )
        if fact := self.undocumented.get(program := self._program(name)):
            remedy = "pass the opset in its error or list of operators, such as --target 11"
            return UsageError(f"{program} does not document its newest opset", remedy=f"{fact}; {remedy}")
        known = self.versions_of(product)
        if known and not self.other_name(name):
            remedy = _versions_remedy("known versions", product, known)
            if version_numbers(version) and nearest_older(version, known) is None:
                remedy += "; for an older version, give its opset, such as --target 11"
            return UsageError(f"unknown version {version!r} of {product}", remedy=remedy)
        products = f"give an opset such as 17, or a release, as onnx-1.12, of {', '.join(self.products)}"
        products += f", or a runtime{RUNTIMES_REMEDY}"
        return UsageError(
            f"unknown release {name!r}", remedy=suggest([*self._similar_releases(name)], products)
        )

    def other_name(self, name: str) -> str:
        """Return the entry of `other_names` for a name in any case, with hyphens or spaces; else `""`."""
        return self.other_names.get(re.sub(r"\s+", "-", name[:MAX_NAME].lower()), "")

    def _program(self, name: str) -> str:
        """Return the program that a name means, such as `ncnn` for `ncnn-1.0`; empty if unknown."""
        product = split_release(name)[0].lower()
        known = (each for each in (name.lower(), product) if each in self.undocumented)
        return next(known, "") or self.other_name(name) or self.other_name(product)

    def _similar_releases(self, name: str) -> Iterator[str]:
        """Yield suggestions for an unknown name: an opset, or the nearest release of each similar product."""
        if opset := _OPSET_NAME.fullmatch(name[:MAX_NAME].strip()):
            yield opset[1]
            return
        if self.find(other := self.other_name(name)):
            yield other
            return
        product, version = (other, "") if other else split_release(name)
        product = self.other_name(product) or product
        for each in similar_names(product, (*self.products, *self.variants)):
            known = self.versions_of(each)
            nearest = version if version in known else nearest_older(version, known)
            yield f"{each}-{nearest or list(known)[-1]}"


def _versions_remedy(text: str, product: str, versions: Iterable[str]) -> str:
    more = f", or one{RUNTIMES_REMEDY}" if has_kernel_data(f"{product}-") else ""
    return f"{text}: {', '.join(versions)}{more}"


def split_release(name: str) -> tuple[str, str]:
    """Return the product and the version in a name of a release; the version is empty if there is none."""
    found = _RELEASE_NAME.fullmatch(name[:MAX_NAME])
    assert found is not None, "the pattern matches all texts"
    product, version = found.groups(default="")
    return product, version


def version_numbers(version: str) -> list[int]:
    """Return the numbers in a version as a sort key, such as [1, 20, 1] for 1.20.1."""
    return [int(each) for each in re.findall(r"\d+", version[:MAX_VERSION])]


def nearest_older(version: str, known: Iterable[str]) -> str | None:
    """Return the newest known version that is older than `version`, or `None`.

    If known versions start with `version`, such as 10.0 and 10.3 with 10, return the oldest of them.
    """
    versions, wanted = sorted(known, key=version_numbers), version_numbers(version)
    parts = [each for each in versions if version_numbers(each)[: len(wanted)] == wanted]
    older = [each for each in versions if version_numbers(each) < wanted]
    found = parts[:1] or older[-1:]
    return found[0] if wanted and found else None
