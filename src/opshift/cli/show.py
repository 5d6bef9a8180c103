"""`opshift show`: definition and history of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opshift.cli.naming import Named, find, homes, read_name
from opshift.cli.options import (
    DomainOption,
    FoldersOption,
    Format,
    FormatOption,
    OperatorArgument,
    OpsetOption,
    registry_with,
)
from opshift.cli.output import emit

if TYPE_CHECKING:
    from opshift.cli.history import Entry
    from opshift.cli.page import Page
    from opshift.registry.catalogue import Registry
    from opshift.registry.models import Operator, OperatorVersion


def show(
    operator: OperatorArgument,
    opset: OpsetOption = None,
    domain: DomainOption = None,
    folders: FoldersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Show an operator: signature, description and all versions.

    The signature is that of the version at the opset (default: newest). The history lists for each version
    the change, and how nodes are converted from the previous version and back.
    """
    from opshift.cli.history import history

    registry = registry_with(folders)
    version, definition = _find(read_name(operator, domain, opset), registry)
    entries = list(history(definition))
    data = {**_data(version), "history": [each.as_dict() for each in entries]}
    emit(form, data, lambda page: _write(page, version, entries, registry))


def _find(named: Named, registry: Registry) -> tuple[OperatorVersion, Operator]:
    """Return the version to show and its operator; without an opset, removed operators are found, too.

    Raises:
        ResolveError: the operator does not exist, or not at the requested opset.
    """
    domains = homes(named.op_type, registry)
    if named.domain is None and len(domains) == 1:
        named = named._replace(domain=domains[0])
    operator = registry.operator(named.op_type, named.domain or "")
    if operator is None or named.opset is not None:
        version = find(named, registry)
        operator = registry.operator(version.name, version.domain)
        assert operator is not None
        return version, operator
    return operator.versions[-1], operator


def _write(page: Page, version: OperatorVersion, entries: list[Entry], registry: Registry) -> None:
    from opshift.cli.signature import write_history, write_signature
    from opshift.cli.typenames import type_sets

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
    write_signature(page, version, type_sets(registry))
    write_history(page, entries)


def _availability(version: OperatorVersion, entries: list[Entry]) -> str:
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


def _data(version: OperatorVersion) -> dict[str, Any]:
    from opshift.registry.record import plain

    fields = plain(version, exclude={"step", "removal", "before"})
    removal = version.removal and plain(version.removal, exclude={"up"})
    return {"operator": str(version.id), **fields, "removal": removal}
