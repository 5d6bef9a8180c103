"""`opshift list` and `opshift resolve`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from opshift.cli.naming import find, read_name
from opshift.cli.options import (
    DomainOption,
    FoldersOption,
    Format,
    FormatOption,
    OperatorArgument,
    OpsetOption,
    registry_with,
)
from opshift.cli.output import Column, counted, emit
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.cli.page import Page
    from opshift.registry.catalogue import Registry
    from opshift.registry.models import OperatorVersion


def resolve(
    operator: OperatorArgument,
    opset: OpsetOption = None,
    domain: DomainOption = None,
    folders: FoldersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Print the operator version in force at an opset."""
    found = find(read_name(operator, domain, opset), registry_with(folders))
    if form is Format.TEXT:
        typer.echo(found.id)
    else:
        emit(form, {**_entry(found), "status": found.status}, lambda page: None)


def list_operators(
    domain: DomainOption = None,
    opset: OpsetOption = None,
    folders: FoldersOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """List the operators in force at an opset.

    Without --domain all domains are listed; --opset is then the default domain's, and the others are as in
    the ONNX release that brought it.
    """
    registry = registry_with(folders)
    opsets = _opsets(registry, domain, opset)
    found = {each: list(_in_force(registry, each, at)) for each, at in opsets.items()}

    def write(page: Page) -> None:
        for position, (each, versions) in enumerate(found.items()):
            title = f"{each}, opset {opsets[each]}: {counted(len(versions), 'operator')}"
            (page.heading if position else page.title)(title)
            page.table(COLUMNS, [(version.name, version.id, _note(version)) for version in versions])

    data = [
        {"domain": each, "opset": opsets[each], "operators": [_entry(version) for version in versions]}
        for each, versions in found.items()
    ]
    emit(form, {"domains": data}, write)


COLUMNS = (Column("operator"), Column("version", style="cyan"), Column("note", style="yellow"))


def _opsets(registry: Registry, domain: str | None, opset: int | None) -> dict[str, int]:
    """The opset of each domain to list.

    Raises:
        UnknownDomain, UnknownOpset: there are no such.
    """
    from opshift.converter.target import read_target

    stated = canonical_domain(domain or "")
    if opset is not None:
        read_target({stated: opset}, registry)
    if domain is not None:
        return {stated: opset or registry.newest_opset(stated)}
    newest = {each: registry.newest_opset(each) for each in registry.domains()}
    release = registry.releases.first_with(DEFAULT_DOMAIN, opset) if opset else None
    if opset is None or release is None:
        return newest
    ours = {each for known in registry.releases.onnx.values() for each in known.opsets}
    added = {each: at for each, at in newest.items() if each not in ours}
    return {**release.opsets, DEFAULT_DOMAIN: opset, **added}


def _in_force(registry: Registry, domain: str, opset: int) -> Iterator[OperatorVersion]:
    versions = (registry.at(name, opset, domain) for name in registry.names(domain))
    return (version for version in versions if version)


def _entry(version: OperatorVersion) -> dict[str, Any]:
    return {
        "operator": str(version.id),
        "domain": version.domain,
        "op_type": version.name,
        "since_version": version.since_version,
        "deprecated": version.deprecated,
    }


def _note(version: OperatorVersion) -> str:
    if version.deprecation:
        instead = version.deprecation.replaced_by
        return f"deprecated, use {instead}" if instead else "deprecated"
    return "experimental" if version.status == "EXPERIMENTAL" else ""
