"""Base of the records that have a text, and the texts of an operator version as files list them."""

from dataclasses import field, fields
from typing import TYPE_CHECKING, Annotated, Final

from opshift.registry.record import Checked, Record

TEXT_LOADER: Final = "_load_texts"
"""The key in `__dict__` of the function that loads the texts of a precompiled record."""


def _refuse(text: object) -> object:
    raise ValueError("texts belong in `descriptions` of the version")


_Text = Annotated[str, Checked(before=_refuse)]


class Described(Record):
    """Base of records with a text; that of a precompiled record is loaded when it is first read.

    Texts are not compared: they may be improved without a change of the definition.
    """

    # A factory leaves no default in the class, so `__getattr__` is called for a text that is not loaded.
    description: _Text = field(default_factory=str, compare=False, repr=False)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Load all texts of the operator if the attribute is one of them."""
            if TEXT_LOADER not in self.__dict__ or name not in self.__dataclass_fields__:
                raise AttributeError(name)
            self.__dict__[TEXT_LOADER]()
            return self.__dict__[name]

    def __getstate__(self) -> dict[str, object]:
        """Return the fields with loaded texts, because a function that loads them cannot be pickled."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Descriptions(Record):
    """Texts of an operator version, by name; a file omits those that equal the previous version's."""

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
