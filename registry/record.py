"""Base of the registry's data types: frozen dataclasses that pydantic validates when files are read.

Pydantic is imported only when a file is validated, because precompiled definitions do not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypedDict, TypeVar, Unpack, dataclass_transform

from opshift.model.plain_data import Json
from opshift.model.shared_data import FrozenRecord, ReadOnlyDict, read_only

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Record(FrozenRecord):
    """Base of a frozen dataclass that refuses unknown keys when it is read."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    classes: ClassVar[dict[str, type[Record]]] = {}
    """All subclasses by name."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.classes[cls.__name__] = cls
        cls._factories = {name: ReadOnlyDict if new is dict else new for name, new in cls._factories.items()}

    def __post_init__(self) -> None:
        """Make the dictionaries read-only: all threads and callers share the records of a registry."""
        content = self.__dict__
        for name in [name for name, value in content.items() if type(value) is dict]:
            content[name] = read_only(content[name])


class Limits(TypedDict, total=False):
    """The arguments of `pydantic.Field` that definitions use."""

    strict: bool
    ge: int
    le: int
    min_length: int


class Checked:
    """Pydantic metadata of a field, created by iteration; `before` converts the value in a file."""

    # Marks a `GroupedMetadata` of annotated-types without importing the package; pydantic unpacks it.
    __is_annotated_types_grouped_metadata__ = True

    def __init__(self, before: Callable[[object], object] | None = None, **limits: Unpack[Limits]) -> None:
        self._before = before
        self._limits = limits

    def __iter__(self) -> Iterator[object]:
        from pydantic import BeforeValidator, Field

        if self._before is not None:
            yield BeforeValidator(self._before)
        yield from Field(**self._limits).metadata


def from_plain_data(kind: type[Kind], data: object) -> Kind:
    """Return a record from plain data, or raise `pydantic.ValidationError` with the place in the data."""
    return type_adapter(kind).validate_python(data)


def from_file_content(kind: type[Kind], data: object, path: Path) -> Kind:
    """Return a record or pydantic model from the content of a file, or raise `DefinitionError`."""
    from pydantic import ValidationError

    from opshift.registry.yaml_files import error_at

    try:
        return from_plain_data(kind, data)
    except ValidationError as error:
        first = error.errors()[0]
        keys, reason = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise error_at(path, first["loc"], ": ".join(filter(None, (keys, reason)))) from error


def to_plain_data(
    record: object, *, exclude: set[str] | None = None, exclude_defaults: bool = False
) -> dict[str, Json]:
    """Return a record as JSON data, with the options of `pydantic.TypeAdapter.dump_python`."""
    data: dict[str, Json] = type_adapter(type(record)).dump_python(
        record, mode="json", exclude=exclude, exclude_defaults=exclude_defaults
    )
    return data


# Building an adapter compiles a validator, which takes much longer than a validation.
_ADAPTERS: Final[dict[type[object], TypeAdapter[Any]]] = {}


def type_adapter(kind: type[Kind]) -> TypeAdapter[Kind]:
    """Return the pydantic adapter that validates and serializes records of a class."""
    from pydantic import TypeAdapter

    found = _ADAPTERS.get(kind)
    return _ADAPTERS.setdefault(kind, TypeAdapter(kind)) if found is None else found
