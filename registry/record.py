"""Base of the registry's data types: frozen dataclasses that pydantic validates when files are read.

Pydantic is imported only when a file is validated: precompiled definitions are valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from reprlib import repr as short_repr
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Self,
    TypedDict,
    TypeVar,
    Unpack,
    dataclass_transform,
)

from opshift.model.plain_data import Json
from opshift.model.shared_data import FrozenRecord, ReadOnlyDict, read_only

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails


Kind = TypeVar("Kind")


TEXT_LOADER: Final = "_load_texts"
"""The key in `__dict__` of the function that loads the texts of a precompiled record."""

DETAILS: Final = ("inputs", "outputs", "attributes", "type_constraints", "body", "step")
"""Fields of a precompiled operator version that are decoded together when one of them is first read.

The defaults are factories, for the reason given at `Described.description`."""

DETAILS_LOADER: Final = "_load_details"
"""The key in `__dict__` of the function that decodes the fields in `DETAILS`."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Record(FrozenRecord):
    """Base class of the registry's frozen dataclasses; pydantic refuses unknown keys when it creates one."""

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
    """Constraints of a field, over which pydantic iterates; `before` converts a value before validation."""

    # Marks a `GroupedMetadata` of annotated-types, which pydantic unpacks, without importing the package.
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
    """Return a record, or other data of type `kind`, from the content of a file; raise `DefinitionError`."""
    from pydantic import ValidationError

    from opshift.registry.yaml_files import error_at

    try:
        return from_plain_data(kind, data)
    except ValidationError as error:
        # For a union, pydantic reports an error for every alternative: take those with the longest path.
        found = [(path_of_error(each, data), each) for each in error.errors()]
        keys = max((path for path, _ in found), key=len)
        parts = ".".join(map(str, keys)), text_of_errors([each for path, each in found if path == keys])
        raise error_at(path, keys, ": ".join(filter(None, parts))) from error


NOUNS: Final = {
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "a string",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "dataclass_type": "a mapping",
}
"""Noun for the expected value, by type of pydantic error; pydantic's own messages name Python classes."""

_LIMITS: Final = {
    "greater_than_equal": "expected {ge} or more",
    "too_short": "expected {min_length} or more items",
    "string_too_short": "expected {min_length} or more characters",
}
"""Text about the expected value, by type of pydantic error."""

UNKNOWN_KEY: Final = ("extra_forbidden", "unexpected_keyword_argument")
"""Types of pydantic errors for unknown keys."""


def text_of_errors(errors: Sequence[ErrorDetails]) -> str:
    """Return a text about one invalid value, from the errors of all alternatives of its union."""
    first = errors[0]
    if first["type"] in UNKNOWN_KEY:
        return "unknown key"
    if first["type"] == "missing":
        return "the key is missing"
    nouns = [NOUNS[each["type"]] for each in errors if each["type"] in NOUNS]
    if words := [*map(repr, allowed_values(errors)), *nouns]:
        *others, last = dict.fromkeys(words)
        expected = f"expected {', '.join(others)} or {last}" if others else f"expected {last}"
    elif first["type"] in _LIMITS:
        expected = _LIMITS[first["type"]].format(**first.get("ctx", {}))
    else:
        return first["msg"].removeprefix("Value error, ")
    return f"{expected}, got {short_repr(first['input'])}"


def allowed_values(errors: Iterable[ErrorDetails]) -> list[str]:
    """Return the strings that pydantic expects in place of a value."""
    texts = [each.get("ctx", {})["expected"] for each in errors if each["type"] == "literal_error"]
    return [word for text in texts for word in re.findall(r"'([^']*)'", text)]


def path_of_error(error: ErrorDetails, data: Any) -> tuple[int | str, ...]:
    """Return the path to an error in the data, without the names of union alternatives in pydantic's path."""
    keys: list[int | str] = []
    for key in error["loc"]:
        if has_key(data, key):
            data = data[key]
            keys.append(key)
    return (*keys, error["loc"][-1]) if error["type"] == "missing" else tuple(keys)


