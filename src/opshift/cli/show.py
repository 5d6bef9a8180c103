"""`opshift show`: an operator's definition, and how its versions turn into each other."""

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
    """Show an operator: signature, meaning, and all its versions.

    The version shown is the one in force at the opset, by default the newest. The history says of each
    version what changed, and how nodes are taken to it from the version before, and back.
    """
    from opshift.cli.history import history

    registry = registry_with(folders)
    version, whole = _find(read_name(operator, domain, opset), registry)
    entries = list(history(whole))
    data = {**_data(version), "history": [each.as_dict() for each in entries]}
    emit(form, data, lambda page: _write(page, version, entries, registry))


def _find(named: Named, registry: Registry) -> tuple[OperatorVersion, Operator]:
    """The version to show, also of an operator that is no more, and all versions.

    Raises:
        ResolveError: there is none, or none at the opset that was asked for.
    """
    where = homes(named.op_type, registry)
    if named.domain is None and len(where) == 1:
        named = named._replace(domain=where[0])
    whole = registry.operator(named.op_type, named.domain or "")
    if whole is None or named.opset is not None:
        version = find(named, registry)
        whole = registry.operator(version.name, version.domain)
        assert whole is not None
        return version, whole
    return whole.versions[-1], whole


def _write(page: Page, version: OperatorVersion, entries: list[Entry], registry: Registry) -> None:
    from opshift.cli.signature import write_history, write_signature
    from opshift.cli.typenames import type_sets

    page.line(str(version.id), style="bold cyan")
    page.line(_in_force(version, entries), style="dim")
    if version.deprecation:
        page.prose(_replaced("deprecated", version.deprecation), style="yellow")
    if version.removal:
        page.prose(
            _replaced(f"removed in opset {version.removal.removed_in}", version.removal), style="yellow"
        )
    page.blank()
    newest = entries[-1].version
    if version is not newest and version.description == newest.description:
        page.line(f"Described as of version {newest.since_version}:", style="dim")
    page.prose(" ".join(version.description.split()))
    write_signature(page, version, type_sets(registry))
    write_history(page, entries)


def _in_force(version: OperatorVersion, entries: list[Entry]) -> str:
    """Since when, until when, and of what kind."""
    later = [
        each.version.since_version for each in entries if each.version.since_version > version.since_version
    ]
    end = version.removal.removed_in if version.removal else min(later, default=None)
    span = f"opsets {version.since_version} to {end - 1}" if end else f"since opset {version.since_version}"
    kind = {"non_deterministic": ", not deterministic", "unknown": ", maybe not deterministic"}
    return f"{span}, {version.status.lower()}{kind.get(version.determinism, '')}"


def _replaced(what: str, fact: Any) -> str:
    """`deprecated, replaced by Resize: ...`."""
    instead = f", replaced by {fact.replaced_by}" if fact.replaced_by else ""
    return f"{what}{instead}{f': {fact.mapping}' if fact.mapping else ''}"


def _data(version: OperatorVersion) -> dict[str, Any]:
    from opshift.registry.record import plain

    fields = plain(version, exclude={"step", "removal", "before"})
    removal = version.removal and plain(version.removal, exclude={"up"})
    return {"operator": str(version.id), **fields, "removal": removal}
