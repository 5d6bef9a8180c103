"""Frozen records, read-only dictionaries and cached results, which threads share; deprecated aliases."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from functools import wraps
from typing import (
    ClassVar,
    Generic,
    NoReturn,
    Protocol,
    Self,
    TypeVar,
    TypeVarTuple,
    cast,
    dataclass_transform,
    overload,
)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class FrozenRecord:
    """Base of frozen dataclasses; a subclass needs no decorator.

    Subclasses inherit the methods, because generating methods for each class would take half of the time of
    `import opshift.converter.convert`.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]]
    _defaults: ClassVar[dict[str, object]]
    _factories: ClassVar[dict[str, Callable[[], object]]]
    _compared_names: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclass(init=False, repr=False, eq=False)(cls)
        found = fields(cls)
        cls._names = frozenset(cls.__match_args__)
        cls._compared_names = tuple(each.name for each in found if each.compare)
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
        # Without `strict`: `zip` parses keyword arguments slowly, and every conversion creates records.
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
        """Return an instance with these field values, unchecked; `values` are fields of a valid instance."""
        record = cls.__new__(cls)
        record._set_defaults()
        record.__dict__.update(values)
        return record

    def _set_defaults(self) -> None:
        self.__dict__.update(self._defaults)
        for name, new in self._factories.items():
            self.__dict__[name] = new()

    def __post_init__(self) -> None:
        """Check the fields of a new instance after they are set; by default, do nothing."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __eq__(self, other: object) -> bool:
        return (
            self._compared_fields() == other._compared_fields()
            if type(other) is type(self)
            else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self._compared_fields())

    def __repr__(self) -> str:
        values = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(values)})"

    def _compared_fields(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self._compared_names])


Key = TypeVar("Key")
Value = TypeVar("Value")


def _refuse_change(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("shared data is read-only; copy it with dict(...) and modify the copy")


# Not a MappingProxyType: that can be neither pickled nor serialized by `json` and pydantic.
class ReadOnlyDict(dict[Key, Value], Generic[Key, Value]):
    """Dictionary that raises TypeError when it is modified; `|` and `copy` return a plain `dict`."""

    __setitem__ = __delitem__ = __ior__ = _refuse_change
    clear = pop = popitem = _refuse_change
    setdefault = update = _refuse_change  # pyright: ignore[reportAssignmentType]  # they are overloaded

    def __reduce__(self) -> tuple[type[ReadOnlyDict[Key, Value]], tuple[dict[Key, Value]]]:
        """Pickle and copy through the constructor: the default sets the items one by one."""
        return type(self), (dict(self),)


def read_only(value: object) -> object:
    """Convert a `dict`, and each `dict` among its values, to ReadOnlyDict; return other values unchanged."""
    if type(value) is dict:
        return ReadOnlyDict({key: read_only(each) for key, each in value.items()})
    return value


Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")
SharedResult = TypeVar("SharedResult", covariant=True)


class CachedFunction(Protocol[*Arguments, SharedResult]):
    """Function with a cache of its results."""

    def __call__(self, *args: *Arguments) -> SharedResult:
        """Return the result for the arguments, from the cache if possible."""
        ...

    @property
    def __wrapped__(self) -> Callable[[*Arguments], SharedResult]:
        """The function without a cache."""
        ...

    def cache_clear(self) -> None:
        """Forget all results."""


def share_results(function: Callable[[*Arguments], Result]) -> CachedFunction[*Arguments, Result]:
    """Cache the results of a function, so that all threads get the same object for the same arguments.

    `functools.cache` may return different objects to threads that call at the same time. This cache may also
    compute a result more than once, but every caller gets the first result. No lock is held: a function that
    imports modules or calls private code under a lock can deadlock with Python's import locks.
    """
    results: dict[tuple[*Arguments], Result] = {}

    @wraps(function)
    def cached(*args: *Arguments) -> Result:
        try:
            return results[args]
        except KeyError:
            # Call the function outside of the `except` block: its errors must not get the KeyError as their
            # context.
            pass
        return results.setdefault(args, function(*args))

    vars(cached)["cache_clear"] = results.clear
    return cast("CachedFunction[*Arguments, Result]", cached)


class DeprecatedAlias(Generic[Value]):
    """Attribute that warns, and returns the attribute `new`, which replaces it."""

    def __init__(self, new: str) -> None:
        self._new = new
        self.__doc__ = f"Deprecated alias of `{new}`."

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object, owner: type) -> Self | Value:
        if instance is None:
            return self
        message = f"{owner.__name__}.{self._old} is deprecated and will be removed: read {self._new}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return cast("Value", getattr(instance, self._new))
