"""Errors with a reason, a place and a remedy, and type checks of arguments that raise them."""

import copyreg
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, TypeGuard

from opshift.model.locations import without_secrets, without_secrets_of
from opshift.model.shared_data import FrozenRecord

UNKNOWN_ELEMENT_TYPE = "unknown.element-type"
"""Code of refusals because of an unknown element type."""

UNKNOWN_SHAPE = "unknown.shape"
"""Code of refusals because of an unknown rank or size."""

UNKNOWN_CONSTANT = "unknown.constant"
"""Code of refusals because a value is not constant, such as a shape that an emitted node reads."""

NOT_ALLOWED = "deviation.not-allowed"
"""Code of refusals of conversions that are possible if the caller allows a deviation."""


class Place(FrozenRecord):
    """A location: a line and column of a file, or a node of a model."""

    file: str = ""
    line: int = 0
    node: str = ""
    column: int = 0

    def __str__(self) -> str:
        file = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(filter(None, (file, self.node)))


class OpshiftError(Exception):
    """Base class of all errors that opshift raises deliberately.

    Attributes:
        reason: the problem, in one sentence.
        place: the location as a `Place`; empty if the whole input is concerned.
        remedy: advice on how to fix the problem; may be empty.
    """

    def __init__(self, reason: str, *, place: Place | str = "", remedy: str = "") -> None:
        self.place = Place(node=place) if isinstance(place, str) else place
        location = str(self.place)
        if "://" in location:  # messages of libraries may quote credentials in URLs
            reason, remedy = (without_secrets_of(location, each) for each in (reason, remedy))
        self.reason, self.remedy = reason, remedy
        super().__init__(reason)

    def __str__(self) -> str:
        where = f"{self.place}: " if str(self.place) else ""
        advice = f" ({self.remedy})" if self.remedy else ""
        return without_secrets(f"{where}{self.reason}{advice}")

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the fields; unpickling does not call `__init__`, because its parameters vary by class."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def as_dict(self) -> dict[str, str]:
        """Return the fields for JSON output, without the credentials of URLs."""
        return {
            "error": type(self).__name__,
            "reason": without_secrets(self.reason),
            "place": without_secrets(str(self.place)),
            "remedy": without_secrets(self.remedy),
        }


class InvalidModel(OpshiftError):
    """The input is not a model, or its structure is invalid."""

    concerns_order = False
    """Whether a node or output refers to a value that no earlier node produces; sorting the nodes may help.
    """


def not_utf8_error(place: Place | str = "") -> InvalidModel:
    """Return the error about a name that is not UTF-8 text."""
    return InvalidModel("a name in the model is not UTF-8 text", place=place, remedy="write names as UTF-8")


class UsageError(OpshiftError):
    """An argument is invalid, such as an output path that equals the input path."""


class CannotWrite(OpshiftError):
    """The output cannot be written, for example to a full disk; an existing file remains unchanged."""


class NodeError(OpshiftError):
    """A node cannot be converted.

    Attributes:
        code: the cause, a key of `opsets/refusals.yaml`.
        subject: the element type, attribute or similar that causes the refusal; may be empty.
        nearest: the opset nearest to the target that the node can be converted to; 0 if it is unknown.
    """

    code: str
    subject = ""
    nearest = 0


class CannotConvert(NodeError):
    """A node cannot be converted exactly to the requested operator version.

    The reason names the property of the node that prevents the conversion, and the remedy a change to the
    model that helps. Adapters of private domains may omit the code.
    """

    def __init__(
        self,
        reason: str,
        code: str = "adapter.refused",
        *,
        subject: str = "",
        place: Place | str = "",
        remedy: str = "",
    ) -> None:
        super().__init__(reason, place=place, remedy=remedy)
        self.code, self.subject = code, subject


class UnknownElementType(CannotConvert):
    """A node cannot be converted because the element type of a value is unknown.

    Args:
        name: name of the value.
        reason: a more specific problem; by default, that the element type is unknown.
    """

    def __init__(self, name: str, reason: str = "") -> None:
        remedy = f"declare the type of {name!r}, in its graph input or with a value_info"
        super().__init__(
            reason or f"the element type of {name!r} is unknown", UNKNOWN_ELEMENT_TYPE, remedy=remedy
        )


UnknownFactKind = Literal["rank", "shape", "elements"]
"""Kind of an unknown fact about a value. Elements matter for inputs that list sizes, as in Reshape."""


class UnknownShape(CannotConvert):
    """A node cannot be converted because the rank or a size of a value is unknown.

    Attributes:
        values: names of the values with an unknown rank or size, in the step that raises the error.
        otherwise: an alternative to declaring the shapes of these values; may be empty.
        causes: inputs of the node that cause the error, each with its kind of unknown fact; `None` until the
            inputs are determined.
    """

    causes: tuple[tuple[str, UnknownFactKind], ...] | None = None

    def __init__(self, reason: str, *values: str, otherwise: str = "") -> None:
        self.values = values
        self.otherwise = otherwise
        advice = f"declare the shape of {' and '.join(map(repr, values))}"
        remedy = f"{advice}, or {otherwise}" if otherwise else advice
        super().__init__(reason, UNKNOWN_SHAPE, remedy=remedy)


def wrong_type(argument: str, value: object, expected: str) -> UsageError:
    """Return the error for an argument of a wrong type; `expected` describes the allowed values."""
    reason = f"expected {expected}, got {type(value).__name__}"
    return UsageError(reason, place=f"argument {argument}", remedy=f"pass {expected}")


def require_type(argument: str, value: object, types: type | tuple[type, ...], expected: str) -> None:
    """Raise UsageError unless an argument is an instance of one of the types."""
    if not isinstance(value, types):
        raise wrong_type(argument, value, expected)


def path_argument(argument: str, value: object) -> Path:
    """Return an argument as a path; raise UsageError for other types, an empty text and a null character.

    `Path` would read an empty text as the current folder.
    """
    text: object = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise wrong_type(argument, value, "a path")
    if not text or "\0" in text:
        reason = "the path has a null character" if text else "the path is empty"
        raise UsageError(reason, place=f"argument {argument}", remedy="pass the path of a file or folder")
    return Path(text)


def path_arguments(argument: str, values: object) -> tuple[Path, ...]:
    """Return one or several paths as a tuple, empty for `None`; raise UsageError for other values."""
    if values is None:
        return ()
    if isinstance(values, str | os.PathLike):
        return (path_argument(argument, values),)
    if not is_collection(values):
        raise wrong_type(argument, values, "a path or several")
    return tuple(path_argument(argument, each) for each in values)


def is_collection(value: object) -> TypeGuard[Iterable[object]]:
    """Return whether a value has members; text, bytes and arrays without dimensions are single values."""
    if isinstance(value, str | bytes | bytearray | memoryview) or not isinstance(value, Iterable):
        return False
    return getattr(value, "shape", None) != ()


def require_collection(argument: str, value: object, expected: str) -> None:
    """Raise UsageError for a value that is not a collection; `expected` describes the allowed values."""
    if not is_collection(value):
        raise wrong_type(argument, value, expected)
