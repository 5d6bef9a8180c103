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
    """Print the version of an operator at an opset."""
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
    """List the operators of an opset.

    Without --domain, all domains are listed: ai.onnx at --opset, and the other domains at the opsets of the
    ONNX release that introduced this opset.
    """
    registry = registry_with(folders)
    opsets = _opsets(registry, domain, opset)
    found = {each: list(_versions_at(registry, each, at)) for each, at in opsets.items()}

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
    """Return the opset of each domain to list.

    Raises:
        UnknownDomain: the registry has no definitions for the domain.
        UnknownOpset: the domain has no such opset.
    """
    from opshift.converter.target import read_target

    canonical = canonical_domain(domain or "")
    if opset is not None:
        read_target({canonical: opset}, registry)
    if domain is not None:
        return {canonical: opset or registry.newest_opset(canonical)}
    newest = {each: registry.newest_opset(each) for each in registry.domains()}
    release = registry.releases.first_with(DEFAULT_DOMAIN, opset) if opset else None
    if opset is None or release is None:
        return newest
    # domains that no ONNX release contains have no opset at that time: list the newest
    released = {each for onnx_release in registry.releases.onnx.values() for each in onnx_release.opsets}
    added = {each: at for each, at in newest.items() if each not in released}
    return {**release.opsets, DEFAULT_DOMAIN: opset, **added}


def _versions_at(registry: Registry, domain: str, opset: int) -> Iterator[OperatorVersion]:
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
