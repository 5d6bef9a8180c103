"""Base of the registry's data types: frozen dataclasses that pydantic validates when files are read.

Pydantic is imported only when a file is validated, because precompiled definitions do not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Kind = TypeVar("Kind")


class Record:
    """Base of a frozen dataclass that refuses unknown keys when it is read."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


class Checked:
    """Pydantic metadata of a field, created when pydantic iterates over it.

    Args:
        before: converts the value in a file to the value of the field.
        limits: arguments of `pydantic.Field`.
    """

    # Marks a `GroupedMetadata` of annotated-types without importing the package; pydantic unpacks it.
    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, before: Callable[[Any], Any] | None = None, **limits: Any) -> None:
        self._before = before
        self._limits = limits

    def __iter__(self) -> Iterator[Any]:
        from pydantic import BeforeValidator, Field

        if self._before is not None:
            yield BeforeValidator(self._before)
        yield from Field(**self._limits).metadata


def from_plain_data(kind: type[Kind], data: Any) -> Kind:
    """Return a record from plain data.

    Raises:
        pydantic.ValidationError: the data has the wrong format; the error has its location.
    """
    target: Any = kind
    record: Kind = type_adapter(target).validate_python(data)
    return record


def to_plain_data(record: Any, **options: Any) -> dict[str, Any]:
    """Return a record as JSON data; `options` are those of `pydantic.TypeAdapter.dump_python`."""
    data: dict[str, Any] = type_adapter(record.__class__).dump_python(record, mode="json", **options)
    return data


# Building an adapter compiles a validator, which takes much longer than a validation.
@cache
def type_adapter(kind: Any) -> TypeAdapter[Any]:
    """Return the pydantic adapter that validates and serializes records of a class."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
