"""Kernels of operator versions in runtimes, as text and as cells of tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import NamedTuple

from opshift.catalogue.words import format_types
from opshift.model.types import short_type
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.runtimes.runtime import Kernel, Runtime


class State(StrEnum):
    """Support of an operator version by a runtime, from the best to the worst."""

    FULL = "full"
    PARTIAL = "partial"
    BODY = "body"
    MISSING = "missing"
    NEWER = "newer"

    @property
    def label(self) -> str:
        """Short text for a cell."""
        return _LABELS[self][0]

    @property
    def meaning(self) -> str:
        """Sentence that describes the state."""
        return _LABELS[self][1]


_LABELS = {
    State.FULL: ("yes", "kernels for all types of the version"),
    State.PARTIAL: ("partly", "kernels for some types, such as 9 of 16, or with conditions (*)"),
    State.BODY: ("expanded", "no kernel, but the runtime computes the function body of the operator"),
    State.MISSING: ("no", "no kernel"),
    State.NEWER: ("newer", "the runtime does not support the opset of the version"),
}


class VersionKernels(NamedTuple):
    """Kernels of an operator version in a runtime; `expanded` if there are none, but its body runs."""

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
        """The types of each kernel as text, or one text for an operator version without kernels."""
        for each in self.kernels:
            yield kernel_types(each)
        if not self.kernels:
            yield "no kernel, but a function body" if self.expanded else "no kernel"

    def as_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        kernels = [dict(each.types) for each in self.kernels]
        return {"operator": self.operator, "kernels": kernels, "function_body": self.expanded}


def kernel_types(kernel: Kernel) -> str:
    """Return the types of a kernel as text, such as `T: tensor(double, float)`."""
    return "; ".join(f"{name}: {format_types(types)}" for name, types in kernel.types.items()) or "all types"


def versions_without_kernel(runtime: Runtime, registry: Registry) -> Iterator[VersionKernels]:
    """Yield the versions without a kernel, except deprecated ones, in the newest opsets of a runtime."""
    for domain, opset in runtime.opsets.items():
        for name in registry.names(domain):
            version = registry.known_at(name, opset, domain)
            found = VersionKernels.of(version, runtime) if version else None
            if found and version and not found.kernels and not version.deprecated:
                yield found


class RuntimeCell(NamedTuple):
    """Support of an operator version by a runtime: types with and without a kernel, and restrictions."""

    state: State
    kernels: tuple[str, ...]
    lacking: str
    """Types of the version that no kernel accepts, by type variable."""
    notes: tuple[str, ...]
    accepted: tuple[int, int] = (0, 0)
    """Number of types with a kernel, and of all types, of the first type variable in `lacking`."""

    @property
    def label(self) -> str:
        """Short text: the label of the state, or for partial support a text such as `9/16*`."""
        if self.state is not State.PARTIAL:
            return self.state.label
        types = "{}/{}".format(*self.accepted) if self.lacking else "yes"
        return f"{types}*" if self.notes else types

    @classmethod
    def of(cls, version: OperatorVersion, runtime: Runtime) -> RuntimeCell:
        """Return the support of an operator version in a runtime."""
        found = VersionKernels.of(version, runtime)
        if not found.kernels:
            is_newer = version.since_version > runtime.opsets.get(version.domain, 0)
            state = State.BODY if found.expanded else State.NEWER if is_newer else State.MISSING
            return cls(state, (), "", ())
        notes = [each.reason for each in runtime.restrictions_of(version.id)]
        notes += (each.reason for each in runtime.errors_of(version.id))
        texts = tuple(dict.fromkeys(map(kernel_types, found.kernels)))
        lacking = list(_lacking_types(version, found.kernels))
        text = "; ".join(f"{name}: {', '.join(map(short_type, types))}" for name, types in lacking)
        state = State.PARTIAL if notes or lacking else State.FULL
        accepted = (0, 0)
        if lacking:
            name, types = lacking[0]
            total = len(version.type_constraints[name])
            accepted = total - len(types), total
        return cls(state, texts, text, tuple(dict.fromkeys(notes)), accepted)

    @property
    def supported(self) -> bool:
        """Whether the runtime runs some nodes of the version."""
        return self.state in (State.FULL, State.PARTIAL, State.BODY)


def _lacking_types(
    version: OperatorVersion, kernels: Sequence[Kernel]
) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield type variables with the types that no kernel accepts, if there are such types."""
    for name, types in version.type_constraints.items():
        accepted = {each for kernel in kernels for each in kernel.types.get(name, types)}
        if lacking := [each for each in types if each not in accepted]:
            yield name, lacking


