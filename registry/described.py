"""Base of the records that have a text, and the texts of an operator version as files list them."""

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Annotated, Final, Self

from opshift.registry.record import Checked, Record

TEXT_LOADER: Final = "_load_texts"
"""The key in `__dict__` of the function that loads the texts of a precompiled record."""

DETAILS: Final = ("inputs", "outputs", "attributes", "type_constraints", "body", "step")
"""Fields of a precompiled operator version that are decoded when one of them is first read.

Their defaults are factories, for the same reason as that of `Described.description`."""

DETAILS_LOADER: Final = "_load_details"
"""The key in `__dict__` of the function that decodes these fields."""


def _refuse(text: object) -> object:
    raise ValueError("texts belong in `descriptions` of the version")


_Text = Annotated[str, Checked(before=_refuse)]


class Described(Record):
    """Base of records with a text; that of a precompiled record is loaded when it is first read.

    Texts are not compared: they may be improved without a change of the definition. `DETAILS` of operator
    versions are decoded late, too, because a conversion reads those of few versions.
    """

    # A factory leaves no default in the class, so `__getattr__` is called for a text that is not loaded.
    description: _Text = field(default_factory=str, compare=False, repr=False)

    @classmethod
    def from_valid(cls, values: Mapping[str, object]) -> Self:
        """Return an instance with the fields of a valid one that was stored, without texts and details."""
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
        """Let the first read of the text, which is not set, call a function that sets it."""
        self.__dict__[TEXT_LOADER] = load

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
