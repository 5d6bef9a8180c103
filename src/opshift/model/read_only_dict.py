"""Dictionary that cannot be modified, for data that all callers and threads share."""

from __future__ import annotations

from typing import Generic, NoReturn, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


def _refuse(self: object, *args: object, **kwargs: object) -> NoReturn:
    raise TypeError("shared data is read-only; copy it with dict(...) and modify the copy")


# Not a MappingProxyType: that can be neither pickled nor serialized by `json` and pydantic.
class ReadOnlyDict(dict[Key, Value], Generic[Key, Value]):
    """Dictionary whose methods that modify it raise TypeError; `|` and `copy` return a plain one."""

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = _refuse
    setdefault = update = _refuse  # pyright: ignore[reportAssignmentType]  # they are overloaded

    def __reduce__(self) -> tuple[type[ReadOnlyDict[Key, Value]], tuple[dict[Key, Value]]]:
        """Pickle and copy through the constructor: the default sets the items one by one."""
        return type(self), (dict(self),)


def read_only(value: object) -> object:
    """Return a value with read-only dictionaries instead of plain ones, nested ones included."""
    if type(value) is dict:
        return ReadOnlyDict({key: read_only(each) for key, each in value.items()})
    return value
