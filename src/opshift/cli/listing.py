"""`opshift list`, `opshift resolve` and `opshift targets`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
from opshift.cli.output import Column, Page, counted, emit
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain

if TYPE_CHECKING:
    from opshift.registry.catalogue import Registry
    from opshift.registry.models import OperatorVersion
    from opshift.registry.releases import Release


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


def targets(form: FormatOption = Format.TEXT) -> None:
    """List the releases that --target can name.

    These are ONNX's and onnxruntime's, each with its opsets and IR version.
    """
    releases = registry_with(None).releases
    products = {"onnx": releases.onnx, "onnxruntime": releases.onnxruntime}

    def write(page: Page) -> None:
        for position, (product, known) in enumerate(products.items()):
            (page.heading if position else page.title)(product)
            _write_releases(page, product, known)

    emit(form, {product: _releases(product, known) for product, known in products.items()}, write)


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


def _write_releases(page: Page, product: str, known: Mapping[str, Release]) -> None:
    domains = list(dict.fromkeys(domain for release in known.values() for domain in release.opsets))
    columns = [Column("target", style="cyan"), Column("IR version", is_number=True)]
    columns += [Column(domain, is_number=True) for domain in domains]
    rows = [
        (f"{product}-{version}", release.ir_version, *(release.opsets.get(each, "") for each in domains))
        for version, release in known.items()
    ]
    page.table(columns, rows)


def _releases(product: str, known: Mapping[str, Release]) -> list[dict[str, Any]]:
    return [
        {"target": f"{product}-{version}", **release.model_dump(exclude_defaults=False)}
        for version, release in known.items()
    ]
