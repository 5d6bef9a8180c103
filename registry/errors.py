"""Errors with fields (reason, place, remedy), and errors of definitions and name resolution."""

from __future__ import annotations

from opshift.model.errors import OpshiftError


class DefinitionError(OpshiftError):
    """A definition file is invalid or cannot be read; the place is its file and line."""


class ResolveError(OpshiftError):
    """A node does not refer to any operator under its opset imports."""


class DomainNotImported(ResolveError):
    """The node's domain has no opset import."""


class NotYetIntroduced(ResolveError):
    """The operator was introduced in a later opset."""


class OperatorRemoved(ResolveError):
    """The operator was removed in this opset or an earlier one."""


class UnknownOperator(ResolveError):
    """The domain has no operator of this name."""


class UnknownDomain(ResolveError):
    """The registry has no definitions for the domain."""


class UnknownOpset(ResolveError):
    """The opset version is below 1, or newer than the registry supports."""
