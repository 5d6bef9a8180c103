"""What the registry's data types share: frozen dataclasses, which pydantic checks as files are read.

To define them takes no pydantic: what was checked before is at hand without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Kind = TypeVar("Kind")


class Record:
    """The base of a frozen dataclass that is strict about keys it does not know, when it is read."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}


class Checked:
    """What pydantic is to check of a field, made when pydantic asks for it.

    Args:
        before: turns what a file says into what the field holds.
        limits: as `pydantic.Field` takes them.
    """

    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, before: Callable[[Any], Any] | None = None, **limits: Any) -> None:
        self._before = before
        self._limits = limits

    def __iter__(self) -> Iterator[Any]:
        from pydantic import BeforeValidator, Field

        if self._before is not None:
            yield BeforeValidator(self._before)
        yield from Field(**self._limits).metadata


def checked(kind: type[Kind], data: Any) -> Kind:
    """A record from plain data.

    Raises:
        pydantic.ValidationError: it breaks the format; the error tells where.
    """
    wanted: Any = kind
    found: Kind = adapter(wanted).validate_python(data)
    return found


def plain(record: Any, **options: Any) -> dict[str, Any]:
    """A record as JSON has it; `options` are those of `pydantic.TypeAdapter.dump_python`."""
    found: dict[str, Any] = adapter(record.__class__).dump_python(record, mode="json", **options)
    return found


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What reads and writes records of a kind."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