class RuntimeRow(NamedTuple):
    """Consecutive releases of a runtime with the same support of all versions of an operator."""

    first: Runtime
    last: Runtime
    cells: tuple[RuntimeCell, ...]
    is_newest: bool
    """Whether `last` is the newest release of the runtime."""

    def as_dict(self, operator: Operator) -> dict[str, object]:
        """Return plain data for JSON."""
        pairs = zip(operator.versions, self.cells, strict=True)
        versions = {str(version.since_version): cell._asdict() for version, cell in pairs}
        return {"first": self.first.name, "last": self.last.name, "versions": versions}


def runtime_rows(operator: Operator, runtimes: Mapping[str, Sequence[Runtime]]) -> Iterator[RuntimeRow]:
    """Yield rows of equal releases, newest first; `runtimes` has the releases of each runtime by name."""
    for releases in runtimes.values():
        pairs = [
            (each, tuple(RuntimeCell.of(version, each) for version in operator.versions)) for each in releases
        ]
        for cells, group in groupby(reversed(pairs), key=lambda pair: pair[1]):
            same = [runtime for runtime, _ in group]
            yield RuntimeRow(same[-1], same[0], cells, same[0] is releases[-1])


class OperatorSupport(NamedTuple):
    """Support of an operator by a runtime, usually at the newest opset that the runtime supports."""

    version: OperatorVersion
    cell: RuntimeCell
    kernels: tuple[Kernel, ...]
    """The kernels of all versions of the operator."""

    @property
    def types(self) -> str:
        """Element types of the version that a kernel or the function body accepts, separated by spaces."""
        constraints = self.version.type_constraints
        lists: list[Sequence[str]] = [
            [each for each in kernel.types.get(name, types) if each in types]
            for kernel in self.kernels
            if kernel.implements(self.version.since_version)
            for name, types in constraints.items()
        ]
        if self.cell.state is State.BODY:
            lists = [*constraints.values()]
        found = {short_type(each) for types in lists for each in types}
        return " ".join(sorted(each for each in found if "(" not in each))


def operator_support(runtime: Runtime, registry: Registry) -> Iterator[OperatorSupport]:
    """Yield the support of each operator that has kernels, or that the newest supported opset has.

    Deprecated operators without kernels are omitted.
    """
    for domain in registry.domains():
        opset = runtime.opsets.get(domain)
        for operator in registry.operators(domain):
            kernels = runtime.operators.get(f"{domain}.{operator.name}", ())
            version = operator.at(opset) if opset else None
            if version is None and kernels:  # the operator has kernels, but only for older opsets
                version = operator.versions[-1]
            if version and (kernels or not version.deprecated):
                yield OperatorSupport(version, RuntimeCell.of(version, runtime), kernels)


class OpsetShare(NamedTuple):
    """Numbers of operators, except deprecated ones: those that a runtime supports, and all (`total`)."""

    opset: int
    supported: int
    total: int

    @property
    def percent(self) -> int:
        """Percentage of supported operators, rounded down: 100 means all."""
        return 100 * self.supported // self.total if self.total else 100

    @property
    def level(self) -> int:
        """Level from 1 to 5, which selects a colour."""
        return min(5, 1 + self.percent // 20)


def opset_shares(runtime: Runtime, domain: str, registry: Registry) -> list[OpsetShare | None]:
    """Return the share of supported operators by opset of a domain; `None` for opsets that are too new."""
    supported = {
        version: RuntimeCell.of(version, runtime).supported
        for operator in registry.operators(domain)
        for version in operator.versions
        if not version.deprecated
    }
    known = runtime.opsets.get(domain, 0)
    shares: list[OpsetShare | None] = []
    for opset in range(1, registry.newest_opset(domain) + 1):
        at = (operator.at(opset) for operator in registry.operators(domain))
        found = [supported[each] for each in at if each and each in supported]
        shares.append(OpsetShare(opset, sum(found), len(found)) if opset <= known else None)
    return shares
