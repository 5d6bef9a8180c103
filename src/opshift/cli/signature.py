"""Tables of `opshift show`."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.cli.history import Entry
from opshift.cli.output import Column
from opshift.cli.page import Page
from opshift.cli.typenames import summed_up
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.type_sets import TypeSets

NAME = Column("name", style="cyan")


def write_signature(page: Page, version: OperatorVersion, sets: TypeSets) -> None:
    """Print the inputs, outputs, attributes and type constraints of a version; omit empty tables."""
    for title, parameters in (("Inputs", version.inputs), ("Outputs", version.outputs)):
        if parameters:
            page.heading(title)
            rows = [(each.name, each.type, _option(each)) for each in parameters]
            page.table((NAME, Column("type"), Column("")), rows)
    if version.attributes:
        page.heading("Attributes")
        columns = (NAME, Column("type"), Column("default"), Column("values"))
        page.table(columns, [_attribute(*each) for each in version.attributes.items()])
    if version.type_constraints:
        page.heading("Types")
        types = {variable: summed_up(each, sets) for variable, each in version.type_constraints.items()}
        page.table((NAME, Column("allowed types")), types.items())


def write_history(page: Page, entries: list[Entry]) -> None:
    """Print the change of each version, and how nodes are converted to it and back."""
    page.heading("History")
    columns = (Column("since", is_number=True, style="cyan"), Column("", style="dim"), Column(""))
    page.table(columns, [row for entry in entries for row in _entry(entry)])


def _option(parameter: Parameter) -> str:
    if parameter.option != "variadic":
        return "" if parameter.option == "single" else parameter.option
    kind = "" if parameter.homogeneous else ", of any types"
    return f"variadic, at least {parameter.min_arity}{kind}"


def _attribute(name: str, attribute: Attribute) -> tuple[str, str, str, str]:
    default = _value(attribute.default) if attribute.default is not None else attribute.absent
    return (
        name,
        attribute.type,
        "required" if attribute.required else default or "none",
        _allowed_values(attribute),
    )


def _allowed_values(attribute: Attribute) -> str:
    if attribute.values is not None:
        return ", ".join(map(_value, attribute.values))
    low, high = attribute.minimum, attribute.maximum
    if low is None and high is None:
        return ""
    if high is None:
        return f"at least {_value(low)}"
    return f"at most {_value(high)}" if low is None else f"{_value(low)} to {_value(high)}"


def _value(value: object) -> str:
    """Format an attribute value; a list is put in brackets."""
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        text = f"{value:.7g}"  # a float32 has about 7 significant digits
        return f"{text}.0" if text.lstrip("-").isdecimal() else text
    return str(value) or "''"


def _entry(entry: Entry) -> Iterator[tuple[object, str, str]]:
    version, before = entry.version, entry.before
    facts = [("change", entry.change or "first version")]
    if entry.arriving:
        facts += [(f"down to {version.since_version - 1}", str(entry.arriving))]
    if before:
        facts += [(f"up from {before.since_version}", str(entry.up))]
        facts += [(f"down to {before.since_version}", str(entry.down))]
    if version.status == "EXPERIMENTAL":
        facts += [("status", "experimental")]
    if version.deprecation:
        facts += [("deprecated", version.deprecation.mapping or "yes")]
    if version.removal:
        facts += [(f"removed in {version.removal.removed_in}", str(entry.leaving))]
    yield (version.since_version, *facts[0])
    yield from (("", *fact) for fact in facts[1:])
