"""`opshift show`: definition and history of an operator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from opshift.cli.operator_history import HistoryEntry
from opshift.cli.operator_text import (
    OperatorReference,
    domains_with,
    find_version,
    parse_operator,
    summarize_types,
)
from opshift.cli.options import (
    DefinitionsOption,
    DomainOption,
    Format,
    FormatOption,
    OperatorArgument,
    OpsetOption,
    registry_with,
)
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.type_sets import TypeSets

if TYPE_CHECKING:
    from opshift.registry.models import Operator
    from opshift.registry.registry import Registry


def show(
    operator: OperatorArgument,
    opset: OpsetOption = None,
    domain: DomainOption = None,
    folders: DefinitionsOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show an operator: signature, description and all versions.

    The signature is that of the version at the opset (default: newest). The history lists for each version
    the change, and how nodes are converted from the previous version and back.
    """
    from opshift.cli.operator_history import history_of

    registry = registry_with(folders)
    version, definition = _find(parse_operator(operator, domain, opset), registry)
    entries = list(history_of(definition))
    data = {**_data(version), "history": [each.as_dict() for each in entries]}
    print_result(form, data, lambda page: _write(page, version, entries, registry))


def _find(named: OperatorReference, registry: Registry) -> tuple[OperatorVersion, Operator]:
    """Return the version to show and its operator; without an opset, removed operators are found, too.

    Raises:
        ResolveError: the operator does not exist, or not at the requested opset.
    """
    domains = domains_with(named.op_type, registry)
    if named.domain is None and len(domains) == 1:
        named = named._replace(domain=domains[0])
    operator = registry.operator(named.op_type, named.domain or "")
    if operator is None or named.opset is not None:
        version = find_version(named, registry)
        operator = registry.operator(version.name, version.domain)
        assert operator is not None
        return version, operator
    return operator.versions[-1], operator


def _write(page: Page, version: OperatorVersion, entries: list[HistoryEntry], registry: Registry) -> None:
    from opshift.cli.operator_text import load_type_sets

    page.line(str(version.id), style="bold cyan")
    page.line(_availability(version, entries), style="dim")
    if version.deprecation:
        page.prose(_replacement_text("deprecated", version.deprecation), style="yellow")
    if version.removal:
        page.prose(
            _replacement_text(f"removed in opset {version.removal.removed_in}", version.removal),
            style="yellow",
        )
    page.blank()
    newest = entries[-1].version
    if version is not newest and version.description == newest.description:
        page.line(f"Description of version {newest.since_version}:", style="dim")
    page.prose(" ".join(version.description.split()))
    write_signature(page, version, load_type_sets(registry))
    write_history(page, entries)


def _availability(version: OperatorVersion, entries: list[HistoryEntry]) -> str:
    """Return the opsets of a version, its status and its determinism."""
    later = [
        each.version.since_version for each in entries if each.version.since_version > version.since_version
    ]
    end = version.removal.removed_in if version.removal else min(later, default=None)
    span = f"opsets {version.since_version} to {end - 1}" if end else f"since opset {version.since_version}"
    kind = {"non_deterministic": ", not deterministic", "unknown": ", possibly not deterministic"}
    return f"{span}, {version.status.lower()}{kind.get(version.determinism, '')}"


def _replacement_text(event: str, details: Any) -> str:
    """Format a deprecation or removal: `deprecated, replaced by Resize: ...`."""
    replacement = f", replaced by {details.replaced_by}" if details.replaced_by else ""
    return f"{event}{replacement}{f': {details.mapping}' if details.mapping else ''}"


def _data(version: OperatorVersion) -> dict[str, object]:
    from opshift.registry.record import to_plain_data

    fields = to_plain_data(version, exclude={"step", "removal", "before"})
    removal = version.removal and to_plain_data(version.removal, exclude={"up"})
    return {"operator": str(version.id), **fields, "removal": removal}


NAME_COLUMN = Column("name", style="cyan")


def write_signature(page: Page, version: OperatorVersion, sets: TypeSets) -> None:
    """Print the inputs, outputs, attributes and type constraints of a version; omit empty tables."""
    for title, parameters in (("Inputs", version.inputs), ("Outputs", version.outputs)):
        if parameters:
            page.heading(title)
            rows = [(each.name, each.type, _option(each)) for each in parameters]
            page.table((NAME_COLUMN, Column("type"), Column("")), rows)
    if version.attributes:
        page.heading("Attributes")
        columns = (NAME_COLUMN, Column("type"), Column("default"), Column("values"))
        page.table(columns, [_attribute(*each) for each in version.attributes.items()])
    if version.type_constraints:
        page.heading("Types")
        types = {variable: summarize_types(each, sets) for variable, each in version.type_constraints.items()}
        page.table((NAME_COLUMN, Column("allowed types")), types.items())


def write_history(page: Page, entries: list[HistoryEntry]) -> None:
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


def _entry(entry: HistoryEntry) -> Iterator[tuple[object, str, str]]:
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
