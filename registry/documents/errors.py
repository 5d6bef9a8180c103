"""Errors of operator-set documents."""

from __future__ import annotations

from opshift.registry.errors import DefinitionError


class DocumentError(DefinitionError):
    """The file is not an operator-set document that this registry can use."""


class WrongMagic(DocumentError):
    """The file is not marked as an operator set."""


class UnsupportedVersion(DocumentError):
    """The IR version or the format version of the document is not supported."""


class WrongDomain(DocumentError):
    """The domain is missing or already defined, or an operator belongs to a different one."""


class WrongOpset(DocumentError):
    """The opset version is missing or below 1, or an operator is newer than it."""


class RepeatedOperator(DocumentError):
    """The document contains an operator more than once."""


class NoDefinitions(DocumentError):
    """The document lists operators without their definitions."""


class Contradiction(DocumentError):
    """The message lists operators that differ from the definitions."""
