"""Arguments of public functions that are one value or several values."""

from collections.abc import Iterable


def members_of(argument: object) -> Iterable[object]:
    """Return the members of an iterable argument; a string or any other value counts as one member."""
    if isinstance(argument, str | bytes | bytearray) or not isinstance(argument, Iterable):
        return (argument,)
    return argument
