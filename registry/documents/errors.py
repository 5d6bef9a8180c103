"""What can be wrong with an operator-set document."""

from __future__ import annotations

from opshift.registry.errors import DefinitionError


class DocumentError(DefinitionError):
    """A file is no operator-set document that this registry can use."""


class WrongMagic(DocumentError):
    """The file does not say that it is an operator set."""


class UnsupportedVersion(DocumentError):
    """The document is of an IR version, or of a form, that the registry does not know."""


class WrongDomain(DocumentError):
    """The document has no domain, operators of another one, or one that is defined already."""


class WrongOpset(DocumentError):
    """The opset version is missing or below 1, or an operator is newer."""


class RepeatedOperator(DocumentError):
    """An operator stands in the document twice."""


class NoDefinitions(DocumentError):
    """The document lists operators without saying what they are."""


class Contradiction(DocumentError):
    """What plain readers see of the document is not what it defines."""
