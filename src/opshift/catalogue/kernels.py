"""Kernels of operator versions in runtimes, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from opshift.catalogue.type_texts import format_types
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Kernel, Runtime


class VersionKernels(NamedTuple):
    """Operator version with its kernels, or whether it has a function body that the runtime uses."""

    operator: str
    kernels: tuple[Kernel, ...]
    expanded: bool

    @classmethod
    def of(cls, version: OperatorVersion, runtime: Runtime) -> VersionKernels:
        """Return the kernels of an operator version in a runtime."""
        kernels = runtime.operators.get(f"{version.domain}.{version.name}", ())
        found = tuple(each for each in kernels if each.implements(version.since_version))
        is_known = version.since_version <= runtime.opsets.get(version.domain, 0)
        expanded = not found and is_known and runtime.expands_functions and version.has_function
        return cls(str(version.id), found, expanded)

    @property
    def cells(self) -> Iterator[str]:
        """The types of each kernel, or what happens without one."""
        for each in self.kernels:
            yield kernel_types(each)
        if not self.kernels:
            yield "no kernel, but a function body" if self.expanded else "no kernel"

    def as_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        kernels = [dict(each.types) for each in self.kernels]
        return {"operator": self.operator, "kernels": kernels, "function_body": self.expanded}


def kernel_types(kernel: Kernel) -> str:
    """Return the types of a kernel by type variable."""
    return "; ".join(f"{name}: {format_types(types)}" for name, types in kernel.types.items()) or "all types"


def versions_without_kernel(runtime: Runtime, registry: Registry) -> Iterator[VersionKernels]:
    """Yield the versions without a kernel of the operators at the newest opsets of a runtime."""
    for domain, opset in runtime.opsets.items():
        for name in registry.names(domain):
            version = registry.at(name, opset, domain)
            found = VersionKernels.of(version, runtime) if version else None
            if found and version and not found.kernels and not version.deprecated:
                yield found


class RuntimeCell(NamedTuple):
    """Support of an operator version: the types of each kernel, and restrictions."""

    texts: tuple[str, ...]
    notes: tuple[str, ...]
    supported: bool

    @classmethod
    def of(cls, version: OperatorVersion, runtime: Runtime) -> RuntimeCell:
        """Return the support of an operator version in a runtime."""
        found = VersionKernels.of(version, runtime)
        notes = [each.reason for each in runtime.restrictions_of(version.id)]
        notes += (each.reason for each in runtime.errors_of(version.id))
        texts = tuple(dict.fromkeys(found.cells))
        return cls(texts, tuple(notes if found.kernels else ()), bool(found.kernels) or found.expanded)


class RuntimeRow(NamedTuple):
    """Consecutive releases of a runtime with the same support of all versions of an operator."""

    first: Runtime
    last: Runtime
    cells: tuple[RuntimeCell, ...]

    def as_dict(self, operator: Operator) -> dict[str, object]:
        """Return plain data for JSON."""
        pairs = zip(operator.versions, self.cells, strict=True)
        versions = {str(version.since_version): cell._asdict() for version, cell in pairs}
        return {"first": self.first.name, "last": self.last.name, "versions": versions}


def runtime_rows(operator: Operator, runtimes: Mapping[str, Sequence[Runtime]]) -> Iterator[RuntimeRow]:
    """Yield the support of the versions of an operator, newest releases first; `runtimes` by their name."""
    for releases in runtimes.values():
        pairs = [
            (each, tuple(RuntimeCell.of(version, each) for version in operator.versions)) for each in releases
        ]
        for cells, group in groupby(reversed(pairs), key=lambda pair: pair[1]):
            same = [runtime for runtime, _ in group]
            yield RuntimeRow(same[-1], same[0], cells)
