"""`opshift show`: definition and history of an operator."""

from collections.abc import Iterator, Sequence

from opshift.catalogue.function_text import function_text
from opshift.catalogue.history import HistoryEntry, history_of
from opshift.catalogue.signature import attribute_texts, availability, option_text, replacement_text
from opshift.catalogue.words import summarize_types
from opshift.cli import options
from opshift.cli.errors import names_in_arguments
from opshift.cli.options import Format, registry_with
from opshift.cli.output import print_result
from opshift.cli.page import Column, Page
from opshift.cli.registry import operator_text
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.requirements import requirements_of


@names_in_arguments()
def show(
    operator: options.OperatorArgument,
    opset: options.OpsetOption = None,
    domain: options.DomainOption = None,
    folders: options.DefinitionsOption = None,
    form: options.FormatOption = Format.TEXT,
) -> None:
    """Show an operator: signature, descriptions and all versions.

    The signature is that of the version at the opset (default: newest). The history lists for each version
    the change, and how nodes are converted from the previous version and back.
    """
    registry = registry_with(folders)
    named = operator_text.parse_operator(operator, domain, opset)
    version, definition = _find_operator(named, registry)
    entries = list(history_of(definition))

    def data() -> dict[str, object]:
        return {**version.to_dict(), "history": [each.as_dict() for each in entries]}

    print_result(form, data, lambda page: _write_operator(page, version, entries, registry))


def _find_operator(
    named: operator_text.OperatorReference, registry: Registry
) -> tuple[OperatorVersion, Operator]:
    """Return the version to show and its operator; without an opset, removed operators are found, too."""
    domains = operator_text.domains_with(named.op_type, registry)
    if named.domain is None and len(domains) == 1:
        named = named._replace(domain=domains[0])
    operator = registry.operator(named.op_type, named.domain or "")
    if operator is None or named.opset is not None:
        version = operator_text.find_version(named, registry)
        operator = registry.operator(version.name, version.domain)
        assert operator is not None
        return version, operator
    return operator.versions[-1], operator


def _write_operator(
    page: Page, version: OperatorVersion, entries: list[HistoryEntry], registry: Registry
) -> None:
    page.line(str(version.id), style="bold cyan")
    page.line(availability(version, entries))
    if version.deprecation:
        page.prose(replacement_text("deprecated", version.deprecation), style="bold magenta")
    if version.removal:
        event = f"removed in opset {version.removal.removed_in}"
        page.prose(replacement_text(event, version.removal), style="bold magenta")
    page.blank()
    page.prose(" ".join(version.description.split()))
    _write_signature(page, version, registry)
    if version.has_function:
        page.heading("Function body")
        for line in function_text(version, registry).lines:
            page.line(line)
    page.heading("History")
    columns = (Column("since", is_number=True, style="cyan"), "", "")
    page.table(columns, [row for entry in entries for row in _history_rows(entry)])


def _write_signature(page: Page, version: OperatorVersion, registry: Registry) -> None:
    """Print inputs, outputs, attributes, type constraints and requirements; omit what is empty."""
    for title, parameters in (("Inputs", version.inputs), ("Outputs", version.outputs)):
        rows = [(each.name, each.type, option_text(each), each.description) for each in parameters]
        _write_table(page, title, ("type", ""), rows)
    attributes = [attribute_texts(*each) for each in version.attributes.items()]
    _write_table(page, "Attributes", ("type", "default", "values"), attributes)
    sets = registry.types
    types = [
        (name, summarize_types(types, sets), version.type_descriptions.get(name, ""))
        for name, types in version.type_constraints.items()
    ]
    _write_table(page, "Types", ("allowed types",), types)
    requirements = requirements_of(version)
    if requirements:
        page.heading("Requirements")
        for each in requirements:
            page.line(each.text)


def _write_table(page: Page, title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table unless it has no rows; omit the last column, the descriptions, if it is empty."""
    columns = [Column("name", style="cyan"), *map(Column, headings)]
    if any(row[-1] for row in rows):
        columns.append(Column("description"))
    if rows:
        page.heading(title)
        page.table(columns, [row[: len(columns)] for row in rows])


def _history_rows(entry: HistoryEntry) -> Iterator[tuple[object, str, str]]:
    version, before = entry.version, entry.before
    facts = [("change", entry.change or "first version")]
    if entry.arriving:
        older = version.since_version - 1
        facts += [(f"down to {older}" if older else f"without {version.domain}", str(entry.arriving))]
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
