"""Base of frozen dataclasses whose methods are not generated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from typing import ClassVar, NoReturn, Self, dataclass_transform


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class FrozenRecord:
    """Base of frozen dataclasses; a subclass needs no decorator.

    Subclasses inherit the methods, because generating them for each class would take half of the time of
    `import opshift.converter.convert`.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]]
    _defaults: ClassVar[dict[str, object]]
    _factories: ClassVar[dict[str, Callable[[], object]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False)(cls)
        found = fields(cls)
        cls._names = frozenset(cls.__match_args__)
        cls._defaults = {each.name: each.default for each in found if each.default is not MISSING}
        cls._factories = {
            each.name: each.default_factory for each in found if each.default_factory is not MISSING
        }

    def __init__(self, *values: object, **named: object) -> None:
        names, content = self.__match_args__, self.__dict__
        is_partial = named or len(values) != len(names)
        if is_partial:
            self._set_defaults()
            content.update(named)
        # `zip` parses keyword arguments slowly, and every conversion creates records.
        content.update(zip(names, values))  # noqa: B905
        if is_partial:
            is_repeated = not named.keys().isdisjoint(names[: len(values)])
            if is_repeated or len(values) > len(names) or content.keys() != self._names:
                raise TypeError(
                    f"{type(self).__name__} has the fields {', '.join(names)}; got {(*values, *named)}"
                )
        self.__post_init__()

    @classmethod
    def from_valid(cls, values: Mapping[str, object]) -> Self:
        """Return an instance with the fields of a valid one that was stored, without checks."""
        record = cls.__new__(cls)
        record._set_defaults()
        record.__dict__.update(values)
        return record

    def _set_defaults(self) -> None:
        self.__dict__.update(self._defaults)
        for name, new in self._factories.items():
            self.__dict__[name] = new()

    def __post_init__(self) -> None:
        """Check the fields of a new instance; they are set."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return self._compared() == other._compared() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        values = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(values)})"

    def _compared(self) -> tuple[object, ...]:
        return tuple(getattr(self, each.name) for each in fields(self) if each.compare)
