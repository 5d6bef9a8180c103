"""Differences between the schemas of a release of a runtime and the definitions of operators."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from opshift.registry.record import Checked, Record
from opshift.registry.runtimes.field_types import Types

Count = Annotated[int, Checked(strict=True, ge=0)]


class SchemaDifference(Record):
    """Difference between the schema of a release and the definition of an operator without versions.

    Some releases of a runtime change operators without a new version, so nodes of one version may be valid in
    some releases only.
    """

    inputs: tuple[Count, Count] | None = None
    """The smallest and the largest number of inputs."""
    outputs: tuple[Count, Count] | None = None
    """The smallest and the largest number of outputs."""
    lacks: tuple[str, ...] = ()
    """Attributes of the definition that the schema does not have."""
    adds: tuple[str, ...] = ()
    """Attributes of the schema that the definition does not have."""
    requires: tuple[str, ...] = ()
    """Attributes and inputs that are optional in the definition only."""
    types: dict[str, Types] = field(default_factory=dict)
    """All types of type variables or parameters of the definition that have others in the schema."""