def has_key(data: object, key: int | str) -> bool:
    """Return whether data is a mapping with this key, or a list with this index."""
    if isinstance(data, list):
        return isinstance(key, int) and key < len(data)
    return isinstance(data, dict) and key in data


def to_plain_data(
    record: object, *, exclude: set[str] | None = None, exclude_defaults: bool = False
) -> dict[str, Json]:
    """Return a record as JSON data, with the options of `pydantic.TypeAdapter.dump_python`."""
    if isinstance(record, Record):
        # pydantic serializes no other mappings than dict, such as those that decode their entries later;
        # texts are not in `vars`: they are loaded when they are first read
        stored = {each.name: vars(record).get(each.name) for each in fields(record)}
        others = {k: dict(v) for k, v in stored.items() if isinstance(v, Mapping) and not isinstance(v, dict)}
        record = replace(record, **others) if others else record
    data: dict[str, Json] = type_adapter(type(record)).dump_python(
        record, mode="json", exclude=exclude, exclude_defaults=exclude_defaults
    )
    return data


# Cache, because building an adapter compiles a validator, which takes much longer than a validation.
_ADAPTERS: Final[dict[type[object], TypeAdapter[Any]]] = {}


def type_adapter(kind: type[Kind]) -> TypeAdapter[Kind]:
    """Return the pydantic adapter that validates and serializes records of a class."""
    from pydantic import TypeAdapter

    found = _ADAPTERS.get(kind)
    return _ADAPTERS.setdefault(kind, TypeAdapter(kind)) if found is None else found


def _refuse(text: object) -> object:
    raise ValueError("texts belong in `descriptions` of the version")


_Text = Annotated[str, Checked(before=_refuse)]


class Described(Record):
    """Base class of records with a `description`, which precompiled records load when it is first read.

    Texts are not compared: they may be improved without a change of the definition. The `DETAILS` of operator
    versions are also decoded on first read, because a conversion reads the details of few versions.
    """

    # A factory leaves no default in the class, so `__getattr__` is called for a text that is not loaded.
    description: _Text = field(default_factory=str, compare=False, repr=False)

    @classmethod
    def from_valid(cls, values: Mapping[str, object]) -> Self:
        """Return an instance with field values that are known to be valid; texts and details are not set."""
        record = cls.__new__(cls)
        record.__dict__.update(cls._defaults)
        record.__dict__.update(values)
        return record

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Decode the details if the attribute is one of them, or load all texts of the operator."""
            content = self.__dict__
            if name in DETAILS and DETAILS_LOADER in content:
                found = content[DETAILS_LOADER]()
                for each in (*found["inputs"], *found["outputs"], *found["attributes"].values()):
                    each.defer_text(content.get(TEXT_LOADER))
                for each in DETAILS:  # another thread may have decoded and set them in the meantime
                    content.setdefault(each, found[each])
            elif content.get(TEXT_LOADER) and name in self.__dataclass_fields__:
                content[TEXT_LOADER]()
            else:
                raise AttributeError(name)
            return content[name]

    def defer_text(self, load: Callable[[], None] | None) -> None:
        """Register a function that sets the description on first read; call this before it is set."""
        self.__dict__[TEXT_LOADER] = load

    def __getstate__(self) -> dict[str, object]:
        """Return all fields, loaded: the functions that load texts and details cannot be pickled."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Descriptions(Record):
    """Texts of an operator version, by name; a file omits texts that equal the previous version's."""

    operator: str = ""
    """The text of the operator."""
    inputs: dict[str, str] = field(default_factory=dict)
    """The text of each input."""
    outputs: dict[str, str] = field(default_factory=dict)
    """The text of each output."""
    attributes: dict[str, str] = field(default_factory=dict)
    """The text of each attribute."""
    types: dict[str, str] = field(default_factory=dict)
    """The text of each type variable."""
