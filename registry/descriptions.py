"""Texts of operator versions: list, set and load the texts, and convert them to the key `descriptions`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from opshift.model.plain_data import Json
from opshift.model.shared_data import ReadOnlyDict
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import Described, Descriptions

Texts = Mapping[tuple[str, str], str]
"""Texts by group (a field of `Descriptions`) and name; for the group `operator`, the name is empty."""

GROUPS: Final = {"inputs": "input", "outputs": "output", "attributes": "attribute", "types": "type variable"}
"""Groups with one text per name, mapped to the noun for a name in messages."""


def texts_of(version: OperatorVersion) -> Texts:
    """Return all texts of a version; a missing text is an empty string."""
    return {
        ("operator", ""): version.description,
        **{("inputs", each.name): each.description for each in version.inputs},
        **{("outputs", each.name): each.description for each in version.outputs},
        **{("attributes", name): each.description for name, each in version.attributes.items()},
        **{("types", name): version.type_descriptions.get(name, "") for name in version.type_constraints},
    }


def set_texts(version: OperatorVersion, texts: Iterable[str]) -> None:
    """Set the texts of a frozen version in place; `texts` are in the order of `texts_of`."""
    left = iter(texts)
    for record in _described_records(version):
        object.__setattr__(record, "description", next(left))
    types = ReadOnlyDict(zip(version.type_constraints, left, strict=True))
    object.__setattr__(version, "type_descriptions", types)


def set_texts_on_demand(operator: Operator, load: Callable[[], Iterable[Iterable[str]]]) -> None:
    """Load all texts when the first one is read; call this before `record.DETAILS` are decoded."""

    def load_all() -> None:
        for version, texts in zip(operator.versions, load(), strict=True):
            set_texts(version, texts)

    for version in operator.versions:
        version.defer_text(load_all)


def flatten(descriptions: Descriptions) -> Texts:
    """Return the content of the YAML key `descriptions` as texts by group and name."""
    named = {(g, name): text for g in GROUPS for name, text in getattr(descriptions, g).items()}
    return {("operator", ""): descriptions.operator} | named


def descriptions_block(texts: Texts) -> dict[str, Json]:
    """Return texts as the content of the YAML key `descriptions`, the reverse of `flatten`."""
    groups = {g: {name: text for (group, name), text in texts.items() if group == g} for g in GROUPS}
    own = {group: text for (group, name), text in texts.items() if not name}
    return {**own, **{group: named for group, named in groups.items() if named}}


def _described_records(version: OperatorVersion) -> tuple[Described, ...]:
    return (version, *version.inputs, *version.outputs, *version.attributes.values())
