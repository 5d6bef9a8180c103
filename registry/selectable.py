"""Queries of a registry that conversions do not need."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from opshift.registry.errors import ResolveError

if TYPE_CHECKING:
    from opshift.registry.models import OperatorVersion
    from opshift.registry.registry import Registry
    from opshift.registry.selection import Status, Versions


class Selectable:
    """Base of registries: queries of their operator versions."""

    def has(self, op_type: str, max_inclusive_version: int | str | None = None, domain: str = "") -> bool:
        """Return whether `get_schema` finds a version; the arguments are the same."""
        try:
            cast("Registry", self).get_schema(op_type, max_inclusive_version, domain)
        except ResolveError:
            return False
        return True

    def get_all_schemas_with_history(self) -> tuple[OperatorVersion, ...]:
        """Return every version of every operator, including operators that were removed."""
        operators = cast("Registry", self).operators()
        return tuple(version for operator in operators for version in operator.versions)

    def select(
        self,
        name: str = "*",
        *,
        domain: str | None = None,
        opset: int | None = None,
        versions: Versions = "current",
        status: Status | Collection[Status] | None = None,
        accepts: str | None = None,
        produces: str | None = None,
        parameter: str | None = None,
        attribute: str | None = None,
        function: bool | None = None,
        changed: tuple[int, int] | None = None,
    ) -> tuple[OperatorVersion, ...]:
        """Return the operator versions that match all given filters.

        They are sorted by domain, name and version; in each domain, removed operators are last.

        Args:
            name: the name of an operator, or a pattern such as `Reduce*`.
            domain: the domain to search; by default all.
            opset: the opset to search; by default the newest, or the newer one of `changed`. Without a
                domain, it is an opset of `ai.onnx`, and the other domains have the opsets of the ONNX release
                that introduced it.
            versions: `current` for the version in effect at the opset, `first` for the first version up to
                the opset that matches the other filters, or `all` for every version up to the opset.
            status: one or several statuses at the opset: `active`, `preview`, `deprecated` or `removed`. By
                default all but `removed`, or all if `changed` is given.
            accepts: the type of an input: an element type of tensors, such as `int8`, or a type such as
                `seq(tensor(int8))`.
            produces: the type of an output, likewise.
            parameter: the name of an input or output; with `accepts` or `produces`, of one with this type.
            attribute: the name of an attribute.
            function: whether the operator is a function.
            changed: an older and a newer opset, between which the operator was added, changed or removed.

        Raises:
            UnknownDomain, UnknownOpset: the registry lacks the domain or an opset.
            UnknownOperator: no operator has the name. For a pattern without matches, the result is empty.
            UsageError: no operator has a type, parameter or attribute, or an argument is invalid.
        """
        from opshift.registry.selection import Filters, select

        filters = Filters(accepts, produces, parameter, attribute, function)
        return select(cast("Registry", self), name, filters, domain, opset, versions, status, changed)
