"""Types of fields in the files of runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from opshift.model.element_types import BY_NAME, INTEGER_FIELDS, element_bits
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.model.shared_data import share_results
from opshift.opsets import OPSETS
from opshift.registry.errors import InvalidDefinition
from opshift.registry.record import Checked

if TYPE_CHECKING:
    from opshift.registry.type_sets import TypeSets


@share_results
def _type_sets() -> TypeSets:
    from opshift.registry.type_sets import TypeSets  # imported here: compiled runtimes need no type sets

    return TypeSets.of_folders((OPSETS,))


def _expand(entries: object) -> object:
    """Expand the entries of a list to types; return other values unchanged, so that pydantic refuses them."""
    if not isinstance(entries, list) or not all(isinstance(each, str) for each in entries):
        return entries
    try:
        return _type_sets().expand(f"tensor({each})" if each in BY_NAME else each for each in entries)
    except InvalidDefinition as error:
        raise ValueError(f"{error.findings[0].reason}; {error.remedy}") from error


def _element_type(name: object) -> object:
    if name not in BY_NAME:
        raise ValueError(f"{name!r} is not an element type")
    return name


Types = Annotated[tuple[str, ...], Checked(_expand, min_length=1)]
"""Types such as `tensor(float)`; a file may list element types, types and sets of `types.yaml`."""


def _integer_type(name: object) -> object:
    kind = BY_NAME[str(_element_type(name))]
    if kind.field not in INTEGER_FIELDS or element_bits(kind) % 8:
        raise ValueError(f"elements of {name!r} are not stored as integers of whole bytes")
    return name


ElementName = Annotated[str, Checked(_element_type)]
"""Name of an element type, such as `float16`."""

IntegerStoredName = Annotated[str, Checked(_integer_type)]
"""Name of an element type whose elements are stored as integers of whole bytes, such as `bfloat16`."""


def _parse_axis(name: object) -> object:
    return str(int(name)) if isinstance(name, str) else name


Axis = Annotated[str, Checked(_parse_axis)]
"""Number of an axis, as a string: keys in YAML files are strings."""

Version = Annotated[int, Checked(strict=True, ge=1)]


def _with_default_domain(opsets: object) -> object:
    if isinstance(opsets, dict) and DEFAULT_DOMAIN not in opsets:
        raise ValueError(f"{DEFAULT_DOMAIN} is missing; add its newest supported opset")
    return opsets


Opsets = Annotated[dict[str, Version], Checked(_with_default_domain)]
"""Newest opset of each domain. The default domain is required: conversions choose one of its opsets."""

Sizes = Annotated[tuple[Annotated[int, Checked(strict=True)], ...], Checked(min_length=1)]
"""Nonempty list of sizes or ranks."""
